"""Typed comparison: the gold's type determines which answers are equal to it."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import replace as changed
from fractions import Fraction

from verifiers.extract.asked import asked_of
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.mathexpr import conditions, regions
from verifiers.mathexpr.answers import Answer, as_decimal, significant_digits
from verifiers.mathexpr.asked_units import asked_units
from verifiers.mathexpr.assignments import arrangements, names, roots
from verifiers.mathexpr.binomials import chosen
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.families import same_families
from verifiers.mathexpr.ladder import equal, numeric_gap
from verifiers.mathexpr.letter_units import quantity
from verifiers.mathexpr.limits import Budget
from verifiers.mathexpr.matrices import differ_as_matrices, with_identity
from verifiers.mathexpr.naming import aligned, captured, is_added_constant, letters_in_formulas, names_clash
from verifiers.mathexpr.nodes import (
    PI,
    Node,
    digest,
    has_op,
    number,
    rename,
    substitute,
    symbol,
    symbols,
    unevaluated,
    walk,
)
from verifiers.mathexpr.normal import normal
from verifiers.mathexpr.ordering import asks_to_order
from verifiers.mathexpr.reading import read
from verifiers.mathexpr.relations import (
    equation_gold,
    names_value,
    region_gold,
    regions_of,
    same_equation,
    same_ratio,
    same_residues,
    structure,
    verdict,
)
from verifiers.mathexpr.terms import first_terms
from verifiers.mathexpr.vectors import components, coordinates
from verifiers.units.reading import CELSIUS, DEGREE, FAHRENHEIT, KELVIN, RADIAN, Unit
from verifiers.units.words import PERCENT

_PERCENT = any_case(rf"%|{PERCENT}|percentage|porcentaje|porcentagem|percentuale|yüzde|百分|نسبة")
_FUNCTION_NAMES = frozenset("fghFGHPSTaus")
_ORIGINS = (number(2), number(Fraction(1, 3)))
_CONSTANT = lazy_pattern(r"[A-HKabck]|alpha|beta|[CcAaBbKk]_\{?\d\}?|c_?\d")
_INTEGRAL = any_case(
    r"\\int(?![a-z])|∫|integral|integrate|integrand|antideriv|primitiv|stammfunktion|integr[aá][lrç]|積分|积分|原函数"
)
_GENERAL = any_case(
    r"general solution|allgemeine\w* lösung|solution générale|soluci[oó]n general|solução geral|soluzione generale"
    r"|all (?:such |polynomial |continuous |possible )*functions"
    r"|todas las funciones|toutes les fonctions|alle funktionen|所有函数"
    r"|differenz?ial|diff[ée]rentielle|diferencia[li]|różniczkow|дифференциальн|微分方程"
    r"|общее решение|通解|一般解|일반해|rozwiązanie ogólne|general(?:ly)? solve"
)
_HOURS = Unit((("time", 1),), Fraction(3600))
_ABOVE_ABSOLUTE_ZERO = {
    CELSIUS.dimension: (Fraction(1), Fraction("273.15")),
    FAHRENHEIT.dimension: (Fraction(5, 9), Fraction("459.67") * Fraction(5, 9)),
    KELVIN.dimension: (Fraction(1), Fraction(0)),
}  # kelvins per degree, and kelvins at zero degrees
# Units of which one may be given for another. Yuan are left out: a translation may ask for them and answer in dollars.
_FAMILY = {
    **dict.fromkeys(("angle", "angle_degree"), "angle"),
    **dict.fromkeys(("celsius", "fahrenheit", "kelvin"), "temperature"),
    **dict.fromkeys(("USD", "EUR", "GBP", "INR", "JPY", "RUB", "KRW"), "money"),
}
_DIFFERENCE = any_case(
    r"differ|chang|ris(?:e|es|ing)\b|rose\b|increas|decreas|drop|fall|fell\b|warm|cool|hott|cold|raise|lower"
    r"|unterschied|différence|diferencia|diferença|differenza|разниц|温差|差|차이|الفرق"
)
_LETTER_M = any_case(
    r"(?<![\w\s])m(?![^\W_]|/)|\b(?:let|integers?|numbers?|variable|of) m\b"
)  # the question has a variable m
_WRITTEN_WITH_M = frozenset(
    ((("length", 2),), (("length", 3),), (("length", 4),), (("length", 1), ("time", -1)), (("length", 1), ("time", -2)))
)
_WHOLE = frozenset("integer integers setz z natural naturals setn n whole".split())
_INTEGERS = any_case(
    r"\bintegers?\b|\bnatural|\bwhole\b|\\mathbb\s*\{?\s*[NZ]|[ℕℤ]|\bganz\w+ zahl|natürlich|entier"
    r"|naturel|entero|inteir|\binter[oi]\b|gehele|heltal|całkowit|tam ?sayı|nguyên|bulat|цел[ыо]|натуральн|ціл"
    r"|整数|整數|自然数|自然數|정수|자연수|صحيح|पूर्णांक"
)
_MOST_NAMES = 4
_SEVERAL = any_case(
    r"pairs?|couples?|dozens?|scores?|hundreds|thousands|paare?|dutzend|paires?|douzaines?|pares|docenas?"
    r"|dúzias?|paia|dozzine?|пар[аы]?|дюжин[аы]?|paren|tucet"
)  # nouns of several things
_COMMAS = lazy_pattern(r"(?<![\d({\[,.;])\d+,\d{1,2}(?![\d,)}\].])")  # decimal commas, not lists or thousands
_NUMBERED = lazy_pattern(r"[xztλ]\s?_|lambda\s?_|[xztλ][₁₂]|\b[xzt]\d")
_BETWEEN_NAMES = r"[\s$]*(?:,|(?:,\s*)?(?:and|und|et|y|e|en|och|i|и))[\s$]*\\?"
_APPLIED = frozenset({"apply"})
_ROUGH = frozenset({"dec", "base"})


@dataclass(frozen=True, slots=True)
class Policy:
    """The options of the verifier (see MathVerifier), and the problem's prompt and gold."""

    digits: int  # significant digits at which a decimal is accepted for an exact gold; 0 = never
    percent: str
    units: str
    prompt: str = ""
    gold: str = ""

    @property
    def asks_percent(self) -> bool:
        """Whether the problem may ask for a percentage. Searched on demand, as few answers need it."""
        return not self.prompt or _PERCENT.search(self.prompt) is not None

    @property
    def asks_order(self) -> bool:
        """Whether the problem asks to order the items of its gold. Searched on demand, too."""
        return bool(self.prompt) and asks_to_order(self.prompt, self.gold)


def compared(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> str:
    """Returns the reason of the verdict: "equal", or why the answers differ.

    Raises:
        TooHard: the comparison would exceed the budget.
        Unreadable: the text of an option in the answer can't be read.
    """
    budget.spend(10)
    clash = conditions.clash(gold.condition, answer.condition) or (
        # The domain of a function or sequence is the question's, and is often not repeated exactly.
        gold.name[:1] not in _FUNCTION_NAMES and conditions.other_numbers(gold.condition, answer.condition)
    )
    if captured(gold, answer):
        return "different"
    given, answer = answer, aligned(gold, answer, policy.prompt)
    if names_clash(gold, answer):
        return "different"
    reason = _by_kind(gold, answer, policy, budget)
    if reason == "different" and gold.kind == answer.kind and gold.kind in ("scalar", "equation"):
        same = gold.kind == "scalar" and _integrated(gold, answer, policy, budget)
        same = same or _with_constants(gold, given, policy, budget)
        reason = "equal" if same else reason
    if reason != "equal" and same_families(gold, given, policy.prompt):
        reason = "equal" if budget.decided("integers", True) else reason
    if reason == "equal" and gold.node is not None and answer.node is not None:
        clash = clash or differ_as_matrices(gold.node, answer.node, policy.prompt, budget)
    if reason == "equal" and _over_integers(gold) != _over_integers(given) and policy.prompt:
        clash = clash or not _INTEGERS.search(policy.prompt)
    return "different" if reason == "equal" and clash else reason


def _over_integers(answer: Answer) -> bool:
    """Returns whether the answer is an inequality for integers only, as 2 < x < 5 with x in Z."""
    words = answer.condition.casefold().split()
    return answer.kind == "region" and answer.name in answer.bound and not _WHOLE.isdisjoint(words)


def _integrated(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> bool:
    """Returns whether both are F(x) + C, with the same F up to a constant. Of other letters the question must tell."""
    assert gold.node is not None
    assert answer.node is not None
    ours, theirs = symbols(gold.node), symbols(answer.node)
    constants = [name for name in ours if is_added_constant(gold, name) and is_added_constant(answer, name)]
    if ours != theirs or len(ours) != 2 or len(constants) != 1:
        return False
    if constants[0][0] != "C" and not (_INTEGRAL.search(policy.prompt) or _GENERAL.search(policy.prompt)):
        return False  # 2x + k is not 2x + 5 + k
    (name,) = ours - set(constants)

    def from_origin(node: Node, origin: Node) -> Node:
        return Node("add", (node, Node("neg", (substitute(node, {name: origin}),))))

    return any(equal(from_origin(gold.node, at), from_origin(answer.node, at), budget) for at in _ORIGINS)


def _with_constants(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> bool:
    """Returns whether both are general solutions that differ in the names of one to three arbitrary constants."""
    assert gold.node is not None
    assert answer.node is not None
    if not _GENERAL.search(policy.prompt):
        return False
    given = letters_in_formulas(policy.prompt)
    ours, theirs = (
        sorted(name for name in symbols(node) - given if _CONSTANT.fullmatch(name)) for node in (gold.node, answer.node)
    )
    rest = symbols(gold.node) - set(ours), symbols(answer.node) - set(theirs)
    if not 0 < len(ours) == len(theirs) < 4 or rest[0] != rest[1]:
        return False
    same = equal if gold.kind == "scalar" else same_equation
    return any(
        same(gold.node, rename(answer.node, dict(zip(theirs, names, strict=True))), budget)
        for names in itertools.permutations(ours)
    )


def _by_kind(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> str:
    match gold.kind:
        case "scalar":
            return _scalar_gold(gold, answer, policy, budget)
        case "list" | "set" | "tuple":
            return _collection(gold, answer, policy, budget)
        case "region":
            return region_gold(gold, answer, budget)
        case "equation":
            return equation_gold(gold, answer, budget)
        case "ratio":
            return same_ratio(gold, answer, budget)
        case "relation" | "quantified":
            return structure(gold, answer, budget)
        case "clock":
            return _clock(gold, answer, budget)
        case "date":
            return _date(gold, answer)
        case "choice":
            return _choice(gold, answer, policy, budget)
        case "empty":
            same = answer.kind == "empty" or (answer.kind == "region" and not answer.pieces)
            return verdict(same, answer.kind == "empty")
    if answer.kind != gold.kind:
        return "hedged" if answer.kind == "list" else "type_clash"
    return verdict(gold.words == answer.words, True)


# -- scalars


def _scalar_gold(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> str:
    assert gold.node is not None
    match answer.kind:
        case "scalar" if answer.node is not None:
            reason = _scalars(gold, answer, policy, budget)
            vectors = reason == "different" and (
                (symbols(gold.node) and answer.node.op != "binom")
                or (gold.node.op == "matrix" and answer.node.op != "matrix")
            )
            parts = _parts(answer.node, len(gold.node.args)) if vectors else None
            return reason if parts is None else _vector(gold, Answer("tuple", items=parts), policy, budget)
        case "list" if answer.comma is not None and not _is_integer(gold.node):
            return _scalars(gold, answer.comma, policy, budget)
        case "list" if answer.joined_by == "=":  # x = y = 2
            return _best(compared(gold, item, policy, budget) for item in answer.items)
        case "list":
            few = answer.joined_by == "or" and len(answer.items) < 4  # "3/4 or 0.75": one answer in two spellings
            same = few and all(compared(gold, item, policy, budget) == "equal" for item in answer.items)
            return "equal" if same else "hedged"
        case "set" if len(answer.items) == 1:
            return _by_kind(gold, answer.items[0], policy, budget)
        case "empty" if rational(gold.node) == 0 and asked_of(policy.prompt[-2000:]).things:
            return "equal"  # "None." after "How many ...?"
        case "region" if len(answer.pieces) == 1 and answer.pieces[0].low == answer.pieces[0].high:
            return _scalars(gold, Answer("scalar", answer.pieces[0].low), policy, budget)
        case "clock" if gold.unit is not None and gold.unit == _HOURS and answer.name == "h":  # "2 h 45"
            value = rational(gold.node)
            return verdict(value is not None and value * 3600 == _seconds(answer.words[0], "", ""), True)
        case "clock" if len(answer.items) == 2:
            ratio = Node("div", tuple(item.node for item in answer.items if item.node is not None))
            return verdict(gold.node.op == "div" and equal(gold.node, ratio, budget), False)
        case "tuple" if answer.name == "C" and len(answer.items) == 2:  # C(10, 3), the ways to choose
            chosen = Node("binom", tuple(item.node for item in answer.items if item.node is not None))
            return _numbers(gold.node, chosen, gold.also, policy, budget)
        case "tuple":
            return _vector(gold, answer, policy, budget)
        case "equation":
            if gold.name and answer.node is not None:
                named = Node("chain", (symbol(gold.name), gold.node), ("=",))
                return verdict(same_equation(named, answer.node, budget), False)
            if gold.node.op == "chain":
                return verdict(same_equation(gold.node, answer.node or gold.node, budget), True)
            if answer.node is not None and names_value(answer.node):
                return _numbers(gold.node, answer.node.args[-1], gold.also, policy, budget)
        case "relation" if answer.node is not None and answer.node.op == "congruence":
            return verdict(same_residues(answer.node, gold.node), True)
        case "choice" if len(answer.words) > 1:
            return _by_kind(gold, _option(answer.words[1]), policy, budget)  # "A: 18"
        case "choice" if gold.node == symbol(answer.words[0]) and len(answer.words) == 1:
            return "equal"
        case "choice" if answer.words == ("I",) and has_op(gold.node, frozenset({"matrix"})):
            return _scalars(gold, Answer("scalar", symbol("I")), policy, budget)
    return "type_clash"


def _is_integer(node: Node) -> bool:
    value = rational(node)
    return value is not None and value.denominator == 1


def _option(text: str) -> Answer:
    answer = read(text)
    return answer if answer.kind != "choice" else Answer("text", words=answer.words)


def _vector(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> str:
    """Compares a row, a column or a sum of unit vectors with a tuple of its coordinates."""
    parts = _parts(gold.node)
    return "type_clash" if parts is None else _ordered(parts, answer.items, policy, budget)


def _parts(node: Node | None, count: int = 0) -> tuple[Answer, ...] | None:
    """Returns the coordinates of a vector that is written as a matrix or as a sum of unit vectors, else None.

    Args:
        count: how many the gold has; an answer 2i + 3j is (2, 3, 0) if it has three.
    """
    if node is None:
        return None
    in_axes = components(node)
    parts = node.args if (node.op, count) == ("binom", 2) else in_axes or coordinates(node)  # a column as \\binom{3}{4}
    if parts is not None and in_axes and (len(parts), count) == (2, 3):
        parts = (*parts, number(0))
    return None if parts is None else tuple(Answer("scalar", part) for part in parts)


def _scalars(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> str:
    gold, answer = _as_quantities(gold, answer, policy)
    gold = _in_asked_unit(gold, answer, policy)
    assert gold.node is not None
    assert answer.node is not None
    g, a = with_identity(gold.node, answer.node)
    if any(name[0] == "C" for name in symbols(a) - symbols(g)) or has_op(a, _APPLIED) > has_op(g, _APPLIED):
        a = chosen(a)
    if g.op == a.op == "fn" and g.value == a.value == "mod" and not equal(g.args[1], a.args[1], budget):
        return "different"  # 2 (mod 15) and 2 (mod 16)
    if gold.unit is not None and answer.unit is not None and gold.unit.dimension and answer.unit.dimension:
        if gold.unit.dimension != answer.unit.dimension:
            on_its_scale = _temperature(a, answer.unit, gold.unit, policy)
            if on_its_scale is not None:
                same = _numbers(g, on_its_scale, gold.also, policy, budget) == "equal"
                return "equal" if same else "unit_clash"
            if {gold.unit.dimension, answer.unit.dimension} != {DEGREE.dimension, RADIAN.dimension}:
                return "unit_clash"
            g, a = _radians(g, gold.unit), _radians(a, answer.unit)
        elif gold.unit.scale != answer.unit.scale:
            a = Node("mul", (a, number(answer.unit.scale / gold.unit.scale)))
    elif _has_unit(gold) != _has_unit(answer):
        if policy.units == "require" or gold.noun or answer.noun:
            return "unit_clash"
        if _angle(gold) != _angle(answer) and (_in_pi(a) if _angle(gold) else _in_pi(g)):
            g, a = _radians(g, gold.unit), _radians(a, answer.unit)
    if any(
        one.percent and not other.percent and (_has_unit(other) or _counts(other))
        for one, other in ((gold, answer), (answer, gold))
    ):
        return "unit_clash"
    if _labels_clash(gold, answer):
        return "unit_clash"
    if (
        policy.prompt
        and not gold.label
        and any(_SEVERAL.fullmatch(word) and word not in policy.prompt.lower() for word in answer.label)
    ):
        return "unit_clash"  # 7 pairs where single ones are asked for
    if "base" in (g.op, a.op):
        return _based(g, a, policy)
    if gold.percent != answer.percent:
        return _percent(gold, answer, policy, budget)
    return _numbers(g, a, gold.also, policy, budget)


def _temperature(node: Node, given: Unit, wanted: Unit, policy: Policy) -> Node | None:
    """Converts a temperature to another scale; None for other units or if the question is about a difference."""
    here, there = _ABOVE_ABSOLUTE_ZERO.get(given.dimension), _ABOVE_ABSOLUTE_ZERO.get(wanted.dimension)
    if here is None or there is None or given.scale != 1 or wanted.scale != 1 or _DIFFERENCE.search(policy.prompt):
        return None
    value = rational(node)
    return None if value is None else number((value * here[0] + here[1] - there[1]) / there[0])


def _has_unit(answer: Answer) -> bool:
    return answer.unit is not None and bool(answer.unit.dimension)


def _angle(answer: Answer) -> bool:
    return answer.unit is not None and answer.unit.dimension == DEGREE.dimension


def _radians(node: Node, unit: Unit | None) -> Node:
    if unit is None or unit.dimension != DEGREE.dimension:
        return node
    return Node("mul", (node, PI, number(unit.scale / 180)))


def _in_pi(node: Node) -> bool:
    return any(part == PI for part in walk(node))


def _as_quantities(gold: Answer, answer: Answer, policy: Policy) -> tuple[Answer, Answer]:
    """Returns gold and answer with the letter of a product such as "5 m" as a unit, if the other side shows it is one.

    The other side is a quantity; or the gold is a plain number and the answer's letters are a power of m or a speed
    ("72 m^2", "20m/s").
    """
    wanted, given = _has_unit(gold), _has_unit(answer)
    if wanted and not given:
        return gold, quantity(answer)
    if given and not wanted:
        return quantity(gold), answer
    if gold.node is not None and not symbols(gold.node):
        measured = quantity(answer)
        if measured is not answer and policy.prompt and measured.unit in asked_units(policy.prompt):
            return gold, measured  # "30g"
        metres = measured.unit is not None and measured.unit.dimension in _WRITTEN_WITH_M
        if metres and "m" in symbols(answer.node or gold.node) and not _LETTER_M.search(policy.prompt):
            return gold, measured
    return gold, answer


def _in_asked_unit(gold: Answer, answer: Answer, policy: Policy) -> Answer:
    """Returns a gold without a unit in the unit that the question asks for, if the answer has a similar one."""
    if _has_unit(gold) or gold.percent or gold.noun or not _has_unit(answer) or not policy.prompt:
        return gold
    units = asked_units(policy.prompt)
    if not units or answer.unit is None or answer.unit in units:
        return gold
    unit = next((unit for unit in units if unit.dimension == answer.unit.dimension), units[0])
    kinds = [{_FAMILY.get(name, name) for name, _ in side.dimension} for side in (unit, answer.unit)]
    degrees = "temperature" in kinds[0] and _DIFFERENCE.search(policy.prompt)  # kelvins or degrees alike
    return changed(gold, unit=unit) if kinds[0] & kinds[1] and not degrees else gold


def _counts(answer: Answer) -> bool:
    """Returns whether the words beside the value name what is counted, as in "7 apples", but not in "7 percentage"."""
    return answer.noun and _PERCENT.search(" ".join(answer.label)) is None


def _labels_clash(gold: Answer, answer: Answer) -> bool:
    """Returns whether both have words and these share no stem: "5 apples" and "5 oranges"."""
    if not gold.label or not answer.label:
        return False
    stems = [{word[:4] for word in side.label if len(word) > 2} for side in (gold, answer)]
    return bool(stems[0]) and bool(stems[1]) and not stems[0] & stems[1]


def _based(gold: Node, answer: Node, policy: Policy) -> str:
    if gold.op == answer.op:
        return verdict(gold.value == answer.value, True)
    named, bare = (gold, answer) if gold.op == "base" else (answer, gold)
    digits, base = named.value
    if bare.op == "num" and str(bare.value) == digits and (gold.op == "base" or base == 10):
        return "equal"  # the base may be omitted
    if gold.op == "num" and gold.value == int(digits, base) and digits.casefold() not in policy.prompt.casefold():
        return "equal"  # in base ten, unless it is the number that the question asks to convert
    return "different"


def _percent(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> str:
    """Compares 50% with 0.5 (the same value), or with 50 (the sign omitted)."""
    assert gold.node is not None
    assert answer.node is not None
    reason = _numbers(gold.node, answer.node, None, policy, budget)
    if reason == "equal" or policy.percent == "value":
        return reason
    if gold.percent:
        return _numbers(_bare(gold.node), answer.node, None, policy, budget)
    value = rational(gold.node)
    if value is None or abs(value) < 1 or not policy.asks_percent:
        return reason
    asked = asked_of(policy.prompt[-2000:])
    if asked.things and not _PERCENT.search(asked.sentence):
        return "unit_clash"  # 18% of the litres that are asked for
    return _numbers(gold.node, _bare(answer.node), None, policy, budget)


def _bare(node: Node) -> Node:
    return Node("neg", (_bare(node.args[0]),)) if node.op == "neg" else node.args[0]


def _numbers(gold: Node, answer: Node, also: Node | None, policy: Policy, budget: Budget) -> str:
    """Compares two numbers. The gold determines the precision.

    A gold with d decimals requires agreement at d decimals; an exact gold requires the exact value, or a decimal with
    `policy.digits` significant digits or more.

    Args:
        also: the decimal that the gold gives with its exact value.
    """
    if unevaluated(answer) and not unevaluated(gold):
        return "unsolved"
    rounded = as_decimal(gold)
    given = as_decimal(answer)
    if symbols(gold) or symbols(answer) or (rounded is None and given is None):
        pairs = first_terms(gold, answer) if unevaluated(gold) else None
        if pairs is not None:
            return verdict(all(equal(first, second, budget) for first, second in pairs), True)
        return verdict(equal(gold, answer, budget), True)
    if rounded is not None:
        return verdict(numeric_gap(answer, gold, rounded[1], budget), True)
    assert given is not None
    exact = rational(gold)
    if exact == given[0]:
        return "equal" if budget.decided("rational", True) else "different"
    beside = as_decimal(also) if also is not None else None
    if beside is not None and policy.digits and abs(beside[0] - given[0]) <= beside[1]:
        budget.decided("rational", True)
        return "equal"
    if exact is not None and exact.denominator == 1:
        budget.decided("rational", False)
        return "different"
    if not numeric_gap(answer, gold, given[1], budget):
        return "different"
    return "equal" if policy.digits and significant_digits(*given) >= policy.digits else "imprecise"


# -- lists, sets, tuples


def _collection(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> str:
    if gold.kind == "tuple":
        return _tuple_gold(gold, answer, policy, budget)
    if gold.comma is not None and _COMMAS.search(policy.prompt):  # "0,6" is six tenths where the question has "1,2"
        return _scalar_gold(gold.comma, answer.comma or answer, policy, budget)
    if answer.kind == "tuple" and gold.kind == "list" and answer.brackets == "()" and policy.units != "require":
        return _in_order(gold.items, answer.items, policy, budget)
    if answer.kind == "tuple" and gold.kind == "list" and len(gold.items) == 1:
        return compared(gold.items[0], answer, policy, budget)
    if gold.kind == "list" and _python_list(gold, answer):
        answer = changed(answer, kind="list", brackets="")
    if answer.kind == "region":
        return regions_of(gold, answer, budget)
    if gold.joined_by == "=" and answer.kind == "scalar":
        return _best(compared(item, answer, policy, budget) for item in gold.items)
    if answer.kind not in ("list", "set"):
        return "different" if answer.kind in ("scalar", "tuple") and gold.kind == "list" else "type_clash"
    items = answer.items
    if "set" in (gold.kind, answer.kind):
        items, wanted = _distinct(items, policy, budget), _distinct(gold.items, policy, budget)
    else:
        wanted = gold.items
    if len(items) > len(wanted) and all(item.kind == "tuple" for item in items):
        items = _distinct(items, policy, budget)  # a solution may be given twice
    if len(items) != len(wanted):
        return "hedged" if len(items) > len(wanted) and answer.joined_by == "or" else "different"
    if policy.prompt and not _NUMBERED.search(policy.prompt) and roots(names(wanted)) and roots(names(items)):
        wanted, items = (tuple(changed(item, name="") for item in side) for side in (wanted, items))
    if answer.joined_by == "or" and names(items):
        return "hedged"  # x = 1 or y = 2
    if {gold.joined_by, answer.joined_by} == {"and", "or"} and all(
        item.node is not None and item.node.op == "sym" for item in items
    ):
        return "different"  # statements: p and q, p or q
    if answer.joined_by != "or":
        orders = _orders(wanted, items, policy)
        if orders is not None:
            return _best(_ordered(*order, policy, budget) for order in orders)
    if gold.kind == "list" and policy.asks_order:
        return _ordered(wanted, items, policy, budget)
    return _matched(wanted, items, policy, budget)


def _python_list(gold: Answer, answer: Answer) -> bool:
    """Returns whether the answer is a Python list; [a, b] of two numbers may be an interval."""
    if answer.kind != "tuple" or answer.brackets != "[]":
        return False
    return len(answer.items) > 2 or all(item.kind == "tuple" for item in (*gold.items, *answer.items))


def _best(reasons: Iterable[str]) -> str:
    """Returns "equal" if it is among the reasons, else the first of them."""
    options = list(reasons)
    return "equal" if "equal" in options else options[0]


def _in_order(wanted: tuple[Answer, ...], items: tuple[Answer, ...], policy: Policy, budget: Budget) -> str:
    """Compares the items by position, or by their names if they have any."""
    orders = _orders(wanted, items, policy) or [(wanted, items)]
    return _best(_ordered(*order, policy, budget) for order in orders)


def _orders(
    wanted: tuple[Answer, ...], items: tuple[Answer, ...], policy: Policy
) -> list[tuple[tuple[Answer, ...], tuple[Answer, ...]]] | None:
    """Returns the orders to compare, as `arrangements`: only that of the question if it names all, as "Find (n, k)"."""
    orders = arrangements(wanted, items)
    given = names(items)
    if orders is None or len(orders) < 2 or not policy.prompt or len(given) > _MOST_NAMES:
        return orders
    asked = [
        order for order in itertools.permutations(given)
        if re.search(rf"(?<![a-z\\])\\?{_BETWEEN_NAMES.join(map(re.escape, order))}(?![a-z])", policy.prompt.casefold())
    ]  # fmt: skip
    return [(wanted, tuple(items[given.index(name)] for name in asked[0]))] if len(asked) == 1 else orders


def _distinct(items: tuple[Answer, ...], policy: Policy, budget: Budget) -> tuple[Answer, ...]:
    """Leaves out what was there before. 1.4 and 1.375 are two values, though 1.375 is 1.4 when rounded."""
    kept: list[tuple[Answer, Counter[Fraction] | None]] = []
    for item in items:
        value = _exact_values((item,))
        if not any(
            value == before
            if value is not None and before is not None
            else compared(other, item, policy, budget) == "equal" and compared(item, other, policy, budget) == "equal"
            for other, before in kept
        ):
            kept.append((item, value))
    return tuple(item for item, _ in kept)


def _matched(wanted: tuple[Answer, ...], items: tuple[Answer, ...], policy: Policy, budget: Budget) -> str:
    ours, theirs = _exact_values(wanted), _exact_values(items)
    if ours is not None and theirs is not None:
        return verdict(budget.decided("rational", ours == theirs), True)
    wanted, items = _without_common(wanted, items)
    left = list(items)
    worst = "different"
    for want in wanted:
        for index, item in enumerate(left):
            reason = compared(want, item, policy, budget)
            if reason == "equal":
                del left[index]
                break
            worst = reason if reason in ("imprecise", "unit_clash") else worst
        else:
            return worst
    return "equal"


def _exact_values(items: tuple[Answer, ...]) -> Counter[Fraction] | None:
    """Returns the values of plain exact numbers; None if any item is something else."""
    values: Counter[Fraction] = Counter()
    for item in items:
        if item.kind != "scalar" or item.node is None or item.unit or item.percent or item.name or item.label:
            return None
        value = None if item.node.op in ("base", "dec") else rational(item.node)
        if value is None or item.also is not None or as_decimal(item.node) is not None:
            return None
        values[value] += 1
    return values


def _without_common(ours: tuple[Answer, ...], theirs: tuple[Answer, ...]) -> tuple[tuple[Answer, ...], ...]:
    """Removes the items that both have in the same form, so that fewer are compared pair by pair."""
    forms = [list(map(_form, items)) for items in (ours, theirs)]
    common = Counter(forms[0]) & Counter(forms[1])
    del common[None]
    if not common:
        return ours, theirs
    return tuple(_beyond(items, form, common.copy()) for items, form in zip((ours, theirs), forms, strict=True))


def _beyond(items: tuple[Answer, ...], forms: list[object], common: Counter[object]) -> tuple[Answer, ...]:
    kept = []
    for item, form in zip(items, forms, strict=True):
        if common[form] > 0:
            common[form] -= 1
        else:
            kept.append(item)
    return tuple(kept)


def _form(item: Answer) -> object:
    """Returns a key for exact expressions, and tuples of them, that equal ones often share; None for other items."""
    if item.unit is not None or item.also is not None or item.comma is not None or item.percent or item.noun:
        return None
    if item.pieces or item.words or item.label or item.name or item.bound or item.condition or item.joined_by:
        return None
    if item.kind == "scalar" and item.node is not None and not has_op(item.node, _ROUGH):
        return digest(normal(item.node))
    forms = tuple(map(_form, item.items))
    return (item.brackets, forms) if item.kind == "tuple" and None not in forms else None


def _ordered(wanted: tuple[Answer, ...], items: tuple[Answer, ...], policy: Policy, budget: Budget) -> str:
    if len(wanted) != len(items):
        return "different"
    for want, item in zip(wanted, items, strict=True):
        reason = compared(want, item, policy, budget)
        if reason != "equal":
            return reason
    return "equal"


def _tuple_gold(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> str:
    if answer.kind == "tuple":
        if gold.brackets != answer.brackets and len(gold.items) == 2 and "<" not in gold.brackets + answer.brackets:
            return "type_clash"  # (a, b) and [a, b] may be intervals
        if "|" in gold.brackets + answer.brackets and gold.brackets != answer.brackets:
            return "type_clash"
        return _in_order(gold.items, answer.items, policy, budget)
    if answer.kind == "set" and (len(answer.items) == 1 or names(answer.items)):  # {(2, -1)}, {x = 2, y = -1}
        alone = answer.items[0] if len(answer.items) == 1 else changed(answer, kind="list", brackets="")
        return _by_kind(gold, alone, policy, budget)
    if answer.kind == "scalar" and answer.node is not None:
        parts = _parts(answer.node, len(gold.items))
        return "type_clash" if parts is None else _ordered(gold.items, parts, policy, budget)
    if answer.kind == "list" and answer.joined_by != "or":
        return _in_order(gold.items, answer.items, policy, budget)
    if answer.kind == "region" and len(gold.items) == 2:
        nodes = [item.node for item in gold.items if item.node is not None]
        if len(nodes) == 2 and gold.brackets in ("()", "[]"):
            pieces = regions.from_node(Node("group", (nodes[0], nodes[1]), gold.brackets))
            real = bool(regions.canonical(pieces, budget))  # the point (5, 2) is no interval, which would be empty
            return verdict(real and regions.same_region(pieces, answer.pieces, budget), True)
    return "hedged" if answer.kind == "list" else "type_clash"


# -- times, dates, choices


def _clock(gold: Answer, answer: Answer, budget: Budget) -> str:
    if answer.kind == "ratio":
        return same_ratio(gold, answer, budget)
    if answer.kind == "scalar" and len(gold.items) == 2 and answer.node is not None and answer.node.op == "div":
        ratio = Node("div", tuple(item.node for item in gold.items if item.node is not None))
        return verdict(equal(ratio, answer.node, budget), False)
    if answer.kind != "clock":
        return "hedged" if answer.kind == "list" else "type_clash"
    (first, half), (second, other_half) = gold.words, answer.words
    same = _seconds(first, half, other_half) == _seconds(second, other_half, half)
    return verdict(budget.decided("type", same), True)


def _seconds(text: str, half: str, other_half: str) -> int:
    """Returns the time of day in seconds. If only the other side names a half of the day, that half is used."""
    hour, minute, second = map(int, text.split(":"))
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    elif other_half and hour <= 12:
        hour = hour % 12 + (12 if other_half == "p" else 0)
    return hour % 24 * 3600 + minute * 60 + second


def _date(gold: Answer, answer: Answer) -> str:
    if answer.kind != "date":
        return "hedged" if answer.kind == "list" else "type_clash"
    both = len(gold.words) == len(answer.words) == 2  # 3/4/2020 and 4/3/2020 are each the other's other reading
    for first in gold.words[: 1 if both else None]:
        for second in answer.words[: 1 if both else None]:
            year, _, day = first.partition("-")
            other_year, _, other_day = second.partition("-")
            if day == other_day and (year == other_year or not year):
                weekdays_clash = gold.label and answer.label and gold.label != answer.label
                return "different" if weekdays_clash else "equal"
    return "different"


def _choice(gold: Answer, answer: Answer, policy: Policy, budget: Budget) -> str:
    letter = gold.words[0]
    if answer.kind == "choice":
        same = answer.words[0] == letter
        if same and len(gold.words) > 1 and len(answer.words) > 1:  # "(B) 7" is not "(B) 8"
            ours, theirs = _option(gold.words[1]), _option(answer.words[1])
            same = "text" in (ours.kind, theirs.kind) or _by_kind(ours, theirs, policy, budget) == "equal"
        return verdict(same, True)
    if answer.kind == "scalar" and answer.node is not None and answer.node.op == "sym" and len(answer.node.value) == 1:
        return verdict(answer.node.value.upper() == letter, True)
    return "hedged" if answer.kind == "list" else "type_clash"
