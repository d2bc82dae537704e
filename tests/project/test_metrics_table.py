"""The table of metrics: it knows what every stage writes, and what is shown or printed is made from it."""

from pathlib import Path

import pytest

from r1lite.run.display import Display
from r1lite.run.metrics import BY_NAME, METRICS, columns, docs_table

ROOT = Path(__file__).resolve().parents[2]


def test_names_are_unique_and_the_docs_have_the_table():
    assert len(BY_NAME) == len(METRICS)
    assert docs_table() in (ROOT / "r1lite" / "rl" / "README.md").read_text(encoding="utf-8")


def test_columns_are_explained():
    assert [one.name for one in columns()][:4] == ["token_loss", "epoch", "reward", "accuracy"]
    assert all(one.brief and one.means for one in columns())


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("accuracy", 0.25, "25.0%"),
        ("tokens", 12345, "12,345"),
        ("completion_tokens", 30.96, "31.0"),
        ("step_s", 1.824, "1.82 s"),
        ("lr", 5e-5, "5e-05"),
        ("entropy", 0.01623, "0.0162"),
    ],
)
def test_values_for_the_reader(name, value, text):
    assert BY_NAME[name].text(value) == text


def line(step, **more):
    return {
        "step": step,
        "reward": float(step),
        "accuracy": 0.5,
        "parts": {"math": 0.5, "calm": 0.25 * step},
        "reasons": {"math": {"equal": 3, "different": 5}},
        "tokens": 100,
        "step_s": 0.5,
        "groups_without_signal": None,
        **more,
    }


def test_plain_lines_name_their_steps_and_give_means(capsys):
    display = Display()
    display.start("training", 3)
    for step in (1, 2, 3):
        display.step(step, 3, line(step))
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith("columns   means over the steps of a row; reward: value of the reward formula; accuracy:")
    assert said[2].startswith("step 1/3  reward 1  accuracy 50.0%  calm 0.25  time 0.50 s  left 0:01  200 tokens/s")
    assert said[2].endswith("wrong: different 5")
    assert said[3].startswith("steps 2-3/3  reward 2.5  accuracy 50.0%  calm 0.625")  # means of steps 2 and 3
    assert len(said) == 4
    assert "no signal" not in "".join(said)  # a group of one completion has no siblings to compare with


def test_the_epoch_of_a_row_is_that_after_its_last_step(capsys):
    display = Display()
    display.start("training", 3)
    for step in (1, 2, 3):
        display.step(step, 3, {"token_loss": float(step), "epoch": step / 2, "step_s": 0.5})
    assert "steps 2-3/3  loss 2.5  epoch 1.5" in capsys.readouterr().out


def test_accuracy_of_pairs_is_their_order(capsys):
    display = Display()
    display.start("training", 1)
    display.step(1, 1, {"loss": 0.7, "accuracy": 0.5, "margin": 0.0, "step_s": 0.5})
    assert "accuracy: pairs in the right order; margin: chosen minus rejected" in capsys.readouterr().out


@pytest.mark.parametrize("theirs", [{"ok": 8}, {"cheap": 8}])
def test_reasons_of_our_verifier_are_shown_wherever_it_is_in_the_formula(theirs, capsys):
    display = Display()
    display.start("training", 1)
    display.step(1, 1, line(1, reasons={"mine:reward": theirs, "math": {"equal": 3, "different": 5}}))
    assert capsys.readouterr().out.endswith("wrong: different 5\n")


def test_what_a_reason_says_can_not_steer_the_terminal(capsys):
    display = Display()
    display.start("training", 1)
    display.step(1, 1, line(1, reasons={"math": {"\x1b[2Jcleared": 2}}))
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\\x1b[2Jcleared 2" in said


def test_long_stretches_without_a_terminal_have_lines(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("r1lite.run.display.time.monotonic", lambda: now[0])
    display = Display()
    display.start("measuring", 1)
    for share in (0.1, 0.2, 0.5):
        now[0] += 6
        display.progress(share)
    display.finish()
    assert capsys.readouterr().out.splitlines() == ["measuring ...", "measuring: 20%, 0:48 left"]


def test_slow_scoring_is_shown(capsys, monkeypatch):
    """A line every ten seconds, which takes no line away from the steps; on a terminal beside the bar."""
    now = [100.0]
    monkeypatch.setattr("r1lite.run.display.time.monotonic", lambda: now[0])
    display = Display()
    display.start("training", 5)
    display.step(1, 5, line(1))
    for done in range(8):
        now[0] += 4
        display.scored(done, 128)
    display.step(2, 5, line(2))
    said = [text for text in capsys.readouterr().out.splitlines() if not text.startswith("columns")]
    assert said[0] == "training ..."
    assert said[2:4] == ["training: scoring, 2 of 128 completions", "training: scoring, 5 of 128 completions"]
    assert [text[:8] for text in said if text.startswith("step")] == ["step 1/5", "step 2/5"]
    display.live = True
    display.scored(12, 128)
    (task,) = display._bar.tasks
    assert task.description == "training: scoring, 12 of 128 completions"
    display._move(3)
    assert task.description == "training"
    assert capsys.readouterr().out == ""
    quiet = Display(loudness=-1)
    quiet.start("training", 5)
    now[0] += 20
    quiet.scored(1, 128)
    assert capsys.readouterr().out == ""
