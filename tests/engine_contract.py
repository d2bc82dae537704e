"""What every rollout engine must do. Each function is a test; `test_engines.py` and `test_vllm*.py` run them all."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from r1lite.nano import nano_path
from r1lite.rollout import EngineError, Sampling, collect
from r1lite.rollout.interruption import make_interruption, stream

QUESTIONS = ("Tom has 3 apples and buys 4 more.", "A box holds 12 pens.", "Ann had 9 coins. " * 12, "Why?")
TOKENS = 24


@dataclass
class Case:
    """An engine, and the model that it must sample from."""

    engine: Any
    model: Any
    tokenizer: Any
    scripted: bool = False  # its completions are not the model's
    version: int = 0

    def prompts(self):
        return [self.tokenizer(text)["input_ids"] for text in QUESTIONS]

    def generate(self, sampling, prompts=None, seeds=None, size=3):
        prompts = self.prompts() if prompts is None else prompts
        seeds = [[1000 * len(p) + g for g in range(size)] for p in prompts] if seeds is None else seeds
        return self.engine.generate(prompts, seeds, sampling)

    def push(self):
        self.version += 1
        self.engine.load_weights(self.model.state_dict().items(), version=self.version)


def load_nano():
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    return (
        AutoModelForCausalLM.from_pretrained(nano_path(), dtype=torch.float32).eval(),
        AutoTokenizer.from_pretrained(nano_path()),
    )


def forward(case, prompt, completion, temperature):
    """Log-probabilities of a completion's tokens by a plain forward pass."""
    ids = torch.tensor([[*prompt, *completion.token_ids]])
    with torch.no_grad():
        logits = case.model(ids).logits[0, len(prompt) - 1 : -1].float()
    return (logits / (temperature or 1.0)).log_softmax(-1).gather(-1, ids[0, len(prompt) :, None]).squeeze(-1)


def ids(groups):
    return [[completion.token_ids for completion in group] for group in groups]


def a_group_is_the_same_in_any_order_and_alone(case):
    sampling = Sampling(1.0, TOKENS)
    prompts = case.prompts()
    seeds = [[100 * p + g for g in range(3)] for p in range(len(prompts))]
    together = case.generate(sampling, prompts, seeds)
    assert [len(group) for group in together] == [3] * len(prompts)
    assert ids(case.generate(sampling, prompts[::-1], seeds[::-1]))[::-1] == ids(together)
    alone = [case.generate(sampling, [prompt], [row])[0] for prompt, row in zip(prompts, seeds, strict=True)]
    assert ids(alone) == ids(together)


def a_completion_depends_on_its_own_seed(case):
    prompts = case.prompts()[:1]
    group = case.generate(Sampling(1.0, TOKENS), prompts, [[5, 900, 6, 7, 5]])[0]
    assert group[0].token_ids == group[4].token_ids
    assert len({completion.token_ids for completion in group}) > 1
    for seed, completion in zip((5, 900, 6, 7), group, strict=False):
        assert case.generate(Sampling(1.0, TOKENS), prompts, [[seed]])[0][0].token_ids == completion.token_ids


def groups_of_one(case):
    groups = case.generate(Sampling(1.0, 4), size=1)
    assert [len(group) for group in groups] == [1] * len(QUESTIONS)


def nothing_asked_nothing_given(case):
    assert case.generate(Sampling(1.0, 4), [], []) == []


def an_end_is_a_stop_and_a_cut_is_a_length(case):
    eos = case.tokenizer.eos_token_id
    groups = case.generate(Sampling(1.0, 200), size=6)
    ended = [c for group in groups for c in group if c.finish_reason == "stop"]
    assert ended
    assert all(c.token_ids[-1] == eos and eos not in c.token_ids[:-1] for c in ended)
    assert all(case.tokenizer.eos_token not in c.text for c in ended)
    cut = [c for group in case.generate(Sampling(1.0, 2), size=6) for c in group]
    assert {(c.finish_reason, len(c.token_ids)) for c in cut if eos not in c.token_ids} == {("length", 2)}
    for completion in ended + cut:
        assert len(completion.logprobs) == len(completion.token_ids)
        assert completion.text == case.tokenizer.decode(completion.token_ids, skip_special_tokens=True)


def a_stop_text_ends_a_completion(case):
    stop = "</think>"
    found = 0
    for group in case.generate(Sampling(1.0, 200, stop), size=6):
        for completion in group:
            before = case.tokenizer.decode(completion.token_ids[:-1], skip_special_tokens=True)
            assert stop not in before  # the token that completes it is the last one
            if stop in completion.text:
                found += 1
                assert completion.finish_reason == "stop"
    assert found


def logprobs_are_those_of_a_forward_pass(case):
    for temperature in (1.0, 0.7, 0.0):
        prompts = case.prompts()
        groups = case.generate(Sampling(temperature, TOKENS), prompts, size=2 if temperature else 1)
        for prompt, group in zip(prompts, groups, strict=True):
            for completion in group:
                expected = forward(case, prompt, completion, temperature)
                assert torch.allclose(torch.tensor(completion.logprobs), expected, atol=2e-4)


def greedy_takes_the_most_probable(case):
    prompts = case.prompts()
    for prompt, group in zip(prompts, case.generate(Sampling(0.0, TOKENS), prompts, size=1), strict=True):
        sequence = torch.tensor([[*prompt, *group[0].token_ids]])
        with torch.no_grad():
            best = case.model(sequence).logits[0, len(prompt) - 1 : -1].argmax(-1)
        assert tuple(best.tolist()) == group[0].token_ids


def cut_distributions_stay_within_their_bounds(case):
    prompts = case.prompts()
    for sampling in (
        Sampling(1.0, TOKENS, top_k=1),
        Sampling(1.0, TOKENS, top_p=1e-6),
        Sampling(1.0, TOKENS, min_p=0.999),
    ):
        groups = case.generate(sampling, prompts, size=2)
        assert ids(groups) == [[group[0].token_ids] * 2 for group in groups]
        assert max(abs(logprob) for group in groups for c in group for logprob in c.logprobs) < 1e-4


def new_weights_change_completions_and_versions(case):
    before = case.generate(Sampling(1.0, TOKENS))
    assert {c.policy_version for group in before for c in group} == {case.version}
    with torch.no_grad():
        for parameter in case.model.parameters():
            parameter.add_(0.03 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    case.push()
    after = case.generate(Sampling(1.0, TOKENS))
    assert {c.policy_version for group in after for c in group} == {case.version}
    assert ids(after) != ids(before)
    if not case.scripted:
        logprobs_are_those_of_a_forward_pass(case)


def thinking_is_interrupted(case):
    """What still thinks after 3 tokens gets the phrase; everything else is sampled, with its log-probability."""
    phrase = "Time is up. </think>"
    interrupted = make_interruption(3, phrase, 40, case.tokenizer)
    prompts, size = case.prompts(), 4
    seeds = [[100 * p + g for g in range(size)] for p in range(len(prompts))]
    sampling = Sampling(1.0, 40)

    def generate(order):
        asked = ([prompts[p] for p in order], [seeds[p] for p in order], sampling, interrupted)
        found = collect(len(order), stream(case.engine, *asked))
        return [found[order.index(p)] for p in range(len(order))]

    found = generate([0, 1, 2, 3])
    assert ids(generate([2, 0, 3, 1])) == ids(found)  # its own seed decides, not its neighbours
    short = case.generate(dataclasses.replace(sampling, max_tokens=3), prompts, seeds)
    flat = [
        (p, c, s)
        for p, (group, opened) in enumerate(zip(found, short, strict=True))
        for c, s in zip(group, opened, strict=True)
    ]
    assert any(c.inserted != (0, 0) for _, c, _ in flat)
    for p, completion, opened in flat:
        start, end = completion.inserted
        assert completion.token_ids[: len(opened.token_ids)] == opened.token_ids
        assert (end > start) == (opened.finish_reason == "length" and "</think>" not in opened.text)
        assert len(completion.logprobs) == len(completion.token_ids) <= 40
        assert completion.num_sampled == len(completion.token_ids) - (end - start)
        assert completion.finish_reason == (
            "length"
            if len(completion.token_ids) == 40 and completion.token_ids[-1] != case.tokenizer.eos_token_id
            else "stop"
        )
        if end > start:
            assert (start, completion.token_ids[start:end]) == (3, interrupted.phrase_ids)
            assert set(completion.logprobs[start:end]) == {0.0}
            assert phrase in completion.text
            assert len(completion.token_ids) > end  # an answer follows
        if not case.scripted:
            expected = forward(case, prompts[p], completion, 1.0)
            expected[start:end] = 0
            assert torch.allclose(torch.tensor(completion.logprobs), expected, atol=2e-4)


def groups_come_as_they_are_finished(case):
    prompts = case.prompts()
    seeds = [[1000 * len(p)] for p in prompts]
    places = [place for place, group in case.engine.stream(prompts, seeds, Sampling(1.0, TOKENS)) if len(group) == 1]
    assert sorted(places) == list(range(len(prompts)))


def leaving_early_disturbs_nothing(case):
    expected = case.generate(Sampling(1.0, TOKENS))
    prompts = case.prompts()
    stream = case.engine.stream(
        prompts, [[1000 * len(p) + g for g in range(3)] for p in prompts], Sampling(1.0, TOKENS)
    )
    next(stream)
    stream.close()
    assert case.generate(Sampling(1.0, TOKENS)) == expected


def prompts_that_cannot_be_answered_are_refused(case):
    with pytest.raises(ValueError, match="empty prompt"):
        case.generate(Sampling(1.0, 4), [[5], []], [[1], [2]])
    with pytest.raises(ValueError, match="context of"):
        case.generate(Sampling(1.0, 500), [[5] * 700], [[1]])
    groups_of_one(case)  # it still works


def sleeping_without_need_changes_nothing(case):
    expected = case.generate(Sampling(1.0, 4))
    case.engine.sleep()
    case.push()
    assert ids(case.generate(Sampling(1.0, 4))) == ids(expected)


def closing_ends_a_stream_under_way(case):
    prompts = case.prompts()
    stream = case.engine.stream(prompts, [[1000 * len(p) + g for g in range(3)] for p in prompts], Sampling(1.0, 400))
    next(stream)
    case.engine.close()
    case.engine.close()
    if case.engine.shares_weights:  # nothing of its own to close
        assert len(list(stream)) == len(prompts) - 1
        return
    with pytest.raises(EngineError, match="closed"):
        list(stream)
    with pytest.raises(EngineError, match="closed"):
        case.generate(Sampling(1.0, 4))


# The last one closes the engine.
CONTRACT = [
    a_group_is_the_same_in_any_order_and_alone,
    a_completion_depends_on_its_own_seed,
    groups_of_one,
    nothing_asked_nothing_given,
    an_end_is_a_stop_and_a_cut_is_a_length,
    a_stop_text_ends_a_completion,
    logprobs_are_those_of_a_forward_pass,
    greedy_takes_the_most_probable,
    cut_distributions_stay_within_their_bounds,
    thinking_is_interrupted,
    groups_come_as_they_are_finished,
    leaving_early_disturbs_nothing,
    prompts_that_cannot_be_answered_are_refused,
    sleeping_without_need_changes_nothing,
    new_weights_change_completions_and_versions,
    closing_ends_a_stream_under_way,
]
OF_A_MODEL = {  # not asked of an engine that plays a script
    a_stop_text_ends_a_completion,
    logprobs_are_those_of_a_forward_pass,
    greedy_takes_the_most_probable,
    cut_distributions_stay_within_their_bounds,
}
