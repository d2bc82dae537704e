"""Several ranks do what one does: the same completions, the same files, weights up to the order of sums."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from safetensors.torch import load_file
from served_model_for_tests import ServedModel
from world_cases import CASES, EVALUATED, IN_PARTS, PRESET_CASES, REWARD_MODEL, SERVED, world_data

from r1lite.config import DistillConfig, GRPOConfig, SFTConfig
from r1lite.distributed import joining
from r1lite.distributed.launcher import RankInfo, rank_info
from r1lite.distributed.together import hands
from r1lite.errors import UserError
from r1lite.training.several import refuse, refuse_differences
from verifiers import rows

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "import runpy; runpy.run_module('torch.distributed.run', run_name='__main__')"
CLOCKS = {"generate_s", "score_s", "train_s", "step_s", "sync_s", "proof_s", "canary_s"}
CLOCKS |= {"sync_mb"}  # an adapter in parts goes to a server merged, and is not tried alone before
CASES = CASES | SERVED
_TRIED = (
    "plain",
    "dynamic sampling",
    "kl in the loss",
    "gdpo",
    "adapter",
    "own critic",
    "sft",
    "dpo",
    "served kl",
    "distill, half a set",
)
ON_ONE = {name: CASES[name] for name in _TRIED}
PARTS = {f"{name}, in parts": [*CASES[name], *flags] for name, flags in IN_PARTS.items()}
IN_COPIES = {
    f"{name}, in copies": [*CASES[name], "--shard", "full", "--shard-copies", "2"]
    for name in ("kl in the loss", "own critic", "adapter")
}
ON_FOUR = {
    "kl in the loss, in copies": [*IN_COPIES["kl in the loss, in copies"], "--checkpoint-dtype", "own"],
    "own critic, in copies": IN_COPIES["own critic, in copies"],
}
ON_TWO = ON_ONE | {
    name: PARTS[name]
    for name in (
        "kl in the loss, in parts",
        "distill, half a set, in parts",
        "adapter, in parts",
        "served kl, in parts",
        "own critic, in parts",
    )
}


def torchrun(forks, size, jobs, folder):
    """Runs jobs (see world_for_tests.py) one after the other on so many ranks."""
    process = forks.start_ranks(folder, jobs, size)
    return subprocess.CompletedProcess([], process.wait(1800), *process.communicate())


def torchrun_itself(forks, jobs, folder):
    """The same on one rank, by the command that users type."""
    path = folder / "jobs.json"
    path.write_text(json.dumps(jobs))
    argv = ["--standalone", "--nproc-per-node", "1", ROOT / "tests" / "world_for_tests.py", path]
    return subprocess.CompletedProcess(argv, *forks.run(argv, code=COMMAND, timeout=1800))


@pytest.fixture(scope="session")
def runs(tmp_path_factory, tiny_path, sums_path, forks):
    """A function: all cases of a table on so many ranks, each a run directory by its name; once a session."""
    made = {}
    servers = [ServedModel(), ServedModel()]
    urls = {"server": servers[0].url, "other": servers[1].url}

    def on(size, table):
        key = (size, *table)
        if key not in made:
            folder = tmp_path_factory.mktemp(f"world-{size}")
            inputs = ["--model", str(tiny_path), "--source", str(sums_path)]
            make_tiny_model(initializer_range=0.1).save_pretrained(folder / "teacher")
            make_tiny_tokenizer().save_pretrained(folder / "teacher")
            known = {"teacher": str(folder / "teacher"), **urls, **world_data(folder)}
            table = {name: [word.format_map(known) for word in argv] for name, argv in table.items()}
            jobs = [{"argv": [*argv, *inputs, "--out", str(folder / name)]} for name, argv in table.items()]
            # Once more, with a stop on the way; one rank alone is stopped by tests of its own. Four ranks only so.
            first, last = next(iter(table)), next(reversed(table))
            for name in {1: (), 2: {first: 0, last: 0}}.get(size, [last]):
                out = str(folder / (f"{name}, twice" if size == 2 else name))
                jobs = [job for job in jobs if job["argv"][-1] != out]
                jobs += [
                    {"argv": [*table[name], *inputs, "--out", out, "--steps", "2"]},
                    {"argv": [table[name][0], "--resume", "--trust", "--out", out, "--steps", "3"]},
                ]
            done = torchrun_itself(forks, jobs, folder) if size == 1 else torchrun(forks, size, jobs, folder)
            assert done.returncode == 0, done.stdout + done.stderr
            if size > 2:  # a run that isn't stopped has none of these
                shutil.rmtree(folder / last / "checkpoints" / "step-000002")
                (folder / last / "evaluations" / "step-000002.jsonl.gz").unlink()
            made[key] = folder
        return made[key]

    yield on
    for server in servers:
        server.stop()


def weights(run, step=3):
    return load_file(run / "checkpoints" / f"step-{step:06d}" / "model.safetensors")


def lines(path):
    return [row for _, row in rows.rows(path)]


def differences(one, other, path=""):
    """Where two values differ, beyond rounding, and what takes time."""
    if isinstance(one, dict):
        found = [f"{path} has other keys"] if set(one) != set(other) else []
        return found + [
            line
            for key in set(one) & set(other) - CLOCKS
            for line in differences(one[key], other[key], f"{path}.{key}")
        ]
    if isinstance(one, list):
        found = [f"{path} has another length"] if len(one) != len(other) else []
        return found + [
            line
            for n, (left, right) in enumerate(zip(one, other, strict=False))
            for line in differences(left, right, f"{path}[{n}]")
        ]
    if isinstance(one, float) and isinstance(other, float):
        return [] if abs(one - other) <= 1e-10 + 1e-9 * abs(one) else [f"{path}: {one} and {other}"]
    return [] if one == other else [f"{path}: {one!r} and {other!r}"]


def outcome(run):
    """All that a run keeps but its weights, its description and its summary."""
    parts = {path for path in run.rglob("*") if path.parent.name == "state"}  # as many as there were ranks
    files = sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file() and path not in parts)
    rollouts = [row for path in sorted(run.glob("rollouts/*")) for row in lines(path)]
    results = {name: json.loads((run / f"{name}.json").read_text()) for name in ("eval_before", "eval_after", "reward")}
    return {"files": files, "rollouts": rollouts, "metrics": lines(run / "metrics.jsonl"), **results}


def same_numbers(one, other):
    assert differences(outcome(one), outcome(other)) == []
    left, right = weights(one), weights(other)
    assert set(left) == set(right)
    for name, value in left.items():
        assert value.dtype == torch.float64
        assert torch.allclose(value, right[name], rtol=0, atol=1e-10), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_TWO)
def test_two_ranks_do_what_one_does(name, runs):
    same_numbers(runs(1, ON_ONE) / name.removesuffix(", in parts"), runs(2, ON_TWO) / name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_FOUR)
def test_four_ranks_that_hold_two_copies_in_parts(name, runs):
    same_numbers(runs(1, ON_ONE) / name.removesuffix(", in copies"), runs(4, ON_FOUR) / name)


def test_products_in_bfloat16(tmp_path, tiny_path, sums_path, forks):
    """Weights, gradients and moments stay in float32; the ranks round other sums, but the same weights."""
    argv = [*CASES["sft"], "--model", str(tiny_path), "--source", str(sums_path), "--dtype", "bfloat16"]
    argv = [word.format_map(world_data(tmp_path)) for word in argv]
    for size, more in ((1, []), (2, ["--shard", "full", "--gradient-checkpointing"])):
        job = {"argv": [*argv, *more, "--out", f"{tmp_path}/{size}"], "double": False}
        done = torchrun(forks, size, [job], tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    one, two = ([line["token_loss"] for line in lines(tmp_path / run / "metrics.jsonl")] for run in ("1", "2"))
    assert one == pytest.approx(two, rel=3e-3)
    before, left, right = load_file(tiny_path / "model.safetensors"), weights(tmp_path / "1"), weights(tmp_path / "2")
    for name, value in left.items():
        assert value.dtype == torch.float32
        moved, apart = (value.sub(other[name]).abs().mean() for other in (before, right))
        assert apart < 0.2 * moved, name


def test_a_reward_model_of_two_ranks(tmp_path, tiny_path, forks):
    inputs = ["--model", str(tiny_path), "--source", world_data(tmp_path)["pairs"]]
    argv = [*REWARD_MODEL, *inputs, "--out"]
    in_parts = ["--shard", "full", "--gradient-checkpointing", "--save-every", "1"]
    jobs = [{"argv": [*argv, f"{tmp_path}/whole"]}, {"argv": [*argv, f"{tmp_path}/in parts", *in_parts]}]
    for size, these in ((1, [{"argv": [*argv, f"{tmp_path}/one"]}]), (2, jobs)):
        done = torchrun(forks, size, these, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    for name in ("whole", "in parts"):
        same_reward_model(tmp_path / "one", tmp_path / name)
    once, twice = tmp_path / "once", tmp_path / "twice"
    for run in (  # in float32, as without this test's patches
        [*argv, str(once), *in_parts],
        ["reward-model", "--resume", "--trust", "--out", str(twice)],
    ):
        done = torchrun(forks, 2, [{"argv": run, "double": False}], tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        if not twice.exists():
            shutil.copytree(once, twice)
            shutil.rmtree(twice / "checkpoints" / "step-000003")
    assert all(torch.equal(value, weights(twice)[name]) for name, value in weights(once).items())


def same_reward_model(one, other):
    assert differences(lines(one / "metrics.jsonl"), lines(other / "metrics.jsonl")) == []
    for name in ("eval_before", "eval_after"):
        assert differences(*(json.loads((run / f"{name}.json").read_text()) for run in (one, other))) == []
    left, right = weights(one), weights(other)
    assert set(left) == set(right)
    for name, value in left.items():
        assert value.dtype == torch.float64
        assert torch.allclose(value, right[name], rtol=0, atol=1e-10), name


def test_an_evaluation_by_two_ranks(tmp_path, tiny_path, sums_path, forks):
    for size in (1, 2):
        inputs = ["--model", str(tiny_path), "--source", str(sums_path), "--against", str(tiny_path)]
        argv = [*EVALUATED, *inputs, "--out", f"{tmp_path}/{size}"]
        done = torchrun(forks, size, [{"argv": argv, "double": False}], tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    one, two = tmp_path / "1", tmp_path / "2"
    assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in two.iterdir())
    assert (one / "problems.jsonl").read_bytes() == (two / "problems.jsonl").read_bytes()
    assert (one / "summary.json").read_bytes() == (two / "summary.json").read_bytes()


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_the_number_of_ranks_changes_nothing(name, size, runs):
    same_numbers(runs(1, CASES) / name, runs(size, CASES) / name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", PARTS)
def test_nor_does_a_model_in_parts(name, size, runs):
    same_numbers(runs(1, CASES) / name.removesuffix(", in parts"), runs(size, PARTS) / name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", IN_COPIES)
def test_nor_do_copies_of_a_model_in_parts(name, runs):
    same_numbers(runs(1, CASES) / name.removesuffix(", in copies"), runs(4, IN_COPIES) / name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", PRESET_CASES)
def test_presets_on_several_ranks(name, size, runs):
    same_numbers(runs(1, PRESET_CASES) / name, runs(size, PRESET_CASES) / name)


@pytest.mark.parametrize("name", ["plain", "own critic, in parts"])
def test_a_run_is_resumed_bit_for_bit_by_as_many_ranks(name, runs):
    whole, twice = runs(2, ON_TWO) / name, runs(2, ON_TWO) / f"{name}, twice"
    assert set(weights(whole)) == set(weights(twice))
    for weight, value in weights(whole).items():
        assert torch.equal(value, weights(twice)[weight]), weight
    for path in sorted((whole / "rollouts").iterdir()):
        assert path.read_bytes() == (twice / "rollouts" / path.name).read_bytes()
    timeless = [
        [{key: value for key, value in line.items() if key not in CLOCKS} for line in lines(run / "metrics.jsonl")]
        for run in (whole, twice)
    ]
    assert timeless[0] == timeless[1]


def test_runs_of_two_ranks_go_on_with_one(runs, tmp_path, forks):
    jobs, names = [], ("plain", "own critic, in parts")
    for name in names:
        out = tmp_path / name
        shutil.copytree(runs(2, ON_TWO) / f"{name}, twice", out)
        shutil.rmtree(out / "checkpoints" / "step-000003")
        jobs.append({"argv": [ON_TWO[name][0], "--resume", "--trust", "--out", str(out)]})
    done = torchrun(forks, 1, jobs, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ranks was 2 when this run began and is 1") == 2
    for name in names:
        same_numbers(runs(2, ON_TWO) / f"{name}, twice", tmp_path / name)


# --- who is who ------------------------------------------------------------------------------------------------------

MASTER = {"MASTER_ADDR": "node1", "MASTER_PORT": "1234"}
TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", **MASTER}
SLURM = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_NTASKS_PER_NODE": "4", **MASTER}


@pytest.mark.quick
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({**TORCHRUN, "RANK": "0", "WORLD_SIZE": "1"}, None),
        (TORCHRUN, RankInfo(5, 8, 1, 4, "node1", 1234)),
        (SLURM, RankInfo(5, 8, 1, 4, "node1", 1234)),
        # PyTorchJob: a pod a rank.
        ({"RANK": "1", "WORLD_SIZE": "2", **MASTER}, RankInfo(1, 2, 0, 1, "node1", 1234)),
        # A shell that Slurm gave: nothing was started side by side.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),
    ],
)
def test_launchers(environment, expected):
    assert rank_info(environment) == expected


@pytest.mark.quick
@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"RANK": "1", "WORLD_SIZE": "2"}, "MASTER_ADDR is not set"),
        ({"RANK": "1", **MASTER}, "WORLD_SIZE is not set"),
        ({**TORCHRUN, "RANK": "8"}, "RANK=8 with WORLD_SIZE=8"),
        ({**TORCHRUN, "RANK": "one"}, "RANK must be a whole number, got 'one'"),
        ({**SLURM, "MASTER_PORT": "x"}, "MASTER_PORT must be"),
    ],
)
def test_incomplete_environments_are_refused(environment, message):
    with pytest.raises(UserError, match=message):
        rank_info(environment)


@pytest.mark.quick
@pytest.mark.parametrize(("count", "local_rank", "expected"), [(4, 2, 2), (1, 0, 0), (1, 2, 0)])
def test_a_rank_uses_its_gpu(count, local_rank, expected, monkeypatch):
    """That of its number, or the only one that Slurm lets it see."""
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    assert joining._own_gpu("cuda", RankInfo(2, 8, local_rank, 4, "node1", 1234))
    assert chosen == [expected]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    with pytest.raises(UserError, match="rank 2 is number 4 on its machine, which has 3 GPUs"):
        joining._own_gpu("cuda", RankInfo(2, 8, 4, 4, "node1", 1234))


@pytest.mark.quick
def test_ranks_with_one_gpu_are_refused(monkeypatch):
    class World:
        def all_gather_object(self, value):
            return [value, *others]

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid="GPU-a"))
    others = ["GPU-b", "GPU-c"]
    joining._refuse_shared_gpus(World())
    others = ["GPU-b", "GPU-a"]
    with pytest.raises(UserError, match="ranks 0, 2 have the same GPU"):
        joining._refuse_shared_gpus(World())


class Two:
    size, rank, is_main = 2, 0, True


@pytest.mark.quick
@pytest.mark.parametrize(
    ("config_class", "settings", "message"),
    [
        (DistillConfig, {"teacher": "nano", "method": "off-policy"}, "--data is missing: several ranks can't sample"),
        (SFTConfig, {"engine": "vllm"}, "--engine vllm only works with one rank so far"),
        (GRPOConfig, {"engine": "vllm"}, "--engine vllm only works with one rank so far"),
        (
            GRPOConfig,
            {"shard": "full", "lora_rank": 4, "base_quantization": "nf4"},
            "4-bit weights can't be sharded",
        ),
        (
            GRPOConfig,
            {"shard": "full", "shard_copies": 2},
            "--shard-copies 2 with 2 ranks: each copy needs the same number",
        ),
        (GRPOConfig, {"shard": "grad", "shard_copies": 3}, "--shard-copies 3 with 2 ranks"),
    ],
)
def test_what_several_ranks_can_not_do_is_refused(config_class, settings, message):
    config = config_class(**{"engine": "transformers", **settings})
    refuse(config, 1)
    with pytest.raises(UserError, match=message):
        refuse(config, 2)


def test_a_command_of_one_process_refuses_several(tmp_path):
    environment = {**os.environ, **TORCHRUN, "LOCAL_RANK": "0"}
    command = [sys.executable, "-m", "r1lite", "pretrain", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=300)
    assert done.returncode == 2
    assert "r1lite pretrain runs in one process, but the launcher has started 8" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.quick
@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ([], [[], []]),
        ([5], [[0], []]),
        ([1, 2, 3, 4], [[0, 3], [1, 2]]),
        ([9, 1, 1, 1, 1], [[0], [1, 2, 3, 4]]),
        ([2, 2, 2, 2], [[0, 2], [1, 3]]),
    ],
)
def test_work_is_dealt_by_cost(costs, expected):
    assert hands(costs, 2) == expected


class Apart(Two):
    """The main rank of two, of which the other holds what `theirs` makes of it."""

    def __init__(self, theirs):
        self.theirs = theirs

    def all_gather_object(self, value):
        return [value, self.theirs(value)]


@pytest.mark.parametrize(
    ("place", "name", "value", "message"),
    [
        (0, "problems", "c0ffee", "different problems: copy the same files to each machine"),
        (1, "model", {"weights": "sha256:c0ffee", "tokenizer": None}, "different weights of --model: copy the same"),
        (1, "teacher", {"weights": None, "tokenizer": "hub:1"}, "configuration or tokenizer of --teacher: copy"),
        (2, "python", "3.10.0", r"different versions of python \(3\.\S+ and 3\.10\.0\): they would"),
        (2, "verifier 'math'", "1", r"different versions of verifier 'math' \(15 and 1\): they would"),
        (2, "verifier 'more'", "1", r"different versions of verifier 'more' \(None and 1\): they would"),
    ],
)
def test_ranks_that_differ_are_refused(place, name, value, message):
    def changed(held):
        failure, ((data, models, versions),) = held
        parts = [data, models, versions]
        parts[place] = {**parts[place], name: value}
        return failure, [tuple(parts)]

    config = DistillConfig(model="nano", teacher="nano-countdown")
    refuse_differences(Apart(lambda held: held), config, {"problems": "a"}, {"math": "15"})
    with pytest.raises(UserError, match=f"ranks 0 and 1 have .*{message}"):
        refuse_differences(Apart(changed), config, {"problems": "a"}, {"math": "15"})
