"""The architecture: layers, public names, and what importing loads."""

import ast
import functools
import graphlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tables_for_tests import each

import verifiers
from r1lite.cli import COMMANDS, PLAIN

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"torch", "transformers", "vllm", "datasets", "tokenizers", "numpy", "pandas"}
# A module of r1lite imports from its own folder and from folders on earlier lines, never from one beside it.
LAYERS = """
errors bundled types rl
hub
config distributed tasks
model nano
scoring
rollout run
doctor evaluation preference
report trackers
training
curation grpo
supervised pipeline
stages
launch selftest
cli
__main__
"""
LAYER = {folder: number for number, line in enumerate(LAYERS.split("\n")) for folder in line.split()}


def modules():
    for package in ("verifiers", "r1lite"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@functools.cache
def imports(path):
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.append(node.module)
    return names


@each(modules())
def test_imports_go_up_the_list_of_layers(module, path):
    package, _, rest = module.partition(".")
    folder = rest.partition(".")[0]
    for imported in imports(path):
        top, _, inside = imported.partition(".")
        if package == "verifiers":
            assert top not in {*HEAVY, "r1lite"}, f"{module} imports {imported}"
        elif top == "r1lite" and inside and folder:
            other = inside.partition(".")[0]
            assert other == folder or LAYER[other] < LAYER[folder], f"{module} imports {imported}"


def test_no_circles_between_the_parts_of_verifiers():
    """A part is a folder, or a module at the top."""
    needs = {}
    for module, path in modules():
        if module.startswith("verifiers."):
            part = module.split(".")[1]
            inside = [name.split(".")[1] for name in imports(path) if name.startswith("verifiers.")]
            needs.setdefault(part, set()).update(set(inside) - {part})
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def loaded_by(code):
    script = f"import sys; {code}; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    return done.stdout.splitlines()[-1]


def test_verifiers_load_neither_torch_nor_sympy():
    assert loaded_by("import verifiers; verifiers.Reward('math + 0.1*format')") == "[]"
    script = "import sys, verifiers; print('sympy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "False\n"


def test_help_and_mistakes_load_no_torch():
    commands = [["--help"], *([name, "--help"] for name in COMMANDS | PLAIN), ["tasks"]]
    commands += [["grpo", "--group-size", "1"], ["grp"], ["launch", "--rank", "2"], ["launch", "--ranks", "2"]]
    code = (
        "import sys, r1lite.cli\n"
        f"for argv in {commands!r}:\n"
        "    try: r1lite.cli.main(argv)\n"
        "    except SystemExit: pass\n"
        f"    loaded = {HEAVY!r} & set(sys.modules)\n"
        "    if loaded: sys.exit(f'{argv} loads {sorted(loaded)}')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


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
    assert not list((ROOT / "tests").rglob("__init__.py"))


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
        *(one for extra in ("curate", "train", "lora", "ray", "serve", "dev") for one in extras[extra]),
    ]
    names = {re.split(r"[<>=!\[]", one)[0].lower() for one in wanted} - {"torch", "r1lite"}
    assert names <= pinned, names - pinned
