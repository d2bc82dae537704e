"""The `math` verifier: compares the completion's final answer with the gold."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from verifiers.core import Completion, GoldError, Problem, Verdict, VerifierError
from verifiers.extract import (
    Extraction,
    Span,
    after_thinking,
    find,
    moved,
    original,
    repeats_prompt,
    restated,
    sole_value,
    squeezed,
)
from verifiers.extract.asked import question_of
from verifiers.extract.concluded import concluded
from verifiers.extract.corrected import without_correction
from verifiers.extract.declared import without_declaration
from verifiers.extract.enumerations import enumerated
from verifiers.extract.hedges import without_contrast
from verifiers.extract.neutral import neutral, with_plain_marks, without_box
from verifiers.extract.numerals import language_of
from verifiers.extract.openings import stated_first
from verifiers.extract.operands import only_expression
from verifiers.extract.other_symbols import asked_symbol
from verifiers.extract.overruling import FORMS, final_claims, is_claim
from verifiers.extract.quantities import in_digits
from verifiers.extract.remarks import without_remarks
from verifiers.extract.statements import stated
from verifiers.extract.switched import switched
from verifiers.extract.understood import not_understood
from verifiers.extract.wordings import NO_SOLUTION_SAID
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.mathexpr.answer_doubts import as_gold_is_written, doubt_of
from verifiers.mathexpr.answers import Answer, type_name
from verifiers.mathexpr.answers_in_words import MATHS_SIGN, in_words, listed, number_of_things
from verifiers.mathexpr.clean import clean
from verifiers.mathexpr.compare import Policy, compared
from verifiers.mathexpr.decimal_commas import in_points
from verifiers.mathexpr.echo import restates
from verifiers.mathexpr.golds import INTEGER, Gold, read_gold
from verifiers.mathexpr.guard import same_but_for_values, variants
from verifiers.mathexpr.limits import GUARD_BUDGET, MAX_ANSWER_CHARS, Budget, TooHard, Unreadable
from verifiers.mathexpr.naming import letters_in_formulas
from verifiers.mathexpr.nodes import number
from verifiers.mathexpr.options import option_of, options, other_of_two, other_option
from verifiers.mathexpr.quantities import changes_value
from verifiers.mathexpr.reading import read
from verifiers.mathexpr.same_words import same_words
from verifiers.units.words import without_units

REASONS = {
    "equal": "the same answer",
    "different": "an answer of the gold's type with another value",
    "imprecise": "correct as far as it goes, but with too few digits for an exact gold",
    "type_clash": "an answer of another type (a set for a number, a point for an interval)",
    "unit_clash": "a unit or noun that contradicts the gold's",
    "unsolved": "an inequality that is not solved for its variable, or the question's own expression",
    "hedged": "several answers where the gold is one, or words beside the answer that may change it",
    "no_answer": "no final answer: none given, unclosed reasoning, several answer blocks, a negation or a question",
    "unparseable": "a final answer that can't be read",
    "too_long": "a final answer or completion above the length limits",
    "too_hard": "the comparison would exceed the budget of work",
}  # the closed set of reasons
MAX_CHARS = 1_000_000
_NATURAL = frozenset("natural naturals setn n positive nonnegative non-negative negative".split())
_STATED = ("box", "answer", "hashes", "opening")  # sources of answers that state themselves
_NOT_COMPARED = ("unparseable", "type_clash")
_CHOICES = {"percent": ("either", "value"), "units": ("drop", "require"), "multiple_choice": ("auto", "letter")}
_WORDED = 400  # characters at the end of a text in which numbers in words are turned into digits
_OR = "or oder ou o ó oppure или або lub eller of veya atau hoặc または 或者 또는"  # joins the values of a list
_OTHER_OPTION = "the letter of one option with the text of another"
_IN_WORDS = ("text", "truth", "choice", "empty", "undefined", "region")
_CIRCLED = lazy_pattern("[①-⑩] ?")
_FORMULA = lazy_pattern(r"\$[^$]{1,200}\$|\\[dt]?frac\{[^{}]{1,40}\}\{[^{}]{1,40}\}|\\\([^()]{1,200}\\\)")
_TURNING = any_case(
    r"\b(?:not|no|never|without|less|more|greater|larger|bigger|smaller|higher|lower|exceed\w*|within|fewer|least|most"
    r"|over|under|below|above|minus|negative|half|twice|either|or|except|but|cannot|wrong|incorrect|between|and|squared"
    r"|cube|root|square(?! (?:units?|(?:centi|milli|kilo|deci)?met(?:er|re)s?|inch(?:es)?|feet|foot|yards?|miles?"
    r"|[ckm]?m)\b)|double|triple|times|multiple|factor|divisor|divisible|power|successor|predecessor|far|unlikely"
    r"|likely|depends?|starts?|begins?|ends?|digits?|mentions?|appears?|such|example|question|problem|see|try|give"
    r"|gave)\b|[?^_=<>]|\\(?!text|\(|\)|\[|\])"
)
_OF_A_VALUE = any_case(  # "die Wurzel aus 2", "one of 7, 8": the values in it are not the answer
    r"wurzel|logarithm|kehrwert|racine|raíz|raiz|radice|\broot\b|\b(?:any of|one of|choose from|candidates?|either)\b"
)
_PROOF_MARK = lazy_pattern(  # at the end; each mark in its own formula, as the closing formula is the answer
    r"(?:(?<=\s)|(?<=\.))(?:\$\$?\s*\\(?:blacksquare|square|Box|qed(?:symbol)?)\s*\$\$?"
    r"|\\[(\[]\s*\\(?:blacksquare|square|Box|qed(?:symbol)?)\s*\\[)\]])\s*\Z"
)
_NEXT_WORD = lazy_pattern(r"[\s~]*([^\W\d_]{2,40})")
_SMALL_LABEL = lazy_pattern(r"\(?([a-e])\)?")
_SMALL_OPTION = lazy_pattern(r"(?:^|(?<=\s))\(?[a-e][).](?=\s)", re.MULTILINE)
_SMALL_CHOICE = lazy_pattern(
    r"(?<![\w\\$'’.])(?:\([a-e]\)|[a-e]\)|[a-e](?=[*_$}]*[.\s]*(?:</answer>\s*)?$)|(?<=boxed\{)[a-e](?=\}))"
)


@dataclass(slots=True)
class Explanation:
    """The steps of one decision, for `python -m verifiers math --explain`."""

    steps: list[tuple[str, str]] = field(default_factory=list)


class MathVerifier:
    """1 if the completion's final answer is the same as `Problem.answer`, else 0.

    The gold is a number, plain text, LaTeX, or a worked solution that ends in `#### N` or boxes its answer. Its type
    decides what counts as the same: sets and intervals are compared as sets, tuples in order, equations up to scale,
    quantities by dimension and size, decimals at the gold's last place, exact golds exactly. Caps and a budget of
    work bound the cost, so a completion of up to 1 MB takes at most about 130 ms on a slow core, in any thread.
    Reasons: see REASONS.

    Args:
        strict: only a single `<answer>` block counts, and no decimal is accepted for an exact gold.
        precision: significant digits at which a correctly rounded decimal is accepted for an exact gold that is no
            integer; 0 = never. Default 6, or 0 if strict.
        percent: "either": 50% is 0.5, and 50 where the gold or the question is about percent; "value": 0.5 only.
        units: "drop": a unit may be missing on one side; "require": it must be on both.
        multiple_choice: "auto": the text of an option of the prompt is accepted for its letter; "letter": it is not.

    Raises:
        ValueError: an option has an unsupported value.
        GoldError: (when called) the problem has no gold, or one that can't be understood.
    """

    version = "23"

    def __init__(
        self,
        *,
        strict: bool = False,
        precision: int | None = None,
        percent: str = "either",
        units: str = "drop",
        multiple_choice: str = "auto",
    ) -> None:
        choices = {"percent": percent, "units": units, "multiple_choice": multiple_choice}
        for name, value in choices.items():
            if value not in _CHOICES[name]:
                raise ValueError(f"{name} must be one of {', '.join(_CHOICES[name])}; got {value!r}")
        if precision is not None and precision < 0:
            raise ValueError(f"precision must be 0 or more significant digits; got {precision}")
        self.strict = strict
        self.precision = precision if precision is not None else 0 if strict else 6
        self.percent = percent
        self.units = units
        self.multiple_choice = multiple_choice

    def __call__(self, problem: Problem, completion: Completion) -> Verdict:
        return self.judge(problem, completion, None)

    def judge(self, problem: Problem, completion: Completion, explanation: Explanation | None) -> Verdict:
        """Returns the verdict and appends every step to `explanation`, if there is one. Raises GoldError."""
        problem, completion = _with_capital_labels(problem, completion)
        gold = self.gold(problem)
        if len(completion.text) > MAX_CHARS:
            return Verdict(0.0, "too_long", f"completion of {len(completion.text)} characters", gold_type=gold.type)
        text = with_plain_marks(completion.text)
        mark = _PROOF_MARK.search(text, max(0, len(text) - 60))
        text, cuts = squeezed(text[: mark.start()] if mark else text)
        verdict = self._judge(problem, gold, text, explanation)
        if verdict.reason in ("no_answer", "hedged") and not self.strict:
            plain = without_remarks(text)
            other = self._overruling(problem, gold, plain, verdict, explanation)
            verdict = other or self._counting(problem, gold, plain, explanation) or verdict
        if verdict.reason in ("no_answer", "hedged") and verdict.detail != "part_of_an_expression" and not self.strict:
            low = max(0, len(text) - _WORDED)
            language = language_of(f"{problem.prompt[-_WORDED:]} {text[low:]}")
            plain = in_digits(neutral(text), low, len(text), language)
            other = self._judge(problem, gold, plain, explanation) if plain != text else verdict
            verdict = other if other.score == 1.0 or verdict.detail == "nothing" else verdict
        if verdict.reason in _NOT_COMPARED and not self.strict:
            plain = without_box(text)
            other = self._judge(problem, gold, plain, explanation) if plain != text else verdict
            verdict = other if other.score == 1.0 else verdict
        if verdict.score != 1.0 and not self.strict and not _NATURAL.intersection(gold.answer.condition.split()):
            plain = without_declaration(text)
            other = self._judge(problem, gold, plain, explanation) if plain != text else verdict
            verdict = other if other.score == 1.0 else verdict
        if verdict.score != 1.0 and not self.strict:
            verdict = self._other_form(problem, gold, without_remarks(text), explanation) or verdict
        if verdict.score != 1.0 and not self.strict:
            verdict = self._before_remarks(problem, gold, without_remarks(text), explanation, verdict.span) or verdict
        return replace(verdict, span=original(verdict.span, cuts)) if cuts and verdict.span is not None else verdict

    def _other_form(self, problem: Problem, gold: Gold, text: str, explanation: Explanation | None) -> Verdict | None:
        """Returns the verdict on an answer in another place than the last clause, if it is right, or None.

        The places are the first clause and a list in the last one.
        """
        start = self._start_of_prose(problem, text)
        if start is None:
            return None
        first = stated_first(text, start, len(text), problem.prompt)
        verdict = None if first is None else self._judge(problem, gold, first[1], explanation, first[0])
        if verdict is not None and verdict.score == 1.0:
            return verdict
        values = listed(text, problem.prompt, gold.answer)
        verdict = None if values is None else self._judge(problem, gold, text, explanation, values)
        return verdict if verdict is not None and verdict.score == 1.0 else None

    def _before_remarks(
        self, problem: Problem, gold: Gold, text: str, explanation: Explanation | None, read: Span | None
    ) -> Verdict | None:
        """Returns the verdict on a conclusion that remarks follow, if it is right, or None.

        Args:
            read: what was read as the answer at first.
        """
        start = self._start_of_prose(problem, text)
        before = None if start is None else concluded(text, start, problem.prompt, read)
        verdict = None if before is None else self._judge(problem, gold, before[1], explanation, before[0])
        return verdict if verdict is not None and verdict.score == 1.0 else None

    @staticmethod
    def _start_of_prose(problem: Problem, text: str) -> int | None:
        """Returns where a text without box and tags begins, or None if it has some or there is no question."""
        return after_thinking(text) if problem.prompt and not any(form in text for form in FORMS) else None

    def _judge(
        self,
        problem: Problem,
        gold: Gold,
        text: str,
        explanation: Explanation | None,
        extraction: Extraction | None = None,
    ) -> Verdict:
        text = without_remarks(text)
        extraction = extraction or self._found(problem.prompt, gold, text)
        if explanation is not None:
            where = "" if extraction.span is None else f" at {extraction.span}: {text[slice(*extraction.span)][:200]!r}"
            explanation.steps.append(("extract", extraction.source + where))
        if extraction.span is None:
            return Verdict(0.0, "no_answer", extraction.source, gold_type=gold.type)
        if problem.prompt and extraction.source != "answer" and repeats_prompt(problem.prompt, text, extraction):
            return Verdict(0.0, "no_answer", "the prompt repeated", gold_type=gold.type)
        single = not (extraction.others or extraction.joint or extraction.said)
        # 12.000 may be 12000
        pointed = gold.integer is not None and abs(gold.integer) > 999 and ".000" in text[slice(*extraction.span)]
        if gold.integer is not None and single and explanation is None and not pointed:
            match = INTEGER.fullmatch(text, *extraction.span)
            if match is not None:
                value = int(match[2].replace(",", ""))
                same = (-value if match[1] == "-" else value) == gold.integer
                reason = "equal" if same else "different"
                answer = text[extraction.span[0] : extraction.span[1]].strip()
                verdict = Verdict(float(same), reason, "", answer, extraction.span, gold.type, "rational")
                return self._unless_doubted(verdict, problem, gold, text, extraction)
        try:
            with Budget(evaluated=gold.evaluated) as budget:
                verdict = self._decide(problem, gold, text, extraction, budget, explanation)
                return self._unless_doubted(verdict, problem, gold, text, extraction)
        except TooHard as error:
            reason, detail = "too_hard", str(error)
        except RecursionError:  # the caller's own stack was nearly full
            reason, detail = "too_hard", "no room on the stack"
        answer = text[extraction.span[0] : extraction.span[1]].strip()[:MAX_ANSWER_CHARS]
        return Verdict(0.0, reason, detail, answer, extraction.span, gold.type)

    def _found(self, prompt: str, gold: Gold, text: str) -> Extraction:
        extraction = find(text, strict=self.strict, prompt=prompt)
        return extraction if self.strict else in_words(extraction, text, prompt, gold.answer, gold.text)

    def _overruling(
        self, problem: Problem, gold: Gold, text: str, refused: Verdict, explanation: Explanation | None
    ) -> Verdict | None:
        """Returns the verdict on a final claim that is right by itself although the whole text is refused, or None."""
        start = after_thinking(text)
        if start is None:
            return None
        for position in final_claims(text, start, problem.prompt, refused.detail):
            before = max(0, position - 1)  # one blank for all that precedes
            alone = f"{' ' * (position - before)}{text[position:]}"
            extraction = moved(find(alone, prompt=problem.prompt), before)
            if is_claim(text, start, position, extraction, problem.prompt):
                verdict = self._judge(problem, gold, alone, explanation)
                if verdict.score == 1.0 and verdict.span is not None:
                    return replace(verdict, span=(verdict.span[0] + before, verdict.span[1] + before))
        return None

    def _counting(self, problem: Problem, gold: Gold, text: str, explanation: Explanation | None) -> Verdict | None:
        """Returns the verdict on a count, or on the list that follows it if the gold is none, or None without these."""
        counted = enumerated(text, after_thinking(text) or 0, problem.prompt)
        if counted is None:
            return None
        verdict = self._judge(problem, gold, counted[0 if gold.integer is not None else 1], explanation)
        return None if verdict.span is None else verdict

    def _unless_doubted(
        self, verdict: Verdict, problem: Problem, gold: Gold, text: str, extraction: Extraction
    ) -> Verdict:
        """Returns the verdict, or "hedged" if it would pay an answer beside a word that is not understood."""
        if verdict.score != 1.0 or verdict.span is None or self.strict or extraction.source in ("statement", "truth"):
            return verdict
        other = switched(text, verdict.span) if gold.answer.kind == "choice" else ""
        if other:
            return replace(verdict, score=0.0, reason="hedged", detail=f"{other} is chosen after it")
        checked = functools.partial(
            not_understood,
            span=verdict.span,
            prompt=problem.prompt,
            gold=f"{gold.text} {_OR}" if gold.answer.kind in ("list", "set") else gold.text,
            states_itself=extraction.source in _STATED and verdict.span == extraction.span,
            in_words=gold.answer.kind in _IN_WORDS,
        )
        if extraction.source != "box":
            text = without_contrast(text, verdict.span)
        else:
            text = without_correction(text, verdict.span[0])
        if gold.answer.kind == "empty":
            text = NO_SOLUTION_SAID.sub(lambda match: " " * len(match[0]), text)
        word = checked(text)
        if word:
            without = without_units(text, verdict.span[0], verdict.span[1])
            word = checked(without) if without != text else word
        if not word or self._states_it(verdict, problem, text, extraction):
            return verdict
        return replace(verdict, score=0.0, reason="hedged", detail=f"{word!r} beside the answer is not understood")

    def _states_it(self, verdict: Verdict, problem: Problem, text: str, extraction: Extraction) -> bool:
        """Returns whether the last sentence states the answer. Every word of that sentence was then understood."""
        if extraction.source != "anchor" or extraction.others:
            return False
        statement, span = stated(text, after_thinking(text) or 0, len(text), problem.prompt), verdict.span
        if statement is None or statement.span is None or span is None:
            return False
        return span[0] <= statement.span[0] and statement.span[1] <= span[1]

    def gold(self, problem: Problem) -> Gold:
        """Reads the problem's gold. Raises GoldError if it is missing or can't be understood."""
        name = f"problem {problem.name!r}"
        if problem.answer is None:
            raise GoldError(f"{name} has no answer to compare with")
        try:
            gold = read_gold(str(problem.answer))
        except RecursionError as error:  # the caller's own stack was nearly full: nothing is wrong with the gold
            raise VerifierError(f"{name}: no room on the stack to read its gold") from error
        if isinstance(gold, str):
            raise GoldError(f"{name}: can't understand the gold {str(problem.answer)[:200]!r}: {gold}")
        letter = gold.answer.words[0] if gold.answer.kind == "choice" else ""
        known = options(problem.prompt) if letter else {}
        # A letter that stands elsewhere in the question may be an option that is written otherwise than the first ones.
        if known and letter not in known and not re.search(rf"(?<![^\W_]){letter}(?![^\W_])", problem.prompt):
            raise GoldError(f"{name}: the gold {str(problem.answer)[:200]!r} is none of the options {', '.join(known)}")
        return gold

    def check_gold(self, problem: Problem) -> str:
        """Checks that the gold can be read, equals itself, and differs from itself with a number changed.

        Returns:
            The type of the gold, such as "integer".

        Raises:
            GoldError: the gold can't be used; the message names the problem and says why.
        """
        gold = self.gold(problem)
        verdict = self(problem, Completion(f"<answer>{gold.text}</answer>"))
        name = f"problem {problem.name!r}: the gold {str(problem.answer)[:200]!r}"
        if verdict.score != 1.0:
            raise GoldError(f"{name} is not equal to itself: {f'{verdict.reason} {verdict.detail}'.strip()}")
        ignored = None if gold.integer is not None else self._ignored_number(problem, gold)
        if ignored is not None:
            raise GoldError(
                f"{name} would also be equal with another number in place of its '{ignored}': part of it is not"
                " understood; write it as plain maths"
            )
        return gold.type

    def _ignored_number(self, problem: Problem, gold: Gold) -> str | None:
        """Returns a number of the gold that can change without changing the verdict, or None."""
        policy = self._policy(problem)
        with Budget(GUARD_BUDGET) as budget:
            for digits, texts in variants(gold.text):
                for text in texts:
                    try:
                        reason, _ = self._reason(gold, text, problem, policy, budget, None)
                        if reason != "equal" or same_but_for_values(gold.answer, read(text)):
                            break
                    except Unreadable:  # equal as words, but not readable as maths
                        break
                    except TooHard:
                        if budget.left < 0:  # the other numbers of a very long gold are not tried
                            return None
                        break
                else:
                    return digits
        return None

    def _policy(self, problem: Problem) -> Policy:
        return Policy(self.precision, self.percent, self.units, problem.prompt, str(problem.answer))

    def _decide(
        self,
        problem: Problem,
        gold: Gold,
        text: str,
        extraction: Extraction,
        budget: Budget,
        explanation: Explanation | None,
    ) -> Verdict:
        """Compares an extracted answer with the gold, and what stands within or after it if it can't be read."""
        assert extraction.span is not None
        budget.trace = [] if explanation is not None else None
        policy = self._policy(problem)
        # Tabs are kept: one may be the remainder of a damaged "\\text".
        answer = extraction.said or text[slice(*extraction.span)].strip(" \n\r")
        if len(answer) > MAX_ANSWER_CHARS:
            return Verdict(0.0, "too_long", f"answer of {len(answer)} characters", None, extraction.span, gold.type)
        refused = functools.partial(Verdict, 0.0, answer=answer, span=extraction.span, gold_type=gold.type)
        several = self._several(gold, text, extraction, policy, budget)
        if several:
            return refused("hedged", several)
        span = extraction.span
        if _is_listed(gold, extraction):
            span = (extraction.joint[0][0], extraction.joint[-1][1])
            joined = " , ".join(text[slice(*part)] for part in extraction.joint)
            whole = joined.count(",") == len(extraction.joint) - 1  # no box holds a list
            joined = f"({joined})" if extraction.in_order else joined
            if not (whole and self._reason(gold, answer, problem, policy, budget, None)[0] == "equal"):
                answer = joined
        answer = as_gold_is_written(answer, gold)
        doubt = doubt_of(answer, gold, extraction.source)
        if doubt is not None:
            return refused(*doubt, answer=answer, span=span)
        parts = restated(answer, one=gold.answer.kind == "scalar")
        if parts:
            one = " ".join(parts) if _names_unit(parts) else parts[0] if _same_values(parts, policy, budget) else None
            if one is None:
                return refused("hedged", "a restatement with another value", answer=answer, span=span)
            answer = one
        context = f"{problem.prompt[-600:]} {text[-600:]}"
        gold, answer = in_points(gold, answer, problem.prompt, str(problem.answer), context)
        reason, detail = self._reason(gold, answer, problem, policy, budget, explanation)
        if reason in _NOT_COMPARED:
            for other, place in _others(problem.prompt, gold, text, extraction):
                retried, note = self._reason(gold, other, problem, policy, budget, explanation)
                if retried == "equal" and other_option(problem.prompt, gold.answer, answer):
                    retried, note = "different", _OTHER_OPTION
                if retried not in _NOT_COMPARED:
                    reason, detail, answer, span = retried, note, other, place
                    break
        if extraction.source == "whole" and reason in _NOT_COMPARED and not MATHS_SIGN.search(answer):
            return Verdict(0.0, "no_answer", "words only", gold_type=gold.type)
        if explanation is not None and budget.trace is not None:
            explanation.steps.extend(budget.trace)
        return Verdict(float(reason == "equal"), reason, detail, answer, span, gold.type, budget.rung)

    def _several(self, gold: Gold, text: str, extraction: Extraction, policy: Policy, budget: Budget) -> str:
        """Returns what the text gives several different ones of where the gold is one: boxes or answers, or ""."""
        if extraction.joint and not _is_listed(gold, extraction):
            values = {text[slice(*part)].strip() for part in extraction.joint}
            boxes = (*extraction.others, *extraction.joint)
            return "several boxes" if len(values) > 1 and not self._agree(text, boxes, policy, budget) else ""
        assert extraction.span is not None
        differ = extraction.others and not self._agree(text, (*extraction.others, extraction.span), policy, budget)
        return "several final answers" if differ else ""

    def _agree(self, text: str, spans: tuple[Span, ...], policy: Policy, budget: Budget) -> bool:
        """Returns whether all final answers have the same value; a sentence has that of its only number."""
        parts = [text[slice(*span)] for span in spans]
        if _same_values((parts[-1], *parts[:-1]), policy, budget):
            return True
        soles = [sole_value(text, span) for span in spans]
        parts = [part if sole is None else text[slice(*sole)] for part, sole in zip(parts, soles, strict=True)]
        return any(soles) and _same_values((parts[-1], *parts[:-1]), policy, budget)

    def _reason(
        self,
        gold: Gold,
        text: str,
        problem: Problem,
        policy: Policy,
        budget: Budget,
        explanation: Explanation | None,
    ) -> tuple[str, str]:
        """Returns (reason, detail) for a text that is taken as the final answer."""
        try:
            answer = read(text)
        except Unreadable as error:
            if gold.answer.kind == "text" and same_words(gold.answer, text):
                return "equal", ""
            if explanation is not None:
                explanation.steps.append(("read", f"unparseable: {error}"))
            return "unparseable", str(error)
        budget.rung = "type"  # reading an equation may have compared its two sides
        if explanation is not None:
            explanation.steps.append(("read", f"{type_name(answer)}: {text[:200]!r}"))
        if answer.kind == "text" and gold.answer.kind == "scalar":
            value = number_of_things(text, problem.prompt)
            answer = answer if value is None else Answer("scalar", number(value))
        if gold.answer.kind == "text" or answer.kind == "text":
            budget.rung = "text"
            if same_words(gold.answer, text, gold.text):
                return "equal", ""
        try:
            if problem.prompt and other_option(problem.prompt, answer, text):
                return "different", _OTHER_OPTION
            reason = compared(gold.answer, answer, policy, budget)
            if reason == "equal" and problem.prompt and other_of_two(problem.prompt, str(problem.answer), text):
                return "different", "the other value of the question"
            if reason == "equal" and problem.prompt and _is_of_another_letter(problem.prompt, gold.answer, answer):
                return "different", "the value of another letter"
            if reason == "equal" and problem.prompt and restates(problem.prompt, gold.answer, answer, text, gold.text):
                return "unsolved", "the question's own expression"
            if reason != "equal" and self.multiple_choice == "auto" and (problem.prompt or len(gold.answer.words) > 1):
                other = option_of(problem.prompt, gold.answer, answer)
                if other is not None and compared(other[0], other[1], policy, budget) == "equal":
                    budget.rung = "option"
                    return "equal", "by the option's text"
        except Unreadable as error:
            return "type_clash", str(error)
        return reason, ""


def _with_capital_labels(problem: Problem, completion: Completion) -> tuple[Problem, Completion]:
    """Writes the labels a), b), ... or ①, ②, ... of options as capitals of the same length, if the gold is one."""
    gold, text = str(problem.answer), completion.text
    if len(gold) == 1 and _CIRCLED.match(gold) and len(text) <= MAX_CHARS and _CIRCLED.search(text):
        prompt, gold, text = (_CIRCLED.sub(_lettered, part) for part in (problem.prompt, gold, text))
        return replace(problem, prompt=prompt, answer=gold), replace(completion, text=text)
    label = _SMALL_LABEL.fullmatch(str(problem.answer)) if len(str(problem.answer)) < 4 else None
    if label is None or len(_SMALL_OPTION.findall(problem.prompt)) < 2 or len(completion.text) > MAX_CHARS:
        return problem, completion
    prompt = _SMALL_OPTION.sub(lambda match: match[0].upper(), problem.prompt)
    text = _SMALL_CHOICE.sub(lambda match: match[0].upper(), completion.text)
    return replace(problem, answer=label[1].upper(), prompt=prompt), replace(completion, text=text)


def _lettered(match: re.Match[str]) -> str:
    return chr(ord("A") + ord(match[0][0]) - ord("①")) + ")" * (len(match[0]) - 1)


def _is_of_another_letter(prompt: str, gold: Answer, answer: Answer) -> bool:
    """Returns whether an answer names another letter of the question than the one that is asked for: "x = 12"."""
    if gold.name or len(answer.name) != 1 or answer.kind != "scalar":
        return False
    asked = asked_symbol(question_of(prompt)).strip("$")
    return len(asked) == 1 and asked.casefold() != answer.name.casefold() and answer.name in letters_in_formulas(prompt)


def _same_values(parts: tuple[str, ...], policy: Policy, budget: Budget) -> bool:
    """Returns whether all parts have the value of the first; a decimal may be rounded."""
    try:
        first, *others = [read(part) for part in parts]
        return all(
            compared(first, other, policy, budget) == "equal" or compared(other, first, policy, budget) == "equal"
            for other in others
        )
    except Unreadable:  # a part, or the text of the option in it ("A: ^")
        return False


def _names_unit(parts: tuple[str, ...]) -> bool:
    """Returns whether the parts are a number and its unit, as in "42 (dollars)", not a value stated twice."""
    if len(parts) != 2 or not parts[1].isalpha():
        return False
    try:
        bare, named = read(parts[0]), read(" ".join(parts))
    except Unreadable:
        return False
    return bare.unit is None and named.unit is not None


def _is_listed(gold: Gold, extraction: Extraction) -> bool:
    """Returns whether the boxes of one sentence are the elements of a gold with several."""
    return bool(extraction.joint) and not extraction.others and gold.answer.kind in ("list", "set", "tuple")


def _others(prompt: str, gold: Gold, text: str, extraction: Extraction) -> Iterator[tuple[str, Span]]:
    """Yields what may be the answer instead of one that can't be compared: a part of it, or what the text states."""
    assert extraction.span is not None
    if _OF_A_VALUE.search(text, *extraction.span):
        return
    if extraction.source in ("answer", "anchor", "hashes", "box"):
        for inner in _embedded(text, extraction, gold):
            yield text[slice(*inner)].strip(), inner
        written = only_expression(text, extraction.span, prompt) if prompt else None
        if written is not None:
            yield text[slice(*written)].strip(), written
    if extraction.source in ("whole", "anchor") and prompt:
        said = stated(text, after_thinking(text) or 0, len(text), prompt)
        if said is not None and said.span is not None and said.span[0] >= extraction.span[0]:
            yield said.said or text[slice(*said.span)].strip(), said.span


def _embedded(text: str, extraction: Extraction, gold: Gold) -> list[Span]:
    """Finds the answer within a sentence that was given as the answer: the announced part, or the only value."""
    if gold.answer.kind in ("text", "choice", "truth") or extraction.span is None:
        return []
    part = text[slice(*extraction.span)]
    if _TURNING.search(_FORMULA.sub(" ", part)):
        return []
    inner = find(part) if not _TURNING.search(part) else Extraction(None, "turned")
    spans = []
    if inner.source in ("anchor", "maths") and inner.span is not None and not inner.others:
        spans.append((extraction.span[0] + inner.span[0], extraction.span[0] + inner.span[1]))
    sole = sole_value(text, extraction.span)
    found = [span for span in (*spans, sole) if span is not None and span != extraction.span]
    behind = [_NEXT_WORD.match(text, end) for _, end in found]
    return [
        span for span, word in zip(found, behind, strict=True)
        if word is None or not changes_value(clean(word[1]).strip().casefold())
    ]  # fmt: skip
