"""Run directories as a run leaves them, made without a model."""

import json
import random

from r1lite.run.files import write_rows

HOSTILE = [
    "</script><script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "<svg onload=document.title='owned'>",
    "\u202egnp.exe\u202c \u2066hidden\u2069 \u200bzero\ufeffwidth",
    "\x1b[2J\x1b[31mred\x07 \x9b1mC1 \x00nul",
    "invisible \U000e0041\U000e0042 and empty \u3164\u115f",
    "half a character \ud83d and a whole one \U0001f600",
    "<think>a &amp; b</think><answer>${document.title='owned'}</answer>",
]


def metrics_of(step, steps, rng, **more):
    share = 1 - (1 - step / steps) ** 2
    right = min(1.0, max(0.0, 0.25 + 0.65 * share + rng.gauss(0, 0.03)))
    count = round(128 * right)
    return {
        "step": step,
        "reward": right + 0.1,
        "accuracy": right,
        "format_rate": 0.8 + 0.2 * share,
        "completion_tokens": 18 + 12 * share,
        "completion_tokens_max": 46,
        "truncated": 0.02 * (1 - share),
        "entropy": 0.3 * (1 - share) + 0.01,
        "groups_without_signal": 0.05 + 0.6 * share,
        "unscored": 0.0,
        "tokens": 3900,
        "parts": {"math": right, "format": 0.8 + 0.2 * share},
        "reasons": {"math": {"equal": count, "different": 128 - count}},
        "lr": 5e-4,
        "loss": rng.gauss(0, 0.01),
        "grad_norm": 0.5 + 0.1 * rng.random(),
        "generate_s": 1.0,
        "train_s": 0.7,
        "step_s": 1.8,
        **more,
    }


def row_of(step, problem, sample, text, *, right, gold="42", **more):
    place = text.rfind("<answer>") + len("<answer>")
    span = [place, text.find("</answer>", place)] if "<answer>" in text and "</answer>" in text else None
    return {
        "step": step,
        "problem_id": problem,
        "sample": sample,
        "question": f"What is the answer to {problem}?",
        "gold": gold,
        "language": None,
        "tests": None,
        "meta": {"difficulty": "3"},
        "prompt": f"What is the answer to {problem}?\n",
        "completion": text,
        "reward": 1.1 if right else 0.1,
        "advantage": 0.7 if right else -0.7,
        "correct": right,
        "well_formed": True,
        "verdicts": [
            {
                "verifier": "math",
                "score": float(right),
                "reason": "equal" if right else "different",
                "detail": "",
                "answer": "42" if right else "7",
                "span": span,
                "flags": [],
                "version": "3",
            }
        ],
        "error": "",
        "finish_reason": "stop",
        "policy_version": step - 1,
        "prompt_ids": [1, 2],
        "token_ids": [],
        "logprobs": [],
        **more,
    }


def write_rollouts(path, step, rows):
    (path / "rollouts").mkdir(exist_ok=True)
    write_rows(path / "rollouts" / f"step-{step:06d}.jsonl.gz", rows)


def made_run(path, steps=20, seed=0, rollouts=True, hostile=(), finished=True, config=None):
    """A run of grpo: its metrics, three evaluations and the completions of every step."""
    rng = random.Random(f"report-{seed}")
    path.mkdir(parents=True, exist_ok=True)
    settings = {"task": "gsm8k", "model": "nano", "group_size": 4, "seed": seed, "device": "cpu", **(config or {})}
    (path / "config.yaml").write_text(json.dumps(settings))
    (path / "environment.json").write_text(
        json.dumps({"schema": 1, "stage": "grpo", "argv": ["/bin/r1lite", "grpo", "--out", "it's here"]})
    )
    (path / "reward.json").write_text(json.dumps({"formula": "math + 0.1*format"}))
    lines = [metrics_of(step, steps, rng) for step in range(1, steps + 1)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for step in range(1, steps + 1) if rollouts else ():
        rows = []
        for number in range(4):
            # Problem "p0" is in every step, the others in one.
            problem = "p0" if number == 0 else f"p{step}-{number}"
            for sample in range(4):
                right = rng.random() < lines[step - 1]["accuracy"]
                text = f"<think>6 * 7 is it</think><answer>{42 if right else 7}</answer>"
                rows.append(row_of(step, problem, sample, text, right=right))
        rows += [
            row_of(step, "hostile", place, text, right=bool(place % 2), question=text, gold=text, error=text)
            for place, text in enumerate(hostile)
        ]
        write_rollouts(path, step, rows)
    evaluation = {
        "pass_at_1": 0.25,
        "pass_at_1_interval": [0.2, 0.31],
        "k": 8,
        "pass_at_k": 0.8,
        "pass_at_k_interval": [0.7, 0.9],
        "format_rate": 1.0,
        "mean_tokens": 16.0,
        "problems": 200,
        "examples": {
            "question": "What is 6 * 7?",
            "gold": "42",
            "completions": [
                {"text": "<think>I guess</think><answer>7</answer>", "correct": False, "sampling": "greedy"}
            ],
        },
    }
    after = {**evaluation, "pass_at_1": 0.9, "pass_at_1_interval": [0.85, 0.93]}
    (path / "eval_before.json").write_text(json.dumps(evaluation))
    (path / "evaluations.jsonl").write_text(json.dumps({"step": steps // 2, **after, "pass_at_1": 0.7}) + "\n")
    if finished:
        (path / "eval_after.json").write_text(json.dumps(after))
        (path / "summary.json").write_text(
            json.dumps({"steps": steps, "wall_s": 12.5, "tokens_generated": 3900 * steps})
        )
    return path


def made_pipeline(path):
    """What `r1lite r1` leaves: two runs of grpo, an evaluation that has begun, and the comparison."""
    stages = path / "stages"
    stages.mkdir(parents=True)
    for number, (name, model) in enumerate((("zero", "nano"), ("again", f"{stages}/zero/checkpoints/step-000010"))):
        made_run(stages / name, steps=10, seed=number)
        (stages / f"{name}.yaml").write_text(json.dumps({"model": model, "task": "gsm8k"}))
        record = {
            "stage": "grpo",
            "made": {},
            "outcome": "greedy 25.0% -> 90.0%, 10 steps",
            "cpu_s": 12.5,
            "wall_s": 20,
        }
        (stages / f"{name}.json").write_text(json.dumps(record))
    (stages / "eval-Zero.yaml").write_text(json.dumps({"model": f"{stages}/zero/checkpoints/step-000010"}))
    row = {"accuracy": [0.8, 0.75, 0.85], "greedy": [0.9, 0.85, 0.93], "parameters": 1_000_000, "cpu_s": 12.5}
    seen = {"seen": True, "text": "seen: accuracy of Zero 80.0%, of base 25.0%"}
    comparison = {"rows": {"<b>Zero": row}, "observations": {"RL lifts the base": seen}}
    (path / "comparison.json").write_text(json.dumps(comparison))
    return path
