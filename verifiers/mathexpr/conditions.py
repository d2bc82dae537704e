"""Compares the conditions of two answers: "for n even" restricts one, "for all positive integers n" does not."""

from __future__ import annotations

from verifiers.lazy_pattern import lazy_pattern

_INDEX = lazy_pattern(r"_ (?:\{ )?\d(?: \})?")
_SAYS_NOTHING = frozenset(
    "for forall exists all any some every each where when with such that is are be an integer integers positive real"
    " reals number numbers constant constants arbitrary in z n r k m c x y t j l a b d i s setz setn setr setq and"
    " or natural nonnegative non-negative of to belongs element mathbb provided given assuming as , ; ( ) { }"
    " values value as both satisfying both whole complex rational parameter parameters be it can".split()
)
_DOMAIN = frozenset("< > <= >= != 0 1 ≠ neq ne geq ge leq le in =".split())
_NUMBERS = {
    "setn": "N", "natural": "N", "setz": "Z", "integer": "Z", "integers": "Z",
    "setq": "Q", "rational": "Q", "setr": "R", "real": "R", "reals": "R",
}  # fmt: skip
_SIGNED = frozenset("positive nonnegative non-negative".split())


def clash(gold: str, answer: str) -> bool:
    """Returns whether one condition restricts its answer in a way that the other does not."""
    if not gold and not answer:
        return False
    ours, theirs = _core(gold), _core(answer)
    if gold and answer and ours and theirs:
        return ours != theirs
    return bool((ours | theirs) - _DOMAIN)


def _core(condition: str) -> frozenset[str]:
    plain = _INDEX.sub("", condition) if "constant" in condition else condition  # C_1 and C_2 are constants
    return frozenset(word for word in plain.casefold().split() if word not in _SAYS_NOTHING)


def other_numbers(gold: str, answer: str) -> bool:
    """Returns whether both conditions name the numbers that a parameter runs over, and name different ones."""
    ours, theirs = _numbers(gold), _numbers(answer)
    return bool(ours and theirs) and ours != theirs


def _numbers(condition: str) -> str:
    words = condition.casefold().split()
    named = {_NUMBERS[word] for word in words if word in _NUMBERS}
    if len(named) != 1:
        return ""
    (name,) = named
    if _SIGNED.isdisjoint(words):
        return name
    return "N" if name == "Z" else f"{name}+"
