"""A share of the programs of stalling_programs.py at every level: each ends in a verdict of 0, in time and complete."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from processes_for_tests import descendants
from stalling_programs import Program, programs
from test_code_hacks import answer

from verifiers import Completion, Problem, Verdict, VerifierError
from verifiers.cores import cores
from verifiers.sandbox import REASONS, CodeVerifier, judge, probe
from verifiers.sandbox.languages import LANGUAGES, installed
from verifiers.sandbox.pool import Run, Usage

TIME_S, WALL_S = 0.1, 0.5
# One of so many programs at each level, another at each.
SHARES = [24, pytest.param(12, marks=pytest.mark.exhaustive)]
CASES = [[1, 2, 3], [10, 20, 30, 40]]
TESTS = {
    "function": {
        "style": "function",
        "entry_point": "solve",
        "args": [[xs] for xs in CASES],
        "outs": [*map(answer, CASES)],
    },
    "asserts": {
        "style": "asserts",
        "entry_point": "solve",
        "tests": [f"xs = {xs}\nassert solve(xs) == {answer(xs)}" for xs in CASES],
    },
    "stdin": {"style": "stdin", "inputs": ["3\n1 2 3\n"], "outputs": ["14\n"], "checker": "tokens"},
}
GOOD = {
    "function": "def solve(xs): return sum(x * x for x in xs) % 1009",
    "asserts": "def solve(xs): return sum(x * x for x in xs) % 1009",
    "stdin": "input()\nprint(sum(int(x) ** 2 for x in input().split()) % 1009)",
}
LEVELS = [level for level in ("full", "ns", "landlock", "rlimit-only") if level in probe.report().works]


def problem(item: Program) -> Problem:
    own = {"style": item.style, "entry_point": "solve", "tests": [item.test]}
    return Problem(tests=own if item.test else TESTS[item.style])


def wrong(verifier: CodeVerifier, chosen: list[Program]) -> list[str]:
    """Returns the results that are not a verdict of 0 with a known reason, or that can't be printed."""
    verdicts = verifier.verify_many([(problem(item), Completion(item.code)) for item in chosen])
    return [
        f"{item.name} {item.style}: {verdict!r:.300}"
        for item, verdict in zip(chosen, verdicts, strict=True)
        if not (isinstance(verdict, Verdict) and verdict.score == 0 and verdict.reason in REASONS)
        or not verdict.detail.replace("\n", "").isprintable()
    ]


def needs(language: str) -> None:
    """Skips the test if the language can't be run."""
    known = LANGUAGES[language]
    try:
        installed((*known.build, *known.start)[0])
    except VerifierError as error:
        pytest.skip(str(error))


def left_over(earlier: set[int]) -> list[str]:
    """Returns the processes below this one that are not servers of the sandbox."""
    names = []
    for pid in set(descendants(os.getpid())) - earlier:
        with contextlib.suppress(OSError):  # it has ended
            names.append(Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace"))
    return [name for name in names if name and "zygote" not in name]


def test_there_are_many_programs() -> None:
    found = programs()
    assert len({(item.code, item.test) for item in found}) >= 1_100
    assert {(item.language, item.style) for item in found} == {
        *(("python", style) for style in TESTS), ("cpp", "stdin"), ("javascript", "stdin"),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("level", LEVELS)
def test_every_program_is_a_verdict_and_leaves_nothing(level: str, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Usage] = []
    finish = Run.finish

    def noted(run: Run, patience_s: float | None = None) -> Usage:
        used.append(finish(run, patience_s))
        return used[-1]

    monkeypatch.setattr(Run, "finish", noted)
    earlier = set(descendants(os.getpid()))
    chosen = programs(native=False)[LEVELS.index(level) :: share]
    with CodeVerifier(
        isolation=level, servers=3, time_s=TIME_S, wall_s=WALL_S, memory_mib=128, disk_mib=16, output_mib=1
    ) as verifier:
        assert wrong(verifier, chosen) == []
        honest = [verifier(Problem(tests=TESTS[style]), Completion(code)) for style, code in GOOD.items()]
        assert [verdict.reason for verdict in honest] == ["AC"] * len(GOOD)
        assert left_over(earlier) == []
    # The test code has a second more, of both clocks. Where more wants to run than there are cores, all of it is late.
    late_s = 2 * max(1.0, 2 * os.getloadavg()[0] / cores())
    assert [one for one in used if one.wall_s - one.waited_s > WALL_S + late_s or one.cpu_s > TIME_S + 2] == []


@pytest.mark.slow
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("language", ["cpp", "javascript"])
def test_other_languages(language: str, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    needs(language)
    monkeypatch.setattr(judge, "_BUILD", replace(judge._BUILD, time_s=3))  # which some programs use up
    if not {"full", "ns"} & set(LEVELS):
        pytest.skip(f"no namespaces here: {probe.report().missing['ns']}")
    chosen = [item for item in programs() if item.language == language][:: share * 7 // 12]
    earlier = set(descendants(os.getpid()))
    with CodeVerifier(language=language, time_s=0.3, memory_mib=512) as verifier:
        assert wrong(verifier, chosen) == []
        assert left_over(earlier) == []


@pytest.mark.parametrize("level", [level for level in LEVELS if level not in ("full", "ns")])
def test_a_compiler_needs_processes(level: str) -> None:
    needs("cpp")
    with (
        CodeVerifier(isolation=level, language="cpp") as verifier,
        pytest.raises(VerifierError, match="'ns' or 'full'"),
    ):
        verifier(Problem(tests=TESTS["stdin"]), Completion("int main(){}"))


@pytest.mark.parametrize("level", LEVELS)
def test_javascript_runs_at_every_level(level: str) -> None:
    needs("javascript")
    with CodeVerifier(isolation=level, language="javascript") as verifier:
        verdict = verifier(Problem(tests=TESTS["stdin"]), Completion("console.log(14)"))
    assert (verdict.reason, verdict.score) == ("AC", 1.0), verdict.detail
