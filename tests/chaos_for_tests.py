"""Faults drawn at random for runs of several ranks: each must end in time, by one named error, and be continued."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from safetensors.torch import load_file
from world_cases import CASES, over_mark, world_data

from verifiers import rows

DEADLINE_S = 300  # from the fault to the launcher's end, on a machine that does other work too
STALL_S = 8
# What waits for its end is noticed after STALL_S; other rounds must not take a slow rank for such a one.
PATIENCE = {"stopped": ["--stall-rank-s", f"{STALL_S}"], "stuck": ["--stall-train-s", f"{STALL_S}"]}
_STEPS = 2  # the second is where faults within a run happen
_SMALL = [
    *("--steps", str(_STEPS), "--save-every", "1"),
    *("--eval-problems", "1", "--eval-sample-problems", "1", "--eval-samples", "1"),
]
_FEW = ["--prompts-per-step", "3", "--max-completion-tokens", "4", "--updates-per-rollout", "1", *_SMALL]
COMMANDS = {
    "grpo": [*CASES["plain"], *_FEW],
    "grpo in parts": [*CASES["kl in the loss"], *_FEW, "--shard", "full"],
    "ppo": [*CASES["own critic"], *_FEW],
    "sft": [*CASES["sft"], *_SMALL],
}
SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "interrupted": signal.SIGINT, "ended": signal.SIGTERM}
WITHIN = ("raises", "full_disk", "stuck", "out_of_memory")  # functions of world_for_tests.py, in grpo and ppo
FAULTS = (*SIGNALS, *WITHIN)
AT_ALL = ("interrupted", "ended")
_SALT = "chaos-395"  # with it the first 20 rounds have every fault on either rank


def drawn(seed):
    """(command, fault, rank, moment) of a round: so many rounds one after the other as there are faults have them all.

    The moment of a signal is a share of the undisturbed run's time, and may come after the end.
    """
    block, place = divmod(seed, len(FAULTS))
    fault = random.Random(f"{_SALT}-block-{block}").sample(FAULTS, len(FAULTS))[place]
    rng = random.Random(f"{_SALT}-{seed}")
    name = rng.choice([name for name in COMMANDS if name != "sft" or fault in SIGNALS])
    return name, fault, 0 if fault == "full_disk" else rng.randrange(2), rng.uniform(0, 1.1)


class Chaos:
    """Rounds on two ranks, in a folder. Several may run at the same time."""

    def __init__(self, folder, forks):
        self.folder, self._forks = folder, forks
        make_tiny_model(initializer_range=0.02).save_pretrained(folder / "model")
        make_tiny_tokenizer().save_pretrained(folder / "model")
        self.known = {"teacher": str(folder / "model"), **world_data(folder)}
        problems = [{"question": f"{i}+{i % 7}?", "answer": f"#### {i + i % 7}"} for i in range(48)]
        self.source = folder / "sums"
        self.source.mkdir()
        for split, part in (("train", problems[:40]), ("test", problems[40:])):
            (self.source / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))

    def rounds(self, seeds, lanes):
        """Results of `_round` by seed, as futures; those that wait longest begin first."""
        names = {drawn(seed)[0] for seed in seeds}
        self.whole = dict(zip(names, lanes.map(self._unharmed, names), strict=True))
        first = sorted(seeds, key=lambda seed: drawn(seed)[1] not in PATIENCE)
        return {seed: lanes.submit(self._round, seed) for seed in first}

    def _round(self, seed):
        """(what was done, what went wrong or None) of one round."""
        name, fault, rank, moment = drawn(seed)
        whole, seconds = self.whole[name]
        out, pids = self.folder / f"round-{seed}", self.folder / f"pids-{seed}"
        pids.mkdir()
        at_all = fault in AT_ALL
        what = f"{name}: {fault}{'' if at_all else f' on rank {rank}'}"
        what += f" after {moment * seconds:.1f} of {seconds:.1f} s" * (fault in SIGNALS)
        process = self._start(name, out, pids, fault, rank)
        began = time.monotonic()
        if fault in SIGNALS:
            _wait_for_both(pids, process)
            time.sleep(moment * seconds)
            # Torch's launcher waits without end for a function's process that is killed after the function returned.
            if over_mark(pids, rank).exists():
                what += ", too late"
            else:
                try:
                    os.kill(process.pid if at_all else int((pids / str(rank)).read_text()), SIGNALS[fault])
                except ProcessLookupError:
                    what += ", too late"
        try:
            printed = "".join(process.communicate(timeout=DEADLINE_S))
        except subprocess.TimeoutExpired:
            process.kill()
            return what, f"it did not end within {DEADLINE_S} s"
        what += f", exit {process.returncode} after {time.monotonic() - began:.0f} s"
        left = [path.read_text() for path in pids.iterdir() if Path("/proc", path.read_text()).exists()]
        if left:
            return what, f"processes are left: {left}\n{printed}"
        errors = [line for line in printed.splitlines() if line.startswith("error: ")]
        what += f": {errors[0]}" if errors else ""
        if not (out / "summary.json").exists():
            if process.returncode == 0:
                return what, f"exit 0 of a run that is not finished\n{printed}"
            begun = (out / "config.yaml").exists()
            if wrong := _misnamed(errors, fault, rank, begun=begun):
                return what, f"{wrong}\n{printed}"
            again = self._start(name, out, None, None, 0, resume=begun)
            said = "".join(again.communicate(timeout=DEADLINE_S))
            if again.returncode:
                return what, f"it can't be continued: {said}\n\nbefore: {printed}"
        wrong = _differences(whole, out, exact=fault != "out_of_memory")
        shutil.rmtree(out)
        return what, wrong

    def _unharmed(self, name):
        """(folder, seconds) of a run to its end."""
        out = self.folder / name.replace(" ", "-")
        pids = self.folder / f"pids of {name}"
        pids.mkdir()
        process = self._start(name, out, pids, None, 0)
        _wait_for_both(pids, process)
        began = time.monotonic()
        printed = "".join(process.communicate(timeout=3 * DEADLINE_S))
        assert process.returncode == 0, printed
        return out, time.monotonic() - began

    def _start(self, name, out, pids, fault, rank, *, resume=False):
        asked = [word.format_map(self.known) for word in COMMANDS[name]]
        argv = [*asked, "--model", str(self.folder / "model"), "--source", str(self.source), "--out", str(out)]
        argv += PATIENCE.get(fault, [])
        if resume:
            argv = [asked[0], "--resume", "--trust", "--out", str(out)]
        job = {"argv": argv, "trouble": fault if fault in WITHIN else None, "ranks": [rank]}
        job |= {} if pids is None else {"pids": str(pids)}
        # Seconds that the launcher waits for a stopped rank, once the other one has said so.
        env = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "3"} if fault == "stopped" else None
        return self._forks.start_ranks(tempfile.mkdtemp(dir=self.folder), [job], env=env)


def at_once(count):
    """Lanes for so many rounds at the same time."""
    return ThreadPoolExecutor(count)


def _wait_for_both(pids, process):
    while len(list(pids.iterdir())) < 2 and process.poll() is None:
        time.sleep(0.02)


def _misnamed(errors, fault, rank, *, begun):
    """What is wrong with the messages of a run that did not reach its end; None if nothing."""
    if len(errors) > 1:
        return "several errors"
    if fault in AT_ALL:
        return f"an error: {errors[0]}" if errors else None
    if not errors:
        return "no error" if begun else None  # a rank that is killed before it begins has nothing to say
    who = "[01]" if fault == "stuck" else rank  # the others, who wait for it, are stuck as well
    return None if re.match(rf"error: rank {who}\b.* in \w+", errors[0]) else "an error that does not say who or where"


def _differences(one, other, *, exact):
    """What the two runs have done otherwise; None if nothing."""
    for path in sorted(one.glob("rollouts/*")):
        left, right = ([row for _, row in rows.rows(run / "rollouts" / path.name)] for run in (one, other))
        if left != right:
            return f"{path.name} has other completions"
    left, right = (load_file(run / "checkpoints" / f"step-{_STEPS:06d}" / "model.safetensors") for run in (one, other))
    for name, value in left.items():
        if not (torch.equal if exact else torch.allclose)(value, right[name]):
            return f"{name} differs by up to {float((value - right[name]).abs().max()):.1e}"
    return None
