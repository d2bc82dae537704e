"""The loop with an engine that has weights of its own: scoring on the side, sampling ahead, stopping and going on."""

import copy
import shutil
import threading
import time
from pathlib import Path

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer

from r1lite.config import GRPOConfig, WatchdogConfig
from r1lite.errors import RunError
from r1lite.grpo.learner import PolicyLearner
from r1lite.grpo.loop import Loop
from r1lite.model.optimizer import Optimizer
from r1lite.model.policy import Policy
from r1lite.rollout import EngineError
from r1lite.rollout.canary import Canary
from r1lite.rollout.hf import HFEngine
from r1lite.rollout.trust import TrustedEngine
from r1lite.run.bad_batches import BadBatches
from r1lite.run.signals import StopSignal
from r1lite.run.watchdog import Watchdog
from r1lite.scoring.scorer import Scorer
from r1lite.types import Prompt
from verifiers import Problem, Reward, Verdict

STEPS = 6


class CopyEngine(HFEngine):
    """Transformers with weights of its own, as a server has them."""

    shares_weights, runs_aside = False, True
    lost = ""  # weights that never arrive
    dead = False
    turn = threading.RLock()  # of a group, or of new weights

    def load_weights(self, weights, *, version):
        kept = {name: weight for name, weight in weights if not self.lost or self.lost not in name}
        with self.turn:
            self.model.load_state_dict(kept, strict=False)
            self.policy_version = version

    def stream(self, prompts, seeds, sampling):
        for place, asked in enumerate(zip(prompts, seeds, strict=True)):
            with self.turn:
                if self.dead:
                    raise EngineError("no server answers")
                (group,) = [group for _, group in super().stream([asked[0]], [asked[1]], sampling)]
            yield place, group


def digits(problem, completion):
    return Verdict(sum(c.isdigit() for c in completion.text) / max(1, len(completion.text)), "share")


def loop_of(staleness, verify=digits, arrivals=Path("unused"), **settings):
    config = GRPOConfig(
        steps=STEPS,
        prompts_per_step=3,
        group_size=4,
        max_completion_tokens=8,
        lr=1e-2,
        max_staleness=staleness,
        importance="token",
        **settings,
    )
    model, tokenizer = make_tiny_model(), make_tiny_tokenizer()
    policy = Policy(model, pad_id=0)
    optimizer = Optimizer(policy.model, betas=(0.9, 0.999), weight_decay=0.0, max_grad_norm=1.0)
    canary = Canary(Policy(model, pad_id=0), tokens=6, seed=0, stop_text=None, tolerance=None)
    engine = TrustedEngine(
        CopyEngine(copy.deepcopy(model), tokenizer), canary, lambda: model.state_dict().items(), pad_id=0
    )
    reward = Reward("digits", verifiers={"digits": verify})
    return Loop(
        config=config,
        prompts=[Prompt(Problem(id=f"p{i}"), "", (3 + i, 4, 5)) for i in range(7)],
        scorer=Scorer(reward, reward, reward),
        engine=engine,
        learner=PolicyLearner(config, policy, optimizer, None, bad=BadBatches(Path("unused"))),
        stop=StopSignal(),
        watchdog=Watchdog(WatchdogConfig()),
        arrivals=arrivals,
    )


def sampled(groups):
    return [[(r.completion.token_ids, r.completion.policy_version) for r in group.rollouts] for group in groups]


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_versions_and_exact_resumption(staleness, tmp_path):
    whole = loop_of(staleness, arrivals=tmp_path / "arrivals")
    seen, kept = [], None
    for step in range(STEPS):
        groups, metrics = whole.step(step)
        seen.append(sampled(groups))
        versions = [version for group in seen[-1] for _, version in group]
        assert all(step - staleness <= version <= step for version in versions)
        assert metrics["staleness"] == pytest.approx(step - sum(versions) / len(versions))
        assert (metrics["mismatch_logprob_max"] < 1e-3) == (set(versions) == {step})
        if step == 2:
            if staleness:
                shutil.copy(tmp_path / "arrivals", tmp_path / "copy")
            kept = copy.deepcopy(
                (whole.state_dict(), whole.learner.state_dict(), whole.learner.policy.model.state_dict())
            )
    resumed = loop_of(staleness, arrivals=tmp_path / "arrivals")
    state, learner, weights = kept
    resumed.learner.policy.model.load_state_dict(weights)
    resumed.learner.load_state_dict(learner)
    resumed.load_state_dict(state)
    resumed.engine.offer(resumed.learner.policy.named_weights, version=3)
    for step in range(3, STEPS):
        assert sampled(resumed.step(step)[0]) == seen[step]
    final = zip(whole.learner.policy.model.parameters(), resumed.learner.policy.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in final)


@pytest.mark.parametrize("staleness", [0, 1])
def test_slow_scoring_tells_how_far_it_is_and_is_alive(staleness, monkeypatch, tmp_path):
    monkeypatch.setattr("r1lite.grpo.sampler._TOLD_S", 0.01)
    turns = threading.Semaphore(0)

    def slow(problem, completion):
        assert turns.acquire(timeout=60)
        return digits(problem, completion)

    loop = loop_of(staleness, slow, arrivals=tmp_path / "arrivals")
    told, beats = [], []
    beat = loop.watchdog.beat
    monkeypatch.setattr(loop.watchdog, "beat", lambda: (beat(), beats.append(loop.watchdog.doing())))

    def tell(done, total):
        told.append((done, total))
        turns.release()  # the next verdict is there only after this one was told of

    loop.sampler.told = tell
    with loop.watchdog:
        loop.step(0)
    of = loop.config.prompts_per_step * loop.config.group_size
    assert {total for _, total in told} == {of}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {0, of // 2} <= {done for done, _ in told}
    # Beside this work may stand, first or last, the sampling ahead of another thread.
    assert sum("scoring (step 1" in doing for doing in beats) > 2
    for _ in range(1000):  # for the groups sampled ahead
        turns.release()


def test_the_canary_speaks_before_anything_is_sampled_for_use():
    loop = loop_of(0)
    loop.step(0)
    loop.engine.engine.lost = "layers.1"
    with pytest.raises(EngineError, match="does not sample from the trainer's weights of version 1"):
        loop.step(1)


def test_what_was_asked_ahead_outlives_a_dead_engine(tmp_path):
    loop = loop_of(1, arrivals=tmp_path / "arrivals")
    loop.step(0)
    while (tmp_path / "arrivals").read_bytes().count(b"\n") < 6:
        time.sleep(0.01)
    loop.engine.engine.dead = True
    with pytest.raises(EngineError):
        loop.step(1)  # it has its completions; the canary finds out
    loop.engine.engine.dead = False
    groups, _ = loop.step(1)  # nothing was changed
    assert {version for group in sampled(groups) for _, version in group} == {0}


def test_groups_are_scored_while_others_are_sampled():
    scored = threading.Event()

    def verify(problem, completion):
        scored.set()
        return Verdict(0.5, "seen")

    loop = loop_of(0, verify, rollout_rows=4)
    loop.engine.engine.max_rows = 4  # a group at a time
    decode, decoded = loop.engine.engine._decode_apart, []

    def slow(*arguments):
        decode(*arguments)
        if len(decoded) == 2 + 1:  # the canary's two, the first group's; this is the second's
            assert scored.wait(30)
        decoded.append(None)

    loop.engine.engine._decode_apart = slow
    loop.step(0)
    assert scored.is_set()


def test_scoring_ahead_has_the_limit_of_scoring(monkeypatch, tmp_path):
    ended, release = [], threading.Event()

    def end(watchdog, kind, note):  # it would end the process
        ended.append((kind, note))
        release.set()

    def verify(problem, completion):
        release.wait(30)
        return Verdict(0.5, "seen")

    monkeypatch.setattr(Watchdog, "_end", end)
    loop = loop_of(1, verify, tmp_path / "arrivals")
    with Watchdog(WatchdogConfig(stall_score_s=0.5)) as watchdog:
        loop.watchdog = loop._ahead._watchdog = watchdog
        loop.step(0)
    assert ended[0] == ("score", "step 1, groups sampled ahead")


def test_what_goes_wrong_in_scoring_stops_the_step():
    def broken(problem, completion):
        raise KeyError("oops")

    with pytest.raises(RunError, match="could not be scored"):
        loop_of(0, broken).step(0)
