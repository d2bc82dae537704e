"""OpenRLHF's `reward_func`, as the executor of 0.11.0 (commit 3c3be623) calls it and reads what comes back.

OpenRLHF itself needs CUDA packages to be installed: `executed` follows its SingleTurnAgentExecutor.execute, and
`joined` what becomes of extra_logs when samples are put together, both written from its source.
"""

import asyncio
import logging

import pytest

from verifiers import VerifierError
from verifiers.adapters import shared
from verifiers.adapters.openrlhf import openrlhf_reward, response_of

GOOD, BAD = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"
CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
PROMPT = CHAT.format("Here is a long story about two and two. What is 2+2?")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(shared, "_said", set())


async def executed(reward_func, query, prompt, label):
    """Copies how OpenRLHF turns one sample's response into its experience; it swallows every exception too."""
    output = {"reward": None, "scores": None, "extra_logs": {}}
    try:
        (info,) = await asyncio.gather(asyncio.to_thread(reward_func, [query], [prompt], [label]))
        scores = info.get("scores")
        scores = info.get("rewards") if scores is None else scores
        output.update(reward=info.get("rewards"), scores=scores, extra_logs=info.get("extra_logs") or {})
    except Exception:
        logging.getLogger("openrlhf").info("failed to fetch reward")
    return output


def execute(function, *row):
    return asyncio.run(executed(function, *row))


def joined(samples):
    """Copies OpenRLHF's loop over the first sample's keys."""
    return {key: [sample["extra_logs"][key] for sample in samples] for key in samples[0]["extra_logs"]}


def test_rewards_scores_and_logs():
    function = openrlhf_reward("math - 0.5*(1 - format)")
    found = function([f"{PROMPT}{GOOD}<|im_end|>\n", f"{PROMPT}5</s><pad><pad>"], [PROMPT] * 2, ["4", "4"], extra=1)
    assert found["rewards"] == [1.0, -0.5]
    assert found["scores"] == [1.0, 0.0]
    assert found["extra_logs"] == {"math": 0.5, "format": 0.5, "unscored": 0.0}
    assert execute(function, PROMPT + GOOD, PROMPT, "4")["reward"] == [1.0]


@pytest.mark.parametrize("cut", [1, 20, len(PROMPT) - 16])
@pytest.mark.parametrize("mark", ["", "\ufffd"])
def test_a_prompt_whose_beginning_was_cut_off(cut, mark):
    assert response_of(mark + PROMPT[cut:] + GOOD + "<|im_end|>", PROMPT) == GOOD
    assert execute(openrlhf_reward("math"), mark + PROMPT[cut:] + GOOD, PROMPT, "4")["reward"] == [1.0]


def test_the_longest_end_of_the_prompt_is_taken():
    prompt = "repeat repeat repeat " * 3
    assert response_of(prompt[7:] + "answer", prompt) == "answer"
    assert response_of("a" * 100 + "b", "a" * 101) == "b"


@pytest.mark.parametrize("query", ["something else entirely, and longer than that", "x", "", "a" * 2000 + "c"])
def test_a_query_without_its_prompt_is_unscored(query):
    prompt = "a" * 1_000_000 + "b"
    with pytest.raises(ValueError, match="does not begin with its prompt"):
        response_of(query, prompt)
    assert execute(openrlhf_reward("math", unscored=-1), query, prompt, "4")["reward"] == [-1.0]


def test_what_can_t_be_scored_carries_a_number_and_is_told_once(caplog):
    function = openrlhf_reward("math + 0.1*format")
    samples = [execute(function, PROMPT + GOOD, PROMPT, label) for label in (None, "4", "")]
    samples.append(execute(function, "no prompt", PROMPT, "4"))
    assert [sample["reward"][0] for sample in samples] == pytest.approx([0.0, 1.1, 0.0, 0.0])
    assert joined(samples)["unscored"] == [1.0, 0.0, 1.0, 1.0]
    assert joined(samples)["math"] == [0.0, 1.0, 0.0, 0.0]
    (record,) = [record for record in caplog.records if record.name == "verifiers"]
    assert record.levelno == logging.ERROR
    assert "could not be scored and gets the reward 0" in record.getMessage()


def test_without_a_stand_in_the_error_is_said_before_it_is_swallowed(caplog):
    assert execute(openrlhf_reward("math", unscored=None), PROMPT + GOOD, PROMPT, None)["reward"] is None
    assert "the run will end because a reward is missing" in caplog.text
    assert "no answer" in caplog.text
    with pytest.raises(VerifierError, match="set `unscored`"):
        openrlhf_reward("math", unscored=None)([PROMPT + GOOD], [PROMPT], [None])


def test_every_sample_has_the_same_logs():
    """A verifier that abstains must still give its name as a key: samples are joined by the first one's keys."""
    function = openrlhf_reward("math + language")
    samples = [execute(function, PROMPT + text, PROMPT, "4") for text in (GOOD, "4", "")]
    assert all(set(sample["extra_logs"]) == {"math", "language", "unscored"} for sample in samples)
