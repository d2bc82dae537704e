"""Distillation: whole distributions in chunks, one tokenizer, a student of any shape, exact resume."""

import gzip
import json
import signal
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from r1lite.cli import main
from r1lite.config import DistillConfig, validated
from r1lite.errors import UserError
from r1lite.model.batch import Row, micro_batches
from r1lite.model.policy import Policy
from r1lite.rl.distillation import generalised_jsd
from r1lite.supervised.distillation import divergence

ROOT = Path(__file__).resolve().parents[2]
SHAPE = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}


def settings_for(tiny_path, sums_path, **more):
    return {
        **{"teacher": str(tiny_path), "student_shape": SHAPE, "source": str(sums_path), "template": "short"},
        **{"max_completion_tokens": 6, "rows_per_step": 6, "steps": 6, "lr": 3e-3, "save_every": 2, "threads": 1},
        **{"eval_problems": 2, "eval_sample_problems": 1, "eval_samples": 2, "micro_batch_tokens": 40},
        **more,
    }


def distil(folder, out, *flags, **settings):
    folder.mkdir(exist_ok=True)
    recipe = folder / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(settings))
    return ["distill", str(recipe), "--out", str(out), *flags]


def write_set(path, count=20):
    path.write_text("".join(json.dumps({"prompt": f"{i}+1?\n", "completion": f"{i + 1}"}) + "\n" for i in range(count)))
    return path


@pytest.fixture(scope="module")
def pair():
    from conftest import make_tiny_model

    models = make_tiny_model(), make_tiny_model(hidden_size=16, num_hidden_layers=1)
    return [Policy(model.double(), pad_id=0) for model in models]


rows = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 6)), min_size=1, max_size=5)


@settings(max_examples=15, deadline=None)
@given(rows, st.integers(1, 40), st.integers(8, 60), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.7, 1.0]))
def test_chunks_and_micro_batches_change_nothing(pair, sizes, chunk, budget, beta, temperature):
    teacher, student = pair
    generator = torch.Generator().manual_seed(0)
    found = [
        Row(*(tuple(torch.randint(2, 48, (n,), generator=generator).tolist()) for n in (prompt, completion)))
        for prompt, completion in sizes
    ]
    options = {"vocabulary": 40, "beta": beta, "temperature": temperature}

    def gradient(total):
        student.model.zero_grad(set_to_none=True)
        total.backward()
        return total.item(), torch.cat([p.grad.flatten() for p in student.model.parameters()])

    expected = 0
    for row in found:
        ids = torch.tensor([[*row.prompt_ids, *row.token_ids]])
        ours, theirs = (
            policy.model(input_ids=ids).logits[0, len(row.prompt_ids) - 1 : -1, :40] for policy in (student, teacher)
        )
        expected = expected + generalised_jsd(ours, theirs, beta=beta, temperature=temperature).sum()
    loss, grad = gradient(expected)
    batches = micro_batches(found, budget, 0, "cpu")
    found_loss, found_grad = gradient(
        sum(divergence(student, teacher, batch, chunk_tokens=chunk, **options) for batch in batches)
    )
    assert found_loss == pytest.approx(loss, rel=1e-6, abs=1e-9)
    assert (found_grad - grad).norm() < 1e-6 * grad.norm() + 1e-9


def test_no_more_logits_exist_than_a_chunk(pair, monkeypatch):
    from r1lite.rl.tiles import Head

    seen, logits = [], Head.logits

    def watched(self, hidden, **options):
        seen.append(hidden.shape[0])
        return logits(self, hidden, **options)

    monkeypatch.setattr(Head, "logits", watched)
    (batch,) = micro_batches([Row((1, 2), (3,) * 30)], 100, 0, "cpu")
    divergence(pair[1], pair[0], batch, vocabulary=48, beta=0.5, temperature=1.0, chunk_tokens=8).backward()
    assert sorted(seen) == [6] * 4 + [8] * 12  # both models, forward and again in the backward pass


# --- whole runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_path, sums_path):
    folder = tmp_path_factory.mktemp("distill")
    data = write_set(folder / "set.jsonl")
    argv = distil(folder, folder / "run", **on_policy(tiny_path, sums_path, data))
    assert main(argv) == 0
    return folder / "run"


def on_policy(tiny_path, sums_path, data, **more):
    return settings_for(tiny_path, sums_path, method="on-policy", data=str(data), on_policy_share=0.5, **more)


def outcome(out):
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for line in metrics:
        for clock in ("step_s", "generate_s", "train_s"):
            line.pop(clock, None)
    weights = {path.name: (path / "model.safetensors").read_bytes() for path in sorted((out / "checkpoints").iterdir())}
    return metrics, weights, [gzip.decompress(path.read_bytes()) for path in sorted((out / "rollouts").iterdir())]


def test_on_policy_takes_its_share_of_the_students_rows_and_comes_closer(whole):
    metrics, _, rollouts = outcome(whole)
    assert [line["rows_of_the_student"] for line in metrics] == [3] * 6
    assert [line["rows"] for line in metrics] == [6] * 6
    assert [len(text.splitlines()) for text in rollouts] == [3] * 6
    assert metrics[-1]["token_loss"] < metrics[0]["token_loss"]
    assert json.loads((whole / "teacher.json").read_text())["model_hash"].startswith("sha256:")
    assert json.loads((whole / "checkpoints" / "step-000006" / "config.json").read_text())["hidden_size"] == 16


def test_the_students_problems_are_limited(tiny_path, sums_path, tmp_path):
    values = settings_for(tiny_path, sums_path, method="on-policy", on_policy_share=1.0, max_problems=4, epochs=3.0)
    assert main(distil(tmp_path, tmp_path / "run", **values | {"steps": None})) == 0
    metrics, _, rollouts = outcome(tmp_path / "run")
    assert len(metrics) == 2  # 3 passes over 4 problems, 6 rows a step
    assert len({json.loads(row)["prompt"] for text in rollouts for row in text.splitlines()}) == 4


KILLED_IN_STEP_4 = """
import os, signal, sys
from r1lite.cli import main
from r1lite.supervised import distillation as course
step = course.Distilling.step
def killed(self, number):
    done = step(self, number)
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return done
course.Distilling.step = killed
main(sys.argv[1:])
"""


def test_killed_and_resumed_is_the_same_as_never_stopped(whole, tiny_path, sums_path, tmp_path, forks):
    data = whole.parent / "set.jsonl"
    argv = distil(tmp_path, tmp_path / "run", **on_policy(tiny_path, sums_path, data))
    assert forks.run(argv, code=KILLED_IN_STEP_4)[0] == -signal.SIGKILL
    assert main(["distill", "--resume", "--out", str(tmp_path / "run"), "--quiet"]) == 0
    assert outcome(tmp_path / "run") == outcome(whole)


def test_off_policy_learns_what_the_teacher_got_right(tiny_path, sums_path, tmp_path, monkeypatch):
    (tmp_path / "lenient_for_tests.py").write_text("def any(problem, completion):\n    return 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    trajectories = {"samples": 2, "max_problems": 10, "correct": "lenient_for_tests:any", "filters": ["correct"]}
    values = settings_for(tiny_path, sums_path, trajectories=trajectories, rows_per_step=4)
    assert main(distil(tmp_path, tmp_path / "run", **values)) == 0
    rows = (tmp_path / "run" / "trajectories" / "train.jsonl").read_text().splitlines()
    facts = json.loads((tmp_path / "run" / "set.json").read_text())
    assert facts["rows_read"] == len(rows) > 0
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 6


def test_off_policy_on_a_given_set_needs_no_teacher(tiny_path, sums_path, tmp_path):
    values = settings_for(tiny_path, sums_path, data=str(write_set(tmp_path / "set.jsonl")), model=str(tiny_path))
    del values["teacher"], values["student_shape"]
    assert main(distil(tmp_path, tmp_path / "run", **values)) == 0


def test_a_teacher_with_another_tokenizer_is_refused_by_name(tiny_path, sums_path, tmp_path, capsys):
    values = settings_for("nano", sums_path, method="on-policy", model=str(tiny_path), on_policy_share=1.0)
    del values["student_shape"]
    assert main(distil(tmp_path, tmp_path / "run", **values)) == 2
    shown = capsys.readouterr().err
    assert f"--teacher nano (1,024 tokens) and the student {tiny_path} (48 tokens) don't share a tokenizer" in shown
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teacher": None}, "--teacher is missing"),
        ({"model": "nano"}, "can't be set too"),
        ({"beta": 1.5}, "beta must be <= 1"),
        ({"data": "a.jsonl", "trajectories": {"samples": 2}}, "nothing is sampled"),
        ({"trajectories": {"out": "x"}}, "out can't be set here"),
        (
            {"trajectories": {"samplse": 2}},
            "trajectories: r1lite reject has no setting 'samplse'; did you mean 'samples'",
        ),
        ({"trajectories": {"samples": 0}}, "trajectories: samples must be >= 1"),
        ({"temperature": 0.7}, "--temperature 0.7 has no effect with --method off-policy"),
        ({"method": "on-policy", "packing": "on"}, "--packing on has no effect with --method on-policy"),
        *(
            (
                {"method": "on-policy", "on_policy_share": share, "rows_per_step": rows},
                f"--on-policy-share {share} of --rows-per-step {rows} is {own} rows: .*--on-policy-share {end}$",
            )
            for share, rows, own, end in ((0.1, 4, 0, 0), (0.5, 1, 0, 0), (0.98, 16, 16, 1))
        ),
        ({"data": "a.jsonl", "max_problems": 5}, "--max-problems 5 has no effect with --data"),
        ({"data": "a.jsonl", "samples": 5}, "--samples 5 has no effect with --data"),
        *(
            ({"method": "on-policy", "on_policy_share": 1.0, **change}, "has no effect with --on-policy-share 1")
            for change in (
                {"data": "a.jsonl"},
                {"samples": 5},
                {"trajectories": {"samples": 5}},
                {"prompts": "verbatim"},
            )
        ),
    ],
)
def test_mistakes_in_the_configuration(change, message):
    with pytest.raises(UserError, match=message):
        validated(DistillConfig, {"teacher": "nano", "student_shape": SHAPE, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"student_shape": {"hiden_size": 3}}, "hiden_size are not settings of Qwen2Config"),
        ({"student_shape": {"num_attention_heads": 3}}, "no model can have it"),
        ({"student_shape": {"vocab_size": 3}}, "below the tokenizer's 48 tokens"),
        ({"teacher": "/nowhere"}, "/nowhere: no such folder here"),
    ],
)
def test_mistakes_leave_nothing_behind(change, message, tiny_path, sums_path, tmp_path, capsys):
    values = settings_for(tiny_path, sums_path, **{"data": None, **change})
    if values["data"] is None:
        values["data"] = str(write_set(tmp_path / "set.jsonl"))
    assert main(distil(tmp_path, tmp_path / "run", **values)) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
