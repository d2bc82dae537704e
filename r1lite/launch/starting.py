"""Starts the processes of a run and stays until they have ended."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from pathlib import Path

from r1lite.config.launch import LaunchConfig
from r1lite.errors import Interrupted
from r1lite.launch.commands import Job, read_job
from r1lite.launch.dry_run import show
from r1lite.launch.layout import ProcessSpec, lay_out
from r1lite.launch.local import LocalLauncher
from r1lite.launch.on_ray import RayLauncher
from r1lite.launch.slurm import submit, write_script
from r1lite.launch.supervise import Supervisor
from r1lite.run.ending import resumption
from r1lite.run.run_dir import LAUNCH
from r1lite.run.signals import StopSignal
from r1lite.training.machine import default_threads

_MOST_THREADS = 8


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
        _say(f"submit it with: sbatch {shlex.quote(str(path))}  (the same command resumes from the newest checkpoint)")


def _gpus_here() -> int:
    import torch

    return torch.cuda.device_count()


def _go_on(job: Job) -> str:
    return f"; continue with: r1lite launch ... -- {job.stage} {resumption(job.out)}" if job.has_begun() else ""


def _say(text: str) -> None:
    print(text, flush=True)
