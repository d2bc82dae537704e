"""Reward models: what is learnt, kept, continued, refused, and scored with."""

import json
import math
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from tables_for_tests import each

import r1lite.preference.training
from r1lite.cli import main
from r1lite.preference.reward_model import RewardModel, doubt, squashed, text_of
from verifiers import Completion, Problem, Reward, VerifierError, resolve
from verifiers.formula import Formula

ROOT = Path(__file__).resolve().parents[2]
WORDS = ["ab", "cde", "fg", "hij", "k", "lmn", "op", "qrst"]


@pytest.fixture(scope="module")
def pairs_path(tmp_path_factory):
    """Numbers are preferred to words; three answers to each prompt."""
    rows = [
        {"prompt": f"{i}?", "chosen": f"it is {i * 7 + k}", "rejected": f"it is {WORDS[(i + k) % 8]}", "margin": k / 4}
        for i in range(60)
        for k in range(2)
    ]
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(out, tiny_path, pairs_path, *more):
    return main(
        [
            *("reward-model", "--model", str(tiny_path), "--source", str(pairs_path), "--out", str(out), "--quiet"),
            *("--lr", "1e-2", "--batch-pairs", "16", "--epochs", "2", "--threads", "1", "--save-every", "3"),
            *("--hold-out", "0.2", "--micro-batch-tokens", "200", "--centre-coef", "0.01", *more),
        ]
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory, tiny_path, pairs_path):
    out = tmp_path_factory.mktemp("rm") / "run"
    assert run(out, tiny_path, pairs_path, "--eval-every", "4") == 0
    return out


def weights(out):
    folder = max((out / "checkpoints").iterdir())
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for line in metrics:
        del line["step_s"]
    return (folder / "model.safetensors").read_bytes(), (folder / "config.json").read_text(), metrics


def test_it_learns_and_measures(trained):
    summary = json.loads((trained / "summary.json").read_text())
    before, after = summary["eval_before"], summary["eval_after"]
    assert after["accuracy"] > 0.95 > before["accuracy"]
    assert after["loss"] < 0.3 < before["loss"]
    assert 0 <= after["ece"] < 0.3
    assert sum(found["count"] for found in after["bins"]) == after["pairs"] == summary["held_out_pairs"]
    steps = [json.loads(line)["step"] for line in (trained / "evaluations.jsonl").read_text().splitlines()]
    assert steps == list(range(4, summary["steps"], 4))


def test_no_prompt_is_on_both_sides(pairs_path):
    from r1lite.preference.pairs import load_pairs

    found = load_pairs(str(pairs_path), test_source=None, hold_out=0.2, margin_column="margin", splits=("", ""))
    assert not {pair.prompt for pair in found.train} & {pair.prompt for pair in found.test}
    assert len(found.train) + len(found.test) == 120
    assert {pair.margin for pair in found.train} == {0.0, 0.25}


@pytest.mark.parametrize(("held_out", "between"), [(3, "13-87"), (29, "33-67"), (30, None)])
def test_few_held_out_pairs_are_warned_of(held_out, between, tiny_path, pairs_path, tmp_path, capsys):
    rows = pairs_path.read_text().splitlines(keepends=True)
    for name, some in (("train", rows[:16]), ("test", rows[-held_out:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(some))
    argv = ["reward-model", "--model", str(tiny_path), "--source", str(tmp_path), "--out", str(tmp_path / "run")]
    assert main([*argv, "--epochs", "1", "--batch-pairs", "16", "--threads", "1"]) == 0
    said = capsys.readouterr().out
    warnings = [line for line in said.splitlines() if line.startswith("warning   only")]
    expected = f"only {held_out} held-out pairs: an accuracy of 50 % on them has a 95 % interval of {between} %"
    assert [line.startswith(f"warning   {expected}") for line in warnings] == [True] * (between is not None)
    low, high = json.loads((tmp_path / "run" / "summary.json").read_text())["eval_after"]["accuracy_interval"]
    told = next(line for line in said.splitlines() if line.startswith("after"))
    assert f"(95 % interval {100 * low:.1f}-{100 * high:.1f}) on {held_out} held-out pairs" in told


def test_others_can_load_it(trained):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    place = max((trained / "checkpoints").iterdir())
    model = AutoModelForSequenceClassification.from_pretrained(place).eval()
    tokenizer = AutoTokenizer.from_pretrained(place)
    assert model.config.num_labels == 1
    text = "3?\nit is 24" + tokenizer.eos_token
    with torch.no_grad():
        reward = float(model(**tokenizer(text, return_tensors="pt", return_token_type_ids=False)).logits)
    ours = RewardModel(str(trained))
    assert ours.reward("3?", "it is 24") == pytest.approx(reward, abs=1e-6)
    kept = model.config.r1lite_reward
    assert kept["template"] == "short"
    assert ours(Problem("3?"), Completion("it is 24")).score == pytest.approx(
        1 / (1 + math.exp(-(reward - kept["centre"]))), abs=1e-6
    )


def test_it_is_no_policy(trained, sums_path, tmp_path, capsys):
    argv = ["grpo", "--model", str(trained), "--source", str(sums_path), "--steps", "1", "--out", str(tmp_path / "run")]
    assert main(argv) == 2
    assert "a reward model, which generates no text; use it as --reward rm:" in capsys.readouterr().err


def test_it_is_a_verifier(trained):
    torch.set_num_threads(1)
    reward = Reward(f"math * (0.5 + 0.5*rm:{trained}) + 0.1*rm:{trained}")
    good, bad = (reward(Problem("3?", answer="24"), Completion(text)) for text in ("it is 24", "it is hij"))
    assert good.reward > 0.8
    assert bad.reward < 0.05
    (name,) = (name for name in reward.verifiers if name.startswith("rm:"))
    assert good.verdicts[name].reason == "scored"
    assert good.versions[name].endswith(good.versions[name].split("-", 1)[1])
    alone = good.verdicts[name].score
    for _ in range(3):  # whatever else is scored in between
        reward(Problem("7?", answer="1"), Completion("it is qrst" * 5))
        assert reward(Problem("3?", answer="24"), Completion("it is 24")).verdicts[name].score == alone
    assert resolve(f"rm:{trained}", max_tokens=5)(Problem("3?"), Completion("it is 24")).reason == "too_long"
    with pytest.raises(VerifierError, match="needs the prompt"):
        resolve(f"rm:{trained}")(Problem(), Completion("it is 24"))
    harsh = resolve(f"rm:{trained}", centre=100.0, scale=0.5)
    assert harsh(Problem("3?"), Completion("it is 24")).score < 1e-6


def test_scores_lie_within_bounds():
    assert [squashed(x, 0.0, 1.0) for x in (-1e9, 0.0, 1e9)] == [0.0, 0.5, 1.0]
    assert squashed(3.0, 1.0, 2.0) == pytest.approx(1 / (1 + math.exp(-1)))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("rm:/a-b/c.d/e_1e5", ["rm:/a-b/c.d/e_1e5"]),
        ("math*rm:x/y+0.1*format", ["math", "rm:x/y", "format"]),
        ("(rm:x-y) - rm:z", ["rm:x-y", "rm:z"]),
        ("my.rm:attr", ["my.rm:attr"]),
    ],
)
def test_paths_in_formulas(text, names):
    assert Formula(text).names == names


def test_it_rewards_a_training_run(trained, tiny_path, sums_path, tmp_path):
    argv = ["grpo", "--model", str(tiny_path), "--source", str(sums_path), "--out", str(tmp_path / "run"), "--quiet"]
    argv += ["--template", "short", "--max-completion-tokens", "8", "--steps", "2", "--prompts-per-step", "2"]
    argv += ["--group-size", "3", "--eval-problems", "2", "--eval-sample-problems", "2", "--eval-samples", "2"]
    assert main([*argv, "--threads", "1", "--reward", f"rm:{trained}"]) == 0
    line = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    assert 0 < line["parts"][f"rm:{trained}"] < 1
    assert line["unscored"] == 0


def test_stopped_and_resumed_is_the_same(trained, tiny_path, pairs_path, tmp_path, monkeypatch):
    out = tmp_path / "run"
    step = r1lite.preference.training.PreferenceTraining.step

    def stopping(self, number):
        if number == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, number)

    monkeypatch.setattr(r1lite.preference.training.PreferenceTraining, "step", stopping)
    assert run(out, tiny_path, pairs_path, "--eval-every", "4") == 143
    assert max(path.name for path in (out / "checkpoints").iterdir()) == "step-000005"
    monkeypatch.undo()
    assert main(["reward-model", "--resume", "--out", str(out), "--quiet"]) == 0
    assert weights(out) == weights(trained)
    assert main(["reward-model", "--resume", "--out", str(out), "--quiet"]) == 0  # finished already


@pytest.mark.parametrize(
    ("length", "steps", "told"),
    [
        (["--epochs", "1"], 3, "1, in 3 steps"),
        (["--epochs", "0.4"], 1, "0.333, in 1 step"),
        (["--epochs", "1.7"], 5, "1.67, in 5 steps"),
        (["--epochs", "9", "--steps", "4"], 4, "1.33, in 4 steps"),
    ],
)
def test_the_length_of_a_run(length, steps, told, tiny_path, pairs_path, tmp_path, capsys):
    """--steps takes the place of --epochs, as in sft."""
    rows = pairs_path.read_text().splitlines(keepends=True)
    for name, some in (("train", rows[:40]), ("test", rows[-3:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(some))
    argv = ["reward-model", "--model", str(tiny_path), "--source", str(tmp_path), "--out", str(tmp_path / "run")]
    assert main([*argv, *length, "--batch-pairs", "16", "--threads", "1", "--no-report"]) == 0
    assert f"epochs    {told}\n" in capsys.readouterr().out
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == steps


def test_a_gradient_that_is_not_finite_is_skipped_and_kept(tiny_path, pairs_path, tmp_path, monkeypatch, capsys):
    rewards = r1lite.preference.training.PreferenceTraining.rewards
    calls = []

    def broken(self, rows):
        calls.append(torch.is_grad_enabled())
        found = rewards(self, rows)
        return found * math.inf if sum(calls) in bad and calls[-1] else found

    monkeypatch.setattr(r1lite.preference.training.PreferenceTraining, "rewards", broken)
    bad = {1}
    flags = ["--micro-batch-tokens", "100000", "--epochs", "1"]
    assert run(tmp_path / "once", tiny_path, pairs_path, *flags) == 0
    first, second = [json.loads(line) for line in (tmp_path / "once" / "metrics.jsonl").read_text().splitlines()][:2]
    assert (first["skipped_updates"], first["loss"], second["skipped_updates"]) == (1, None, 0)
    kept = torch.load(tmp_path / "once" / "bad_batches" / "step-000001-1.pt", weights_only=True)
    assert "score.weight" in kept["parameters"]
    assert len(kept["batches"]) == 16
    calls.clear()
    bad = {2, 3, 4}
    assert run(tmp_path / "thrice", tiny_path, pairs_path, *flags) == 1
    assert "not finite 3 times in a row" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "flags", "message"),
    [
        ([{"prompt": "a", "chosen": "b", "rejected": "b "}], [], "pairs.jsonl:1: a pair without a difference"),
        ([{"prompt": "a", "chosen": "b"}], [], "no 'rejected'; the row has 'chosen', 'prompt'"),
        ([{"chosen": "a", "rejected": "b"}], [], "no 'prompt' or 'question'; the row has 'chosen', 'rejected'"),
        ([{"prompt": "", "chosen": "b", "rejected": "c"}], [], "'prompt' is empty"),
        ([{"question": "", "chosen": "b", "rejected": "c"}], [], "'question' is empty"),
        ([{"prompt": "a", "chosen": 3, "rejected": "c"}], [], "'chosen' must be text"),
        ([[1]], [], "a row must be an object"),
        ([{"prompt": "a", "chosen": "b", "rejected": "c"}], [], "1 pairs to train on, 0 held out"),
        ([{"prompt": "a", "chosen": "b", "rejected": "c", "m": -1}], ["--margin-column", "m"], "number >= 0, got -1"),
        ([{"prompt": "a" * 200, "chosen": "b", "rejected": "c"}] * 2, [], "2 of 2 pairs are longer than 160 tokens"),
        ([{"prompt": "a", "chosen": "b", "rejected": "c"}] * 2, ["--template", "chat"], "has no chat template"),
        (
            [{"prompt": [{"role": "user", "content": "a"}], "chosen": "b", "rejected": "c"}] * 2,
            [],
            "need --template chat",
        ),
    ],
)
def test_pairs_that_are_refused(rows, flags, message, tiny_path, tmp_path, capsys):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if len(rows) == 2:
        flags = [*flags, "--test-source", str(path)]
    assert run(tmp_path / "run", tiny_path, path, *flags) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_pair_of_reject_is_trained_on_as_it_is_scored():
    """Its prompt is rendered with the template of the run that sampled it, and a reward model renders the question."""
    from r1lite.preference.pairs import _pair

    row = {"prompt": "User: a?\n", "question": "a?", "chosen": "b", "rejected": "c"}
    assert _pair(row, "", None).prompt == "a?"
    talk = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "a?"}]
    assert _pair({**row, "prompt": talk}, "", None).prompt == (("system", "be brief"), ("user", "a?"))


@pytest.mark.quick
def test_an_answer_that_holds_its_end_gets_no_second_one(tiny_tokenizer):
    """As in TRL's RewardTrainer."""
    end = tiny_tokenizer.eos_token
    assert text_of("a", f"b{end}", "{question}", tiny_tokenizer) == f"ab{end}"
    assert text_of("a", "b", "{question}", tiny_tokenizer) == f"ab{end}"


def test_messages():
    from r1lite.preference.pairs import _pair

    assert _pair({"question": "a", "chosen": "b", "rejected": "c"}, "", None).prompt == "a"
    user, said = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    row = {"prompt": "a", "chosen": [user, said], "rejected": [{"role": "assistant", "content": "c"}]}
    assert (_pair(row, "", None).chosen, _pair(row, "", None).rejected) == ("b", "c")
    with pytest.raises(ValueError, match="one assistant message"):
        _pair({**row, "chosen": [said, user]}, "", None)


@pytest.mark.parametrize(
    ("path", "message"),
    [("/nowhere/model", "no such folder"), ("TINY", "is not a reward model: it lacks score.weight")],
)
def test_what_is_no_reward_model(path, message, tiny_path):
    with pytest.raises(ValueError, match=message):
        resolve(f"rm:{tiny_path if path == 'TINY' else path}")


@each([(0.6, 1000, False), (0.6, 12, True), (0.5, 1000, True), (0.1, 1000, True), (1.0, 1, True), (1.0, 5, False)])
def test_a_model_that_may_be_a_coin_is_no_reward(accuracy, pairs, doubted):
    said = doubt(accuracy, pairs)
    assert bool(said) == doubted
    if doubted:
        assert said.startswith(f"no reward to train on: an accuracy of {accuracy:.1%} (")
        assert said.endswith(f"on {pairs} held-out pairs may be chance (50 %)")


def test_a_coin_in_a_formula_is_warned_of(trained, tmp_path):
    """Whether the run or a copy of its checkpoint is named."""
    assert Reward(f"math + 0.2*rm:{trained}").warnings == []
    coin = tmp_path / "coin"
    shutil.copytree(max((trained / "checkpoints").iterdir()), coin)
    shape = json.loads((coin / "config.json").read_text())
    assert shape["r1lite_reward"]["accuracy"] > 0.95
    shape["r1lite_reward"] |= {"accuracy": 0.55, "pairs": 20}
    (coin / "config.json").write_text(json.dumps(shape))
    (warning,) = Reward("math + 0.2*judge", options={"judge": {"use": f"rm:{coin}", "scale": 2.0}}).warnings
    assert warning.startswith("judge: no reward to train on: an accuracy of 55.0% (34.2-74.2) on 20 held-out pairs")
    del shape["r1lite_reward"]["accuracy"]  # of another trainer
    (coin / "config.json").write_text(json.dumps(shape))
    assert Reward(f"rm:{coin}").warnings == []
