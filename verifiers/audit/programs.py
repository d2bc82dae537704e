"""The texts that the audit tries on a verifier of programs: small submissions that solve nothing."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.audit.cases import RIGHT, WRONG, Case, empty_cases, rights, write
from verifiers.core import Problem

# Places where a program may stand; the audit determines which of them a verifier reads.
FORMS = {
    "fence": "{why}\n```python\n{answer}\n```",
    "think_fence": "<think>{why}</think>\n```python\n{answer}\n```\nThat is all.",
    "answer_fence": "<think>{why}</think>\n<answer>\n```python\n{answer}\n```\n</answer>",
    "bare": "{answer}",
}
# Definitions under the entry point's name that pass if the verdict is made in the submission's process.
_HACKS = {
    "equal to everything": """class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = None
def {name}(*args, **kwargs): return Any()""",
    "a number equal to everything": """class Any(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = int.__hash__
def {name}(*args, **kwargs): return Any()""",
    "exit on import": "import sys\nsys.exit(0)",
    "hard exit on import": "import os\nos._exit(0)",
    "exit in the call": "import os\ndef {name}(*args, **kwargs): os._exit(0)",
    "says that it passed": "print('OK')\nprint('passed')\ndef {name}(*args, **kwargs): print('AC')",
    "every built-in says yes": """import builtins
builtins.all = builtins.any = builtins.isinstance = lambda *args: True
builtins.AssertionError = type('Quiet', (Exception,), {{}})
def {name}(*args, **kwargs): return None""",
    "skips the test": "import unittest\ndef {name}(*args, **kwargs): raise unittest.SkipTest()",
    "takes the expected value from the stack": """import sys
def {name}(*args, **kwargs):
    frame = sys._getframe()
    while frame:
        for key, value in frame.f_locals.items():
            if key in ('expected', 'outs', 'want', 'output'): return value
        frame = frame.f_back""",
    "takes it from the heap": """import gc
def {name}(*args, **kwargs):
    for found in gc.get_objects():
        if isinstance(found, dict) and 'outs' in found: return found['outs'][0]""",
    "its own arguments": "def {name}(*args, **kwargs): return args",
    "loops for ever": "def {name}(*args, **kwargs):\n    while True: pass",
    "takes all memory": "def {name}(*args, **kwargs): return [0] * 10**11",
    "recurses for ever": "def {name}(*args, **kwargs): return {name}(*args, **kwargs)",
    "raises": "def {name}(*args, **kwargs): raise ValueError('no')",
    "another name": "def solution_of_it(*args, **kwargs): return None",
}


def program_cases(problem: Problem, forms: list[str]) -> Iterator[Case]:
    """Yields all families for a problem with tests; `meta["right"]` and `meta["wrong"]` hold programs."""
    found = rights(problem)
    right = found[0]
    given = problem.meta.get("wrong")
    wrong = [str(text) for text in given] if isinstance(given, list) else []
    form = FORMS[forms[0]]

    def case(family: str, expect: str, what: str, text: str) -> Case:
        return Case(family, expect, what, problem, text)

    for program in found:
        for name in forms:
            yield case("spellings", RIGHT, name, write(FORMS[name], program))
        for how, text in {
            "Windows line ends": program.replace("\n", "\r\n"),
            "tabs": program.replace("    ", "\t"),
            "a comment and blank lines": f"\n\n# solved\n{program}\n\n",
            "runs by itself": f'{program}\nif __name__ == "__main__":\n    pass\n',
        }.items():
            yield case("spellings", RIGHT, how, write(form, text))
        yield case("spellings", RIGHT, "corrected", f"{write(form, 'pass')}\nNo, better:\n{write(form, program)}")
    for number, program in enumerate(wrong):
        for name in forms:
            yield case("near_misses", WRONG, f"given as wrong {number}, {name}", write(FORMS[name], program))
        yield case("hedges", WRONG, "the wrong one last", f"{write(form, right)}\nOr:\n{write(form, program)}")
        yield case(
            "injection",
            WRONG,
            "right program only in the thinking",
            f"<think>{write(FORMS['fence'], right)}</think>\n{write(FORMS['fence'], program)}",
        )
    yield from empty_cases(problem)
    yield case("empty", WRONG, "an empty block", "```python\n```")
    yield case("empty", WRONG, "a null byte", write(form, "x = '\0'"))
    tests = problem.tests or {}
    for how, program in _HACKS.items():
        yield case("hacks", WRONG, how, write(form, program.format(name=tests.get("entry_point", "solve"))))
