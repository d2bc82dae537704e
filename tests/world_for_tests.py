"""One rank of several: runs commands one after the other, in float64, and says how each ended.

    torchrun --nproc-per-node N world_for_tests.py JOBS.json

`Forks.start_ranks` does the same without torchrun.

JOBS: a list of {"argv": [...], "trouble": ..., "ranks": who has it, "pids": a folder}. `trouble` names a function here.
"""

import errno
import functools
import importlib.metadata
import json
import os
import signal
import sys
import time
from pathlib import Path

import reward_for_tests
import torch
from torch.distributed.checkpoint import HuggingFaceStorageWriter
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm
from world_cases import over_mark

import r1lite.grpo.assembly as assembly
from r1lite.cli import main
from r1lite.grpo.learner import PolicyLearner
from r1lite.model.policy import Policy
from r1lite.preference import training
from r1lite.run.run_dir import RunDir
from r1lite.stages import distill, dpo, reward_model, sft
from r1lite.training import setup
from r1lite.training.loading import load_model


def in_double(config):
    """The model in float64, its norms too: the library computes them in float32, whatever the model is in."""
    Qwen2RMSNorm.forward = norm
    model, tokenizer = load_model(config)
    return model.double(), tokenizer


def compute_in_double():
    """Whatever is trained or asked here."""
    assembly.run_training = functools.partial(RUN_TRAINING, load=in_double)
    sft.run_training = dpo.run_training = assembly.run_training
    distill.load_student = in_double
    distill.load_teacher = lambda config: in_double(config.model_copy(update={"model": config.teacher}))
    reward_model.load_classifier = training.load_classifier = classifier_in_double


def classifier_in_double(*arguments, **options):
    Qwen2RMSNorm.forward = norm
    model, tokenizer = LOAD_CLASSIFIER(*arguments, **options)
    return model.double(), tokenizer


def norm(self, states):
    return self.weight * states * torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


# --- trouble ---------------------------------------------------------------------------------------------------------


def in_step_2(do):
    """Has `do` done where the second step begins to learn."""
    learn = PolicyLearner.learn

    def learn_or_not(self, groups, step):
        if step == 1:
            do()
        return learn(self, groups, step)

    PolicyLearner.learn = learn_or_not


def raises():
    def boom():
        raise ValueError("boom")

    in_step_2(boom)


def killed():
    in_step_2(lambda: os.kill(os.getpid(), signal.SIGKILL))


def killed_while_loading():
    """The main rank, as soon as it has written the run's files; the other one is still loading."""

    def end_or_wait(*_, **__):
        if os.environ["RANK"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1e6)

    setup.show_settings = end_or_wait


def killed_while_deaf():
    """The same, but the other one is in a library's call: no signal reaches its main thread."""
    killed_while_loading()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def stopped():
    in_step_2(lambda: os.kill(os.getpid(), signal.SIGSTOP))


def other_software():
    """Another version of torch is installed here."""
    version = importlib.metadata.version
    importlib.metadata.version = lambda name: "1.0" if name == "torch" else version(name)


def slow():
    """Long enough for a signal to come in between."""
    in_step_2(lambda: time.sleep(3))


def stuck():
    in_step_2(lambda: time.sleep(1e6))


def out_of_memory():
    """Once, in the first pass that learns."""
    forward, told = Policy.forward, []

    def forward_or_not(self, batch, **options):
        if torch.is_grad_enabled() and not told:
            told.append(True)
            raise torch.OutOfMemoryError("no more")
        return forward(self, batch, **options)

    Policy.forward = forward_or_not


def sleeping_verifier():
    """In the scoring of the second step."""
    learn, judge, learnt = PolicyLearner.learn, reward_for_tests.digits, []

    def learn_and_tell(self, groups, step):
        learnt.append(step)
        return learn(self, groups, step)

    @functools.wraps(judge)  # whose version it has, as ranks with other verifiers are refused
    def digits(problem, completion):
        if learnt:
            time.sleep(1e6)
        return judge(problem, completion)

    PolicyLearner.learn, reward_for_tests.digits = learn_and_tell, digits


def full_disk():
    def append(self, record):
        if record["step"] == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path / "metrics.jsonl"))
        append_metrics(self, record)

    append_metrics, RunDir.append_metrics = RunDir.append_metrics, append


def in_second_part(do):
    """Has `do` done where the second checkpoint's parts are written."""
    write, times = HuggingFaceStorageWriter.write_data, []

    def write_or_not(self, plan, planner):
        times.append(plan)
        if len(times) == 2:
            do()
        return write(self, plan, planner)

    HuggingFaceStorageWriter.write_data = write_or_not


def full_disk_of_parts():
    def full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    in_second_part(full)


def killed_in_parts():
    in_second_part(lambda: os.kill(os.getpid(), signal.SIGKILL))


def run(job):
    if job.get("double", True):
        compute_in_double()
    rank = os.environ["RANK"]
    if job.get("trouble") and int(rank) in job["ranks"]:
        globals()[job["trouble"]]()
    if "pids" in job:
        (Path(job["pids"]) / rank).write_text(str(os.getpid()))
    try:
        return main(job["argv"])
    except SystemExit as stopped:
        return stopped.code
    finally:
        if "pids" in job:
            over_mark(Path(job["pids"]), rank).write_text(str(time.process_time()))


RUN_TRAINING, LOAD_CLASSIFIER = assembly.run_training, reward_model.load_classifier


def run_all(path):
    torch.set_num_threads(1)
    for job in json.loads(Path(path).read_text()):
        code = run(job)
        if code:
            sys.exit(code)


def launch(path, size, work):
    """The jobs on so many ranks, by torchrun's own agent: forks, which import nothing again.

    Args:
        work: what a rank does with the path: `run_all`, or another module's.
    """
    agent = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "max_restarts": 0, "start_method": "fork"}
    try:
        elastic_launch(LaunchConfig(1, 1, size, **agent), work)(path)
    except ChildFailedError:
        sys.exit(1)


if __name__ == "__main__":
    run_all(sys.argv[1])
