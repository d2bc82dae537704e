"""One vocabulary (CONTRIBUTING.md, "Words"): private words and riddles stay out of code, messages and pages."""

import ast
import io
import re
import subprocess
import tokenize
from pathlib import Path

import pytest
from tables_for_tests import each

ROOT = Path(__file__).resolve().parents[2]
FILES = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT).stdout.split()
PRODUCT = [f for f in FILES if re.fullmatch(r"(r1lite|verifiers|recipes)/.*\.(py|md|yaml)", f)]
PAGES = [f for f in FILES if f.endswith(".md") and f != "CHANGELOG.md"]

pytestmark = [pytest.mark.quick, pytest.mark.skipif(not FILES, reason="no git checkout")]

# Identifier in r1lite/ -> what it is called.
IDENTIFIERS = {
    "Part": "Minibatch",
    "Course": "TrainingLoop",
    "Judge": "Scorer",
    "judge": "scorer",
    "Material": "LoadTrainingData",
    "conduct": "run_training",
    "settle": "resolve_config",
    "gathered": "to_groups",
    "Totals": "UpdateSums",
    "Trainer": "Optimizer",
    "Found": "Extraction",
    "Place": "StepFiles",
}
# Where a name spans functions (parameters, fields, functions), it says what the thing is.
VAGUE = {"place", "places", "found"}
PHRASES = [
    r"can't be had",
    r"to be had\b",
    r"leave it away",
    r"asked for in vain",
    r"The reverse\.",
    r"made sure of",
    r"not as it was written",
    r"belongs into",
    r"stands at padding",
    r"nothing but the scores",
    r"[Tt]rouble of ours",
    r"whatever way it is",
    r"in small:",
]


@each([f for f in PRODUCT if f.startswith("r1lite/") and f.endswith(".py")])
def test_identifiers(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    if IDENTIFIERS.keys().isdisjoint(re.findall(r"\w+", text)):  # which is quick, and most files end here
        return
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    names = {token.string for token in tokens if token.type == tokenize.NAME}
    assert not {name: IDENTIFIERS[name] for name in names & set(IDENTIFIERS)}


@each([f for f in PRODUCT if f.endswith(".py")])
def test_names_that_span_functions_say_what_they_are(file):
    vague = []
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            given = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            vague += [(node.lineno, name) for name in (node.name, *given) if name in VAGUE]
        elif isinstance(node, ast.ClassDef):
            fields = [one.target.id for one in node.body if isinstance(one, ast.AnnAssign)]
            vague += [(node.lineno, name) for name in fields if name in VAGUE]
    assert vague == []


@pytest.mark.parametrize("phrase", PHRASES)
def test_phrases(phrase):
    found = [f for f in {*PRODUCT, *PAGES} if re.search(phrase, (ROOT / f).read_text(encoding="utf-8"))]
    assert not sorted(found)


def test_the_words_have_one_line_each():
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Words")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)[2:]
    words = [word.strip() for row in rows for word in row[0].split(",")]
    assert len(words) == len(set(words)) >= 20
