"""`--on slurm`: writes a batch script to the run directory, which starts engines and ranks with srun."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from r1lite.errors import RunError, UserError
from r1lite.launch.commands import Job
from r1lite.launch.layout import ProcessSpec

_SCRIPT, _TOKEN = "job.sbatch", "token"
_PORT = "$((port + $1))"  # port of an engine, inside the script's function
_PORTS = 10000  # for engines, from 10000 on
_BEFORE_THE_END_S = 300  # the job is signalled this long before its time limit, for a checkpoint


def write_script(job: Job, specs: Sequence[ProcessSpec], folder: Path) -> Path:
    """Writes the batch script, and a file with a new token for the engines that only this user can read.

    Returns: the script's path.
    """
    path = folder / _SCRIPT
    if job.launch.engines:
        (folder / _TOKEN).unlink(missing_ok=True)
        handle = os.open(folder / _TOKEN, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32))
    path.write_text(script(job, specs), encoding="utf-8")
    return path


def submit(path: Path) -> str:
    """Submits the script to Slurm. Returns the job's number. Raises UserError, RunError."""
    if shutil.which("sbatch") is None:
        raise UserError(f"--submit: sbatch not found; run on a login node: sbatch {shlex.quote(str(path))}")
    done = subprocess.run(["sbatch", "--parsable", str(path)], capture_output=True, text=True)
    if done.returncode:
        raise RunError(f"sbatch {path}: {done.stderr.strip()}")
    return done.stdout.strip()


def script(job: Job, specs: Sequence[ProcessSpec]) -> str:
    """The batch script's text. Submitted again, it resumes from the newest checkpoint, if the stage can be resumed."""
    launch = job.launch
    engines = [spec for spec in specs if spec.kind == "engine"]
    first = specs[0]
    most = max(sum(spec.node == node for spec in specs) for node in range(launch.nodes))
    headers = {
        "job-name": f"r1lite-{job.stage}",
        "nodes": launch.nodes,
        "ntasks-per-node": 1,
        "cpus-per-task": most * job.threads,
        **({"gpus-per-node": job.gpus} if job.gpus else {}),
        "output": _header(f"{str(job.out).replace('%', '%%')}/launch/job-%j.log"),
        "signal": f"B:TERM@{_BEFORE_THE_END_S}",
    }
    lines = ["#!/bin/bash", *(f"#SBATCH --{name}={value}" for name, value in headers.items())]
    lines += ["set -uo pipefail", "", f"cd {shlex.quote(os.getcwd())} || exit 1  # as the paths below mean it"]
    lines += [f"run={shlex.quote(str(job.out))}", "logs=${run//%/%%}/launch  # srun replaces what follows a single %"]
    lines += ['mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")']
    lines += ["export MASTER_ADDR=${nodes[0]} MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))"]
    lines += [*(_PICK if job.gpus else []), "engines=()"]
    if engines:
        lines += _engine_lines(job, engines)
    urls = [f"http://${{nodes[{spec.node}]}}:$((port + {spec.number}))" for spec in engines]
    rank_nodes = launch.ranks // first.local_ranks
    adds_resume = job.can_resume and not job.asked.resume
    lines += [
        "",
        "again=()  # a run that has begun goes on from its newest checkpoint",
        *(['[ -e "$run/config.yaml" ] && again=(--resume)'] if adds_resume else []),
        f"srun --overlap --job-name=ranks --nodes={rank_nodes} --ntasks={launch.ranks} "
        f"--ntasks-per-node={first.local_ranks} --cpus-per-task={job.threads} \\",
        f'    --nodelist="$(IFS=,; echo "${{nodes[*]:0:{rank_nodes}}}")" --kill-on-bad-exit=0 --wait=60 \\',
        '    --output="$logs/rank-%t.log" --open-mode=append \\',
        f'    {_with_gpus(",".join(map(str, first.gpus)))}{_quoted(job.rank_words(urls), urls)} "${{again[@]}}" &',
        "ranks=$!",
        *_END,
    ]
    if launch.restarts:
        lines += [
            f'[ "${{SLURM_RESTART_COUNT:-0}}" -ge {launch.restarts} ] && stopped=yes',
            '[ "$code" -ne 0 ] && [ -z "$stopped" ] && scontrol requeue "$SLURM_JOB_ID"',
        ]
    return "\n".join([*lines, 'exit "$code"', ""])


# Slurm numbers a step's GPUs from 0 if it hides the others, and otherwise lists them by the node's numbers.
_PICK = """
pick='IFS=, read -ra gpus <<< "$1"  # GPUS COMMAND: the command sees the GPUs with these places in the list of Slurm
IFS=, read -ra listed <<< "${CUDA_VISIBLE_DEVICES-}"
for i in "${!gpus[@]}"; do
    [ -z "${CUDA_VISIBLE_DEVICES+set}" ] || gpus[i]=${listed[gpus[i]]:?"Slurm gave only $CUDA_VISIBLE_DEVICES"}
done
export CUDA_VISIBLE_DEVICES=$(IFS=,; echo "${gpus[*]}")
exec "${@:2}"'""".splitlines()

_END = """
stopped=
stop() {  # the ranks write a checkpoint; a signal to srun itself would kill them
    stopped=yes
    scancel --signal=TERM "$(squeue --noheader --steps --jobs="$SLURM_JOB_ID" --name=ranks --format=%i)"
}
trap stop TERM INT
wait -n "$ranks" "${engines[@]}"
code=$?
if kill -0 "$ranks" 2>/dev/null; then
    if [ -z "$stopped" ]; then
        echo "error: an engine ended; see $run/launch/engine-*.log" >&2
        stop
        stopped=
    fi
    wait "$ranks"
    code=1
fi
[ "${#engines[@]}" -gt 0 ] && kill "${engines[@]}" 2>/dev/null
wait""".splitlines()


def _engine_lines(job: Job, engines: Sequence[ProcessSpec]) -> list[str]:
    words = _quoted(job.engine_words("0.0.0.0", _PORT), [_PORT])
    picked, count = _with_gpus('"$3"' if job.gpus else ""), len(engines)
    return [
        f"port=$((10000 + SLURM_JOB_ID % {_PORTS // count} * {count}))  # of engine 0; consecutive jobs share none",
        f'R1LITE_ENGINE_TOKEN=$(<"$run/launch/{_TOKEN}")  # read by its owner alone; srun hands it on',
        "export R1LITE_ENGINE_TOKEN",
        "engine() {  # NUMBER NODE GPUS",
        '    exec srun --overlap --job-name="engine-$1" --nodes=1 --ntasks=1 --nodelist="${nodes[$2]}" '
        f"--cpus-per-task={job.threads} \\",
        '        --output="$logs/engine-$1.log" --open-mode=append \\',
        f"        {picked}env {words}",
        "}",
        *(
            f"engine {spec.number} {spec.node} {','.join(map(str, spec.gpus)) or '-'} & engines+=($!)"
            for spec in engines
        ),
    ]


def _with_gpus(gpus: str) -> str:
    return f'bash -c "$pick" pick {gpus} ' if gpus else ""


def _header(value: str) -> str:
    """A value quoted for a #SBATCH line, whose quotes keep spaces and where a backslash escapes any character."""
    return '"' + re.sub(r'([\\"#])', r"\\\1", value) + '"'


def _quoted(words: Sequence[str], expanded: Sequence[str]) -> str:
    """The words quoted for a shell, except for the parts in `expanded`."""
    return " ".join(_word(word, expanded) for word in words)


def _word(word: str, expanded: Sequence[str]) -> str:
    inside = next((part for part in expanded if part in word), None)
    if inside is None:
        return shlex.quote(word)
    return f'"{inside}"'.join(shlex.quote(piece) if piece else "" for piece in word.split(inside))
