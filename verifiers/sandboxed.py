"""`sandboxed:module:attr`: calls any Python verifier or scoring function inside the sandbox."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from verifiers.core import Completion, Problem, Verdict
from verifiers.extract import final_answer
from verifiers.sandbox.packages import fingerprint
from verifiers.sandbox.scorer import Scorer, limits
from verifiers.sandbox.threads import verdicts
from verifiers.segments import answering_span

_OPTIONS = {"isolation", "packages", "evaluates", "time_s", "memory_mib", "servers"}


class Sandboxed:
    """Calls the Python object `module:attr` where neither it nor an answer can reach this machine.

    The object is imported only inside the sandbox, once per fork-server; each call runs in its own process. It may be

        f(problem, completion)   a verifier: returns a Verdict, a number in [0, 1], or None to abstain
        f(answer, gold)          a scoring function of two texts: the final answer, and `Problem.answer`
        f(answer, entry)         the same with a mapping: `meta["entry"]`, or the row without it

    or a class whose instances are called in these ways. If the first parameter is called `answer`, it is a scoring
    function. Inside the sandbox it can read its own package, what that requires or imports, and `verifiers`; there is
    no network.

    Reasons: its own; `ok` and `zero` for numbers, `no_answer` for a scoring function without an answer to score. An
    answer on which it raises, hangs or dies scores 0 (`raised`, `timeout`, `memory`, `crashed`) if it works on the
    problem's own answer; otherwise the scorer is broken and the completion unscored. A score that is not finite or
    outside [0, 1] also leaves the completion unscored.

    Args:
        target: "module:attr".
        sandbox: `packages` (further modules it imports), `time_s` (CPU, 5), `memory_mib` (1024), `servers` (one per
            core), `isolation` (as for the code verifier), and `evaluates`: True lets the scorer run code from an
            answer, which could forge the score; without it such an answer scores 0 (`code`).
        options: keyword arguments of the object.

    Raises: ValueError: no such module, or an unknown option. When called: VerifierError if it can't start or fails.
    """

    isolated = True

    def __init__(self, target: str, *, sandbox: Mapping[str, Any] | None = None, **options: Any) -> None:
        settings = dict(sandbox or {})
        unknown = sorted(set(settings) - _OPTIONS)
        if unknown:
            raise ValueError(f"sandbox has no option '{unknown[0]}'; it takes {', '.join(sorted(_OPTIONS))}")
        module, _, attribute = target.partition(":")
        if not (module and attribute):
            raise ValueError(f"'sandboxed:{target}' must be 'sandboxed:module:attr'")
        self._scorer = Scorer(
            target,
            options,
            more=tuple(settings.get("packages", ())),
            isolation=settings.get("isolation", "auto"),
            evaluates=bool(settings.get("evaluates", False)),
            servers=settings.get("servers"),
            limits=limits(settings.get("time_s", 5.0), settings.get("memory_mib", 1024)),
        )
        self.version = f"{target} {fingerprint(module)}"

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        """Judges one completion; safe from any thread."""
        span = final_answer(completion.text) or answering_span(completion.text)
        answer = completion.text[slice(*span)].strip() if span else ""
        row = _row(problem, completion, answer)
        gold = problem.answer or ""
        own = _row(problem, Completion(f"<think></think><answer>{gold}</answer>"), gold)
        found = self._scorer.verdict(row, own)
        return dataclasses.replace(found, span=span) if found.span is None and found.answer == answer else found

    def verify_many(self, pairs: Iterable[tuple[Problem, Completion]]) -> list[Verdict | Exception]:
        """Judges many pairs at once, in order. If an item raises, the exception takes the place of its verdict."""
        return verdicts(self, pairs, self._scorer.servers)

    def prepare(self) -> None:
        """Imports the scorer in the sandbox now, instead of during the first verdict."""
        self._scorer.prepare()

    @property
    def level(self) -> str:
        """The isolation level in force. Raises VerifierError if there is none."""
        return self._scorer.level

    def close(self) -> None:
        """Ends the servers; this also happens when the interpreter ends."""
        self._scorer.close()


def _row(problem: Problem, completion: Completion, answer: str) -> dict[str, Any]:
    entry = problem.meta.get("entry")
    return {
        "problem": {field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)},
        "completion": {field.name: getattr(completion, field.name) for field in dataclasses.fields(completion)},
        "answer": answer,
        "gold": problem.answer,
        "entry": dict(entry if isinstance(entry, Mapping) else problem.meta),
    }
