"""slime, SkyRL, NeMo-RL and open-instruct, by the calls that they make.

slime 0.3.1 (624b824a8), NeMo-RL 0.6.0 (7ea279abf) and open-instruct (e6c3044aa) need CUDA packages to be installed:
what stands for them here is written from their sources at these commits. SkyRL's skyrl-gym 0.4.0 (a9564572e) is the
real one where it is installed.
"""

import abc
import argparse
import asyncio
import dataclasses
import enum
import importlib
import importlib.util
import json
import sys
import types
from typing import Any, Generic, NamedTuple, TypeVar

import pytest
from stand_ins import adapter, put

from verifiers import VerifierError
from verifiers.adapters import shared
from verifiers.adapters.slime import rm

GOOD, BAD = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"
TESTS = json.dumps({"inputs": ["a"], "outputs": ["a"]})


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(shared, "_said", set())


# slime


@dataclasses.dataclass
class Sample:
    """The fields of slime's Sample that a reward reads or writes."""

    class Status(enum.Enum):
        COMPLETED = "completed"

    index: int | None = None
    prompt: str | list[dict[str, str]] = ""
    response: str = ""
    label: str | None = None
    reward: float | dict[str, Any] | None = None
    remove_sample: bool = False
    status: Status = Status.COMPLETED
    metadata: dict = dataclasses.field(default_factory=dict)


def arguments(**given):
    """slime's `--custom-config-path` sets each key of the file on args."""
    args = argparse.Namespace(custom_rm_path="verifiers.adapters.slime.rm", group_rm=False)
    for name, value in given.items():
        setattr(args, name, value)
    return args


def loaded(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


async def one_by_one(args, samples):
    return await asyncio.gather(*(loaded(args.custom_rm_path)(args, sample) for sample in samples))


async def as_a_group(args, samples):
    return await loaded(args.custom_rm_path)(args, samples)


def group(*labels):
    return [Sample(i, "2+2?", f"{text}<|im_end|>", label) for i, (text, label) in enumerate(labels)]


@pytest.mark.parametrize("call", [one_by_one, as_a_group])
def test_slime(call):
    samples = group((GOOD, "4"), (BAD, "4"), ("4", "4"))
    samples[0].prompt = [{"role": "user", "content": "2+2? Think within <think></think>"}]
    assert asyncio.run(call(arguments(), samples)) == pytest.approx([1.1, 0.1, 1.0])
    assert samples[0].metadata["verifiers"] == {"math": 1.0, "format": 1.0, "unscored": 0.0}
    assert not any(sample.remove_sample for sample in samples)
    options = {"verifiers_reward": "format", "verifiers_options": {"format": {"policy": "lenient"}}}
    assert asyncio.run(call(arguments(**options), group((f"so {GOOD}", "4")))) == [1.0]


def test_slime_leaves_out_what_can_t_be_scored(caplog):
    samples = group((GOOD, "4"), (BAD, "4"), (GOOD, None), (GOOD, ""))
    assert asyncio.run(as_a_group(arguments(verifiers_reward="math"), samples)) == [1.0, 0.0, 0.5, 0.5]
    assert [sample.remove_sample for sample in samples] == [False, False, True, True]
    assert caplog.text.count("left out of the loss") == 1
    samples = group((GOOD, None), (BAD, None))
    assert asyncio.run(as_a_group(arguments(), samples)) == [0.0, 0.0]
    assert all(sample.remove_sample for sample in samples)
    with pytest.raises(VerifierError, match="set `unscored`"):
        asyncio.run(one_by_one(arguments(), group((GOOD, None))))
    samples = group((GOOD, None))
    assert asyncio.run(one_by_one(arguments(verifiers_unscored=0.25), samples)) == [0.25]
    assert samples[0].remove_sample


def test_slime_does_not_hold_up_the_loop():
    """Generation continues in the same event loop while a reward is computed."""

    async def both():
        task = asyncio.ensure_future(rm(arguments(), group(*[(GOOD, "4")] * 50)))
        await asyncio.sleep(0)
        assert not task.done()
        return await task

    assert len(asyncio.run(both())) == 50


# SkyRL


def skyrl(monkeypatch):
    if importlib.util.find_spec("skyrl_gym"):
        return importlib.import_module("skyrl_gym")

    class Env:
        pass

    class BaseTextEnv(Env):
        def __init__(self):
            super().__init__()
            self.turns, self.max_turns = 0, 1

        def close(self):
            pass

    registry = {}

    def register(id, entry_point=None, kwargs=None):
        registry[id] = (entry_point, kwargs or {})

    def make(id, **kwargs):
        entry_point, own = registry[id]
        module, _, name = entry_point.partition(":")
        env = getattr(importlib.import_module(module), name)(**{**own, **kwargs})
        assert isinstance(env, Env)
        return env

    put(
        monkeypatch,
        {
            "skyrl_gym": {"register": register, "make": make},
            "skyrl_gym.envs.base_text_env": {"BaseTextEnv": BaseTextEnv, "BaseTextEnvStepOutput": dict},
        },
    )
    return sys.modules["skyrl_gym"]


def test_skyrl(monkeypatch):
    gym = skyrl(monkeypatch)
    adapter(monkeypatch, "skyrl")
    kwargs = {"reward": "math + 0.1*format"}
    gym.register("verified", "verifiers.adapters.skyrl:VerifiedEnv", kwargs)
    gym.register("forgiving", "verifiers.adapters.skyrl:VerifiedEnv", {"reward": "math", "unscored": -1})
    prompt = [{"role": "user", "content": "2+2? Think within <think></think>"}]
    for text, reward in ((f"{GOOD}<|im_end|>", 1.1), (BAD, 0.1), ("", 0.0)):
        extras = {"reward_spec": {"method": "rule", "ground_truth": "4"}, "max_turns": 1}
        env = gym.make("verified", env_config={}, extras=extras)
        assert env.init(prompt) == (prompt, {})
        output = env.step(text)
        assert (output["reward"], output["done"], output["observations"]) == (pytest.approx(reward), True, [])
        assert output["metadata"] == env.get_metrics()
        assert env.get_metrics()["unscored"] == 0.0
        env.close()
    extras = {"reward_spec": {"ground_truth": None}}
    with pytest.raises(VerifierError, match="set `unscored`"):
        gym.make("verified", env_config={}, extras=extras).step(GOOD)
    env = gym.make("forgiving", env_config={}, extras=extras)
    assert env.step(GOOD)["reward"] == -1.0
    assert env.get_metrics() == {"math": 0.0, "unscored": 1.0}
    with pytest.raises(ValueError, match="ground_truth"):
        gym.make("verified", env_config={}, extras={})


# NeMo-RL

Meta = TypeVar("Meta")


class EnvironmentReturn(NamedTuple):
    observations: Any
    metadata: Any
    next_stop_strings: Any
    rewards: Any
    terminateds: Any
    answers: Any


class EnvironmentInterface(abc.ABC, Generic[Meta]):
    @abc.abstractmethod
    def step(self, message_log_batch, metadata): ...

    @abc.abstractmethod
    def global_post_process_and_metrics(self, batch): ...


def remote(**_):
    """Ray's interface: `Class.options(...).remote(config)` makes an actor, `actor.step.remote(...)` calls it."""

    class Actor:
        def __init__(self, of):
            self.of = of

        def options(self, **_):
            return self

        def remote(self, *args):
            return self.of(*args)

    return Actor


def nemo(monkeypatch):
    known, environments = {}, {}
    put(
        monkeypatch,
        {
            "ray": {"remote": remote},
            "nemo_rl.distributed.ray_actor_environment_registry": {"ACTOR_ENVIRONMENT_REGISTRY": known},
            "nemo_rl.distributed.virtual_cluster": {"PY_EXECUTABLES": types.SimpleNamespace(SYSTEM="python")},
            "nemo_rl.environments.interfaces": {
                "EnvironmentInterface": EnvironmentInterface,
                "EnvironmentReturn": EnvironmentReturn,
            },
            "nemo_rl.environments.utils": {"register_env": environments.__setitem__},
        },
    )

    def create_env(name, config):
        where = environments[name]
        assert known[where] == "python"
        return loaded(where).options(runtime_env={}).remote(config)

    return create_env


def log(text):
    assistant = {"role": "assistant", "content": text, "token_ids": [1], "generation_logprobs": [0.0]}
    return [{"role": "user", "content": "2+2?", "token_ids": [0]}, assistant]


def test_nemo_rl(monkeypatch):
    import torch

    create_env = nemo(monkeypatch)
    adapter(monkeypatch, "nemo_rl").register()
    env = create_env("verified", {"reward": "math + 0.1*format"})
    metadata = [{"ground_truth": "4"}] * 3
    found = env.step([log(GOOD), log(BAD), log("4</s>")], metadata, True)
    assert found.rewards.tolist() == pytest.approx([1.1, 0.1, 1.0])
    assert found.rewards.dtype == torch.float32
    assert found.terminateds.tolist() == [1.0, 1.0, 1.0]
    assert (found.metadata, found.next_stop_strings, found.answers) == (metadata, [None] * 3, ["4", "5", "4"])
    assert found.observations[0] == {"role": "environment", "content": "Environment: reward 1.1"}
    assert env.global_post_process_and_metrics({"rewards": found.rewards})[1] == {
        "verified/mean_reward": pytest.approx(2.2 / 3)
    }
    with pytest.raises(VerifierError, match="set `unscored`"):
        env.step([log(GOOD)], [None])
    assert create_env("verified", {"reward": "math", "unscored": 0}).step([log(GOOD)], [{}]).rewards.tolist() == [0.0]


# open-instruct


@dataclasses.dataclass
class VerificationResult:
    score: float
    cost: float = 0.0
    reasoning: str | None = None


class VerifierConfig:
    @classmethod
    def from_args(cls, *_):
        return cls()


class VerifierFunction(abc.ABC):
    def __init__(self, name, weight=1.0, verifier_config=None):
        self.name, self.weight, self.verifier_config = name, weight, verifier_config

    @classmethod
    def get_config_class(cls):
        return VerifierConfig

    @abc.abstractmethod
    def __call__(self, tokenized_prediction, prediction, label, query=None, rollout_state=None): ...

    async def async_call(self, tokenized_prediction, prediction, label, query=None, rollout_state=None):
        return await asyncio.get_event_loop().run_in_executor(
            None, lambda: self(tokenized_prediction, prediction, label, query, rollout_state)
        )


def build_all_verifiers(args):
    made = [sub(sub.get_config_class().from_args(args)) for sub in VerifierFunction.__subclasses__()]
    return {instance.name.lower(): instance for instance in made}


async def apply_verifiable_reward(mapping, decoded, labels, datasets, reward_mult):
    asked = []
    for text, label, name in zip(decoded, labels, datasets, strict=True):
        given = {"tokenized_prediction": [1, 2], "prediction": text, "label": label}
        asked.append(mapping[name.lower()].async_call(**given, query="2+2?", rollout_state={}))
    results = await asyncio.gather(*asked)
    weights = [mapping[name.lower()].weight for name in datasets]
    return [reward_mult * found.score * weight for found, weight in zip(results, weights, strict=True)]


def test_open_instruct(monkeypatch):
    theirs = {"VerifierFunction": VerifierFunction, "VerificationResult": VerificationResult}
    put(monkeypatch, {"open_instruct.ground_truth_utils": theirs})
    make = adapter(monkeypatch, "open_instruct").open_instruct_verifier
    kept = make("math + 0.1*format", name="Ours", weight=0.5), make("math", name="lenient", unscored=0)
    mapping = build_all_verifiers(None)
    assert set(mapping) == {"ours", "lenient"}
    run = apply_verifiable_reward
    assert asyncio.run(run(mapping, [GOOD, BAD], ["4", "4"], ["ours"] * 2, 10.0)) == pytest.approx([5.5, 0.5])
    with pytest.raises(VerifierError, match="set `unscored`"):
        asyncio.run(run(mapping, [GOOD], [None], ["ours"], 10.0))
    assert asyncio.run(run(mapping, [GOOD], [None], ["lenient"], 10.0)) == [0.0]
    assert mapping["ours"]([], GOOD, "4").reasoning == "math equal, format ok"
    with pytest.raises(ValueError, match="nonesuch"):
        make("nonesuch", name="x")
    assert len(kept) == 2
