"""The README's blocks run (with fewer steps and problems), its links lead somewhere, and it stays short."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORKED = ROOT / "tests" / "forked_command_for_tests.py"
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = r"## ([^\n]+)\n(?:(?!\n## ).)*?<!-- run by tests/project/test_readme.py -->\n```bash\n(.*?)```"
BLOCKS = re.findall(BLOCK, TEXT, re.DOTALL)


def test_blocks_are_found():
    assert [title for title, _ in BLOCKS] == ["Your own data", "Your own reward", "Your own task"]


@pytest.mark.slow
@pytest.mark.parametrize("block", [block for _, block in BLOCKS], ids=[title for title, _ in BLOCKS])
def test_block_runs(block, tmp_path, forks):
    assert "--steps 20" in block
    changed = block.replace(" --eval-problems 100", "")
    changed = changed.replace("--steps 20", "--steps 2 --eval-sample-problems 2 --eval-problems 10")
    # The commands of this environment, whatever is activated; for all but one block, `r1lite` is a fork.
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    (tmp_path / "bin").mkdir()
    if block != BLOCKS[0][1]:
        command = tmp_path / "bin" / "r1lite"
        command.write_text(f'#!/bin/bash\nexec "{sys.executable}" -S "{FORKED}" "$@"\n')
        command.chmod(0o755)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", changed],
        cwd=tmp_path,
        env={**os.environ, **forks.environment, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "summary.json").is_file()


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", TEXT)
    assert len(targets) > 8
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_is_short():
    assert len(TEXT.encode()) <= 8000


@pytest.mark.slow
def test_the_page_of_the_algorithm_is_short_and_learns(tmp_path, forks):
    script = ROOT / "recipes" / "grpo_from_scratch.py"
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 200
    code, said, errors = forks.run(["--steps", "4", "--test-problems", "40"], script=script, cwd=tmp_path)
    assert code == 0, errors
    before, after = (float(x) for x in re.findall(r"(?:before|after): +([\d.]+)%", said))
    assert before < 45
    assert after > before + 25


@pytest.mark.slow
def test_the_page_of_the_algorithm_takes_other_models(tmp_path):
    """Most models have several end tokens, and many have no token for padding."""
    torch = pytest.importorskip("torch")
    folder = shutil.copytree(ROOT / "r1lite" / "nano" / "model", tmp_path / "model")
    for name, changes in (("generation_config", {"eos_token_id": [0, 5]}), ("tokenizer_config", {"pad_token": None})):
        values = json.loads((folder / f"{name}.json").read_text())
        (folder / f"{name}.json").write_text(json.dumps({**values, **changes}))
    page = runpy.run_path(str(ROOT / "recipes" / "grpo_from_scratch.py"))
    page["Model"].__init__.__globals__["MODEL"] = folder
    batch = page["Model"]().sample(page["load_problems"]("test")[:2], 2, temperature=1.0)
    assert batch.mask.dtype == torch.bool
    assert batch.mask[:, 0].all()
