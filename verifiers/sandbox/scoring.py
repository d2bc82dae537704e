"""Code inside a scorer's fork-server: loads a verifier or scoring function once; each run calls it on one answer.

The answer is hostile, the scorer is not. Some scorers evaluate their input, so code in an answer would run beside the
call that makes the score and could forge it. `_Guard` ends the run before such code begins.
"""

from __future__ import annotations

import builtins
import dis
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from verifiers.sandbox import wire

_TEXT = 500  # characters of an exception or a detail that are sent
# Names that an expression may call if it only computes a value. All other built-in names reach beyond the expression.
_HARMLESS = frozenset(
    "abs bool bytes complex dict divmod enumerate float frozenset int len list max min pow range reversed round set "
    "sorted str sum tuple zip True False None Ellipsis NotImplemented".split()
)
_OPERATIONS = frozenset({
    "LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "STORE_NAME", "STORE_GLOBAL", "DELETE_NAME",
    "DELETE_GLOBAL", "IMPORT_NAME", "IMPORT_FROM", "IMPORT_STAR", "MAKE_FUNCTION", "LOAD_BUILD_CLASS", "STORE_SUBSCR",
    "DELETE_SUBSCR",
})  # fmt: skip
_NAMES = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"})
_STARTS_CODE = frozenset({
    "ctypes.dlopen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pickle.find_class",
    "pty.spawn", "subprocess.Popen",
})  # fmt: skip
_SYMPY_NAMES = compile("from sympy import *", "<string>", "exec")  # SymPy's parser fills its namespace in this way

_MAKER = "/sympy/polys/monomials.py"  # generates functions of its own, from numbers

_scorer: _Scorer | None = None


class _Scorer:
    def __init__(self, call: Callable[..., Any], takes: str) -> None:
        self.call, self.takes = call, takes


def prepare(target: str, options: dict[str, Any]) -> None:
    """Imports the scorer; called once, in the fork-server."""
    global _scorer
    _make_own_package_whole()
    module, _, attribute = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in attribute.split("."):
        found = getattr(found, name)
    if inspect.isclass(found):
        found = found(**options)
    elif options:
        import functools

        found = functools.partial(found, **options)
    if not callable(found):
        raise TypeError(f"{target} is {type(found).__name__}, not a function or class")
    _scorer = _Scorer(found, _signature(found))


def _make_own_package_whole() -> None:
    """Makes the real `verifiers` importable: the fork-server holds only an empty module of that name."""
    package = sys.modules["verifiers"]
    paths = [path for path in sys.path if os.path.isfile(f"{path}/verifiers/__init__.py")]
    if paths and not package.__path__:
        folder = f"{paths[0]}/verifiers"
        package.__path__ = [folder]
        sys.modules["verifiers.sandbox"].__path__ = [f"{folder}/sandbox"]
        with open(f"{folder}/__init__.py", encoding="utf-8") as file:
            exec(compile(file.read(), file.name, "exec"), package.__dict__)


def _signature(scorer: Callable[..., Any]) -> str:
    """Returns "problem", or the name of the second parameter of a scoring function f(answer, ...)."""
    try:
        parameters = [p.name for p in inspect.signature(scorer).parameters.values() if p.kind in (0, 1)]
    except (TypeError, ValueError):
        return "problem"
    if parameters[:1] != ["answer"]:
        return "problem"
    return "entry" if parameters[1:2] == ["entry"] else "gold"


def main(channel: Any, job: Any) -> None:
    """Computes one score. Sends ["scored", number, whether the answer alone was scored], ["verdict", ...],
    ["raised", kind, text] or ["code", what]."""
    assert _scorer is not None
    row = wire.decode(job["row"], wire.no_reference)
    if not job["evaluates"]:
        sys.addaudithook(_Guard(channel))
    try:
        found = _called(_scorer, row)
    except BaseException as error:  # by the scorer, or provoked by the answer: the other side determines which
        try:
            text = str(error)[:_TEXT]
        except Exception:
            text = ""
        kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("verifiers")]
        channel.send(["raised", (kinds or [type(error).__name__])[0], text])
        os._exit(0)
    channel.send(found)
    os._exit(0)


def _called(scorer: _Scorer, row: dict[str, Any]) -> list[Any]:
    if scorer.takes == "problem":
        from verifiers.core import Completion, Problem

        found = scorer.call(Problem(**row["problem"]), Completion(**row["completion"]))
    else:
        found = scorer.call(row["answer"], row[scorer.takes])
    if found is None or isinstance(found, bool | int | float):
        return ["scored", wire.encode(found, _no_number), scorer.takes != "problem"]
    if hasattr(found, "score") and hasattr(found, "reason"):
        score = None if found.score is None else float(found.score)
        texts = [str(found.reason), str(found.detail)[:_TEXT], None if found.answer is None else str(found.answer)]
        span = None if found.span is None else [int(place) for place in found.span]
        return ["verdict", wire.encode([score, *texts, span, [str(flag) for flag in found.flags]], _no_number)]
    if hasattr(found, "item"):  # from NumPy, torch
        return ["scored", wire.encode(float(found), _no_number), scorer.takes != "problem"]
    raise TypeError(f"it returned {type(found).__name__}; a score is a number, or a Verdict")


def _no_number(value: Any) -> Any:
    raise TypeError(f"it returned {type(value).__name__}")


class _Guard:
    """An audit hook that ends the run before code from an answer begins.

    Text that the scorer evaluates may be an expression of values, names and calls, like an answer in mathematics. An
    attribute, an import, a function, an assignment, or a built-in name other than the harmless ones is refused.
    """

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._library = os.path.dirname(os.__file__)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "exec":
            found = arguments[0]
            if isinstance(found, CodeType) and found.co_filename.startswith("<"):
                self._look_at(found)
        elif event in _STARTS_CODE:
            self._end(event)

    def _look_at(self, code: CodeType) -> None:
        caller = sys._getframe(2).f_code.co_filename
        if caller.startswith(self._library) and not caller.startswith(f"{self._library}/site-"):
            return  # the standard library generates code of its own (namedtuple, dataclass)
        if caller.endswith(_MAKER) or (code.co_code, code.co_names) == (_SYMPY_NAMES.co_code, _SYMPY_NAMES.co_names):
            return
        for step in dis.get_instructions(code):
            name = str(step.argval)
            if step.opname in _OPERATIONS:
                self._end(f"{step.opname} {name[:60]}")
            if step.opname in _NAMES and (name.startswith("_") or (hasattr(builtins, name) and name not in _HARMLESS)):
                self._end(name[:60])

    def _end(self, what: str) -> None:
        self._channel.send(["code", what])
        os._exit(0)
