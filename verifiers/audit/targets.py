"""Targets of an audit: a verifier, a formula, or another library's reward through the same interface."""

from __future__ import annotations

import functools
import importlib
import logging
import math
import re
from collections.abc import Mapping
from typing import Any

from verifiers.core import Completion, GoldError, Problem, Verdict, VerifierError, import_failure
from verifiers.reward import Reward

_ONE = re.compile(r"(?:sandboxed:)?[A-Za-z_][\w.]*(?::[A-Za-z_][\w.]*)?")
ALONE = "v"  # the name in the formula of a verifier that is audited by itself


def reward_of(target: str, options: Mapping[str, Any]) -> Reward:
    """Returns the reward to audit: one verifier, or a formula over several.

    Args:
        target: a name or `module:attr`, `trl:NAME`, `verl:module:function`, `math-verify`, or a formula.
        options: keyword arguments of the one verifier; for a formula, of its verifiers by name.

    Raises: ValueError if it can't be set up.
    """
    spec, given = _target_of(target)
    if given or spec != target or _ONE.fullmatch(target):
        return Reward(ALONE, options={ALONE: {"use": spec, **given, **options}})
    wrong = [name for name, value in options.items() if not isinstance(value, Mapping)]
    if wrong:
        raise ValueError(f"options of the formula '{target}' must be keyed by its verifiers' names; got '{wrong[0]}'")
    return Reward(target, options=options)


def _target_of(target: str) -> tuple[str, dict[str, Any]]:
    """Returns (name for `resolve`, options) of an audit's target. Raises ValueError."""
    here = "verifiers.audit.targets"
    kind, _, rest = target.partition(":")
    if target == "math-verify":
        return f"{here}:MathVerify", {}
    if kind == "trl" and rest:
        return f"{here}:TrlReward", {"name": rest}
    if kind == "verl" and rest:
        return f"{here}:VerlScore", {"function": rest}
    return target, {}


def _attribute(path: str, what: str) -> Any:
    module, _, name = path.rpartition(":") if ":" in path else path.rpartition(".")
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (Exception, SystemExit) as error:  # importing a user's module may fail in any way
        why = str(error) if isinstance(error, ImportError | AttributeError) else import_failure(error)
        install = ": pip install trl" if isinstance(error, ModuleNotFoundError) and error.name == "trl" else ""
        raise ValueError(f"{what} '{path}' can't be imported ({why}){install}") from error


class MathVerify:
    """Hugging Face's Math-Verify: the verdict of `verify(parse(gold), parse(text))`, without its timeout signals."""

    version = "math-verify"

    def __init__(self) -> None:
        try:
            self._library = importlib.import_module("math_verify")
        except ImportError as error:
            raise ValueError(f"math-verify can't be imported ({error}): pip install math-verify") from error
        logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns at each call that its timeout is off

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        if problem.answer is None:
            raise GoldError(f"problem {problem.name!r} has no answer")
        gold = self._library.parse(f"\\boxed{{{problem.answer}}}", parsing_timeout=None)
        if not gold:
            raise VerifierError(f"math-verify can't read the gold {problem.answer!r}")
        found = self._library.parse(completion.text, parsing_timeout=None)
        same = self._library.verify(gold, found, timeout_seconds=None)
        return Verdict(float(same), "equal" if same else "different")


class TrlReward:
    """A reward function in TRL's signature: a name in `trl.rewards`, or `module:attr`.

    It gets a conversation of one message, and the gold as `solution` and `answer`. TRL's own functions look for LaTeX
    in the solution, so they get it in a box. None abstains.
    """

    version = "trl"

    def __init__(self, *, name: str) -> None:
        self._is_theirs = ":" not in name and "." not in name
        self._function = _attribute(f"trl.rewards:{name}" if self._is_theirs else name, "trl reward")

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        (found,) = self._function(
            prompts=[[{"role": "user", "content": problem.prompt}]],
            completions=[[{"role": "assistant", "content": completion.text}]],
            completion_ids=[list(completion.token_ids)],
            solution=[f"\\boxed{{{problem.answer}}}" if self._is_theirs else problem.answer],
            answer=[problem.answer],
        )
        if found is None:
            return Verdict(None, "abstained")
        return _scored(found)


class VerlScore:
    """A `compute_score` in verl's signature, as `module:function`; of a dict, "score" counts."""

    version = "verl"

    def __init__(self, *, function: str) -> None:
        self._function = _attribute(function, "verl function")

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        found: Any = self._function(
            data_source=problem.meta.get("data_source", "audit"),
            solution_str=completion.text,
            ground_truth=problem.answer,
            extra_info=dict(problem.meta),
        )
        return _scored(found["score"] if isinstance(found, dict) else found)


def _scored(reward: Any) -> Verdict:
    score = float(reward)
    if math.isnan(score):
        raise VerifierError("the function gave no score: NaN")
    return Verdict(min(1.0, max(0.0, score)), "scored")  # some pay -1 for wrong answers, or 2 for right ones
