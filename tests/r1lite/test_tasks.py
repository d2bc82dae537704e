"""Problems from files: what is read, and what is refused with file and line."""

import json
import os

import pandas
import pytest

from r1lite.config import EvalConfig
from r1lite.errors import UserError
from r1lite.scoring.problems import told_apart
from r1lite.tasks import Problems, Source, Task, find
from r1lite.tasks import load as load_task
from r1lite.tasks.command import main as tasks_command
from r1lite.tasks.gsm8k import load
from r1lite.tasks.prompts import check, render
from r1lite.tasks.rows import hub_reachable, read_rows
from r1lite.tasks.sources import Generated, HubSplit, Rows
from r1lite.training.machine import choose
from verifiers import Problem

pytestmark = pytest.mark.quick

GOOD = {"question": "1+1?", "answer": "#### 2"}


def write(path, *rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_files_of_every_kind(tmp_path):
    rows = [{"question": f"{i}?", "answer": i} for i in range(30)]
    write(tmp_path / "a.jsonl", *rows, "")
    (tmp_path / "b.json").write_text(json.dumps(rows))
    pandas.DataFrame(rows).to_parquet(tmp_path / "c.parquet")
    for name in ("a.jsonl", "b.json", "c.parquet"):
        assert read_rows(tmp_path / name, ("question", "answer")) == rows
        problems = load(Source(str(tmp_path / name)))
        assert len(problems.train) + len(problems.test) == 30
        assert problems.test
        assert "held out" in problems.origin
        assert not {p.prompt for p in problems.train} & {p.prompt for p in problems.test}


def test_train_finds_its_test(tmp_path):
    write(tmp_path / "train.jsonl", GOOD, GOOD)
    write(tmp_path / "test.jsonl", GOOD)
    for source in (tmp_path, tmp_path / "train.jsonl"):
        problems = load(Source(str(source)))
        assert (len(problems.train), len(problems.test)) == (2, 1)
    other = write(tmp_path / "other.jsonl", GOOD, GOOD, GOOD)
    assert len(load(Source(str(tmp_path / "train.jsonl"), str(other))).test) == 3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([GOOD, "{"], "a.jsonl:2: not JSON"),
        ([GOOD, GOOD, [1]], "a.jsonl:3: a row must be an object"),
        (
            [{"question": "1?"}],
            "no column 'answer'; the first row has 'question', the task needs 'question', 'answer'. Rename",
        ),
        (["{", GOOD, {"question": "1?", "answer": " "}] * 3, "6 of 9 rows can't be used:(\n.*){5}\n  ... and 1 more"),
        ([GOOD, {"question": "1?"}], "a.jsonl:2: no column 'answer'; the row has 'question'"),
        ([{"question": "1?", "answer": None}], "a.jsonl:1: 'answer' must be text or a number, got None"),
        ([{"question": "", "answer": "1"}], "a.jsonl:1: 'question' is empty"),
        ([], "contains no problems"),
        (["[" * 100_000], "a.jsonl:1: not JSON"),
        ([GOOD], "1 different problem is too few"),
    ],
)
def test_bad_files(tmp_path, rows, message):
    path = write(tmp_path / "a.jsonl", *rows)
    with pytest.raises(UserError, match=message):
        load(Source(str(path)))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        load(Source(str(tmp_path / "gone.jsonl")))
    for name in ("train.jsonl", "test.jsonl"):
        os.mkfifo(tmp_path / name)  # whose reading would never end
    with pytest.raises(UserError, match=r"needs train\.\* and test"):
        load(Source(str(tmp_path)))
    (tmp_path / "some").mkdir()
    train = write(tmp_path / "some" / "train.jsonl", GOOD)
    with pytest.raises(UserError, match=rf"needs train.* and test.*; --source {train} holds a tenth"):
        load(Source(str(tmp_path / "some")))
    write(tmp_path / "some" / "train.parquet")
    write(tmp_path / "some" / "test.json")
    with pytest.raises(UserError, match=r"some: holds train.jsonl and train.parquet, and only one is read; name that"):
        load(Source(str(tmp_path / "some")))
    (tmp_path / "a.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="UTF-16 text"):
        load(Source(str(tmp_path / "a.jsonl")))
    (tmp_path / "a.csv").write_text("question,answer\n1+1?,2\n")
    with pytest.raises(UserError, match=r"a\.csv: \.csv is not a format that is read; convert the file to \.jsonl"):
        load(Source(str(tmp_path / "a.csv")))
    (tmp_path / "a.json").write_text('[{"question": "1?", "answer": "1"},\n {"question": "2?" "answer": "2"}]')
    with pytest.raises(UserError, match=r"a\.json:2: not JSON: Expecting ',' delimiter at column 20$"):
        load(Source(str(tmp_path / "a.json")))
    (tmp_path / "a.json").write_text(json.dumps(GOOD))
    with pytest.raises(UserError, match=r"a\.json: must contain a list of objects, not dict"):
        load(Source(str(tmp_path / "a.json")))
    (tmp_path / "a.parquet").write_text("no")
    with pytest.raises(UserError, match="not a Parquet file"):
        load(Source(str(tmp_path / "a.parquet")))


def test_the_hub_that_cannot_be_reached_is_an_error_when_chosen():
    assert not hub_reachable()
    with pytest.raises(UserError, match=r"can't load openai/gsm8k(.|\n)* or --source bundled\.$"):
        load(Source("hub"))
    with pytest.raises(UserError, match=r"can't load (.|\n)*\(--source FILE\)\.$"):
        find("svamp").load(Source("hub"))


def test_bundled_problems():
    problems = load(Source("bundled"))
    assert (len(problems.train), len(problems.test)) == (7000, 1000)
    assert len(load(Source("bundled", test_split="test_hard")).test) == 500
    with pytest.raises(UserError, match="bundled: test, test_hard"):
        load(Source("bundled", test_split="tset"))
    with pytest.raises(UserError, match="is for --source bundled"):
        load(Source("hub", test_split="test_hard"))
    with pytest.raises(UserError, match="--source of your own"):
        load(Source("bundled", test="mine.jsonl"))


def test_finding_tasks():
    assert find("gsm8k").name == "gsm8k"
    assert find("r1lite.tasks.gsm8k:TASK") is find("gsm8k")
    for name, message in (
        ("gsm8", "did you mean 'gsm8k'"),
        ("no.such:TASK", "No module named"),
        ("sub/my_tasks.py:TASK", "write the module without its suffix: sub.my_tasks:TASK"),
        ("json:loads", "not an r1lite"),
    ):
        with pytest.raises(UserError, match=message):
            find(name)


def test_a_name_close_to_a_task():
    with pytest.raises(UserError, match="has no 'TSK'; did you mean 'TASK'"):
        find("r1lite.tasks.gsm8k:TSK")


def test_columns_of_its_own_are_no_reason_to_ask_for_bundled_problems():
    loader = Rows({"test": [HubSplit("me/mine", None, "test")]}, ("question",), lambda row: row)
    assert Task("own", loader, "math").sources == ("hub",)


def rows_of(problem):
    return Rows({"train": [], "test": []}, ("question",), problem)


OWN = Task("own", rows_of(lambda row: row), "math")


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        (rows_of(lambda row: row["nope"]), rf"a.jsonl:1: problem\(\) raised KeyError: 'nope' in {__file__}, line \d+"),
        (rows_of(lambda row: json.loads(row)), rf"raised TypeError: .* in {__file__}, line"),
        (rows_of(lambda row: None), r"a.jsonl:1: problem\(\) returned NoneType, not a verifiers.Problem"),
        (rows_of(lambda row: Problem(row["question"], 2)), "made a Problem whose answer is 2, which is not text"),
        (lambda source: {}["nope"], rf"--task own.*: load\(\) raised KeyError: 'nope' in {__file__}, line"),
        (lambda source: [], r"load\(\) returned list"),
        (lambda source: Problems(["1?"], [], ""), r"load\(\) returned str, not a verifiers.Problem"),
        (Generated("own", lambda split, rng: 1 / 0), "test problem 0 raised ZeroDivisionError"),
    ],
)
def test_mistakes_in_a_users_task_name_their_place(tmp_path, loader, message):
    source = "generated" if isinstance(loader, Generated) else str(write(tmp_path / "a.jsonl", GOOD, GOOD))
    with pytest.raises(UserError, match=message):
        load_task(Task("own", loader, "math"), Source(source))


def test_a_users_task_offers_what_its_loader_has():
    with pytest.raises(UserError, match="--source is missing: --task own reads"):
        tasks_command(["check", f"{__name__}:OWN"])
    with pytest.raises(UserError, match="--source is missing: --task own reads"):
        choose(EvalConfig(task=f"{__name__}:OWN", model="nano", device="cpu"))
    assert find("gsm8k").sources == ("hub", "bundled")
    assert Task("own", Generated("own", lambda split, rng: None), "math").sources == ("generated",)
    assert Task("own", lambda source: None, "math").sources == ("hub", "bundled")


def test_templates(tiny_tokenizer):
    zero = render("r1_zero", "What is 1+1", tiny_tokenizer)
    assert zero.startswith("A conversation between User and Assistant. The user asks a question, and the Assistant")
    assert zero.endswith("<answer> answer here </answer>. User: What is 1+1. Assistant:")
    assert render("short", "1+1?", tiny_tokenizer) == "1+1?\n"
    assert render("Q: {question} A:", "{x}", tiny_tokenizer) == "Q: {x} A:"
    for bad in ("r1zero", "no place for it"):
        with pytest.raises(UserError, match="template"):
            check(bad)
    with pytest.raises(UserError, match="no chat template"):
        render("chat", "1+1?", tiny_tokenizer)


@pytest.mark.parametrize(
    ("ids_and_questions", "names"),
    [
        ("a1 b2", "a b"),
        ("a1 a2 a3", "a a#2 a#3"),
        ("a1 a2 a1 a2", "a a#2 a a#2"),  # the same problem twice is one problem
        ("a1 a#23 a4", "a a#2 a#3"),
    ],
)
def test_different_problems_with_one_id_are_told_apart(ids_and_questions, names):
    problems = [Problem(one[-1], id=one[:-1]) for one in ids_and_questions.split()]
    told = told_apart(problems)
    assert [problem.id for problem in told] == names.split()
    assert [problem.prompt for problem in told] == [problem.prompt for problem in problems]
