"""Engines by name: what they can do decides what is allowed, and packages can add others."""

import importlib.metadata

import pytest

from r1lite.config import GRPOConfig, engines, load, trust
from r1lite.config.engines import EngineSpec, find_engine
from r1lite.errors import UserError
from r1lite.rollout.build import Request, Started, start
from r1lite.training.resolve import resolve_config

pytestmark = pytest.mark.quick
ASIDE = EngineSpec(start=f"{__name__}:start_mine", runs_aside=True)
NO_SPEC = "not a specification"


def start_mine(request):
    return Started(engine=request.model, line="mine", version=str(request.context))


@pytest.fixture(autouse=True)
def _points(monkeypatch):
    points = [
        importlib.metadata.EntryPoint(n, f"{__name__}:{v}", engines.GROUP)
        for n, v in (("mine", "ASIDE"), ("odd", "NO_SPEC"))
    ]
    monkeypatch.setattr(engines, "_installed", lambda: {point.name: point for point in points})


def test_an_installed_engine_is_started_by_its_name():
    started = start(Request(GRPOConfig(engine="mine"), "path", "model", None, None, 99))
    assert (started.engine, started.line, started.version, started.name) == ("model", "mine", "99", "mine")


def test_what_an_engine_can_do_decides():
    common = ["--model", "nano", "--device", "cpu", "--max-staleness", "1"]
    config, _ = resolve_config(load(GRPOConfig, [*common, "--engine", "mine"]))
    assert (config.max_staleness, config.importance) == (1, "token")
    with pytest.raises(UserError, match="sampling ahead gains nothing"):
        resolve_config(load(GRPOConfig, [*common, "--engine", "transformers"]))
    assert [find_engine(name).shares_weights for name in engines.BUILTIN] == [True, False, False, False]


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("vlm", "--engine vlm: unknown; known: auto, transformers, vllm, vllm-server, sglang-server, mine"),
        ("odd", "must be an EngineSpec"),
    ],
)
def test_refusals(engine, message):
    with pytest.raises(UserError, match=message):
        load(GRPOConfig, ["--engine", engine])


def test_a_file_names_only_engines_that_ship_with_us():
    assert trust.foreign({"engine": "mine"}) == ["engine: mine"]
    assert trust.foreign({"engine": "vllm"}) == trust.foreign({"engine": "auto"}) == []
