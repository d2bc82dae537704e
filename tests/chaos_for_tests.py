"""Faults drawn at random for runs of several ranks: each must end in time, by one named error, and be continued."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import torch
from conftest import make_tiny_model, make_tiny_tokenizer
from safetensors.torch import load_file
from world_cases import CASES, over_mark, world_data

from verifiers import rows

STALL_S = 20
DEADLINE_S = 300  # from the fault to the launcher's end, on a machine that does other work too
COMMANDS = {
    "grpo": CASES["plain"],
    "grpo in parts": [*CASES["kl in the loss"], "--shard", "full"],
    "ppo": CASES["own critic"],
    "sft": CASES["sft"],
}
SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "interrupted": signal.SIGINT, "ended": signal.SIGTERM}
WITHIN = ("raises", "full_disk", "stuck", "out_of_memory")  # functions of world_for_tests.py


class Chaos:
    """Rounds on two ranks, in a folder."""

    def __init__(self, folder, forks):
        self.folder, self.whole, self._forks = folder, {}, forks
        make_tiny_model(initializer_range=0.02).save_pretrained(folder / "model")
        make_tiny_tokenizer().save_pretrained(folder / "model")
        self.known = {"teacher": str(folder / "model"), **world_data(folder)}
        problems = [{"question": f"{i}+{i % 7}?", "answer": f"#### {i + i % 7}"} for i in range(48)]
        self.source = folder / "sums"
        self.source.mkdir()
        for split, part in (("train", problems[:40]), ("test", problems[40:])):
            (self.source / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))

    def round(self, seed):
        """(what was done, what went wrong or None) of one round."""
        rng = random.Random(f"chaos-{seed}")
        name, rank = rng.choice(list(COMMANDS)), rng.randrange(2)
        fault = rng.choice([*SIGNALS, *WITHIN])
        if name == "sft" and fault in WITHIN:  # they stand in the learner of grpo and ppo
            fault = rng.choice(list(SIGNALS))
        whole, seconds = self._unharmed(name)
        out, pids = self.folder / f"round-{seed}", self.folder / f"pids-{seed}"
        pids.mkdir()
        moment = rng.uniform(0, 1.2) * seconds
        at_all = fault in ("interrupted", "ended")
        what = f"{name}: {fault}{'' if at_all else f' on rank {rank}'}"
        what += f" after {moment:.1f} of {seconds:.1f} s" * (fault in SIGNALS)
        process = self._start(name, out, pids, fault if fault in WITHIN else None, 0 if fault == "full_disk" else rank)
        began = time.monotonic()
        if fault in SIGNALS:
            _wait_for_both(pids, process)
            time.sleep(moment)
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
        if len(errors) > 1:
            return what, "\n".join(["several errors:", *errors])
        finished = (out / "summary.json").exists()
        if not finished:
            if process.returncode == 0:
                return what, f"exit 0 of a run that is not finished\n{printed}"
            begun = (out / "config.yaml").exists()
            again = self._start(name, out, None, None, 0, resume=begun)
            said = "".join(again.communicate(timeout=DEADLINE_S))
            if again.returncode:
                return what, f"it can't be continued: {said}\n\nbefore: {printed}"
        wrong = _differences(whole, out, exact=fault != "out_of_memory")
        shutil.rmtree(out)
        return what + (f": {errors[0]}" if errors else ""), wrong

    def _unharmed(self, name):
        if name not in self.whole:
            out = self.folder / name.replace(" ", "-")
            pids = self.folder / f"pids of {name}"
            pids.mkdir()
            process = self._start(name, out, pids, None, 0)
            _wait_for_both(pids, process)
            began = time.monotonic()
            printed = "".join(process.communicate(timeout=3 * DEADLINE_S))
            assert process.returncode == 0, printed
            self.whole[name] = out, time.monotonic() - began
        return self.whole[name]

    def _start(self, name, out, pids, trouble, rank, *, resume=False):
        asked = [word.format_map(self.known) for word in COMMANDS[name]]
        argv = [*asked, "--model", str(self.folder / "model"), "--source", str(self.source), "--out", str(out)]
        argv += ["--save-every", "1", "--stall-rank-s", str(STALL_S), "--stall-train-s", str(STALL_S)]
        if resume:
            argv = [asked[0], "--resume", "--trust", "--out", str(out)]
        job = {"argv": argv, "trouble": trouble, "ranks": [rank], **({} if pids is None else {"pids": str(pids)})}
        return self._forks.start_ranks(self.folder, [job])


def _wait_for_both(pids, process):
    while len(list(pids.iterdir())) < 2 and process.poll() is None:
        time.sleep(0.02)


def _differences(one, other, *, exact):
    """What the two runs have done otherwise; None if nothing."""
    for path in sorted(one.glob("rollouts/*")):
        left, right = ([row for _, row in rows.rows(run / "rollouts" / path.name)] for run in (one, other))
        if left != right:
            return f"{path.name} has other completions"
    left, right = (load_file(run / "checkpoints" / "step-000003" / "model.safetensors") for run in (one, other))
    for name, value in left.items():
        if not (torch.equal if exact else torch.allclose)(value, right[name]):
            return f"{name} differs by up to {float((value - right[name]).abs().max()):.1e}"
    return None
