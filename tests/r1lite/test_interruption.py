"""Forced interruption of thinking: what is learnt of it, where a stop text ends it, and runs that were stopped."""

import functools
import json

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from scripted_engine import ScriptedEngine

from r1lite.cli import main
from r1lite.config import GRPOConfig, load
from r1lite.errors import UserError
from r1lite.grpo.learner import PolicyLearner
from r1lite.grpo.metrics import rollout_metrics
from r1lite.grpo.minibatch import make_minibatches
from r1lite.model.batch import micro_batches
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.nano import nano_path
from r1lite.rollout import EngineError, Sampling, collect
from r1lite.rollout.hf import HFEngine
from r1lite.rollout.interruption import make_interruption, stream
from r1lite.rollout.trust import TrustedEngine
from r1lite.run.arrivals import Arrival, Arrivals
from r1lite.run.bad_batches import BadBatches
from r1lite.types import Group, Rollout
from verifiers import Completion, Problem, Score
from verifiers.rows import rows


@pytest.fixture(scope="module")
def nano_tokenizer():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(nano_path())


def group_of(*completions):
    """Rewards 0, 1, 2, ... to one prompt."""
    rollouts = (Rollout(c, Score(float(i), {}), 0.0, bool(i), None) for i, c in enumerate(completions))
    return Group(Problem("", id="p"), "", (5, 6, 7), tuple(rollouts))


def with_phrase(logprobs=(-1.0, -2.0, 0.0, 0.0, -3.0)):
    return Completion("", (8, 9, 30, 31, 10), logprobs, inserted=(2, 4))


def test_the_phrase_is_read_and_not_learnt():
    groups = [group_of(with_phrase(), Completion("", (11, 12), (-0.5, -0.5)))]
    (minibatch,) = make_minibatches(
        groups,
        1,
        counts=lambda r: True,
        has_gradient=lambda i: True,
        max_tokens=99,
        cut=functools.partial(micro_batches, pad_id=0, device="cpu"),
    )
    (batch,) = minibatch.micro_batches
    row = batch.indices.index((0, 0))
    assert batch.inputs.valid_mask[row].tolist() == [True] * 5
    assert batch.inputs.loss_mask[row].tolist() == [True, True, False, False, True]
    assert (minibatch.num_tokens, minibatch.num_right_tokens) == (5, 2)
    metrics = rollout_metrics(groups)
    assert metrics["entropy"] == pytest.approx(7 / 5)
    assert metrics["interrupted"] == 0.5
    assert metrics["completion_tokens"] == 3.5


def test_the_gradient_is_that_of_the_sampled_tokens():
    """Against a plain forward pass: -A log p of every token but the phrase's, over their number."""
    torch.set_num_threads(1)
    completions = [with_phrase(), Completion("", (11, 12), (-0.5, -0.5))]
    policy = Policy(make_tiny_model().double(), pad_id=0)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1e9)
    optimizer.adamw = torch.optim.SGD(optimizer.parameters, lr=0.0)
    config = GRPOConfig(
        group_size=2, prompts_per_step=1, max_completion_tokens=12, lr=1.0, advantage="dr_grpo", biased_sampling=True
    )
    before = [p.detach().clone() for p in policy.model.parameters()]
    learner = PolicyLearner(config, policy, optimizer, None, bad=BadBatches(None))
    learner.learn([group_of(*completions)], 0)
    found = [b - p.detach() for b, p in zip(before, policy.model.parameters(), strict=True)]

    plain, loss = make_tiny_model().double(), 0.0
    for completion, advantage in zip(completions, (-0.5, 0.5), strict=True):
        ids = torch.tensor([[5, 6, 7, *completion.token_ids]])
        logprobs = plain(ids).logits[0, 2:-1].log_softmax(-1).gather(-1, ids[0, 3:, None]).squeeze(-1)
        start, end = completion.inserted
        loss = loss - advantage * (logprobs[:start].sum() + logprobs[end:].sum()) / 5
    expected = torch.autograd.grad(loss, list(plain.parameters()))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=3e-6)


def test_what_was_sampled_ahead_keeps_where_the_phrase_stands(tmp_path):
    arrival = Arrival(0, 0, "p", (with_phrase(), Completion("a", (11,), (-0.5,))))
    arrivals = Arrivals(tmp_path / "arrivals.jsonl")
    arrivals.append(arrival)
    assert arrivals.begin(0) == [arrival]


def test_a_stop_text_that_lies_across_the_interruption_ends_the_completion(nano_tokenizer):
    """Wherever the first part ends within it: as if the stop text had been looked for in one piece."""
    text, stop = "</think> a STOP here and more of it", "STOP here"
    ended = nano_tokenizer.encode("</think> a STOP here")
    begun = len(nano_tokenizer.encode("</think> a "))

    def script(prompt, seed, version):  # what is still to be said follows from how much was
        said = nano_tokenizer.decode(prompt[1:])
        assert text.startswith(said)
        return text[len(said) :]

    engine = ScriptedEngine(nano_tokenizer, script)
    assert len(ended) - begun > 3
    for after in range(begun + 1, len(ended)):
        given = make_interruption(after, "</think>", 60, nano_tokenizer)
        ((place, (found,)),) = stream(engine, [[5]], [[1]], Sampling(1.0, 60, stop), given)
        assert (place, found.inserted, found.finish_reason) == (0, (0, 0), "stop")
        assert found.text == "</think> a STOP here"
        assert len(found.logprobs) == len(found.token_ids)


def test_weights_that_change_between_the_two_parts_are_noticed(nano_tokenizer):
    engine = ScriptedEngine(nano_tokenizer, lambda prompt, seed, version: "words and words " * 9)
    given = make_interruption(4, "</think>", 20, nano_tokenizer)
    generate = engine.stream

    def newer(*asked):
        yield from generate(*asked)
        engine.policy_version += 1

    engine.stream = newer
    with pytest.raises(EngineError, match="in the middle of a completion of version 0"):
        collect(1, stream(engine, [[5]], [[1]], Sampling(1.0, 20), given))


def test_no_weights_come_between_the_two_parts(nano_tokenizer):
    """A trusted engine pushes what was offered before the first part, and nothing before the second."""
    engine = HFEngine(make_tiny_model(), make_tiny_tokenizer())
    trusted = TrustedEngine(engine, None, dict, pad_id=0)
    given = make_interruption(2, "</think>", 90, nano_tokenizer)
    given = type(given)(2, (30, 31), make_tiny_tokenizer())
    found = trusted.stream([[5, 6], [7]], [[1], [2]], Sampling(1.0, 8), given)
    next(found)
    trusted.offer(dict, version=1)
    list(found)
    assert engine.policy_version == 0


REFUSED = [
    ("--interrupt-thinking-after 96 --max-completion-tokens 96", "must be < --max-completion-tokens = 96"),
    ("--interruption-phrase </think>", "no effect without --interrupt-thinking-after"),
    ("--interrupt-thinking-after 9 --interruption-phrase enough", "must contain </think>"),
    ("--interrupt-thinking-after 9 --stop-text </think>", "contains --stop-text '</think>'"),
]


@pytest.mark.parametrize(("flags", "reason"), REFUSED)
def test_refused(flags, reason):
    with pytest.raises(UserError) as caught:
        load(GRPOConfig, flags.split())
    assert reason in str(caught.value)


def test_a_phrase_that_leaves_no_room_is_refused_before_anything_is_written(tmp_path, capsys):
    out = tmp_path / "run"
    flags = ["--model", "nano", "--interrupt-thinking-after", "60", "--out", str(out), "--quiet"]
    assert main(["grpo", *flags]) == 2
    assert "the 40 tokens of --interruption-phrase leave no room" in capsys.readouterr().err
    assert not out.exists()


def rollouts_of(out):
    files = sorted((out / "rollouts").iterdir())
    return [row for path in files for _, row in rows(path)]


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_with_the_same_completions(tmp_path, few_problems):
    flags = "--model nano --device cpu --threads 1 --quiet --prompts-per-step 4 --group-size 4 --lr 1e-3 --no-report"
    flags += " --eval-problems 2 --eval-sample-problems 1 --eval-samples 1 --interrupt-thinking-after 8 --save-every 1"
    train = ["grpo", *flags.split(), "--source", str(few_problems), "--interruption-phrase", "Enough. </think>"]
    assert main([*train, "--steps", "3", "--out", str(tmp_path / "whole")]) == 0
    assert main([*train, "--steps", "1", "--out", str(tmp_path / "part")]) == 0
    assert main(["grpo", "--resume", "--quiet", "--steps", "3", "--out", str(tmp_path / "part")]) == 0
    whole = rollouts_of(tmp_path / "whole")
    assert rollouts_of(tmp_path / "part") == whole
    interrupted = [row for row in whole if row["inserted"]]
    assert 0 < len(interrupted) < len(whole)
    for row in interrupted:
        start, end = row["inserted"]
        assert start == 8
        assert row["logprobs"][start:end] == [0.0] * (end - start)
        assert "Enough. </think>" in row["completion"]
    metrics = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    assert [round(16 * line["interrupted"]) for line in metrics] == [
        sum(row["inserted"] is not None for row in whole if row["step"] == step) for step in (1, 2, 3)
    ]
    learnt = [line["mismatch_logprob_max"] for line in metrics if line["updates"]]
    assert 0 <= max(learnt) < 1e-3  # the sampled tokens', exactly
