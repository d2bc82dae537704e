"""Other libraries' verifiers, through the same door: `trl:`, `verl:` and `math-verify`."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from verifiers.core import Completion, GoldError, Problem, Verdict, VerifierError


def target_of(target: str) -> tuple[str, dict[str, Any]]:
    """(what `resolve` takes, options) of an audit's target. Raises ValueError."""
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
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{what} '{path}' can't be imported: {error}") from error


class MathVerify:
    """Hugging Face's Math-Verify: the verdict of `verify(parse(gold), parse(text))`, without its alarm signals."""

    version = "math-verify"

    def __init__(self) -> None:
        try:
            self._library = importlib.import_module("math_verify")
        except ImportError as error:
            raise ValueError(f"math-verify can't be imported ({error}): pip install math-verify") from error

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        if problem.answer is None:
            raise GoldError(f"problem {problem.id or problem.prompt[:60]!r} has no answer")
        gold = self._library.parse(f"\\boxed{{{problem.answer}}}", parsing_timeout=None)
        if not gold:
            raise VerifierError(f"math-verify can't read the gold {problem.answer!r}")
        found = self._library.parse(completion.text, parsing_timeout=None)
        same = self._library.verify(gold, found, timeout_seconds=None)
        return Verdict(float(same), "equal" if same else "different")


class TrlReward:
    """A reward function in TRL's signature: of `trl.rewards` by its name, or `module:attr`.

    It is given a conversation of one message, and the gold as `solution` and `answer`. None abstains.
    """

    version = "trl"

    def __init__(self, *, name: str) -> None:
        self._function = _attribute(name if ":" in name or "." in name else f"trl.rewards:{name}", "trl reward")

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        (found,) = self._function(
            prompts=[[{"role": "user", "content": problem.prompt}]],
            completions=[[{"role": "assistant", "content": completion.text}]],
            completion_ids=[list(completion.token_ids)],
            solution=[problem.answer],
            answer=[problem.answer],
        )
        return Verdict(None if found is None else float(found), "abstained" if found is None else "scored")


class VerlScore:
    """A `compute_score` in verl's signature, as `module:function`; a dict's "score" counts."""

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
        score = float(found["score"] if isinstance(found, dict) else found)
        return Verdict(min(1.0, max(0.0, score)), "scored")  # some pay -1 for wrong answers
