"""slime, SkyRL, NeMo-RL, open-instruct and prime-rl, by the calls that they make.

slime 0.3.1 (624b824a8), NeMo-RL 0.6.0 (7ea279abf) and open-instruct (e6c3044aa) need CUDA packages to be installed:
what stands for them here is written from their sources at these commits. SkyRL's skyrl-gym 0.4.0 (a9564572e) and
PrimeIntellect's verifiers 0.4.0 are the real ones where they are installed; the latter in an interpreter of its own,
PRIME_PYTHON.
"""

import abc
import argparse
import asyncio
import dataclasses
import enum
import importlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import pytest
from stand_ins import adapter, put

from verifiers import VerifierError
from verifiers.adapters import shared
from verifiers.adapters.slime import rm

GOOD, BAD = "<think>a</think><answer>4</answer>", "<think>a</think><answer>5</answer>"
TESTS = json.dumps({"inputs": ["a"], "outputs": ["a"]})
CLIENT = Path(__file__).resolve().parents[2] / "verifiers" / "adapters" / "prime_client.py"


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


# prime-rl, over HTTP


@pytest.fixture(scope="module")
def url():
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    from test_serve import serving

    with serving("--reward", "math + 0.1*format", "--allow", "format") as (port, _):
        yield f"http://127.0.0.1:{port}"


def client():
    spec = importlib.util.spec_from_file_location("a_copied_file", CLIENT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_prime_client(url):
    copied = client()
    ask = lambda *args, **kwargs: asyncio.run(copied.verified(*args, url=url, **kwargs))  # noqa: E731
    assert ask(GOOD, "4", prompt="2+2?") == pytest.approx(1.1)
    assert ask(BAD, 4) == pytest.approx(0.1)
    assert ask(GOOD, "4", reward="format") == 1.0
    for given, why in (((GOOD, None), "answer"), ((GOOD, ""), "422"), ((GOOD, "4", "x"), "not served")):
        with pytest.raises(copied.UnscoredError, match=why):
            ask(*given[:2], **({"reward": "exact"} if len(given) == 3 else {}))
    with pytest.raises(copied.UnscoredError):
        asyncio.run(copied.verified(GOOD, "4", url="http://127.0.0.1:9", timeout_s=2))


def test_a_reply_that_is_cut_off_is_no_reward():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):  # closed with data unread, the connection would be reset
                    pass

        threading.Thread(target=answer, daemon=True).start()
        copied = client()
        with pytest.raises(copied.UnscoredError, match="IncompleteRead"):
            asyncio.run(copied.verified(GOOD, "4", url=f"http://127.0.0.1:{server.getsockname()[1]}", timeout_s=10))


def test_the_prime_client_needs_nothing_but_the_standard_library():
    code = "import sys; sys.path[:0] = [sys.argv[1]]; import prime_client; print('verifiers' in sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", code, str(CLIENT.parent)]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "False\n"


TASK = """
import asyncio, sys
sys.path[:0] = [sys.argv[1]]
import verifiers.v1 as vf
from prime_client import verified

class SumsData(vf.TaskData):
    answer: str | None

class Sums(vf.Task[SumsData]):
    @vf.reward(weight=1.0)
    async def verified(self, trace: vf.Trace) -> float:
        return await verified(trace.last_reply, self.data.answer, prompt=str(self.data.prompt), url=sys.argv[2])

class Trace:
    def __init__(self, text):
        self.last_reply, self.rewards, self.metrics = text, {}, {}

    def record_reward(self, name, value, weight):
        self.rewards[name] = value * weight

for text, answer in ((sys.argv[3], "4"), ("5", "4"), (sys.argv[3], None)):
    task, trace = Sums(SumsData(idx=0, prompt="2+2?", answer=answer)), Trace(text)
    try:
        asyncio.run(task.score(trace))
    except Exception as error:
        print(type(error).__name__, trace.rewards)
    else:
        print(trace.rewards)
"""


@pytest.mark.skipif(not os.environ.get("PRIME_PYTHON"), reason="PRIME_PYTHON names no Python with their package")
def test_prime_itself(url):
    """prime-rl's own Task.score calls the reward; an error in it leaves the trace without a reward."""
    argv = [os.environ["PRIME_PYTHON"], "-I", "-c", TASK, str(CLIENT.parent), url, GOOD]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    wanted = ["{'verified': 1.1}", "{'verified': 0.0}", "TaskError {'verified': None}"]
    assert done.stdout.splitlines() == wanted, done.stderr
