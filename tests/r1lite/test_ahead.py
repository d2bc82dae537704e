"""Sampling ahead: the file of what was finished, and groups that are too old."""

import copy
import threading
import time

import pytest
import torch
from test_sampler import STEPS, CopyEngine, digits, loop_of, sampled

from r1lite.config import GRPOConfig
from r1lite.config.loading import load
from r1lite.errors import RunError, UserError
from r1lite.run.arrivals import Arrival, Arrivals
from r1lite.run.run_dir import RunDir
from verifiers import Completion


def arrival(number, version=0):
    completion = Completion("a\ud800", (5, 6), (-0.1, -1e-17), "length", version, stretches=((0, version), (1, 9)))
    return Arrival(number, number + 3, "p", (completion, Completion("", (1,), (-2.0,), policy_version=version + 1)))


@pytest.mark.quick
def test_the_file_goes_on_where_it_was_whole(tmp_path):
    path = tmp_path / "arrivals.jsonl"
    assert Arrivals(path).begin(0) == []
    made = [arrival(number) for number in range(6)]
    for one in made:
        Arrivals(path).append(one)
    assert Arrivals(path).begin(2) == made[2:]
    Arrivals(path).forget(1)
    assert Arrivals(path).begin(1) == made[1:]
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])  # cut short by a kill
    assert Arrivals(path).begin(2) == made[2:5]
    Arrivals(path).append(made[5])
    assert path.read_bytes() == whole
    path.write_bytes(whole.replace(b'[2, 5, "p"', b'[7, 5, "p"'))  # what follows can't be trusted
    assert Arrivals(path).begin(1) == made[1:2]
    assert Arrivals(path).begin(1) == made[1:2]
    assert Arrivals(path).begin(5) == []  # it does not reach this far
    assert path.read_bytes() == b""


def test_a_version_is_that_of_the_oldest_token():
    assert arrival(0, 4).version == 4


class Holding(CopyEngine):
    """Holds a group back until it is told."""

    held = None

    def __init__(self, *given):
        super().__init__(*given)
        self.sampled, self.release = threading.Event(), threading.Event()

    def stream(self, prompts, seeds, sampling):
        for place, asked in enumerate(zip(prompts, seeds, strict=True)):
            found = [group for _, group in super().stream([asked[0]], [asked[1]], sampling)]
            if self.held is not None and place == self.held:
                self.held = None
                self.sampled.set()
                assert self.release.wait(60)
            yield place, found[0]


def test_a_group_that_is_too_old_is_dropped_and_asked_for_again(tmp_path):
    path = tmp_path / "arrivals"
    loop = loop_of(1, arrivals=path)
    inner = loop.engine.engine
    loop.engine.engine = engine = Holding(inner.model, inner.tokenizer)
    seen, kept = [], None
    for step in range(STEPS):
        if step == 0:
            engine.held = 5  # the last of the first six
        if step == 1:
            assert engine.sampled.wait(60)
        if step == 2:
            engine.release.set()
            deadline = time.monotonic() + 60
            while path.read_bytes().count(b"\n") < 9:  # all that were asked for
                assert time.monotonic() < deadline
                time.sleep(0.01)
        groups, metrics = loop.step(step)
        seen.append((sampled(groups), [group.ticket for group in groups]))
        assert metrics["dropped_groups"] == (step == 2)
        if step == 3:
            kept = copy.deepcopy((loop.state_dict(), loop.learner.state_dict(), loop.learner.policy.model.state_dict()))
    tickets = [ticket for _, of in seen for ticket in of]
    assert 5 not in tickets
    assert sorted(tickets) == [ticket for ticket in range(3 * STEPS + 1) if ticket != 5]
    asked = {one.ticket: one.problem for one in Arrivals(path).begin(kept[0]["sampled_ahead"]["taken"])}
    order = [one for one in range(3 * STEPS + 1) if one != 5]
    assert asked.keys() <= set(order)

    resumed = loop_of(1, arrivals=path)
    resumed.learner.policy.model.load_state_dict(kept[2])
    resumed.learner.load_state_dict(kept[1])
    resumed.load_state_dict(kept[0])
    resumed.engine.offer(resumed.learner.policy.named_weights, version=4)
    for step in range(4, STEPS):
        groups, _ = resumed.step(step)
        assert (sampled(groups), [group.ticket for group in groups]) == seen[step]
    final = zip(loop.learner.policy.model.parameters(), resumed.learner.policy.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in final)


def test_a_run_goes_on_without_its_file(tmp_path):
    """What was finished and not learnt from is sampled once more."""
    first, tickets = loop_of(2, arrivals=tmp_path / "arrivals"), []
    for step in range(2):
        tickets += [group.ticket for group in first.step(step)[0]]
    resumed = loop_of(2, arrivals=tmp_path / "other")
    resumed.learner.policy.model.load_state_dict(first.learner.policy.model.state_dict())
    resumed.learner.load_state_dict(first.learner.state_dict())
    resumed.load_state_dict(first.state_dict())
    resumed.engine.offer(resumed.learner.policy.named_weights, version=2)
    for step in range(2, STEPS):
        groups, _ = resumed.step(step)
        assert {version for group in sampled(groups) for _, version in group} <= set(range(2, step + 1))
        tickets += [group.ticket for group in groups]
    assert sorted(tickets) == list(range(3 * STEPS))


class Straggler:
    """A verifier that judges the first completion last, as its own processes would."""

    isolated = True  # it may be called from several threads

    def __init__(self, others):
        self.others, self.judged, self.turn = others, [], threading.Condition()

    def __call__(self, problem, completion):
        with self.turn:
            self.judged.append(problem.id)
            self.turn.notify_all()
            if len(self.judged) == 1:
                assert self.turn.wait_for(lambda: len(self.judged) > self.others, 60), self.judged
        return digits(problem, completion)


def test_later_groups_are_scored_while_an_earlier_one_waits_for_its_straggler(tmp_path):
    path, seen, ends = tmp_path / "arrivals", [], []
    # Those of the next step too: nine groups of four are asked for, of which the straggler holds up one.
    for verify in (Straggler(others=8 * 4), digits):
        loop = loop_of(2, verify, arrivals=path)  # the second one finds the groups of the first in the file
        taken = [loop.step(step)[0] for step in range(STEPS)]
        seen.append([[(group.ticket, [r.score.reward for r in group.rollouts]) for group in of] for of in taken])
        ends.append(list(loop.learner.policy.model.parameters()))
    assert seen[0] == seen[1]
    assert seen[0][0][0][0] == 0  # the straggler's group is the first one still
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def recorded(tmp_path):
    """A run's rollouts, and what its loop is made with."""
    run = RunDir(tmp_path / "run")
    loop = loop_of(2, arrivals=tmp_path / "arrivals")
    for step in range(STEPS):
        run.write_rollouts(step + 1, loop.step(step)[0])
    run.close()
    return run.path, loop


def test_an_order_is_repeated_and_what_differs_is_noticed(tmp_path):
    path, loop = recorded(tmp_path)
    again = loop_of(2, replay_order=str(path))
    for step in range(STEPS):
        if step == 2:
            state = copy.deepcopy(again.state_dict())
            again.load_state_dict(state)  # as a resumed run does
        again.step(step)
    pairs = zip(loop.learner.policy.model.parameters(), again.learner.policy.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    other = loop_of(2, replay_order=str(path), seed=1)
    with pytest.raises(RunError, match="sampled another completion of problem p"):
        other.step(0)
    (path / "rollouts" / "step-000002.jsonl.gz").unlink()
    with pytest.raises(UserError, match="the completions of step 2 are missing"):
        loop_of(2, replay_order=str(path))


def test_a_run_that_did_not_sample_ahead_has_no_order(tmp_path):
    run, loop = RunDir(tmp_path / "run"), loop_of(0)
    for step in range(STEPS):
        run.write_rollouts(step + 1, loop.step(step)[0])
    run.close()
    with pytest.raises(UserError, match="were not sampled ahead"):
        loop_of(2, replay_order=str(run.path))


@pytest.mark.quick
def test_refused():
    with pytest.raises(UserError, match="--replay-order is for runs with --max-staleness"):
        load(GRPOConfig, ["--replay-order", "runs/x"])
