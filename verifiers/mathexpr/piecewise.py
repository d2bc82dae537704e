"""Compares functions by cases: values with their conditions, in any order."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from verifiers.mathexpr import regions
from verifiers.mathexpr.answers import Piece
from verifiers.mathexpr.ladder import equal, order
from verifiers.mathexpr.limits import MAX_ITEMS, Budget, Unreadable
from verifiers.mathexpr.nodes import INFINITY, Node, substitute, symbol
from verifiers.mathexpr.regions import Pieces

if TYPE_CHECKING:
    from verifiers.mathexpr.parser import Parser

OTHERWISE = symbol("otherwise")
# Whole texts without accents, as `clean` leaves them. "if not" is none of them.
LEADS = frozenset(
    "if,for,for all,when,whenever,where,provided,as,and,wenn,falls,fur,fur alle,si,pour,lorsque,quand,para,cuando"
    ",para todo,se,per,quando,caso,als,indien,voor,om,hvis,for alle,nar,jesli,jezeli,gdy,dla,pro,pokud,daca"
    ",pentru,ha,eger,icin,если,при,для,якщо,若,当,當,如果,もし,إذا كان".split(",")
)
ELSE = frozenset(
    "otherwise,else,elsewhere,sonst,andernfalls,sinon,autrement,en otro caso,en caso contrario,de lo contrario"
    ",si no,caso contrario,se nao,altrimenti,anders,annars,ellers,w przeciwnym razie,w pozostałych przypadkach"
    ",jinak,altfel,egyebkent,aksi halde,aksi takdirde,diger durumlarda,иначе,в противном случае"
    ",в остальных случаях,інакше,其他,其它,否则,その他,それ以外,그 외,وإلا".split(",")
)
Row = tuple[str, Pieces, Node]  # variable, region, value


def condition(parser: Parser) -> Node:
    """Parses `\\text{if } x > 0`, `x < 0 \\text{ or } x > 1`, `\\text{otherwise}`. Raises Unreadable."""
    relations: list[Node] = []
    joint = "and"
    while True:
        parser.accept(":")
        while parser.peek().kind in ("text", "word", "other") and (said := _said(parser)) in LEADS | ELSE:
            parser.at += 1
            if said in ELSE:
                return OTHERWISE
        relations.append(parser.relation())
        if not parser.is_op("and", "or") or len(relations) > MAX_ITEMS:
            break
        joint = parser.take().value
    return relations[0] if len(relations) == 1 else Node("when", tuple(relations), joint)


def _said(parser: Parser) -> str:
    return parser.peek().value.strip(" ,.:").lower()


def same_cases(first: Node, second: Node, budget: Budget) -> bool:
    """Returns whether both have equal values on the same parts of the line. Raises TooHard.

    The end of a part may belong to either neighbour if both give it the same value.
    """
    try:
        ours, theirs = _rows(first), _rows(second)
    except (Unreadable, regions.Unsolved):
        return False
    if len(ours) != len(theirs) or len({row[0] for row in (*ours, *theirs)}) != 1:
        return False
    left = list(theirs)
    moved = False
    for _, where, value in ours:
        match = next((row for row in left if regions.same_region(where, row[1], budget)), None)
        if match is None:
            match, moved = next((row for row in left if _same_ends(where, row[1], budget)), None), True
        if match is None or not equal(value, match[2], budget):
            return False
        left.remove(match)
    return not moved or all(_same_at(end, ours, theirs, budget) for _, where, _ in ours for end in _ends(where))


def _ends(where: Pieces) -> set[Node]:
    return {end for piece in where for end in (piece.low, piece.high)} - {INFINITY, regions.MINUS_INFINITY}


def _same_ends(first: Pieces, second: Pieces, budget: Budget) -> bool:
    opened = [tuple(Piece(piece.low, False, piece.high, False) for piece in where) for where in (first, second)]
    return regions.same_region(opened[0], opened[1], budget)


def _same_at(end: Node, ours: list[Row], theirs: list[Row], budget: Budget) -> bool:
    """Returns whether both give the same value at an end of a part."""
    first, second = (_values_at(end, rows, budget) for rows in (ours, theirs))
    return len(first) == len(second) == 1 and equal(first[0], second[0], budget)


def _values_at(end: Node, rows: list[Row], budget: Budget) -> list[Node]:
    found = []
    for name, where, value in rows:
        for low, low_closed, high, high_closed in where:
            before, after = order(low, end, budget), order(end, high, budget)
            if (before == -1 or (before == 0 and low_closed)) and (after == -1 or (after == 0 and high_closed)):
                found.append(substitute(value, {name: end}))
    return found


def _rows(node: Node) -> list[Row]:
    """Returns (variable, region, value) of every case. Raises Unreadable, Unsolved."""
    if node.value != 2:
        raise Unreadable("values without conditions")
    pairs = list(zip(node.args[::2], node.args[1::2], strict=True))
    known = [(value, *_where(when)) for value, when in pairs if when != OTHERWISE]
    if not known or len(pairs) - len(known) > 1:
        raise Unreadable("cases without conditions")
    rows = [(name, where, value) for value, name, where in known]
    rest = functools.reduce(regions.intersect, (regions.complement(where) for _, where, _ in rows))
    return rows + [(rows[0][0], rest, value) for value, when in pairs if when == OTHERWISE]


def _where(when: Node) -> tuple[str, Pieces]:
    if when.op != "when":
        return regions.solved(when)
    parts = [regions.solved(part) for part in when.args]
    if len({name for name, _ in parts}) != 1:
        raise regions.Unsolved
    if when.value == "or":
        return parts[0][0], tuple(piece for _, pieces in parts for piece in pieces)
    return parts[0][0], functools.reduce(regions.intersect, (pieces for _, pieces in parts))
