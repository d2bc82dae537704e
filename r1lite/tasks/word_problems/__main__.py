"""python -m r1lite.tasks.word_problems --out datasets/gsm8k_style: rebuild the bundled problems."""

import argparse
import hashlib
from pathlib import Path

from r1lite.tasks.word_problems.generator import DEFAULT_SEED, SPLIT_SIZES, generate, write


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m r1lite.tasks.word_problems", description=__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for train.jsonl, test.jsonl and test_hard.jsonl"
    )
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help=f"seed (bundled files: {DEFAULT_SEED})")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for split, count in SPLIT_SIZES.items():
        path = arguments.out / f"{split}.jsonl"
        write(generate(split, count, arguments.seed), path, id_prefix=split)
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}  {count} problems")


if __name__ == "__main__":
    main()
