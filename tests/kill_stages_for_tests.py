"""The commands that are ended at each of their calls, as small as they can be."""

import json

import yaml
from conftest import make_tiny_model, make_tiny_tokenizer

_PRETRAIN = {
    **{"hidden_size": 16, "intermediate_size": 16, "layers": 1, "heads": 1, "kv_heads": 1, "vocab_size": 300},
    **{"tokenizer_problems": 20, "chain_steps": 2, "habit_steps": 2, "batch_size": 2, "warmup_steps": 1},
    **{"context": 256, "save_every": 1},
}
STAGES = (
    *("grpo", "ppo", "sft", "distill", "distill-on-policy", "reward-model", "reject", "reject-samples", "cold-start"),
    *("eval", "eval-against", "pretrain", "r1"),
)


def jobs(place):
    """By name: {"out", "argv"}."""
    tiny, sums = place / "tiny", place / "sums"
    if not sums.exists():
        make_tiny_model(initializer_range=0.02).save_pretrained(tiny)
        make_tiny_tokenizer().save_pretrained(tiny)
        sums.mkdir()
        for split, start, count in (("train", 0, 12), ("test", 40, 4)):
            rows = [{"question": f"{i}+1?", "answer": f"so\n#### {i + 1}"} for i in range(start, start + count)]
            _write(sums / f"{split}.jsonl", rows)
        said = [
            {"id": f"{i}", "question": f"{i}+1?", "answer": f"{i + 1}", "completion": f"so\n#### {i + k}", "sample": k}
            for i in range(8)
            for k in (1, 2)
        ]
        _write(place / "said.jsonl", said)
        _write(place / "pairs.jsonl", [{"prompt": f"{i}?", "chosen": f"{i}", "rejected": "no"} for i in range(12)])
        _write(place / "set.jsonl", [{"prompt": f"{i}+1?", "completion": f"so {i + 1}"} for i in range(6)])
    common = {
        **{"model": str(tiny), "source": str(sums), "template": "short", "max_completion_tokens": 5, "threads": 1},
        **{"eval_problems": 2, "eval_sample_problems": 1, "eval_samples": 2},
    }
    steps = {"steps": 2, "save_every": 1, "lr": 3e-3}
    rl = {**common, **steps, "prompts_per_step": 1, "eval_every": 1, "score_workers": 0}
    rl["reward"] = "reward_for_tests:digits"
    rows = {**common, **steps, "rows_per_step": 2}
    sets = {"workers": 1, "difficulty_window": False, "decontaminate": ["none"], "filters": ["correct"]}
    stored = {"rollouts": str(place / "said.jsonl"), "correct": "math", **sets}
    whatever = {"correct": "reward_for_tests:any_text", "filters": ["correct"], "difficulty_window": False}
    settings = {
        "grpo": {**rl, "group_size": 2},
        "ppo": rl,
        "sft": {**rows, "data": str(place / "set.jsonl")},
        "distill": {**rows, "teacher": str(tiny), "trajectories": whatever, "samples": 2, "max_problems": 3},
        "distill-on-policy": {**rows, "teacher": str(tiny), "method": "on-policy", "on_policy_share": 1.0},
        "reward-model": {
            **{"model": str(tiny), "source": str(place / "pairs.jsonl"), "batch_pairs": 6, "hold_out": 0.3},
            **{"template": "short", "epochs": 1, "threads": 1, "save_every": 1},
        },
        "reject": {**stored, "pairs": 1},
        "reject-samples": {**common, **sets, **whatever, "samples": 2, "max_problems": 3},
        "cold-start": {**stored, "rewrite": "rules"},
        "eval": common,
        "eval-against": {**common, "against": str(tiny)},
        "pretrain": _PRETRAIN,
        "r1": {
            "common": {key: value for key, value in common.items() if key != "model"},
            "models": {"tiny": str(tiny)},
            "stages": {
                "base": {"stage": "pretrain", "settings": _PRETRAIN},
                "tuned": {
                    "stage": "sft",
                    "inputs": {"model": "base"},
                    "settings": {**steps, "data": str(place / "set.jsonl"), "rows_per_step": 2},
                },
            },
            "compare": {"tuned": "tuned"},
        },
    }
    made = {}
    for name, values in settings.items():
        command = name.removesuffix("-on-policy").removesuffix("-samples").removesuffix("-against")
        recipe, out = place / f"{name}.yaml", str(place / name / "out")
        recipe.write_text(yaml.safe_dump(values))
        quiet = [] if command == "pretrain" else ["--quiet"]
        made[name] = {"out": out, "argv": [command, str(recipe), "--out", out, *quiet]}
    return made


def _write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
