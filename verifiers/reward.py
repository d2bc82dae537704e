"""Rewards: a formula over verifiers, whose value comes with the verdict of each."""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verifiers.core import Completion, Problem, Verdict, Verifier, VerifierCrash, VerifierError, raised_in
from verifiers.formula import Formula
from verifiers.prefill import as_read, placed
from verifiers.registry import resolve


@dataclass(frozen=True, slots=True)
class Score:
    """The reward of one completion, with the verdicts it is computed from."""

    reward: float | None  # None = unscored: every verifier abstained, or a check could not be made
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)  # by the name used in the formula
    error: str = ""  # why a check could not be made
    # Versions of the verifiers, by name: another version may decide differently.
    versions: Mapping[str, str] = field(default_factory=dict)


class Reward:
    """A formula such as `"math * (0.5 + 0.5*language) + 0.1*format"`, ready to score completions.

    Names are those that `resolve` accepts, or aliases; `+ - * /`, parentheses and numbers join them. A part that
    abstains adds nothing and gates nothing: a sum leaves out terms that abstain, a product such factors, and an
    expression abstains if all its verifiers do.

    Args:
        formula: the text; parsed without `eval`.
        verifiers: verifier objects by name, for names that need not be resolved.
        options: keyword arguments for the verifiers to be resolved, by name. The key `use` makes the name an alias:
            `{"hedge": {"use": "my_rewards:no_hedging", "words": ["maybe"]}}`.

    Raises:
        ValueError: the formula can't be parsed, contains an unknown name, or has a part that can't change the reward.
    """

    def __init__(
        self,
        formula: str,
        *,
        verifiers: Mapping[str, Verifier] | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.formula = formula
        self._formula = Formula(formula)
        self.ready, self.options = dict(verifiers or {}), {name: dict(o or {}) for name, o in (options or {}).items()}
        names = self._formula.names
        unused = [name for name in (*self.ready, *self.options) if name not in names]
        if unused:
            raise ValueError(f"options for '{unused[0]}', which the reward '{formula}' does not use")
        self.verifiers: dict[str, Verifier] = {
            name: self.ready[name] if name in self.ready else _resolved(name, self.options.get(name, {}))
            for name in names
        }
        self.versions: Mapping[str, str] = {name: version_of(verify) for name, verify in self.verifiers.items()}

    def __call__(self, problem: Problem, completion: Completion) -> Score:
        """Scores one completion. Raises VerifierError if a check can't be made."""
        return self._score(
            {name: _verdict(name, verify, problem, completion) for name, verify in self.verifiers.items()}
        )

    def batch(self, pairs: Sequence[tuple[Problem, Completion]], begun: Sequence[Score] | None = None) -> list[Score]:
        """Returns the same scores as `score_one`, in order, with one call of `verify_many` per verifier that has it.

        As in `score_one`, an item's verifiers are called in the order of the formula, up to the first that fails.

        Args:
            begun: for each pair, a score with the verdicts that are already known: those verifiers are not called.
        """
        known = [dict(score.verdicts) for score in begun or ()] or [{} for _ in pairs]
        errors = {i: score.error for i, score in enumerate(begun or ()) if score.error}
        for name, verify in self.verifiers.items():
            rest = [i for i, verdicts in enumerate(known) if i not in errors and name not in verdicts]
            for i, found in zip(rest, _verdicts(name, verify, [pairs[i] for i in rest]), strict=True):
                if isinstance(found, Verdict):
                    known[i][name] = found
                else:
                    errors[i] = _described(found)
        return [
            Score(None, {}, errors[i], self.versions)
            if i in errors
            else self._score({name: verdicts[name] for name in self.verifiers})
            for i, verdicts in enumerate(known)
        ]

    def only(self, names: Sequence[str]) -> Reward:
        """Returns a reward of only these verifiers, with their options from here; its value is their sum."""
        part = copy.copy(self)
        part.formula = "+".join(names)
        part._formula = Formula(part.formula)
        part.ready = {name: verify for name, verify in self.ready.items() if name in names}
        part.options = {name: options for name, options in self.options.items() if name in names}
        part.verifiers = {name: self.verifiers[name] for name in names}
        part.versions = {name: self.versions[name] for name in names}
        return part

    def _score(self, verdicts: Mapping[str, Verdict]) -> Score:
        reward = self._formula.value({name: verdict.score for name, verdict in verdicts.items()})
        return Score(reward, verdicts, versions=self.versions)

    def prepare(self) -> None:
        """Calls `prepare()` of each verifier that has it, so that slow resources are loaded before the first score.

        Raises: the exception of `prepare()`; VerifierError in the place of SystemExit.
        """
        for name, verify in self.verifiers.items():
            prepare = getattr(_bare(verify), "prepare", None)
            if callable(prepare):
                try:
                    prepare()
                except SystemExit as error:
                    why = f"prepare() raised SystemExit: {error}{raised_in(error)}"
                    raise VerifierError(f"verifier '{name}': {why}") from error

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest reward, over all scores of the verifiers."""
        return self._formula.range

    @property
    def reads_gold(self) -> bool:
        """True if a verifier may compare with `Problem.answer`: any verifier that judges neither style nor programs."""
        return any(
            getattr(_bare(verify), "kind", "correctness") not in ("style", "program")
            for verify in self.verifiers.values()
        )

    @property
    def correctness(self) -> tuple[str, ...]:
        """The names of the verifiers that judge correctness: all except those of style."""
        return tuple(
            name for name, verify in self.verifiers.items() if getattr(_bare(verify), "kind", "correctness") != "style"
        )

    @property
    def ungated(self) -> dict[str, str]:
        """Parts that need a gate but are also paid for wrong answers, each with advice on what to do about it."""
        correctness = self.correctness
        gate = correctness[0] if correctness else "math"
        return {
            name: f"'{name}' is paid for wrong answers too: a weak model then learns to please it and gives up "
            f'thinking. Let a right answer gate it: "{gate} * (0.5 + 0.5*{name})"'
            for name, verify in self.verifiers.items()
            if getattr(_bare(verify), "needs_gate", False) and self._formula.pays_alone(name, correctness)
        }

    @property
    def warnings(self) -> list[str]:
        """Warnings about parts of the formula that are known to spoil training, or say so themselves (`doubt`)."""
        doubts = {name: getattr(_bare(verify), "doubt", "") for name, verify in self.verifiers.items()}
        return [*self.ungated.values(), *(f"{name}: {doubt}" for name, doubt in doubts.items() if doubt)]

    def __str__(self) -> str:
        return str(self._formula)


def score_one(reward: Reward, problem: Problem, completion: Completion) -> Score:
    """Returns one score; a check that fails is reported in `error`."""
    try:
        return reward(problem, completion)
    except Exception as error:  # VerifierError, or a bug in a user's verifier: the one broad except
        return Score(None, {}, _described(error), reward.versions)


def _described(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as none:  # of a user's own __str__
        return f"{type(error).__name__}: its text raised {type(none).__name__}"


def _resolved(name: str, options: Mapping[str, Any]) -> Verifier:
    options = dict(options)
    target = options.pop("use", name)
    if not isinstance(target, str):
        raise ValueError(f"verifier '{name}': use must name a verifier, got {target!r}")
    return resolve(target, **options)


def _verdicts(name: str, verify: Verifier, pairs: list[tuple[Problem, Completion]]) -> list[Verdict | Exception]:
    """Returns verdicts in order; an item that can't be checked has an exception in place of its verdict."""
    many = getattr(verify, "verify_many", None)
    if many is None or not pairs:
        return [_attempt(name, verify, *pair) for pair in pairs]
    shown = pairs if _reads_prefill(verify) else [(problem, as_read(completion)) for problem, completion in pairs]
    process = os.getpid()
    try:
        found = list(many(shown))
    except (Exception, SystemExit):  # the item at fault is not known, so each is checked alone
        found = None
    finally:
        _end_if_forked(process)
    if found is None:
        return [_attempt(name, verify, *pair) for pair in pairs]
    if len(found) != len(pairs):
        error = VerifierError(f"verifier '{name}': verify_many returned {len(found)} results for {len(pairs)} items")
        return [error] * len(pairs)
    return [
        _attempt(name, verify, *pair, functools.partial(_said, one)) for one, pair in zip(found, pairs, strict=True)
    ]


def _attempt(
    name: str, verify: Verifier, problem: Problem, completion: Completion, call: Callable[..., Any] | None = None
) -> Verdict | Exception:
    try:
        return _verdict(name, verify, problem, completion, call)
    except Exception as error:
        return error


def _said(result: Any, problem: Problem, completion: Completion) -> Any:
    """Returns a result of `verify_many` as the call that it stands for would: an exception is raised."""
    if isinstance(result, Exception):
        raise result
    return result


def _verdict(
    name: str, verify: Verifier, problem: Problem, completion: Completion, call: Callable[..., Any] | None = None
) -> Verdict:
    """Returns the verdict of `verify`, or of `call`, which returns its result from a batch."""
    reads = _reads_prefill(verify)
    process = os.getpid()
    try:
        found: Any = (call or verify)(problem, completion if reads else as_read(completion))
    except VerifierError:
        raise
    except (Exception, SystemExit) as error:  # one item's exit must not end the batch
        item = f"problem {problem.name!r}" if isinstance(problem, Problem) else repr(problem)[:80]
        place = raised_in(error, _place_of(verify)[0])
        raise VerifierCrash(
            f"verifier '{name}' raised {type(error).__name__}: {error}{place} (on {item}); "
            "a bad completion should score 0, and what can't be checked should raise VerifierError"
        ) from error
    finally:
        _end_if_forked(process)
    if isinstance(found, Verdict):
        return found if reads else placed(found, completion)
    if type(found).__module__ == "numpy" and getattr(found, "shape", None) == ():  # as `numpy.isclose` returns
        found = found.item()
    if isinstance(found, bool | int | float):  # from a user's plain function
        try:
            return Verdict(float(found), "ok" if found else "zero")
        except (ValueError, OverflowError) as error:
            raise ValueError(
                f"verifier '{name}' returned {found!r}; a score lies in [0, 1]{_made_in(verify)}"
            ) from error
    raise TypeError(
        f"verifier '{name}' returned {type(found).__name__}; it must return a Verdict, a float or a bool"
        f"{_made_in(verify)}"
    )


def _end_if_forked(process: int) -> None:
    """Ends a fork that a verifier made and that returned from it, which would go on as a second copy of the caller."""
    if os.getpid() != process:
        os._exit(1)


def _made_in(verify: Any) -> str:
    """Returns the place of the verifier's source, for messages; "" if it is unknown."""
    file, line = _place_of(verify)
    return f"; it is in {file}, line {line}" if file else ""


def _place_of(verify: Any) -> tuple[str, int]:
    """Returns (file, first line) of the verifier's code; ("", 0) if it was not written in Python."""
    bare = _bare(verify)
    code = getattr(bare, "__code__", None) or getattr(type(bare).__call__, "__code__", None)
    return ("", 0) if code is None else (code.co_filename, code.co_firstlineno)


def version_of(verify: Verifier) -> str:
    """Returns the verifier's `version`, or else a fingerprint of its source ("" if there is no source)."""
    bare = _bare(verify)
    version = getattr(bare, "version", None)
    if version is not None:
        return str(version)
    try:
        source = inspect.getsource(bare if inspect.isfunction(bare) else type(bare))
    except (OSError, TypeError):
        return ""
    return f"src-{hashlib.sha256(source.encode()).hexdigest()[:10]}"


def _reads_prefill(verify: Any) -> bool:
    return bool(getattr(_bare(verify), "reads_prefill", False))


def _bare(verify: Any) -> Any:
    """Returns the function or object that keyword arguments were bound to."""
    return verify.func if isinstance(verify, functools.partial) else verify
