"""Generates answer pairs whose verdict is known by construction: an equal value in another notation, or a near miss.

The pairs test any verifier:
`for pair in pairs(1000): verify(Problem(answer=pair.gold), Completion(pair.completion))`.
A near miss differs from the right answer in one thing: a digit, a sign, a bracket, the order, the unit, an operator.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple


class Pair(NamedTuple):
    """A gold and an answer. `same` is true if the answer is right."""

    kind: str
    gold: str
    answer: str
    same: bool
    how: str  # the change, or the notation of the equal value

    @property
    def completion(self) -> str:
        return rf"Therefore the answer is \boxed{{{self.answer}}}."


Made = tuple[str, list[tuple[str, str]], list[tuple[str, str]]]  # gold, [(how, equal)], [(how, different)]
_Maker = Callable[[random.Random], Made]


def pairs(count: int, *, seed: int = 0, kinds: tuple[str, ...] | None = None) -> Iterator[Pair]:
    """Yields `count` pairs, at most two of each kind in turn. The same `seed` gives the same pairs.

    Args:
        kinds: keys of KINDS; all of them by default.

    Raises:
        ValueError: a kind is unknown.
    """
    unknown = sorted(set(kinds or ()) - set(KINDS))
    if unknown:
        raise ValueError(f"unknown kind '{unknown[0]}'; known: {', '.join(KINDS)}")
    names = kinds or tuple(KINDS)
    made = 0
    while True:
        for name in names:
            rng = random.Random(f"{seed} {name} {made}")
            gold, same, different = KINDS[name](rng)
            options = [Pair(name, gold, text, True, how) for how, text in same]
            options += [Pair(name, gold, text, False, how) for how, text in different]
            for pair in rng.sample(options, min(2, len(options))):
                if made == count:
                    return
                made += 1
                yield pair


def _nonzero(rng: random.Random, low: int, high: int) -> int:
    return rng.choice([n for n in range(low, high + 1) if n])


def _grouped(value: int) -> str:
    return f"{value:,}"


def _integer(rng: random.Random) -> Made:
    n = rng.randint(1000, 99_999_999) * rng.choice((1, -1))
    digits = list(str(abs(n)))
    index = rng.randrange(1, len(digits))
    digits[index] = str((int(digits[index]) + rng.randint(1, 9)) % 10)
    changed = ("-" if n < 0 else "") + "".join(digits)
    same = [
        ("grouped", _grouped(n)),
        ("latex groups", _grouped(n).replace(",", "{,}")),
        ("text", rf"\text{{{n}}}"),
        ("point zero", f"{n}.0"),
        ("assigned", f"x = {n}"),
        ("maths", f"${n}$"),
    ]
    different = [
        ("digit", changed),
        ("sign", str(-n)),
        ("one more", str(n + 1)),
        ("longer", f"{n}0"),
        ("hedged", rf"{n} \text{{ or }} {n + 1}"),
        ("list", f"{n - 1}, {n}, {n + 1}"),
    ]
    return str(n), same, different


def _rational(rng: random.Random) -> Made:
    value = Fraction(_nonzero(rng, -40, 40), rng.choice((3, 7, 9, 11, 13)))
    if value.denominator == 1:
        value += Fraction(1, 7)
    p, q = value.numerator, value.denominator
    k = rng.randint(2, 9)
    same = [
        ("dfrac", rf"\dfrac{{{p}}}{{{q}}}"),
        ("slash", f"{p}/{q}"),
        ("unreduced", rf"\frac{{{p * k}}}{{{q * k}}}"),
        ("sign outside", rf"{'-' if p < 0 else ''}\frac{{{abs(p)}}}{{{q}}}"),
        ("digits", f"{p / q:.9f}"),
    ]
    whole, rest = divmod(abs(p), q)
    if whole and rest:
        same.append(("mixed", rf"{'-' if p < 0 else ''}{whole}\frac{{{rest}}}{{{q}}}"))
    different = [
        ("upside down", rf"\frac{{{q}}}{{{p}}}"),
        ("sign", rf"\frac{{{-p}}}{{{q}}}"),
        ("top", rf"\frac{{{p + 1 or 2}}}{{{q}}}"),
        ("bottom", rf"\frac{{{p}}}{{{q + 1}}}"),
        ("last digit", f"{p / q + 2e-9:.9f}"),
        ("few digits", f"{p / q:.2f}"),
    ]
    return rf"\frac{{{p}}}{{{q}}}", same, different


def _decimal(rng: random.Random) -> Made:
    places = rng.randint(2, 4)
    n = rng.randint(101, 99_999)
    gold = f"{n / 10**places:.{places}f}"
    step = 10**-places
    value = Fraction(n, 10**places)
    same = [
        ("fraction", rf"\frac{{{value.numerator}}}{{{value.denominator}}}"),
        ("more digits", f"{n / 10**places + step / 4:.{places + 2}f}"),
        ("zeros", gold + "00"),
    ]
    different = [
        ("last digit", f"{n / 10**places + step:.{places}f}"),
        ("point moved", f"{n / 10 ** (places - 1):.{places - 1}f}"),
        ("sign", "-" + gold),
        ("rounded away", f"{n / 10**places + 0.7 * step:.{places + 2}f}"),
    ]
    return gold, same, different


def _scientific(rng: random.Random) -> Made:
    m, e = rng.randint(2, 9), _nonzero(rng, -20, 20)
    gold = rf"{m} \times 10^{{{e}}}"
    same = [
        ("cdot", rf"{m}\cdot 10^{{{e}}}"),
        ("e", f"{m}e{e}"),
        ("star", f"{m}*10^({e})"),
        ("point", rf"{m}.0 \times 10^{{{e}}}"),
    ]
    different = [
        ("exponent", rf"{m} \times 10^{{{e + 1}}}"),
        ("sign of it", rf"{m} \times 10^{{{-e}}}"),
        ("mantissa", rf"{m + 1} \times 10^{{{e}}}"),
        ("zero", "0"),
    ]
    return gold, same, different


def _surd(rng: random.Random) -> Made:
    a, b = rng.randint(1, 9), rng.choice((2, 3, 5, 6, 7))
    c = rng.randint(2, 9)
    gold = rf"{c} + {a}\sqrt{{{b}}}"
    same = [
        ("turned", rf"{a}\sqrt{{{b}}}+{c}"),
        ("inside", rf"{c}+\sqrt{{{a * a * b}}}"),
        ("power", rf"{c}+{a}\cdot {b}^{{1/2}}"),
        ("conjugate", rf"\frac{{{c * c - a * a * b}}}{{{c}-{a}\sqrt{{{b}}}}}"),
        ("bare", rf"{c}+{a}\sqrt{b}"),
    ]
    different = [
        ("sign", rf"{c} - {a}\sqrt{{{b}}}"),
        ("root", rf"{c} + {a}\sqrt{{{b + 1}}}"),
        ("factor", rf"{c} + {a + 1}\sqrt{{{b}}}"),
        ("swapped", rf"{a} + {c}\sqrt{{{b}}}" if a != c else rf"{a + 1} + {c}\sqrt{{{b}}}"),
    ]
    return gold, same, different


def _constant(rng: random.Random) -> Made:
    n, d = rng.randint(1, 11), rng.choice((2, 3, 4, 6, 12))
    while n % d == 0:
        n += 1
    gold = rf"\frac{{{n}\pi}}{{{d}}}"
    same = [
        ("outside", rf"\frac{{{n}}}{{{d}}}\pi"),
        ("slash", rf"{n}\pi/{d}"),
        ("degrees", rf"{n * 180 // d}^\circ"),
        ("unicode", f"{n}π/{d}"),
        ("digits", f"{n * 3.141592653589793 / d:.10f}"),
    ]
    different = [
        ("multiple", rf"\frac{{{n + 1}\pi}}{{{d}}}"),
        ("no pi", rf"\frac{{{n}}}{{{d}}}"),
        ("degrees", rf"{n * 180 // d + 1}^\circ"),
        ("square", rf"\frac{{{n}\pi^2}}{{{d}}}"),
        ("rough", rf"\frac{{{n} \cdot 3.14}}{{{d}}}"),
    ]
    return gold, same, different


def _percent(rng: random.Random) -> Made:
    n = rng.randint(3, 97)
    same = [
        ("plain", f"{n}%"),
        ("decimal", f"{n / 100:.2f}"),
        ("fraction", rf"\frac{{{n}}}{{100}}"),
        ("word", rf"{n} \text{{ percent}}"),
    ]
    different = [
        ("digit", rf"{n + 1}\%"),
        ("shifted", f"{n / 1000:.3f}"),
        ("tenfold", rf"{n * 10}\%"),
        ("per mille", rf"{n / 100:.2f}\%"),
    ]
    return rf"{n}\%", same, different


def _money(rng: random.Random) -> Made:
    cents = rng.randint(101, 99_999)
    text = f"{cents / 100:,.2f}"
    same = [("bare", text), ("word", rf"{text} \text{{ dollars}}"), ("cents", rf"{cents} \text{{ cents}}")]
    different = [
        ("digit", rf"\${(cents + 1) / 100:,.2f}"),
        ("currency", rf"{text} \text{{ euros}}"),
        ("scale", rf"{text} \text{{ cents}}"),
    ]
    return rf"\${text}", same, different


_MEASURES = (
    ("cm", "m", 100, "kg"),
    ("m", "km", 1000, "s"),
    ("g", "kg", 1000, "m"),
    ("minutes", "hours", 60, "cm"),
    ("mL", "L", 1000, "g"),
)


def _quantity(rng: random.Random) -> Made:
    small, large, ratio, other = rng.choice(_MEASURES)
    n = rng.randint(2, 400)
    power = rng.choice(("", "^2")) if small in ("cm", "m") else ""
    scale = ratio ** (2 if power else 1)
    gold = rf"{n}\text{{ {small}}}{power}"
    value = Fraction(n, scale)
    same = [
        ("bare", str(n)),
        ("mathrm", rf"{n}\,\mathrm{{{small}}}{power}"),
        ("converted", rf"\frac{{{value.numerator}}}{{{value.denominator}}}\text{{ {large}}}{power}"),
    ]
    different = [
        ("unit of another size", rf"{n}\text{{ {large}}}{power}"),
        ("unit of another kind", rf"{n}\text{{ {other}}}{power}"),
        ("number", rf"{n + 1}\text{{ {small}}}{power}"),
        ("power", rf"{n}\text{{ {small}}}^3") if power else ("number", str(n + 2)),
    ]
    return gold, same, different


def _ratio(rng: random.Random) -> Made:
    a, b, c = rng.sample(range(1, 30), 3)
    k = rng.randint(2, 5)
    same = [("spaced", f"{a} : {b} : {c}"), ("scaled", f"{a * k}:{b * k}:{c * k}")]
    different = [("order", f"{b}:{a}:{c}"), ("term", f"{a}:{b}:{c + 1}"), ("shorter", f"{a}:{b}")]
    return f"{a}:{b}:{c}", same, different


def _clock(rng: random.Random) -> Made:
    h, m = rng.randint(1, 11), rng.randint(1, 58)
    same = [("dots", rf"{h}:{m:02}\text{{ p.m.}}"), ("24 hours", f"{h + 12}:{m:02}"), ("lower", f"{h}:{m:02} pm")]
    different = [("half", f"{h}:{m:02} AM"), ("minute", f"{h}:{m + 1:02} PM"), ("hour", f"{h % 11 + 1}:{m:02} PM")]
    return f"{h}:{m:02} PM", same, different


_MONTHS = ("January", "March", "May", "August", "October")


def _date(rng: random.Random) -> Made:
    index, d, y = rng.randrange(5), rng.randint(13, 28), rng.randint(1900, 2030)
    number = (1, 3, 5, 8, 10)[index]
    name = _MONTHS[index]
    same = [
        ("iso", f"{y}-{number:02}-{d:02}"),
        ("day first", rf"\text{{{d} {name} {y}}}"),
        ("slashes", f"{number}/{d}/{y}"),
    ]
    different = [
        ("day", rf"\text{{{name} {d + 1}, {y}}}"),
        ("year", f"{y + 1}-{number:02}-{d:02}"),
        ("arithmetic", str(y - number - d)),
    ]
    return f"{name} {d}, {y}", same, different


def _base(rng: random.Random) -> Made:
    base = rng.choice((2, 3, 5, 7, 8, 9))
    digits = "1" + "".join(str(rng.randrange(base)) for _ in range(4))
    last = digits[:-1] + str((int(digits[-1]) + 1) % base)
    same = [("bare base", f"{digits}_{base}"), ("no base", digits), ("brackets", f"({digits})_{base}")]
    different = [
        ("base", f"{digits}_{{{base + 1}}}"),
        ("digit", f"{last}_{{{base}}}"),
        ("value", str(int(digits, base))),
    ]
    return f"{digits}_{{{base}}}", same, different


def _complex(rng: random.Random) -> Made:
    a, b = _nonzero(rng, -9, 9), rng.randint(2, 9)
    norm = a * a + b * b
    same = [
        ("turned", f"{b}i+{a}" if a > 0 else f"{b}i{a}"),
        ("quotient", rf"\frac{{{norm}}}{{{a}-{b}i}}"),
        ("times i", rf"i({b}-{a}i)" if a > 0 else rf"i({b}+{-a}i)"),
    ]
    different = [
        ("conjugate", f"{a}-{b}i"),
        ("swapped", f"{b}+{a}i" if a != b else f"{b + 1}+{a}i"),
        ("real part", str(a)),
        ("sign", f"{-a}+{b}i"),
    ]
    return f"{a}+{b}i", same, different


def _tuple(rng: random.Random) -> Made:
    a, b, c = rng.sample(range(-20, 20), 3)
    gold = f"({a}, {b}, {c})"
    same = [
        ("tight", f"({a},{b},{c})"),
        ("left right", rf"\left({a},{b},{c}\right)"),
        ("labelled", f"(x,y,z)=({a},{b},{c})"),
    ]
    different = [
        ("order", f"({b}, {a}, {c})"),
        ("braces", rf"\{{{a}, {b}, {c}\}}"),
        ("item", f"({a}, {b}, {c + 1})"),
        ("shorter", f"({a}, {b})"),
        ("sign", f"({a}, {b}, {-c or 1})"),
    ]
    return gold, same, different


def _collection(rng: random.Random) -> Made:
    a, b, c = sorted(rng.sample(range(-20, 20), 3))
    gold = rf"\{{{a}, {b}, {c}\}}"
    same = [("order", rf"\{{{c}, {a}, {b}\}}"), ("bare", f"{b}, {c}, {a}"), ("twice", rf"\{{{a}, {a}, {b}, {c}\}}")]
    different = [
        ("point", f"({a}, {b}, {c})"),
        ("missing", rf"\{{{a}, {b}\}}"),
        ("more", rf"\{{{a}, {b}, {c}, {c + 1}\}}"),
        ("item", rf"\{{{a}, {b}, {c + 1}\}}"),
    ]
    return gold, same, different


def _list(rng: random.Random) -> Made:
    a, b = sorted(rng.sample(range(-30, 30), 2))
    same = [
        ("order", f"{b}, {a}"),
        ("or", rf"x={a} \text{{ or }} x={b}"),
        ("set", rf"\{{{a}, {b}\}}"),
        ("and", rf"{a} \text{{ and }} {b}"),
    ]
    different = [
        ("one only", str(a)),
        ("item", f"{a}, {b + 1}"),
        ("third", f"{a}, {b}, {b + 1}"),
        ("sign", f"{-a or 1}, {b + 40}"),
    ]
    return f"{a}, {b}", same, different


def _interval(rng: random.Random) -> Made:
    a, b = sorted(rng.sample(range(-20, 20), 2))
    gold = f"[{a}, {b})"
    same = [
        ("chain", rf"{a} \le x < {b}"),
        ("reversed", f"{b} > x \\ge {a}"),
        ("member", rf"x \in [{a}, {b})"),
        ("builder", rf"\{{x \mid {a} \le x < {b}\}}"),
        ("french", f"[{a}, {b}["),
        ("and", rf"x \ge {a} \text{{ and }} x < {b}"),
    ]
    different = [
        ("brackets", f"({a}, {b}]"),
        ("closed", f"[{a}, {b}]"),
        ("open", f"({a}, {b})"),
        ("end", f"[{a}, {b + 1})"),
        ("strict", f"{a} < x < {b}"),
        ("outside", rf"x < {a} \text{{ or }} x \ge {b}"),
    ]
    return gold, same, different


def _inequality(rng: random.Random) -> Made:
    a = _nonzero(rng, -20, 20)
    same = [
        ("side", rf"{a} \le x"),
        ("interval", rf"[{a}, \infty)"),
        ("slanted", rf"x \geqslant {a}"),
        ("builder", rf"\{{x : x \ge {a}\}}"),
    ]
    different = [
        ("strict", f"x > {a}"),
        ("turned", rf"x \le {a}"),
        ("sign", rf"x \ge {-a}"),
        ("unsolved", rf"2x \ge {2 * a}"),
        ("other name", rf"y \ge {a}"),
    ]
    return rf"x \ge {a}", same, different


def _union(rng: random.Random) -> Made:
    a, b = sorted(rng.sample(range(-20, 20), 2))
    gold = rf"(-\infty, {a}) \cup ({b}, \infty)"
    same = [
        ("or", rf"x < {a} \text{{ or }} x > {b}"),
        ("order", rf"({b}, \infty) \cup (-\infty, {a})"),
        ("difference", rf"\mathbb{{R}} \setminus [{a}, {b}]"),
    ]
    different = [
        ("closed", rf"(-\infty, {a}] \cup [{b}, \infty)"),
        ("intersection", rf"(-\infty, {a}) \cap ({b}, \infty)"),
        ("one part", rf"(-\infty, {a})"),
        ("between", f"({a}, {b})"),
        ("end", rf"(-\infty, {a}) \cup ({b + 1}, \infty)"),
    ]
    return gold, same, different


def _equation(rng: random.Random) -> Made:
    a, b, c = rng.randint(2, 9), _nonzero(rng, -9, 9), rng.randint(1, 20)
    k = rng.randint(2, 5)
    same = [
        ("scaled", f"{a * k}x{b * k:+}y={c * k}"),
        ("one side", f"{a}x{b:+}y-{c}=0"),
        ("turned", f"{c}={b}y+{a}x"),
        ("negated", f"{-a}x{-b:+}y=-{c}"),
    ]
    different = [
        ("constant", f"{a}x{b:+}y={c + 1}"),
        ("sign", f"{a}x{-b:+}y={c}"),
        ("factor", f"{a + 1}x{b:+}y={c}"),
        ("no right side", f"{a}x{b:+}y"),
    ]
    return f"{a}x{b:+}y={c}", same, different


def _function(rng: random.Random) -> Made:
    a, b = rng.randint(2, 9), _nonzero(rng, -9, 9)
    same = [("renamed", f"f(t)={a}t^2{b:+}"), ("bare", f"{a}x^2{b:+}"), ("turned", f"f(x)={b}+{a}x^2")]
    different = [
        ("power", f"f(x)={a}x^3{b:+}"),
        ("sign", f"f(x)={a}x^2{-b:+}"),
        ("factor", f"f(t)={a + 1}t^2{b:+}"),
        ("mixed names", f"f(t)={a}x^2{b:+}"),
    ]
    return f"f(x)={a}x^2{b:+}", same, different


def _polynomial(rng: random.Random) -> Made:
    a, b = _nonzero(rng, -9, 9), _nonzero(rng, -9, 9)
    s, p = a + b, a * b
    middle = "" if not s else f"{s:+}x" if abs(s) > 1 else ("+x" if s > 0 else "-x")
    gold = f"x^2{middle}{p:+}"
    same = [
        ("factored", f"(x{a:+})(x{b:+})"),
        ("order", f"{p}+x^2{middle}"),
        ("star", f"x*x{middle}{p:+}"),
        ("huge detour", f"(x{a:+})(x{b:+})+(x+1)^{{99}}-(1+x)^{{99}}"),
    ]
    different = [
        ("constant", f"x^2{middle}{p + 1:+}"),
        ("power", f"x^3{middle}{p:+}"),
        ("sign", f"(x{-a:+})(x{b:+})"),
        ("letter", f"y^2{middle.replace('x', 'y')}{p:+}"),
        ("solved", str(-a)),
    ]
    return gold, same, different


def _expression(rng: random.Random) -> Made:
    a = rng.randint(2, 7)
    same = [
        ("double angle", rf"2\sin({a}x)\cos({a}x)"),
        ("order", rf"\sin(x\cdot {2 * a})"),
        ("shift", rf"\cos(\frac{{\pi}}{{2}}-{2 * a}x)"),
    ]
    different = [
        ("multiple", rf"\sin({2 * a + 1}x)"),
        ("other function", rf"\cos({2 * a}x)"),
        ("factor", rf"2\sin({a}x)"),
        ("power", rf"\sin^2({a}x)"),
        ("sign", rf"-\sin({2 * a}x)"),
    ]
    return rf"\sin({2 * a}x)", same, different


def _power(rng: random.Random) -> Made:
    a, n = rng.randint(2, 9), rng.randint(10**5, 10**7) * 2
    same = [("factored", f"({a}^{{{n // 2}}}-1)({a}^{{{n // 2}}}+1)"), ("nested", f"({a}^2)^{{{n // 2}}}-1")]
    different = [
        ("exponent", f"{a}^{{{n + 1}}}-1"),
        ("constant", f"{a}^{{{n}}}-2"),
        ("base", f"{a + 1}^{{{n}}}-1"),
        ("no constant", f"{a}^{{{n}}}"),
    ]
    return f"{a}^{{{n}}}-1", same, different


def _matrix(rng: random.Random) -> Made:
    a, b, c, d = rng.sample(range(-9, 10), 4)
    gold = rf"\begin{{pmatrix}} {a} & {b} \\ {c} & {d} \end{{pmatrix}}"
    same = [
        ("brackets", gold.replace("pmatrix", "bmatrix")),
        ("fractions", rf"\begin{{pmatrix}} {a} & {2 * b}/2 \\ {c} & \frac{{{d}}}{{1}} \end{{pmatrix}}"),
        ("scaled", rf"\frac{{1}}{{2}}\begin{{pmatrix}} {2 * a} & {2 * b} \\ {2 * c} & {2 * d} \end{{pmatrix}}"),
    ]
    different = [
        ("transposed", rf"\begin{{pmatrix}} {a} & {c} \\ {b} & {d} \end{{pmatrix}}"),
        ("entry", rf"\begin{{pmatrix}} {a} & {b} \\ {c} & {d + 1} \end{{pmatrix}}"),
        ("shape", rf"\begin{{pmatrix}} {a} & {b} & {c} & {d} \end{{pmatrix}}"),
        ("determinant", gold.replace("pmatrix", "vmatrix")),
    ]
    return gold, same, different


def _vector(rng: random.Random) -> Made:
    a, b, c = rng.sample(range(-9, 10), 3)
    gold = rf"\begin{{pmatrix}} {a} \\ {b} \\ {c} \end{{pmatrix}}"
    same = [("point", f"({a}, {b}, {c})"), ("angle", rf"\langle {a}, {b}, {c} \rangle")]
    different = [
        ("order", f"({b}, {a}, {c})"),
        ("row", rf"\begin{{pmatrix}} {a} & {b} & {c} \end{{pmatrix}}"),
        ("entry", f"({a}, {b}, {c + 1})"),
        ("set", rf"\{{{a}, {b}, {c}\}}"),
    ]
    return gold, same, different


def _plus_minus(rng: random.Random) -> Made:
    a, b = rng.randint(1, 9), rng.choice((2, 3, 5, 7))
    same = [
        ("both", rf"{a}+\sqrt{{{b}}}, {a}-\sqrt{{{b}}}"),
        ("set", rf"\{{{a}-\sqrt{{{b}}}, {a}+\sqrt{{{b}}}\}}"),
        ("minus plus", rf"x = {a} \mp \sqrt{{{b}}}"),
    ]
    different = [
        ("one", rf"{a}+\sqrt{{{b}}}"),
        ("root", rf"{a} \pm \sqrt{{{b + 1}}}"),
        ("centre", rf"{-a} \pm \sqrt{{{b}}}"),
        ("unsigned", rf"{a}+\sqrt{{{b}}}, {a}+\sqrt{{{b}}}"),
    ]
    return rf"{a} \pm \sqrt{{{b}}}", same, different


def _special(rng: random.Random) -> Made:
    return rng.choice(
        (
            (
                r"\infty",
                [("word", r"\text{infinity}"), ("plus", r"+\infty"), ("sign", "∞")],
                [("sign", r"-\infty"), ("none", r"\text{DNE}"), ("number", "10^{100}")],
            ),
            (
                r"\text{no solution}",
                [("set", r"\emptyset"), ("braces", r"\{\}"), ("words", r"\text{There are no solutions}")],
                [("zero", "0"), ("undefined", r"\text{undefined}"), ("set of zero", r"\{0\}")],
            ),
            (
                r"\text{DNE}",
                [("words", r"\text{does not exist}"), ("undefined", r"\text{undefined}")],
                [("infinity", r"\infty"), ("zero", "0"), ("empty", r"\emptyset")],
            ),
            (
                r"\text{Yes}",
                [("lower", r"\text{yes}"), ("bare", "YES"), ("true", r"\text{True}")],
                [("no", r"\text{No}"), ("letter", "Y"), ("hedged", r"\text{yes or no}")],
            ),
            (
                r"\text{False}",
                [("lower", r"\text{false}"), ("no", r"\text{No}")],
                [("true", r"\text{True}"), ("zero", "0")],
            ),
        )
    )


def _choice(rng: random.Random) -> Made:
    letter = rng.choice("ABCDE")
    other = rng.choice([c for c in "ABCDE" if c != letter])
    same = [
        ("brackets", rf"\text{{({letter})}}"),
        ("bold", rf"\textbf{{({letter})}}"),
        ("option", rf"\text{{Option {letter}}}"),
        ("with text", rf"\text{{{letter}. 12 apples}}"),
    ]
    different = [
        ("other", other),
        ("both", f"{letter}, {other}"),
        ("or", rf"\text{{{letter} or {other}}}"),
        ("number", "1"),
    ]
    return letter, same, different


_ANAGRAMS = (
    ("stop", "pots"),
    ("listen", "silent"),
    ("ellipse", "parabola"),
    ("Monday", "dynamo"),
    ("even", "nove"),
    ("odd", "dod"),
    ("obtuse", "acute"),
    ("Evelyn", "Carla"),
)


def _text(rng: random.Random) -> Made:
    word, other = rng.choice(_ANAGRAMS)
    same = [
        ("bare", word),
        ("upper", rf"\text{{{word.upper()}}}"),
        ("article", rf"\text{{the {word}}}"),
        ("stop", rf"\text{{{word}.}}"),
    ]
    different = [
        ("other", rf"\text{{{other}}}"),
        ("bare other", other),
        ("negated", rf"\text{{not {word}}}"),
        ("hedged", rf"\text{{{word} or {other}}}"),
        ("number", "4"),
    ]
    return rf"\text{{{word}}}", same, different


KINDS: dict[str, _Maker] = {
    "integer": _integer,
    "rational": _rational,
    "decimal": _decimal,
    "scientific": _scientific,
    "surd": _surd,
    "constant": _constant,
    "percent": _percent,
    "money": _money,
    "quantity": _quantity,
    "ratio": _ratio,
    "clock": _clock,
    "date": _date,
    "base": _base,
    "complex": _complex,
    "tuple": _tuple,
    "set": _collection,
    "list": _list,
    "interval": _interval,
    "inequality": _inequality,
    "union": _union,
    "equation": _equation,
    "function": _function,
    "polynomial": _polynomial,
    "expression": _expression,
    "power": _power,
    "matrix": _matrix,
    "vector": _vector,
    "plus_minus": _plus_minus,
    "special": _special,
    "choice": _choice,
    "text": _text,
}
