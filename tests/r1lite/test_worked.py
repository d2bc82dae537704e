"""Tasks of worked problems, the bases made from them, and what is said of a model that can't do a task."""

import random
import re
import shlex
from pathlib import Path

import pytest
import yaml

from r1lite.bundled import bundled
from r1lite.cli import COMMANDS, main
from r1lite.config import GRPOConfig, load
from r1lite.errors import UserError
from r1lite.nano.batches import worked
from r1lite.nano.config import PretrainConfig
from r1lite.nano.habits import HABITS
from r1lite.nano.worked_habits import slipped, worked_habits
from r1lite.tasks import Source, find
from r1lite.tasks.sources import Generated
from r1lite.tasks.worked import Worked, worked_task
from verifiers import Completion, Problem, resolve

ROOT = Path(__file__).resolve().parents[2]
SHARES = {"guess": 0.5, "bare_guess": 0.05, "chain": 0.25, "slipped_chain": 0.1, "broken_chain": 0.1}


def clock(rng):
    now, later = rng.randint(1, 12), rng.randint(5, 150)
    total = now + later
    rounds = (total - 1) // 12 * 12
    return Worked(
        f"It is {now}. What is it {later} hours later?",
        f"{now} + {later} = {total}; {total} - {rounds} = {total - rounds}",
        str(total - rounds),
        "hard" if later > 99 else "easy",
    )


def weather(rng):
    return Worked(f"Day {rng.randint(1, 400)}?", "it depends", rng.choice(["sun", "rain"]))


TASK = worked_task("clock", clock, train=300, test=40)


def test_the_tests_problems_are_never_trained_on():
    problems = TASK.load(Source("generated"))
    train, test = ({problem.prompt for problem in part} for part in (problems.train, problems.test))
    assert (len(train), len(test), train & test) == (300, 40, set())
    assert TASK.load(Source("generated")) == problems  # always the same ones
    assert {problem.meta["difficulty"] for problem in problems.train} == {"easy", "hard"}
    texts = worked(SHARES, random.Random(0), TASK.load)
    assert not {next(texts).question for _ in range(2000)} & test
    math = resolve("math")
    for problem in problems.test:
        assert math(problem, Completion(TASK.gold(problem))).score == 1.0


@pytest.mark.parametrize("make", [clock, weather])
def test_habits_are_what_their_names_say(make):
    load = worked_task("t", make).load
    habits, rng = worked_habits(load), random.Random(1)
    assert set(habits) == set(HABITS)
    form, exact = resolve("format"), resolve("exact")
    right = dict.fromkeys(habits, 0)
    formed = dict.fromkeys(habits, 0)
    for _ in range(200):
        problem = load.draw("train", rng)
        asked = Problem(problem.question, problem.answer)
        for name, habit in habits.items():
            said = Completion(habit(problem, rng))
            formed[name] += form(asked, said).score == 1.0
            right[name] += exact(asked, said).score == 1.0
    assert right["chain"] == formed["chain"] == formed["guess"] == formed["slipped_chain"] == 200
    assert formed["broken_chain"] == formed["bare_guess"] == 0
    assert right["guess"] < 140
    assert right["slipped_chain"] < 140


def test_a_slip_changes_one_number():
    rng = random.Random(0)
    for _ in range(200):
        before = "12 + 7 = 19; 19 - 0 = 19"
        after = slipped(before, rng)
        pairs = list(zip(re.findall(r"\d+", before), re.findall(r"\d+", after), strict=True))
        assert sum(a != b for a, b in pairs) == 1
        assert "-" not in after.replace(" - ", " ")
    assert slipped("no number", rng) == "no number"


@pytest.mark.parametrize(
    ("make", "train", "message"),
    [
        (
            lambda rng: Worked("always the same?", "1", "1"),
            4,
            "function makes too few different questions",
        ),
        (
            lambda rng: Worked(f"{rng.randint(0, 99)}?", "1", "1"),
            300,
            "different problems to train on instead of 300",
        ),
        (lambda rng: "text", 4, "returned str, not a Worked"),
        (lambda rng: {}["nope"], 4, f"its function raised KeyError: 'nope' in {__file__}, line "),
    ],
)
def test_generators_that_can_not_do_it_are_refused(make, train, message):
    with pytest.raises(UserError) as caught:
        worked_task("t", make, train=train, test=2).load(Source("generated"))
    assert message in str(caught.value)


def test_a_generator_of_few_problems_ends():
    with pytest.raises(UserError, match="makes only 3 different problems to test on instead of 500"):
        Generated("few", lambda split, rng: Problem(f"{rng.randint(1, 3)}?", "1"), {"test": 500})(Source("generated"))


def test_no_generated_problem_of_the_test_is_trained_on():
    def few(split, rng):
        return Problem(f"{rng.randint(1, 60)}?", "1")

    problems = Generated("few", few, {"train": 40, "test": 20})(Source("generated"))
    assert {problem.prompt for problem in (*problems.train, *problems.test)} == {f"{n}?" for n in range(1, 61)}
    assert problems.test[0] == Generated("few", few).item("test", 0)
    with pytest.raises(UserError, match="to train on instead of 41, besides the 20 to test"):
        Generated("few", few, {"train": 41, "test": 20})(Source("generated"))


@pytest.mark.parametrize(
    ("text", "message"),
    [("gsm8k", "--text 'gsm8k' is unknown"), ("r1lite.tasks.countdown:TASK", "this task has no worked chains")],
)
def test_texts_that_are_refused(text, message, tmp_path, capsys):
    assert main(["pretrain", "--text", text, "--out", str(tmp_path / "base")]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_task_of_the_page(tmp_path, monkeypatch):
    """Its known answers are right, and the page's commands can be read."""
    page = (ROOT / "r1lite" / "nano" / "README.md").read_text(encoding="utf-8")
    text = re.search(r"<!-- run by tests/r1lite/test_worked.py -->\n```python\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "page_task.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    task = find("page_task:TASK")
    problems = task.load(Source("generated"))
    assert (len(problems.train), len(problems.test)) == (1200, 150)
    math = resolve("math")
    assert all(math(problem, Completion(task.gold(problem))).score == 1.0 for problem in problems.test)
    commands = [shlex.split(line, comments=True)[1:] for line in re.findall(r"^r1lite .*", page, re.MULTILINE)]
    of_the_task = [words for words in commands if any("my_task" in word for word in words)]
    for name, *words in of_the_task:
        load(COMMANDS[name][0], [word.replace("my_task", "page_task") for word in words])
    assert [name for name, *_ in of_the_task] == ["pretrain", "grpo"]


def test_the_recipes_fit_together(tmp_path):
    base = load(PretrainConfig, ["own-base", "--text", "test_worked:TASK"])
    assert base.num_parameters < 200_000
    task = load(GRPOConfig, ["own-task", "--task", "test_worked:TASK"])
    assert (task.template, task.max_completion_tokens) == ("short", 64)
    for name in ("own-base", "own-task"):
        assert yaml.safe_load(bundled(f"recipes/{name}.yaml").read_text())["threads"] == 1


def test_a_base_is_made_from_a_task_of_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_worked.py").write_text(
        "from r1lite.tasks.worked import Worked, worked_task\n"
        "def make(rng):\n"
        "    a, b = rng.randint(1, 99), rng.randint(1, 99)\n"
        "    return Worked(f'{a} and {b}?', f'{a} + {b} = {a + b}', str(a + b))\n"
        "TASK = worked_task('own', make, train=40, test=10)\n"
    )
    sizes = ["--hidden-size", "16", "--intermediate-size", "16", "--layers", "1", "--heads", "1", "--kv-heads", "1"]
    few = ["--chain-steps", "2", "--habit-steps", "1", "--batch-size", "4", "--tokenizer-problems", "100"]
    argv = ["pretrain", "own-base", "--text", "own_worked:TASK", *sizes, *few, "--out", str(tmp_path / "base")]
    assert main(argv) == 0
    argv = ["grpo", "own-task", "--task", "own_worked:TASK", "--model", str(tmp_path / "base"), "--steps", "1"]
    argv += [
        "--eval-problems",
        "4",
        "--eval-sample-problems",
        "4",
        "--eval-samples",
        "2",
        "--out",
        str(tmp_path / "rl"),
    ]
    assert main([*argv, "--prompts-per-step", "2", "--group-size", "2", "--max-completion-tokens", "8"]) == 0
    # Three steps teach nothing, which the first measurement shows.
    said = " ".join(capsys.readouterr().out.split())
    assert "with 2 samples each, 0.0% of 4 test problems were solved: RL can only reinforce what the model does" in said
    assert "r1lite sft on worked answers first" in said


@pytest.mark.parametrize(
    ("model", "right", "solved", "told"),
    [
        ("nano", 0.016, 0.13, "r1lite/nano/README.md"),  # it guesses
        ("nano", 0.3, 0.9, None),
        ("x/y", 0.0, 0.0, "a larger model"),
        ("x/y", 0.02, 0.13, None),
    ],
)
def test_what_is_said_of_a_task_beyond_the_model(model, right, solved, told):
    from r1lite.training.on_problems import beyond_it

    said = beyond_it(
        GRPOConfig(model=model), {"sampled_accuracy": right, "pass_at_k": solved, "k": 8, "sampled_problems": 200}
    )
    assert (said is None) == (told is None)
    assert told is None or told in said
