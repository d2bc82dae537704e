"""The word problems: right arithmetic, bounded numbers, a clean split, the same bytes again."""

import hashlib
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r1lite.tasks.word_problems import (
    DEFAULT_SEED,
    FAMILIES,
    HELD_OUT,
    SPLIT_SIZES,
    Step,
    WordProblem,
    family_names,
    generate,
    in_test,
    masked,
    sample,
)
from r1lite.tasks.word_problems.families import THEMES
from verifiers import Completion, Problem, resolve

BUNDLED = Path(__file__).resolve().parents[2] / "datasets" / "gsm8k_style"

# Double space, space before a full stop, "1 pens", no capital after a full stop, a wrong article.
SLIPS = re.compile(r"  | [,.?]|\b1 [a-z]|[.?] [a-z]|\b[aA] [aeio]|\b[aA]n (?!hour)[^aeiou]")

# Numbers a reader adds of their own, by the word of the question that implies them.
IMPLIED = {
    r"half|twice|doubled|as many .* as": {2},
    r"(?:together|in all|in total)\..* (?:more|fewer)": {2},  # sum and difference
    r"third": {3},
    r"quarter": {4},
    r"fifth": {5},
    r"10 percent": {10},
    r"20 percent": {5},
    r"25 percent": {4},
    r"dozen": {12},
    r"2 hours and": {60},
    r"rectangle": {2},
    r"legs": {2, 4},
    r"Monday to Friday": {5},
    r"weekend|Saturday and Sunday": {2},
    r"at the end|at the start": {1},  # posts: one more than gaps
    r"[Bb]ill|tip": {1},  # the person with the friends
}


def problems_of(family: str, count: int) -> list[WordProblem]:
    rng = random.Random(f"test/{family}")
    return [FAMILIES[family](rng) for _ in range(count)]


def evaluate(expression: str) -> int:
    """The value of "a op b", worked out without the generator: products by repeated addition, quotients by search."""
    left, sign, right = expression.split(" ")
    a, b = int(left), int(right)
    values = {
        "+": lambda: sum((a, b)),
        "-": lambda: next(n for n in range(a + 1) if n + b == a),
        "*": lambda: sum(a for _ in range(b)),
        "/": lambda: next(n for n in range(a + 1) if sum(b for _ in range(n)) == a),
    }
    return values[sign]()


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, str]]]:
    """The bundled files as read from disk."""
    files = {split: (BUNDLED / f"{split}.jsonl").read_text(encoding="utf-8") for split in SPLIT_SIZES}
    return {split: [json.loads(line) for line in text.splitlines()] for split, text in files.items()}


def test_enough_families_in_and_out_of_distribution() -> None:
    assert len(FAMILIES) - len(HELD_OUT) >= 36
    assert len(HELD_OUT) >= 6
    assert len(THEMES) >= 6
    assert set(family_names("train")) == set(family_names("test")) == FAMILIES.keys() - HELD_OUT
    assert set(family_names("test_hard")) == HELD_OUT


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_family_tells_sound_problems(family: str) -> None:
    for problem in problems_of(family, 150):
        assert problem.family == family
        assert 2 <= len(problem.steps) <= 4
        assert 20 <= len(problem.question.split()) <= 50
        assert problem.question.endswith(("?", "."))
        assert problem.question.count("?") == 1
        assert re.fullmatch(r"[A-Za-z0-9 $',.?]+", problem.question), problem.question
        assert not re.search(
            r"  | [,.?]|\b1 [a-z]|[.?] [a-z]|\b(?:a|A) [aeio]|\b(?:an|An) (?!hour)[^aeiou]", problem.question
        )
        known = {int(number) for number in re.findall(r"\d+", problem.question)}
        assert all(2 <= number <= 200 for number in known), problem.question
        for pattern, numbers in IMPLIED.items():
            known |= numbers if re.search(pattern, problem.question) else set()
        for step in problem.steps:
            check_step(step, known, problem)
            known.add(step.value)
        assert problem.answer == problem.steps[-1].value


def check_step(step: Step, known: set[int], problem: WordProblem) -> None:
    a, sign, b = re.fullmatch(r"(\d+) ([+*/-]) (\d+)", step.expression).groups()
    low, high = sorted((int(a), int(b)))
    assert evaluate(step.expression) == step.value, problem
    assert {low, high} <= known, (step.expression, problem.question)
    assert 1 <= low < high <= 200
    assert 2 <= step.value <= 200
    assert step.text.count(f"{step.expression} = {step.value}") == 1
    assert step.text.endswith(".")
    assert "@" not in step.text
    if sign == "*":
        assert 2 <= low <= 12
        assert step.value <= 144
    if sign == "/":
        assert 2 <= int(b) <= 12


def test_every_value_is_used() -> None:
    """No step is idle: all but the last feed a later one."""
    for family in FAMILIES:
        for problem in problems_of(family, 20):
            for index, step in enumerate(problem.steps[:-1]):
                later = " ".join(after.expression for after in problem.steps[index + 1 :])
                assert str(step.value) in later.split(), problem


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_family_has_many_wordings_on_both_sides(family: str) -> None:
    forms = {masked(problem.question) for problem in problems_of(family, 400)}
    assert len(forms) >= 250
    assert 0.04 <= sum(map(in_test, forms)) / len(forms) <= 0.22  # one in eight


def test_solution_is_in_gsm8k_format() -> None:
    steps = (Step("The boxes hold 4 * 6 = 24 pens.", "4 * 6", 24), Step("Then 24 - 5 = 19 are left.", "24 - 5", 19))
    problem = WordProblem("...", steps, 19, "pens")
    assert (
        problem.solution == "The boxes hold 4 * 6 = <<4*6=24>>24 pens.\nThen 24 - 5 = <<24-5=19>>19 are left.\n#### 19"
    )


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("Ada has 12 pens.", "<name> has <number> pens."),
        ("Tom's 3 hens", "<name>'s <number> hens"),
        ("A third of them and half of his twelve eggs", "<number> of them and <number> of <pronoun> <number> eggs"),
        ("He doubled it. Tomatoes", "<pronoun> <number> it. Tomatoes"),
    ],
)
def test_masked(question: str, form: str) -> None:
    assert masked(question) == form


@given(st.text(max_size=60), st.integers(0, 999), st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_side_does_not_depend_on_numbers_or_names(text: str, a: int, b: int) -> None:
    assert in_test(f"{text} Ada has {a} pens.") == in_test(f"{text} Tom has {b} pens.")


def test_side_is_the_same_on_every_machine() -> None:
    sides = "".join(str(int(in_test(f"How many {word}?"))) for word in "abcdefghijklmnopqrstuvwxyz")
    assert sides == "00000000000000000110000000"


@given(st.integers(0, 2**31), st.sampled_from(["train", "test", "test_hard"]))
@settings(max_examples=60, deadline=None)
def test_sample_keeps_to_its_side(seed: int, split: str) -> None:
    problem = sample(split, random.Random(seed))
    assert (problem.family in HELD_OUT) == (split == "test_hard")
    assert split == "test_hard" or in_test(problem.question) == (split == "test")
    assert problem == sample(split, random.Random(seed))


def test_generate_is_balanced_unique_and_a_prefix_of_more() -> None:
    problems = generate("train", 230, seed=3)
    counts = [sum(p.family == name for p in problems) for name in family_names("train")]
    assert max(counts) - min(counts) <= 1
    assert len({p.question for p in problems}) == 230
    assert generate("train", 100, seed=3) == problems[:100]
    assert generate("train", 100, seed=4) != problems[:100]


def test_unknown_split_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown split 'valid'"):
        family_names("valid")


def test_bundled_files_have_their_sizes_and_columns(rows: dict[str, list[dict[str, str]]]) -> None:
    for split, count in SPLIT_SIZES.items():
        assert len(rows[split]) == count
        assert all(list(row) == ["id", "question", "answer", "family"] for row in rows[split])
    everything = [row for split in rows.values() for row in split]
    assert len({row["id"] for row in everything}) == len(everything)
    assert len({row["question"] for row in everything}) == len(everything)


def test_no_test_problem_in_train(rows: dict[str, list[dict[str, str]]]) -> None:
    forms = {split: {masked(row["question"]) for row in rows[split]} for split in rows}
    assert not forms["train"] & forms["test"]
    assert not (forms["train"] | forms["test"]) & forms["test_hard"]
    assert {row["family"] for row in rows["test_hard"]} == HELD_OUT
    assert not {row["family"] for row in rows["train"] + rows["test"]} & HELD_OUT


def test_every_bundled_gold_scores_one(rows: dict[str, list[dict[str, str]]]) -> None:
    check = resolve("math")
    for row in rows["train"][::7] + rows["test"] + rows["test_hard"]:
        number = row["answer"].rsplit("#### ", 1)[1]
        assert check(Problem(answer=number), Completion(row["answer"])).score == 1.0, row
        assert check(Problem(answer=str(int(number) + 1)), Completion(row["answer"])).score == 0.0, row


def test_command_rebuilds_the_bundled_files(tmp_path: Path) -> None:
    """In a process of its own with another hash seed, so that no set or hash order can leak in."""
    command = [sys.executable, "-m", "r1lite.tasks.word_problems", "--out", str(tmp_path), "--seed", str(DEFAULT_SEED)]
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=300)
    card = (BUNDLED / "README.md").read_text(encoding="utf-8")
    for split in SPLIT_SIZES:
        built = (tmp_path / f"{split}.jsonl").read_bytes()
        assert built == (BUNDLED / f"{split}.jsonl").read_bytes(), split
        digest = hashlib.sha256(built).hexdigest()
        assert digest in done.stdout
        assert digest in card
