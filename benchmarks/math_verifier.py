"""Speed and correctness of the `math` verifier, compared with Math-Verify in the same run.

    python benchmarks/math_verifier.py [--data DIR] [--peer math-verify] [--pairs 6000] [--json FILE]

The peer needs a separate environment with it and the dependencies of `verifiers`:
    python -m venv peer && peer/bin/pip install 'math-verify[antlr4_13_2]==0.9.0' 'sympy>=1.13'
    peer/bin/python benchmarks/math_verifier.py --peer math-verify
Both take turns on the same chunks in one process on one core; times are CPU seconds. Sets that are not in DIR are
skipped.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from verifiers import Completion, GoldError, Problem, check_gold, resolve  # noqa: E402
from verifiers.audit.math_pairs import pairs  # noqa: E402
from verifiers.mathexpr.golds import read_gold  # noqa: E402

Judge = Callable[[str, str, str], bool]  # (gold, completion, prompt) -> paid
CHUNK = 50


class Row(NamedTuple):
    gold: str
    completion: str
    right: bool
    prompt: str = ""


def ours() -> Judge:
    verify = resolve("math")

    def judge(gold: str, completion: str, prompt: str) -> bool:
        try:
            return verify(Problem(prompt, gold), Completion(completion)).score == 1.0
        except GoldError:
            return False

    return judge


def math_verify() -> Judge:
    """Math-Verify as TRL and open-r1 call it: box first, both extractions, its own timeouts (SIGALRM) on."""
    try:
        from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
    except ImportError:
        sys.exit(f"--peer math-verify: it is not installed here.\n{__doc__}")
    config: Any = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())

    def judge(gold: str, completion: str, prompt: str) -> bool:
        wanted = parse(gold if "$" in gold else f"${gold}$", extraction_config=config) or parse(gold)
        return bool(verify(wanted, parse(completion, extraction_config=config)))

    return judge


WORDS = (
    "so we have the number of apples that she bought on the first day and then add what he gave her each week which"
    " is the total of money left after paying for all items in the shop before noon"
).split()


def _prose(rng: random.Random, count: int = 150) -> str:
    return " ".join(rng.choice(WORDS) if rng.random() > 0.1 else str(rng.randint(1, 99)) for _ in range(count))


FORMS: tuple[Callable[[str, str], str], ...] = (
    lambda prose, answer: f"<think>{prose}</think> <answer>{answer}</answer>",
    lambda prose, answer: f"{prose}. So the answer is \\boxed{{{answer}}}.",
    lambda prose, answer: f"{prose}.\n#### {answer}",
    lambda prose, answer: f"{prose}. The answer is {answer}.",
    lambda prose, answer: f"{prose}.\n\n**Answer:** {answer}",
)


def gsm_like(count: int = 2000) -> list[Row]:
    """150 words of reasoning and an integer answer, right in every other row, in five forms."""
    rng = random.Random(1)
    rows = []
    for index in range(count):
        value = rng.randint(2, 99_999)
        given = value if index % 2 else value + rng.choice((-10, -1, 1, 10, 100))
        text = f"{given:,}" if rng.random() < 0.3 else str(given)
        rows.append(Row(str(value), FORMS[index % len(FORMS)](_prose(rng), text), given == value))
    return rows


def math_like(data: Path, count: int = 500) -> list[Row]:
    """LaTeX answers of MATH-500 in another spelling, or another row's answer; generated ones where MATH is absent."""
    rng = random.Random(2)
    path = data / "math" / "math500_test.json"
    rows = []
    if path.is_file():
        golds = [str(row["answer"]) for row in json.loads(path.read_text(encoding="utf-8"))]
        for index in range(count):
            gold = golds[index % len(golds)]
            other = rng.choice(golds)
            given = gold if index % 2 else other
            spelled = given.replace("\\frac", "\\dfrac").replace(" ", "").replace("\\left", "").replace("\\right", "")
            spelled = spelled if "\\text" not in given and "\\begin" not in given else given
            same = index % 2 == 1 or read_gold(gold) == read_gold(other)
            rows.append(Row(gold, f"{_prose(rng)}. Therefore the answer is $\\boxed{{{spelled}}}$.", same))
        return rows
    kinds = ("rational", "surd", "tuple", "set", "interval", "polynomial", "complex", "matrix", "equation")
    return [Row(p.gold, f"{_prose(rng)}. {p.completion}", p.same) for p in pairs(count, seed=2, kinds=kinds)]


def labelled(data: Path, name: str) -> list[Row]:
    path = data / "verify_dev" / f"{name}.jsonl"
    if not path.is_file():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Row(row["gold"], row["completion"], row["expected"], row.get("question", "")) for row in rows]


def compared(rows: list[Row], judges: dict[str, Judge]) -> dict[str, dict[str, float]]:
    """For every judge: recall, specificity, answers per CPU second, CPU milliseconds (median and 95th percentile)."""
    spent: dict[str, list[float]] = {name: [] for name in judges}
    paid: dict[str, list[bool]] = {name: [] for name in judges}
    read_gold.cache_clear()
    for start in range(0, len(rows), CHUNK):
        for name, judge in judges.items():
            for row in rows[start : start + CHUNK]:
                before = time.process_time()
                paid[name].append(judge(row.gold, row.completion, row.prompt))
                spent[name].append(time.process_time() - before)
    found = {}
    for name in judges:
        right = [got for got, row in zip(paid[name], rows, strict=True) if row.right]
        wrong = [not got for got, row in zip(paid[name], rows, strict=True) if not row.right]
        times = sorted(spent[name])
        found[name] = {
            "recall": statistics.mean(right) if right else float("nan"),
            "specificity": statistics.mean(wrong) if wrong else float("nan"),
            "per_s": len(rows) / sum(times),
            "median_ms": 1e3 * statistics.median(times),
            "p95_ms": 1e3 * times[int(0.95 * len(times))],
        }
    return found


def golds(data: Path) -> dict[str, tuple[int, list[str]]]:
    """For every public set: the number of golds, and the errors of unusable ones."""
    found: dict[str, tuple[int, list[str]]] = {}
    for name, pattern, key in (
        ("GSM8K", "gsm8k/*.jsonl", "answer"), ("MATH-500", "math/math500_test.json", "answer"),
        ("MATH train", "math/math_train.json", "answer"), ("SVAMP", "svamp/SVAMP.json", "Answer"),
    ):  # fmt: skip
        rows: list[dict[str, Any]] = []
        for path in sorted(data.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            rows += [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
        bad = []
        for index, row in enumerate(rows):
            try:
                check_gold(Problem(answer=str(row[key]), id=f"{name} row {index}"))
            except GoldError as error:
                bad.append(str(error))
        if rows:
            found[name] = len(rows), bad
    return found


ATTACKS = (
    r"\boxed{" * 100_000, "<think>" * 140_000, "<answer>5</answer>" * 50_000, "the answer is " * 70_000,
    "$" * 1_000_000,
    "5" * 1_000_000, r"\boxed{5} " * 100_000, r"\boxed{" + "9" * 2900 + "}", r"\boxed{9^9^9^9^9^9}",
    r"\boxed{" + "(" * 1400 + ")" * 1400 + "}", r"\boxed{(10^{100})!}", r"\boxed{\binom{10^9}{10^8}}",
    r"\boxed{\sum_{k=1}^{400}\sum_{j=1}^{400}\sum_{i=1}^{400} i}", r"\boxed{" + "+".join([r"\sin(x)"] * 400) + "}",
    r"\boxed{" + "*".join(f"(x+{i})" for i in range(300)) + "}",
    r"\boxed{" + ",".join(f"x+{i}" for i in range(127)) + "}",
    r"\boxed{\sin(9^{9^9})}", r"\boxed{(1+\sqrt{2})^{1000000}}", r"\boxed{" + r"\binom{2000}{1000}+" * 150 + "1}",
    r"\boxed{" + r"\sqrt{2}" * 350 + "}", r"\boxed{1e999999}", r"\boxed{" + "x!" * 500 + "}",
    "We have 7 apples and 8 pears. " * 30_000 + "So there are 66 left. If the order mattered, it would be 132. I see.",
    "所以方程是 (2, -3)，" * 70_000, "Indeed, 1 + 1 = 2. " * 50_000, r"\frac{1}{2}" * 80_000 + ", or about 0.5",
)  # fmt: skip


def worst() -> tuple[float, float]:
    """(CPU milliseconds, extra MiB) of the slowest of the costly texts, in this process."""
    judge = ours()
    for gold in ("7", "x^2"):
        judge(gold, "7", "")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    most = 0.0
    for gold in ("7", "x^2", r"\{1,2\}", "(0,1)", "Monday"):
        for text, question in itertools.product(ATTACKS, ("", "How many handshakes take place? 求方程。")):
            start = time.process_time()
            judge(gold, text, question)
            most = max(most, time.process_time() - start)
    return 1e3 * most, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the public sets")
    parser.add_argument("--peer", choices=("math-verify",), help="also measure this peer, in turns")
    parser.add_argument("--pairs", type=int, default=6000, help="generated same-value and near-miss pairs")
    parser.add_argument("--rows", type=int, help="measure only the first rows of every set")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    judges = {"ours": ours()} | ({"math-verify": math_verify()} if options.peer else {})
    workloads = {
        "GSM-like, 150 words": gsm_like(),
        "MATH-like LaTeX": math_like(options.data),
        "HardVerify-Math, development half": labelled(options.data, "hardverify_dev"),
        "LaTeX spellings, development half": labelled(options.data, "latex_pairs_dev"),
        "generated pairs": [Row(p.gold, p.completion, p.same) for p in pairs(options.pairs, seed=11)],
    }
    figures: dict[str, Any] = {}
    print(
        f"{'set':<36}{'verifier':<13}{'rows':>6}{'recall':>9}{'specif.':>9}{'per s':>9}{'median ms':>11}{'p95 ms':>9}"
    )
    for name, rows in workloads.items():
        if not rows:
            print(f"{name:<36}skipped: not under {options.data}")
            continue
        rows = rows[: options.rows]
        for judge, found in compared(rows, judges).items():
            figures[f"{name} / {judge}"] = found
            print(
                f"{name:<36}{judge:<13}{len(rows):>6}{found['recall']:>9.3f}{found['specificity']:>9.4f}"
                f"{found['per_s']:>9.0f}{found['median_ms']:>11.3f}{found['p95_ms']:>9.3f}"
            )
    for name, (count, bad) in golds(options.data).items():
        figures[f"{name} golds"] = {"rows": count, "bad": bad}
        print(f"{name:<12} {count} golds against themselves: {1 - len(bad) / count:.4f}")
        for line in bad:
            print(f"    bad gold: {line}")
    figures["worst"] = dict(zip(("ms", "extra_mib"), worst(), strict=True))
    print(f"worst of {10 * len(ATTACKS)} costly texts (ours): {figures['worst']['ms']:.1f} ms CPU, "
          f"{figures['worst']['extra_mib']:.1f} MiB extra")  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
