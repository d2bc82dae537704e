"""Public data, where it is there: every gold equals itself, and the development sets stay where they are."""

import json
from pathlib import Path

import pytest

from verifiers import Completion, GoldError, Problem, check_gold, resolve

DATA = Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data beside the checkout")
# A bad gold, and why it can't be used.
KNOWN_BAD = {"": "the row has no answer"}


def _golds(name):
    if name == "gsm8k":
        lines = (DATA / "gsm8k" / f"{split}.jsonl" for split in ("train", "test"))
        return [json.loads(line)["answer"] for path in lines for line in path.read_text(encoding="utf-8").splitlines()]
    if name == "svamp":
        return [str(row["Answer"]) for row in json.loads((DATA / "svamp" / "SVAMP.json").read_text(encoding="utf-8"))]
    return [str(row["answer"]) for row in json.loads((DATA / "math" / f"{name}.json").read_text(encoding="utf-8"))]


@needs_data
@pytest.mark.parametrize("name", ["gsm8k", "svamp", "math500_test", "math_train"])
def test_every_gold_equals_itself(name):
    verify = resolve("math")
    bad = []
    for gold in dict.fromkeys(_golds(name)):
        if gold in KNOWN_BAD:
            continue
        try:
            check_gold(Problem(answer=gold))
        except GoldError as error:
            bad.append(str(error))
            continue
        written = gold.rpartition("####")[2].strip()
        verdict = verify(Problem(answer=gold), Completion(rf"so the answer is \boxed{{{written}}}"))
        if verdict.score != 1.0:
            bad.append(f"{gold!r}: {verdict}")
    assert not bad


@needs_data
@pytest.mark.parametrize(
    ("name", "recall", "specificity"), [("hardverify_dev", 0.83, 0.99), ("latex_pairs_dev", 0.96, 1.0)]
)
def test_development_sets(name, recall, specificity):
    verify = resolve("math")
    found = {True: [], False: []}
    for line in (DATA / "verify_dev" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        try:
            score = verify(Problem(row.get("question", ""), row["gold"]), Completion(row["completion"])).score
        except GoldError:
            score = 0.0
        found[row["expected"]].append(score == float(row["expected"]))
    assert sum(found[True]) >= recall * len(found[True])
    assert sum(found[False]) >= specificity * len(found[False])
