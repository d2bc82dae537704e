"""A run directory as somebody may give it to you, and a module that shows that it was imported."""

import json

import yaml

EVIL = """
from pathlib import Path

Path(__file__).with_name("marker").touch()

def verify(problem, completion, **options):
    return 1.0

def check(given, expected, got):
    return True

def keep(candidate, **options):
    return None
"""
HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp.\u200b\ud800[red]x[/red]\x00\r"


def row(**more):
    return {
        "step": 1,
        "problem_id": "p1",
        "sample": 0,
        "question": "2+2?",
        "gold": "4",
        "language": None,
        "tests": None,
        "meta": {},
        "prompt": "2+2?",
        "completion": "<think>t</think><answer>4</answer>",
        "reward": 1.0,
        "correct": True,
        "verdicts": [],
        "finish_reason": "stop",
        "policy_version": 1,
        "prompt_ids": [1],
        "token_ids": [1, 2],
        "logprobs": [-0.1, -0.1],
        **more,
    }


def run_dir(path, *, about=None, rows=None, **config):
    """A run directory as somebody may give it to you."""
    (path / "rollouts").mkdir(parents=True)
    lines = [json.dumps(one) for one in rows or [row()]]
    (path / "rollouts" / "step-000001.jsonl").write_text("\n".join(lines) + "\n")
    (path / "reward.json").write_text(json.dumps(about or {"formula": "math", "options": {}, "versions": {}}))
    base = {"device": "cpu", "threads": 1, "model": "nano", "source": "bundled", "engine": "transformers"}
    (path / "config.yaml").write_text(yaml.safe_dump({**base, **config}))
    return path
