"""Starts the processes of a run and stays until they have ended."""

from __future__ import annotations

import contextlib
import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from r1lite.config import RLConfig
from r1lite.config.launch import LaunchConfig
from r1lite.errors import Interrupted
from r1lite.launch.commands import Job, environment_of, rank_environment, read_job
from r1lite.launch.layout import ProcessSpec, lay_out
from r1lite.launch.on_ray import RayLauncher
from r1lite.launch.process import LocalProcess, free_ports
from r1lite.launch.running import Running
from r1lite.launch.slurm import script, submit, write_script
from r1lite.launch.supervise import Supervisor
from r1lite.run.ending import resuming_options
from r1lite.run.places import LAUNCH
from r1lite.run.signals import StopSignal
from r1lite.training.estimate import show_estimate
from r1lite.training.machine import default_threads, gpu_names

_MOST_THREADS = 8
_HOST = "127.0.0.1"
_FIRST_PORT = 8100  # in the printed commands; a real launch chooses free ports


def start(launch: LaunchConfig, words: Sequence[str]) -> int:
    """Starts the command `words`. Returns 0 if the stage ended without an error.

    Raises:
        UserError: an option is invalid.
        RunError: a process failed, and all others were stopped.
        Interrupted: a signal stopped the run; a checkpoint was written.
    """
    gpus = _gpus_here() if launch.gpus_per_node is None else launch.gpus_per_node
    specs = lay_out(launch, gpus)
    threads = launch.cpus or _MOST_THREADS
    if launch.cpus is None and launch.on == "local":
        threads = default_threads(len(specs))
    job = read_job(launch, words, gpus, threads)
    if launch.dry_run:
        show(job, specs)
        return 0
    folder = job.out / LAUNCH
    for needed in (folder, *([job.weights_folder] if job.weights_folder else [])):
        needed.mkdir(parents=True, exist_ok=True)
    if launch.on == "slurm":
        _for_slurm(job, specs, folder)
        return 0
    _say(f"launch    {launch.ranks} rank{'s' * (launch.ranks > 1)}, {launch.engines} engines; logs in {folder}")
    begin = LocalLauncher if launch.on == "local" else RayLauncher
    with contextlib.closing(begin(job, specs, folder)) as launcher, StopSignal() as stop:
        supervisor = Supervisor(
            launcher,
            launcher.engines,
            token=launcher.token,
            start_s=getattr(job.settled, "engine_timeout_s", 0.0),
            restarts=launch.restarts,
            say=_say,
            verbose=launch.verbose,
        )
        try:
            supervisor.run(stop)
        except Interrupted:
            _say(f"all processes have ended{_go_on(job)}")
            raise
    return 0


def _for_slurm(job: Job, specs: Sequence[ProcessSpec], folder: Path) -> None:
    path = write_script(job, specs, folder)
    _say(f"script    {path}; the logs of all processes will be beside it")
    if job.launch.submit:
        _say(f"submitted job {submit(path)}; `scancel --batch --signal=TERM JOB` leaves a checkpoint")
    else:
        again = "  (the same command resumes from the newest checkpoint)" if job.can_resume else ""
        _say(f"submit it with: sbatch {shlex.quote(str(path))}{again}")


def _gpus_here() -> int:
    import torch

    return torch.cuda.device_count()


def _go_on(job: Job) -> str:
    return f"; continue with: r1lite launch ... -- {job.stage} {resuming_options(job.out)}" if job.has_begun() else ""


def _say(text: str) -> None:
    print(text, flush=True)


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
    return _HOST if job.launch.on == "local" else f"NODE{spec.node}"


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


class LocalLauncher:
    """`--on local`: runs ranks and engines as processes of this machine.

    Args:
        folder: folder of the logs.

    Raises (in the constructor): UserError if CUDA_VISIBLE_DEVICES lists too few GPUs.
    """

    def __init__(self, job: Job, specs: Sequence[ProcessSpec], folder: Path) -> None:
        self._job, self._folder = job, folder
        used = max((1 + gpu for spec in specs for gpu in spec.gpus), default=0)
        self._gpus = gpu_names(used, f"--gpus-per-node {job.gpus}")
        self._ranks = [spec for spec in specs if spec.kind == "rank"]
        self.engines = [spec for spec in specs if spec.kind == "engine"]
        # Passed in the environment, because other users can see arguments.
        self.token = secrets.token_urlsafe(32) if self.engines else ""
        self._ports = dict(zip(self.engines, free_ports(len(self.engines)), strict=True))

    def start_engine(self, spec: ProcessSpec) -> tuple[Running, str]:
        """See `Launcher.start_engine`."""
        port = self._ports[spec]
        words = self._job.engine_words(_HOST, port)
        return self._start(spec, words, environment_of(self.token)), f"http://{_HOST}:{port}"

    def start_ranks(self, urls: Sequence[str], *, again: bool) -> list[Running]:
        """See `Launcher.start_ranks`."""
        words = self._job.rank_words(urls, resume=again and self._job.has_begun())
        (port,) = free_ports(1)
        size = len(self._ranks)
        return [self._start(spec, words, rank_environment(spec, size, _HOST, port, self.token)) for spec in self._ranks]

    def _start(self, spec: ProcessSpec, words: Sequence[str], variables: dict[str, str]) -> Running:
        log = self._folder / spec.log
        if spec.gpus:
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(self._gpus[number] for number in spec.gpus)
        return Running.begun(spec, log, lambda: LocalProcess(words, variables, log))

    def close(self) -> None:
        """Does nothing: the processes have ended, or end with this one."""
