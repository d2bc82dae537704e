"""recipes/first_hour.ipynb: its cells run in order, and it is kept without outputs."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "recipes" / "first_hour.ipynb"
NOTEBOOK = json.loads(PATH.read_text(encoding="utf-8"))
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
STEPS, FEWER = "STEPS = 12 if SMALL", "STEPS = 4 if SMALL"
# What a kernel does: the cells one after the other, in one namespace. IPython's HTML is all they need of it.
RUNNER = """
import json, resource, sys, types
try:
    import IPython.display
except ModuleNotFoundError:
    display = types.ModuleType("IPython.display")
    display.HTML = str
    sys.modules.update({"IPython": types.ModuleType("IPython"), "IPython.display": display})
names = {"__name__": "__main__"}
for number, cell in enumerate(json.load(open(sys.argv[1]))):
    exec(compile(cell, f"cell-{number}", "exec"), names)
print("REPORT", "<iframe" in str(eval("HTML(f'<iframe>{len(page)}</iframe>')", names)), len(names["page"]))
print(sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
"""


@pytest.mark.quick
def test_it_is_a_notebook_without_outputs():
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    for cell in NOTEBOOK["cells"]:
        assert cell["cell_type"] in ("code", "markdown")
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.quick
def test_another_model_is_one_line():
    (line,) = [line for cell in CODE for line in cell.splitlines() if line.startswith("MODEL =")]
    assert CODE[0] == line
    assert not any("nano" in cell for cell in CODE[2:])
    for number, cell in enumerate(CODE):
        compile(cell, f"cell-{number}", "exec")


@pytest.mark.slow
def test_its_cells_run(tmp_path, forks):
    assert sum(STEPS in cell for cell in CODE) == 1
    (tmp_path / "cells.json").write_text(json.dumps([cell.replace(STEPS, FEWER) for cell in CODE]))
    code, out, err = forks.run([tmp_path / "cells.json"], code=RUNNER, cwd=tmp_path, timeout=1800)
    assert code == 0, err + out[-3000:]
    *_, report, cpu_s = out.splitlines()
    assert float(cpu_s) < 180  # about 30 on a quiet core
    assert report.startswith("REPORT True")
    summary = json.loads((tmp_path / "runs" / "first" / "summary.json").read_text())
    assert summary["reward"].startswith("math * (0.9 + 0.1*my_rewards:brief)")
    manifest = json.loads((tmp_path / "runs" / "set" / "manifest.json").read_text())
    assert manifest["data"]["rows"] > 30
    student = json.loads((tmp_path / "runs" / "student" / "summary.json").read_text())
    assert student["eval_after"]["pass_at_1"] > student["eval_before"]["pass_at_1"]
