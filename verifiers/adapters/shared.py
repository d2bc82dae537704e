"""Functions shared by the adapters."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from verifiers.core import Completion, GoldError, Problem, VerifierError
from verifiers.end_tokens import without_end
from verifiers.golds import gold_text
from verifiers.prefill import prefill_of
from verifiers.reward import Reward, Score, score_one
from verifiers.rows import content_of
from verifiers.sandbox.convert import from_apps

_log = logging.getLogger("verifiers")
_said: set[str] = set()


@functools.lru_cache(maxsize=64)
def _cached(formula: str, options: str) -> Reward:
    return Reward(formula, options=json.loads(options))


def reward_of(reward: Reward | str, options: Mapping[str, Mapping[str, Any]] | None) -> Reward:
    """Returns a Reward; the one for a formula is created once. Raises ValueError."""
    if isinstance(reward, Reward):
        return reward
    plain = {name: dict(given) for name, given in (options or {}).items()}  # also from OmegaConf and the like
    return _cached(reward, json.dumps(plain, sort_keys=True, default=_plain))


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)


def said(message: Any, role: str = "assistant") -> str:
    """Returns the text of a prompt or completion: itself, or the last message of `role` (all of the assistant's).

    Raises: TypeError for anything that is neither text nor a list of messages.
    """
    if isinstance(message, str):
        return message
    if isinstance(message, Sequence) and all(isinstance(part, Mapping) for part in message):
        texts = [content_of(part.get("content")) for part in message if part.get("role") == role]
        return "\n".join(texts) if role == "assistant" else (texts or [""])[-1]
    raise TypeError(f"neither text nor a list of messages: {message!r:.200}")


def asked(question: Any) -> str:
    """Returns a column's question as text: itself, or the last message of the user, also in NumPy's arrays."""
    question = plain(question)
    try:
        return said(question, "user")
    except TypeError:
        return "" if question is None else str(question)


def begun(prompt: Any) -> str:
    """Returns the beginning of the reply that a prompt holds, for `Completion.prefill`.

    Of messages, only one of the assistant's at the end can hold it: a question that ends in <think> just names the tag.
    """
    prompt = plain(prompt)
    if isinstance(prompt, str):
        return prefill_of(prompt)
    last = prompt[-1] if isinstance(prompt, Sequence) and prompt else None
    if isinstance(last, Mapping) and last.get("role") == "assistant":
        return prefill_of(content_of(last.get("content")))
    return ""


def plain(value: Any) -> Any:
    """Converts NumPy's and Arrow's arrays and scalars to built-in values, at any depth."""
    listed = getattr(value, "tolist", None)
    if callable(listed):
        value = listed()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def tests_of(gold: Any) -> dict[str, Any] | None:
    """Returns `Problem.tests` from a data set's gold; None if the gold is an answer.

    Tests are an object, or its JSON text, that has a `style` (ours), `inputs` and `outputs` (APPS, TACO, PRIME, verl)
    or `assert_case`. Fields that are null count as absent, because Arrow gives every row the fields of all rows.

    Raises: GoldError for tests that can't be used.
    """
    if isinstance(gold, str):
        if not gold.lstrip().startswith("{"):
            return None
        try:
            gold = json.loads(gold)
        except (ValueError, RecursionError):  # for example LaTeX's {1, 2}
            return None
    if not isinstance(gold, Mapping):
        return None
    fields = {name: value for name, value in gold.items() if value is not None}
    if "style" not in fields and "assert_case" not in fields and not {"inputs", "outputs"} <= fields.keys():
        return None
    try:
        fields = plain(fields)
    except RecursionError as error:
        raise GoldError("the tests are nested too deeply") from error
    return fields if "style" in fields else from_apps(fields)


def scored(
    reward: Reward, problem: Problem, gold: Any, text: str, *, token_ids: Sequence[int] = (), prompt: Any = None
) -> Score:
    """Returns the score of one completion; a failed check is reported in `error`.

    Args:
        problem: without its answer.
        gold: from the data set: an answer, or tests (see `tests_of`) if the problem has none. A missing value
            (NaN, "", {}) is an error that names the problem's id, unless no verifier of the reward compares
            answers.
        text: of the completion; text after a token that ends a reply (`end_tokens`) is left out.
        prompt: text or messages, if not the problem's prompt. If it ends in "<think>", the text is taken to begin
            inside the block (see `begun`).
    """
    found = with_gold(reward, problem, gold)
    if isinstance(found, Score):
        return found
    return score_one(reward, found, written(found.prompt if prompt is None else prompt, text, token_ids))


def written(prompt: Any, text: str, token_ids: Sequence[int] = ()) -> Completion:
    """Returns the completion without text after its end token; it begins in a <think> that the prompt opened."""
    return Completion(without_end(text), tuple(token_ids), prefill=begun(prompt))


def with_gold(reward: Reward, problem: Problem, gold: Any) -> Problem | Score:
    """Returns the problem with its answer or tests; if the gold can't be used, the score for all its completions."""
    try:
        return read_gold(reward, problem, gold)
    except GoldError as error:
        return Score(None, {}, f"GoldError: problem {problem.id!r}: {error}", reward.versions)


def read_gold(reward: Reward, problem: Problem, gold: Any) -> Problem:
    """Returns the problem with its answer or tests. Raises GoldError."""
    tests = problem.tests
    if tests is None:
        tests = tests_of(gold)
        gold = gold if tests is None else None
    return replace(problem, answer=gold_text(gold) if reward.reads_gold else None, tests=tests)


def best_of(reward: Reward, problem: Problem, golds: Sequence[Any], text: str, *, prompt: Any = None) -> Score:
    """Returns the best score over the golds; unscored if one can't be checked and no other gives full marks.

    Without golds, it is the score of a problem that has none.
    """
    scores = [scored(reward, problem, gold, text, prompt=prompt) for gold in golds or [None]]
    best = max(scores, key=lambda one: float("-inf") if one.reward is None else one.reward)
    failed = next((score for score in scores if score.reward is None), None)
    return best if failed is None or (best.reward or 0.0) >= reward.range[1] else failed


def scored_many(reward: Reward, rows: Sequence[tuple[Problem, Any, str, Any]]) -> list[Score]:
    """Returns `scored` for (problem, gold, text, prompt) of each row, in order; a batch verifier is called once."""
    found = [with_gold(reward, problem, gold) for problem, gold, _, _ in rows]
    pairs = [
        (one, written(prompt, text))
        for one, (_, _, text, prompt) in zip(found, rows, strict=True)
        if isinstance(one, Problem)
    ]
    scores = iter(reward.batch(pairs))
    return [one if isinstance(one, Score) else next(scores) for one in found]


def required(score: Score, unscored: float | None) -> float:
    """Returns the reward, for trainers that can't leave a completion out. Raises VerifierError if `unscored` is None.

    The first substitute value in a process is logged with its reason.
    """
    if score.reward is not None:
        return score.reward
    if unscored is None:
        raise VerifierError(
            f"{why(score)}; this trainer can't leave a completion out of its group: "
            "set `unscored` to the reward of such completions"
        )
    say_once(f"a completion could not be scored and gets the reward {unscored:g}, like all later ones: %s", why(score))
    return float(unscored)


def why(score: Score) -> str:
    """Returns the reason why a score has no reward."""
    return score.error or "every verifier abstained"


def say_once(message: str, detail: str) -> None:
    """Logs an error, with `detail` in place of %s, the first time that this process has such a message."""
    if message not in _said:
        _said.add(message)
        _log.error(message, detail)


def accuracy(reward: Reward, score: Score) -> float:
    """Returns the lowest score of the verifiers that judge correctness; the reward if none does; 0 if unscored."""
    if score.reward is None:
        return 0.0
    found = parts(score)
    return min((found[name] for name in reward.correctness if name in found), default=score.reward)


def problem_of(prompt: str, meta: Mapping[str, Any], id: object) -> Problem:
    """Returns a problem without its gold; its language is that of `meta`, if that is text."""
    language = meta.get("language")
    return Problem(prompt, language=language if isinstance(language, str) else None, id=str(id), meta=meta)


def of_all(reward: Reward, score: Score) -> dict[str, float]:
    """Returns every verifier's score by name, 0 if it abstained, and "unscored": 0 or 1.

    For trainers that need the same keys in every row.
    """
    found = parts(score)
    return {**{name: found.get(name, 0.0) for name in reward.verifiers}, "unscored": float(score.reward is None)}


def parts(score: Score) -> dict[str, float]:
    """Returns the scores of the verifiers that did not abstain, by name."""
    return {name: verdict.score for name, verdict in score.verdicts.items() if verdict.score is not None}
