"""The architecture: floors, public names, and what importing loads."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import verifiers

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {"torch", "transformers", "vllm", "datasets", "tokenizers", "numpy", "pandas"}
# A module imports from its own floor's folder or from lower floors only; the first match counts.
FLOORS = [
    ("verifiers", 0),
    ("r1lite.errors", 1),
    ("r1lite.bundled", 1),
    ("r1lite.hub", 1),
    ("r1lite.run.files", 1.5),
    ("r1lite.run.environment", 2),
    ("r1lite.run.records", 2.5),
    ("r1lite.rl.schedule", 1),
    ("r1lite.run.signals", 2),
    ("r1lite.config", 2),
    ("r1lite.prompts", 2),
    ("r1lite.trainer.trajectory", 2),
    ("r1lite.word_problems", 2),
    ("r1lite.trainer.additions", 2),
    ("r1lite.rl", 2),
    ("r1lite.evaluation.intervals", 3),
    ("r1lite.evaluation.voting", 3),
    ("r1lite.tasks", 3),
    ("r1lite.nano", 3),
    ("r1lite.model.attention", 3),
    ("r1lite.model.head", 3),
    ("r1lite.model.lora", 3),
    ("r1lite.model.out_of_memory", 3),
    ("r1lite.model.prefix", 3),
    ("r1lite.model.batch", 3),
    ("r1lite.model.packing", 3.5),
    ("r1lite.run.run_dir", 3),
    ("r1lite.run.checkpoint", 4),
    ("r1lite.run.resume", 4.5),
    ("r1lite.run.watchdog", 3),
    ("r1lite.doctor", 4),
    ("r1lite.run.bad_batches", 3),
    ("r1lite.preference.pairs", 2),
    ("r1lite.preference.reward_model", 4),
    ("r1lite.preference.training", 5),
    ("r1lite.run.console", 2),
    ("r1lite.run.display", 3),
    ("r1lite.run.ending", 4),
    ("r1lite.choice", 5),
    ("r1lite.trainer.experience", 4),
    ("r1lite.trainer.objective", 4),
    ("r1lite.trainer.credit", 4.5),
    ("r1lite.trainer.totals", 3),
    ("r1lite.rollout", 4),
    ("r1lite.model.policy", 4),
    ("r1lite.trainer.canary", 4.4),
    ("r1lite.trainer.trust", 4.5),
    ("r1lite.machine", 4.5),
    ("r1lite.solve", 4),
    ("r1lite.evaluation.measure", 5),
    ("r1lite.evaluation.comparison", 6),
    ("r1lite.evaluation.tables", 3),
    ("r1lite.trainer.metrics", 3),
    ("r1lite.model.memory", 5),
    ("r1lite.trainer.learner", 5),
    ("r1lite.trainer.critic", 5),
    ("r1lite.trainer.assembly", 6),
    ("r1lite.curation", 5),
    ("r1lite.setup", 5),
    ("r1lite.trainer.sampler", 5.5),
    ("r1lite.trainer.loop", 6),
    ("r1lite.sft", 6),
    ("r1lite.supervised", 7),
    ("r1lite.distill", 7.5),
    ("r1lite.trainer.training", 7),
    ("r1lite.curating", 6),
    ("r1lite.sampling", 7),
    ("r1lite.stages", 8),
    ("r1lite.pipeline", 9),
    ("r1lite.cli", 10),
    ("r1lite.__main__", 11),
    ("r1lite", 1),
]


def floor(module):
    for prefix, number in FLOORS:
        if module == prefix or module.startswith(prefix.rstrip(".") + "."):
            return prefix, number
    raise AssertionError(f"{module} has no floor: give it one in tests/test_house.py")


def modules():
    for package in ("verifiers", "r1lite"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


@pytest.mark.parametrize(("module", "path"), list(modules()), ids=lambda value: value if isinstance(value, str) else "")
def test_imports_go_down(module, path):
    own_place, own_floor = floor(module)
    for imported in imports(path):
        top = imported.partition(".")[0]
        if module.startswith("verifiers"):
            assert top not in {*HEAVY, "r1lite"}, f"{module} imports {imported}"
        if top in ("r1lite", "verifiers") and imported != "r1lite":
            place, number = floor(imported)
            assert place == own_place or number < own_floor, f"floor {own_floor} imports {imported}, floor {number}"


def loaded_by(code):
    script = f"import sys; {code}; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    return done.stdout.splitlines()[-1]


def test_verifiers_load_neither_torch_nor_sympy():
    assert loaded_by("import verifiers; verifiers.Reward('math + 0.1*format')") == "[]"
    script = "import sys, verifiers; print('sympy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("argv", [["--help"], ["grpo", "--help"], ["grpo", "--group-size", "1"], ["grp"], ["tasks"]])
def test_help_and_mistakes_load_no_torch(argv):
    code = (
        "import r1lite.cli\n"
        f"try: r1lite.cli.main({argv!r})\n"
        "except SystemExit: pass\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", "import sys\n" + code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_public_names():
    values = vars(verifiers).items()
    defined = {name for name, value in values if getattr(value, "__module__", "").startswith("verifiers")}
    assert set(verifiers.__all__) - {"DISTRIBUTION", "VERIFIERS"} == defined
    assert verifiers.DISTRIBUTION == "r1lite"


def test_another_verifiers_is_noticed(tmp_path):
    """PyPI has a distribution with this import name."""
    other = tmp_path / "verifiers"
    other.mkdir()
    (other / "__init__.py").write_text("")
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import r1lite"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert "r1lite needs its own 'verifiers'" in done.stderr


def test_folders_that_must_not_be_packages():
    assert not (ROOT / "datasets" / "__init__.py").exists()
    assert not list((ROOT / "datasets").rglob("*.py"))
    assert not (ROOT / "tests" / "__init__.py").exists()


def test_the_lock_file():
    """Every pinned package has hashes, no index is named, and every dependency but torch is in it."""
    text = (ROOT / ".ci" / "requirements-dev.txt").read_text(encoding="utf-8")
    assert "://" not in text
    entries = re.findall(r"^([a-z0-9][a-z0-9._-]*)==(.*?)(?=^[a-z0-9]|\Z)", text, re.MULTILINE | re.DOTALL)
    pinned = {name for name, _ in entries}
    assert all("--hash=sha256:" in entry for _, entry in entries)
    assert not {name for name in pinned if name == "torch" or name.startswith(("nvidia", "cuda", "triton"))}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(one for extra in ("curate", "train", "lora", "serve", "dev") for one in extras[extra]),
    ]
    names = {re.split(r"[<>=!\[]", one)[0].lower() for one in wanted} - {"torch", "r1lite"}
    assert names <= pinned, names - pinned
