"""Prints what a launch would start, on which nodes, and with how much memory."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from r1lite.config import RLConfig
from r1lite.launch.commands import Job
from r1lite.launch.layout import ProcessSpec
from r1lite.launch.slurm import script
from r1lite.run.run_dir import LAUNCH
from r1lite.training.estimate import show_estimate

_FIRST_PORT = 8100  # in the printed commands; a real launch chooses free ports


def show(job: Job, specs: Sequence[ProcessSpec]) -> None:
    """Prints layout, memory and commands. Raises UserError if the estimate does."""
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(_table(specs, job.threads))
    engines = [spec for spec in specs if spec.kind == "engine"]
    urls = [f"http://{_host(job, spec)}:{_FIRST_PORT + spec.number}" for spec in engines]
    if isinstance(job.asked, RLConfig):
        show_estimate(_estimated(job, urls))
    else:
        console.print(f"memory     no estimate for r1lite {job.stage}: --estimate supports grpo and ppo")
    console.print(f"run        {job.out}")
    if job.launch.on == "slurm":
        console.print(f"{job.out / LAUNCH}/job.sbatch would be:\n\n{script(job, specs)}")
        console.print("nothing was written: --dry-run")
        return
    console.print(f"each rank  {shlex.join(job.rank_words(urls))}")
    for spec in engines:
        words = job.engine_words(_host(job, spec), _FIRST_PORT + spec.number)
        console.print(f"{spec.name}   {shlex.join(words)}")
    console.print("nothing was started: --dry-run")


def _host(job: Job, spec: ProcessSpec) -> str:
    return "127.0.0.1" if job.launch.on == "local" else f"NODE{spec.node}"


def _table(specs: Sequence[ProcessSpec], threads: int) -> Table:
    found = Table(title="Layout", title_justify="left", title_style="bold")
    for heading in ("process", "node", "GPU", "CPU threads"):
        found.add_column(heading)
    for spec in specs:
        own = spec.gpus[spec.local_rank : spec.local_rank + 1] if spec.kind == "rank" else spec.gpus
        found.add_row(spec.name, str(spec.node), ", ".join(map(str, own)) or "-", str(threads))
    return found


def _estimated(job: Job, urls: Sequence[str]) -> Any:
    own = {"estimate": True, "estimate_ranks": job.launch.ranks}
    device = {"device": "cuda" if job.gpus else "cpu"}
    engine = {"engine": job.settled.engine, "engine_url": tuple(urls)} if urls else {}
    return job.asked.model_copy(update={**own, **device, **engine})
