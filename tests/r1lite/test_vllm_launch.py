"""`r1lite launch` with real vLLM servers: two of them and two ranks, on CPUs."""

import json
import re
import signal
import threading
import time

import psutil
import pytest

from r1lite.rollout.client import Client, Refused
from r1lite.rollout.vllm_support import installed

pytestmark = [
    pytest.mark.skipif(installed() is None, reason="vLLM is not installed"),
    pytest.mark.filterwarnings("default"),  # vLLM's own
]


def test_two_ranks_and_two_servers(few_problems, tmp_path, forks):
    run = tmp_path / "run"
    stage = [
        *("grpo", "--model", "nano", "--source", few_problems, "--steps", "2", "--prompts-per-step", "4"),
        *("--group-size", "4", "--eval-problems", "10", "--eval-sample-problems", "2", "--no-report", "--out", run),
    ]
    launcher = forks.start(["launch", "--ranks", "2", "--engines", "2", "--cpus", "1", "--", *stage])
    answers, parts = {}, set()

    def call_without_a_token():
        """Asks each engine for what would stop it, as soon as it listens."""
        log = run / "launch" / "rank-0.log"
        while not log.exists() or "waiting up to" not in log.read_text():
            time.sleep(0.1)
        parts.update(psutil.Process(launcher.pid).children(recursive=True))
        for url in re.findall(r"http://[\d.:]+", log.read_text()):
            for path in ("pause", "collective_rpc", "v1/completions"):
                try:
                    Client(url, token="another").post(path, {}, timeout_s=60)
                    answers[url, path] = 200
                except Refused as error:
                    answers[url, path] = error.status

    caller = threading.Thread(target=call_without_a_token, daemon=True)
    caller.start()
    try:
        out, err = launcher.communicate(900)
    finally:
        launcher.send_signal(signal.SIGKILL)
    assert launcher.returncode == 0, out + err
    caller.join(60)
    assert [*answers.values()] == [401] * 6
    summary = json.loads((run / "summary.json").read_text())
    assert summary["steps"] == 2
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert all(line["mismatch_logprob_max"] < 1e-3 for line in lines)
    assert lines[0]["proven_weights"] > 0
    assert not psutil.wait_procs(parts, 30)[1]
