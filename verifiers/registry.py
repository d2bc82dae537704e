"""Lookup of verifiers by name: built-in, `module:attr`, or an entry point of group `r1lite.verifiers`."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, overload

from verifiers.core import Problem, Verifier, did_you_mean, import_failure, raised_in

# Import strings, so that looking at the names loads no verifier.
VERIFIERS: dict[str, str] = {
    "choice": "verifiers.choice:Choice",
    "code": "verifiers.sandbox.verify:CodeVerifier",
    "countdown": "verifiers.countdown:Countdown",
    "exact": "verifiers.match:Exact",
    "format": "verifiers.format:ThinkAnswer",
    "json_schema": "verifiers.schema:JsonSchema",
    "knights_knaves": "verifiers.knights_knaves:KnightsKnaves",
    "language": "verifiers.language.verify:LanguageConsistency",
    "length": "verifiers.length:CosineLength",
    "math": "verifiers.mathexpr.verify:MathVerifier",
    "overlong": "verifiers.length:SoftOverlong",
    "reasoning_gym": "verifiers.adapters.reasoning_gym:ReasoningGym",
    "regex": "verifiers.match:Regex",
    "repetition": "verifiers.repetition:Repetition",
    "thinking": "verifiers.length:MinThinking",
}
ENTRY_POINT_GROUP = "r1lite.verifiers"
LEARNED = "rm:"  # followed by the path of a reward model, which needs r1lite's extra `train`
SANDBOXED = "sandboxed:"  # followed by "module:attr", which is imported and called only inside the sandbox
REGISTERED: dict[str, str] = {}  # name -> "module:attr", set by @verifier; sent to the workers of a pool

F = TypeVar("F", bound=Callable[..., Any])


@overload
def verifier(function: F, /) -> F: ...
@overload
def verifier(*, name: str = "", version: str = "") -> Callable[[F], F]: ...
def verifier(function: F | None = None, /, *, name: str = "", version: str = "") -> F | Callable[[F], F]:
    """Registers a function or class as a verifier, under its own name or under `name`.

        @verifier
        def short(problem, completion): return len(completion.text) < 200

    Its module must be imported before the name is used; "module:attr" needs no registration.

    Raises: ValueError if the name belongs to a built-in or another verifier.
    """

    def register(made: F) -> F:
        called = name or made.__name__
        target = f"{made.__module__}:{made.__qualname__}"
        if called in VERIFIERS or REGISTERED.get(called, target) != target:
            raise ValueError(f"verifier '{called}': the name is taken by {VERIFIERS.get(called) or REGISTERED[called]}")
        REGISTERED[called] = target
        if version:
            made.version = version  # type: ignore[attr-defined]
        return made

    return register if function is None else register(function)


def resolve(spec: str, **options: Any) -> Verifier:
    """Returns the verifier named by `spec`, set up with `options`.

    Args:
        spec: a built-in name ("math"), "module:attr", "sandboxed:module:attr" (imported and called in the sandbox),
            "rm:PATH" (a reward model made by `r1lite reward-model`, or another with one output), or the name of an
            entry point of group `r1lite.verifiers`.
        options: keyword arguments of the verifier's class, or keyword-only arguments of its function.

    Raises:
        ValueError: the name or an option is unknown, or a module can't be imported; the message says what to do.
    """
    if spec.startswith(LEARNED):
        options = {"path": spec.removeprefix(LEARNED), **options}
    if spec.startswith(SANDBOXED):
        options = {"target": spec.removeprefix(SANDBOXED), **options}
    target = _load(spec)
    if not callable(target):
        raise ValueError(f"verifier '{spec}' is {type(target).__name__}, not a function or class")
    _check_options(spec, target, options)
    try:
        made: Any = target(**options) if inspect.isclass(target) else target
    except TypeError as error:  # an option has the wrong type
        raise ValueError(f"verifier '{spec}': {error}") from error
    except SystemExit as error:
        raise ValueError(f"verifier '{spec}': __init__() raised SystemExit: {error}{raised_in(error)}") from error
    if options and made is target:
        made = functools.partial(target, **options)
    if not callable(made):
        raise ValueError(f"verifier '{spec}' makes {type(made).__name__}, which can't be called")
    return cast(Verifier, made)


def _check_options(spec: str, target: Any, options: Mapping[str, Any]) -> None:
    """Raises ValueError for options that the verifier does not accept, and for required options that are missing."""
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):  # some classes written in C have no signature
        return
    if not inspect.isclass(target):
        parameters = parameters[2:]  # after problem and completion
    known = {p.name: p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    takes = f"it takes {', '.join(known)}" if known else "it takes none"
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for name in options:
            if name not in known:
                raise ValueError(f"verifier '{spec}' has no option '{name}'; {did_you_mean(name, known, takes)}")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in options:
            raise ValueError(f"verifier '{spec}' needs the option '{name}'; {takes}")


def check_gold(problem: Problem, verifier: str = "math", **options: Any) -> str:
    """Returns the type that `verifier` reads the problem's gold as. Call it for every problem before a run starts.

    Raises:
        GoldError: the gold can't be read, or does not equal itself; the message names the problem.
        ValueError: the verifier is unknown, or has no golds to check.
    """
    found = resolve(verifier, **options)
    check = getattr(found, "check_gold", None)
    if check is None:
        raise ValueError(f"verifier '{verifier}' has no check_gold: it compares no answers")
    return str(check(problem))


def _load(spec: str) -> Any:
    if spec.startswith(LEARNED):  # imported by name, because this package does not depend on torch
        return _import("r1lite.preference.reward_model:RewardModel", spec)
    if spec.startswith(SANDBOXED):
        return _import("verifiers.sandboxed:Sandboxed", spec)
    found = VERIFIERS.get(spec) or REGISTERED.get(spec)
    if found is None and ":" in spec:
        found = spec
    if found is not None:
        return _import(found, spec)
    from importlib.metadata import entry_points  # here, because it takes longer to import than all of this package

    points = entry_points(group=ENTRY_POINT_GROUP)
    named = [point for point in points if point.name == spec]
    if len(named) > 1:
        raise ValueError(f"verifier '{spec}' is an entry point of two packages: {', '.join(p.value for p in named)}")
    if named:
        return _import(named[0].value, spec)
    known = sorted({*VERIFIERS, *REGISTERED, *(point.name for point in points)})
    hint = did_you_mean(spec, known, f"known: {', '.join(known)}.")
    raise ValueError(f"unknown verifier '{spec}'; {hint} (your own: 'module:attr')")


def _import(target: str, spec: str) -> Any:
    module_name, _, attribute = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # importing a user's module may fail in any way
        why = import_failure(error, target)
        raise ValueError(f"verifier '{spec}': can't import '{module_name}': {why}") from error
    try:
        return functools.reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        names = [name for name in vars(module) if not name.startswith("_")]
        hint = f"; {near}" if (near := did_you_mean(attribute, names)) else ""
        raise ValueError(f"verifier '{spec}': module '{module_name}' has no '{attribute}'{hint}") from error
