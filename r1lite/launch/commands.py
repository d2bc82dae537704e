"""The commands and the environment variables of a run's processes."""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r1lite.config import (
    DistillConfig,
    DPOConfig,
    EvalConfig,
    GRPOConfig,
    PPOConfig,
    ProblemsConfig,
    RewardModelConfig,
    RunConfig,
    SFTConfig,
    load,
)
from r1lite.config.engines import engine_names, find_engine
from r1lite.config.launch import LaunchConfig
from r1lite.errors import UserError
from r1lite.launch.layout import ProcessSpec
from r1lite.rollout.server import TOKEN
from r1lite.run.places import claim_path, path_to_resume, weights_folder
from r1lite.training.early import RESTARTED, check_early
from r1lite.training.loading import load_config
from r1lite.training.resolve import resolve_config
from r1lite.training.several import refuse

STAGES: dict[str, type[Any]] = {
    config.stage: config
    for config in (GRPOConfig, PPOConfig, SFTConfig, DPOConfig, DistillConfig, RewardModelConfig, EvalConfig)
}


@dataclass(frozen=True, slots=True)
class Job:
    """A launched stage.

    Args:
        words: the user's words: the stage, its recipe and its flags.
        asked: the configuration that the words give.
        settled: `asked` with the values of the model's own recipe, or of the resumed run.
        out: the run directory.
        context: largest number of tokens of prompt plus completion, for the engines; 0 without engines.
        gpus: number of GPUs per node.
        threads: number of threads per process, unless the words set it.
    """

    launch: LaunchConfig
    words: tuple[str, ...]
    asked: RunConfig
    settled: Any
    out: Path
    context: int
    gpus: int
    threads: int

    @property
    def stage(self) -> str:
        """Name of the launched stage."""
        return self.words[0]

    @property
    def weights_folder(self) -> Path | None:
        """A folder that all nodes see, for weights that go to engines on other nodes as files; None if not needed."""
        together = self.launch.nodes == 1 and not self.launch.on.startswith("ray")  # Ray may use a node each
        if together or not self.launch.engines or self.settled.weight_transport != "file":
            return None
        return Path(self.settled.engine_weights_dir or weights_folder(self.out))

    @property
    def can_resume(self) -> bool:
        """False if the stage always starts anew."""
        return self.stage not in RESTARTED

    def has_begun(self) -> bool:
        """True if there is a run to resume."""
        return self.can_resume and (self.out / "config.yaml").exists()

    def rank_words(self, urls: Sequence[str], *, resume: bool = False) -> list[str]:
        """The command of every rank.

        Args:
            urls: addresses of the engines.
            resume: resume from the newest checkpoint, if the run has begun.
        """
        words = [*self.words, *([] if self.asked.out else ["--out", str(self.out)])]
        if self.asked.resume:
            resume = False  # the words contain --resume
        elif "device" not in self.asked.model_fields_set:
            words += ["--device", "cuda" if self.gpus else "cpu"]
        words += ["--resume"] * resume
        if self.asked.threads is None and not self.asked.resume:
            words += ["--threads", str(self.threads)]
        if urls:
            if self.weights_folder is not None:
                words += ["--engine-weights-dir", str(self.weights_folder)]
            words += ["--engine", self.settled.engine, *(word for url in urls for word in ("--engine-url", url))]
        return [sys.executable, "-m", "r1lite", *words]

    def engine_words(self, host: str, port: int | str) -> list[str]:
        """The command of an engine that listens on this address; the port may be a shell expression."""
        if self.launch.engine_command is not None:
            given = shlex.split(self.launch.engine_command)
            return [word.replace("{host}", host).replace("{port}", str(port)) for word in given]
        run = self.settled
        flags = ["--untested"] * run.engine_untested + ["--batch-invariant"] * run.engine_batch_invariant
        if rank := getattr(run, "lora_rank", 0):
            flags += ["--lora-rank", str(rank)]
        if run.weight_transport != "file":
            flags += ["--weight-transport", run.weight_transport]
        if self.launch.tensor_parallel > 1:
            flags += ["--tensor-parallel", str(self.launch.tensor_parallel)]
        return [
            *(sys.executable, "-m", "r1lite", "serve-engine", "--model", run.model),
            *("--host", host, "--port", str(port)),
            *("--device", "cuda" if self.gpus else "cpu", "--dtype", run.dtype, "--threads", str(self.threads)),
            *("--context", str(self.context), *flags),
        ]


def read_job(launch: LaunchConfig, words: Sequence[str], gpus: int, threads: int) -> Job:
    """The job of these words. Makes its run directory, except for a dry run.

    Raises:
        UserError: the stage is unknown, or its settings contradict the launch.
    """
    if not words or words[0] not in STAGES:
        given = f"'{words[0]}' can't be launched" if words else "nothing follows --"
        raise UserError(f"r1lite launch [OPTIONS] -- STAGE [RECIPE] [FLAGS]: {given}; stages: {', '.join(STAGES)}")
    stage = STAGES[words[0]]
    if launch.engines and not issubclass(stage, ProblemsConfig):
        raise UserError(f"--engines {launch.engines}: r1lite {words[0]} doesn't sample")
    served = functools.partial(_served, launch)
    asked = load(stage, list(words[1:]), prog=f"r1lite launch -- {words[0]}", complete=served)
    if not launch.dry_run:
        check_early(asked)
    if asked.device.startswith("cuda") and not gpus:
        raise UserError(f"--device {asked.device}, but --gpus-per-node is 0")
    if asked.device == "cpu" and gpus:
        raise UserError("--device cpu needs --gpus-per-node 0 before the --")
    settled, context = asked, 0
    if launch.engines:
        settled = _settled(launch, asked, gpus)
        context = _context(settled)
    elif not asked.resume:
        refuse(asked, launch.ranks)
    return Job(launch, tuple(words), asked, settled, _place(launch, asked), context, gpus, threads)


def _served(launch: LaunchConfig, values: Mapping[str, Any]) -> dict[str, Any]:
    """Configuration values for launched engines: their kind, and a placeholder for their addresses.

    Raises: UserError: the values name other engines.
    """
    if not launch.engines:
        return {}
    if values.get("engine_url"):
        raise UserError(
            f"--engine-url and --engines {launch.engines} contradict each other: the launcher sets the addresses"
        )
    engine = values.get("engine", "auto")
    if engine in engine_names() and not find_engine(engine).takes_urls:
        raise UserError(f"--engine {engine} has no servers: omit it, or use --engines 0")
    if engine in engine_names() and engine != "vllm-server" and launch.engine_command is None:
        raise UserError(f"--engine {engine} needs --engine-command; r1lite can start only vLLM servers by itself")
    return {"engine": "vllm-server" if engine == "auto" else engine, "engine_url": ("http://127.0.0.1:1",)}


def _settled(launch: LaunchConfig, asked: Any, gpus: int) -> Any:
    """The configuration with all values that the engines need. Raises UserError."""
    if gpus and asked.model is None and not asked.resume:
        raise UserError("--model is missing: engines and ranks must load the same one")
    given: dict[str, Any] = {}
    if asked.resume and asked.engine_weights_dir is None and (launch.nodes > 1 or launch.on.startswith("ray")):
        # Set here, so that the run keeps it.
        given["engine_weights_dir"] = str(weights_folder(_place(launch, asked)))
    own = {} if asked.resume else {"device": "cpu"}  # this machine may have no GPU; the lengths are the same
    settled: Any = resolve_config(asked.model_copy(update={**given, **own}))[0]
    refuse(settled, launch.ranks)
    return settled


def _context(settled: Any) -> int:
    """The context that the run requires of its engines. Raises UserError."""
    wanted: int = settled.max_prompt_tokens + settled.max_completion_tokens
    longest = getattr(load_config(settled), "max_position_embeddings", None)
    return wanted if longest is None else min(wanted, longest)


def _place(launch: LaunchConfig, asked: RunConfig) -> Path:
    if asked.resume:
        path = path_to_resume(asked.out, asked.stage)
    elif asked.out:
        path = Path(asked.out).expanduser()
    elif launch.dry_run:
        path = Path("runs") / "DATE"
    else:
        about = getattr(asked, "task", "pairs"), getattr(asked, "model", None) or "default"
        path = claim_path(asked.stage, *about)
    return path.resolve()


def rank_environment(spec: ProcessSpec, ranks: int, address: str, port: int, token: str) -> dict[str, str]:
    """The environment variables of a rank, as torchrun sets them."""
    found = {
        "RANK": str(spec.number),
        "WORLD_SIZE": str(ranks),
        "LOCAL_RANK": str(spec.local_rank),
        "LOCAL_WORLD_SIZE": str(spec.local_ranks),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
    }
    return found | environment_of(token)


def environment_of(token: str) -> dict[str, str]:
    """The environment variables of any process: the engines' token."""
    return {TOKEN: token} if token else {}
