"""The tasks that ship: golds pass their own verifier, made problems are proved, bad rows are named."""

import dataclasses
import gzip
import itertools
import json
import sys
import types

import pytest

from r1lite.cli import main
from r1lite.errors import UserError
from r1lite.tasks import TASKS, Problems, Source, Task, find
from r1lite.tasks.command import CARDS, failures
from r1lite.tasks.competition_math import last_box
from r1lite.tasks.countdown import DATA as COUNTDOWN
from r1lite.tasks.knights_knaves import DATA as KNIGHTS
from r1lite.tasks.knights_knaves import solve
from verifiers import Problem, Reward
from verifiers.countdown import evaluate
from verifiers.sandbox import probe

needs_sandbox = pytest.mark.skipif(probe.report().best is None, reason="code can't be isolated here")
GENERATED = ("countdown", "knights_knaves", "add_carry")


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_whole(name):
    task = find(name)
    assert task.name == name
    assert "{question}" in task.template
    card = (CARDS / f"{name}.md").read_text(encoding="utf-8")
    for heading in ("Origin", "Licence", "Rows", "Reward", "Known"):
        assert f"- **{heading}" in card
    low, high = Reward(task.reward).range
    assert (low, high) == (0.0, 1.1)
    if task.correct == "code" and probe.report().best is None:
        return
    assert failures(task, Problems([task.example], [], "")) == []
    known = task.gold
    bad = dataclasses.replace(
        task, gold=lambda problem: known(problem).replace(known(problem).split("<answer>")[1], "0")
    )
    assert len(failures(bad, Problems([task.example], [], ""))) == 1


@pytest.mark.parametrize("name", GENERATED)
def test_made_problems(name):
    task = find(name)
    problems = task.load(Source("generated"))
    assert (len(problems.train), len(problems.test)) == (4000, 500)
    train, test = ({p.prompt for p in part} for part in (problems.train, problems.test))
    assert (len(train), len(test)) == (4000, 500)
    assert not train & test
    assert failures(task, Problems(problems.train[:200], problems.test, "")) == []
    number = int(problems.test[7].id.removeprefix("test-"))
    assert task.load.item("test", number) == problems.test[7]  # made alone
    assert all(problem.meta["difficulty"].isdecimal() for problem in problems.test)
    for source in (Source("mine.jsonl"), Source("generated", test="mine.jsonl"), Source("generated", test_split="x")):
        with pytest.raises(UserError, match=r"generates"):
            task.load(source)


def test_countdown_s_proofs():
    for number in range(300):
        problem = COUNTDOWN.item("train", number)
        value, used = evaluate(problem.meta["solution"])
        assert str(value) == problem.answer
        assert sorted(used.elements()) == sorted(problem.meta["numbers"])
        assert int(problem.answer) not in problem.meta["numbers"]


def test_knights_and_knaves_by_hand():
    """A: "B is a knave." B: "we are both knights." Only knight, knave fits; "I am a knight" fits twice."""
    assert solve([lambda k: not k[1], lambda k: k[0] and k[1]]) == [(True, False)]
    assert len(solve([lambda k: k[0]])) == 2
    assert solve([lambda k: not k[0]]) == []


def test_knights_and_knaves_from_their_text():
    """The sentences themselves, read anew, leave one solution, and it is the gold."""
    for number in range(150):
        problem = KNIGHTS.item("test", number)
        spoken = [part.split('"')[0] for part in problem.prompt.split('says: "')[1:]]
        met = problem.prompt.split("You meet ")[1].split(". ")[0].replace(" and ", ", ")
        names = met.split(", ")
        fits = [
            kinds
            for kinds in itertools.product((True, False), repeat=len(names))
            if all(holds(text.rstrip("."), me, names, kinds) == kinds[me] for me, text in enumerate(spoken))
        ]
        told = [f"{name} is a {'knight' if kind else 'knave'}" for name, kind in zip(names, fits[0], strict=True)]
        assert len(fits) == 1
        assert problem.answer == f"{', '.join(told[:-1])} and {told[-1]}."


def holds(text, me, names, kinds):
    def simple(part):
        words = part.replace("then ", "").split()
        person = me if words[0] == "I" else names.index(words[0])
        return kinds[person] == (words[-1] == "knight")

    if text.startswith("If "):
        condition, result = text.removeprefix("If ").split(", then ")
        return not simple(condition) or simple(result)
    for joint, join in (
        (" if and only if ", lambda a, b: a == b),
        (" and ", lambda a, b: a and b),
        (" or ", lambda a, b: a or b),
    ):
        if joint in text:
            return join(*map(simple, text.split(joint)))
    return simple(text)


@pytest.mark.parametrize(
    ("text", "box"),
    [
        (r"so $\boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
        (r"\boxed{1} or rather \boxed{2}", "2"),
        (r"\fbox{7}", "7"),
        (r"\boxed{1", None),
        (r"\boxed{1}, no \boxed{2", None),
        (r"so $\boxed 5$, since $\frac{1}{2}$ is less", "5"),
        (r"\[\boxed12.\]", "12"),
        (r"\boxed{\left\{1, 2\right.}", r"\left\{1, 2\right."),
        (r"see \boxed", None),
        (r"\boxed{ }", None),
        ("none", None),
    ],
)
def test_the_last_box_of_a_solution(text, box):
    assert last_box(text) == box


ROWS = {
    "math": {"problem": "1+1?", "solution": r"It is \boxed{2}.", "level": "Level 3", "type": "Algebra"},
    "svamp": {"ID": "chal-1", "Body": "He has 2", "Question": "How many?", "Answer": 2.0, "Type": "Common-Divison"},
    "mbpp": {
        **{"task_id": 700, "text": "Add one.", "code": "def f(x):\r\n    return x + 1"},
        "test_list": ["assert f(1) == 2"],
    },
    "humaneval": {
        **{"task_id": "HumanEval/0", "prompt": 'def f(x):\n    """x"""\n', "canonical_solution": "    return x\n"},
        **{"test": "def check(f):\n    assert f(1) == 1\n", "entry_point": "f"},
    },
}  # fmt: skip


def written(tmp_path, *rows):
    path = tmp_path / "test.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ROWS)
def test_rows_as_the_hub_has_them(name, tmp_path, monkeypatch):
    """What `load_dataset` would give, and the same from a file."""
    asked = []

    def load_dataset(dataset, config=None, *, split, **_):
        asked.append((dataset, config, split))
        return [ROWS[name]]

    monkeypatch.setitem(__import__("sys").modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    task = find(name)
    from_hub = task.load(Source("hub"))
    path = written(tmp_path, ROWS[name])
    from_file = task.load(Source(str(path), test=str(path)))
    assert from_hub.test == from_file.test
    assert {split for *_, split in asked} == ({"test"} if name == "humaneval" else {"train", "test"})
    problem = from_hub.test[0]
    if name == "math":
        assert (problem.answer, problem.meta) == ("2", {"difficulty": "3", "source": "Algebra"})
        assert len(asked) == 8
    if name == "svamp":
        assert (problem.prompt, problem.answer) == ("He has 2. How many?", "2")
        assert problem.meta == {"source": "Common-Division"}
    if task.correct == "code" and probe.report().best is not None:
        assert failures(task, from_hub) == []


@pytest.mark.parametrize("name", ROWS)
def test_columns_that_are_missing(name, tmp_path):
    for column in {
        "math": ("problem", "solution"),
        "svamp": ("Body", "Question", "Answer"),
        "mbpp": ("task_id", "text", "code", "test_list"),
        "humaneval": ("prompt", "test", "entry_point"),
    }[name]:
        path = written(tmp_path, ROWS[name], {key: value for key, value in ROWS[name].items() if key != column})
        with pytest.raises(UserError, match=rf"test.jsonl:2: .*'{column}'"):
            find(name).load(Source(str(path), test=str(path)))


def test_gzip_and_the_authors_split(tmp_path):
    rows = [{**ROWS["mbpp"], "task_id": number} for number in (5, 11, 510, 511, 600, 601, 974)]
    path = tmp_path / "mbpp.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    problems = find("mbpp").load(Source(str(path)))
    assert [p.id for p in problems.train] == ["mbpp-601", "mbpp-974"]
    assert [p.id for p in problems.test] == ["mbpp-11", "mbpp-510"]
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(UserError, match="gzip file is cut short or damaged"):
        find("mbpp").load(Source(str(path)))


def test_bad_rows_and_sources(tmp_path):
    path = written(tmp_path, {**ROWS["mbpp"], "test_list": "assert"})
    with pytest.raises(UserError, match="'test_list' must be a list of texts"):
        find("mbpp").load(Source(str(path), test=str(path)))
    path = written(tmp_path, {**ROWS["mbpp"], "test_list": ["assert ("]})
    with pytest.raises(UserError, match=r"test.jsonl:1: "):
        find("mbpp").load(Source(str(path), test=str(path)))
    with pytest.raises(UserError, match="has no bundled problems"):
        find("svamp").load(Source("bundled"))


def test_the_list_and_the_check(capsys, tmp_path):
    assert main(["tasks"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in TASKS)
    assert "-> 67" in text
    assert main(["tasks", "card", "svamp"]) == 0
    assert "ChilleD/SVAMP" in capsys.readouterr().out
    rows = [{"question": f"{i}+1?", "answer": f"#### {i + 1}"} for i in range(60)]
    path = written(tmp_path, *rows, {"question": "bad?", "answer": "#### "})
    assert main(["tasks", "check", "gsm8k", "--source", str(path)]) == 1
    text = capsys.readouterr().out
    assert "60 of 61 golds pass math and format" in text
    assert text.count("GoldError") == 1
    assert main(["tasks", "check", "countdwn"]) == 2
    assert "did you mean 'countdown'" in capsys.readouterr().err


def test_a_gold_that_can_t_be_written_is_a_failure():
    task = find("countdown")
    found = failures(task, Problems([Problem("?", "7", meta={"numbers": [3, 4]})], [], ""))
    assert ["can't write the gold" in failure.why for failure in found] == [True]


def test_code_without_isolation_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(probe, "_trouble", lambda level: "not on this machine")
    with pytest.raises(UserError, match="--task mbpp: code can't be isolated"):
        failures(find("mbpp"), Problems([], [], ""))


STAND_IN = """
class Items:
    def __init__(self, seed, size):
        self.seed, self.size = seed, size

    def __iter__(self):
        for i in range(self.size):
            number = (self.seed + i) % 300
            yield {"question": f"{number} + 1?", "answer": str(number + 1), "metadata": {"i": i}}

    def score_answer(self, answer, entry):
        return float(answer == entry["answer"])

def create_dataset(name, seed, size):
    if name == "nothing":
        raise ValueError("Dataset 'nothing' not registered")
    return Items(seed, min(size, 240))
"""


def test_reasoning_gym_problems(monkeypatch, tmp_path):
    """With a stand-in of reasoning-gym's own interface: seeded items, its scorer, nothing trained on is tested on."""
    package = tmp_path / "reasoning_gym"
    package.mkdir()
    (package / "__init__.py").write_text(STAND_IN)
    (package / "factory.py").write_text("DATASETS = {'stand_in_sums': None}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "reasoning_gym"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    task = find("reasoning_gym:stand_in_sums")
    assert isinstance(task, Task)
    problems = task.load(Source("generated"))
    assert len(problems.train) == 240
    assert 0 < len(problems.test) <= 200
    assert not {p.prompt for p in problems.train} & {p.prompt for p in problems.test}
    some = Problems(problems.train[:20], problems.test[:20], problems.origin)
    assert failures(task, some) == []
    assert task.sources == ("generated",)
    assert task.load(Source("hub")).test == problems.test  # as runs of earlier versions have it
    for source, said in (
        (Source("mine.jsonl"), "omit --source and --test-source"),
        (Source("generated", test="mine.jsonl"), "omit --source and --test-source"),
        (Source("generated", test_split="test_hard"), "--test-split test_hard is for --source bundled"),
    ):
        with pytest.raises(UserError, match=said):
            task.load(source)
    with pytest.raises(UserError, match="reasoning_gym:nothing"):
        find("reasoning_gym:nothing").load(Source("generated"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "reasoning_gym"]:
        del sys.modules[name]  # not by monkeypatch, which would put the stand-in back
