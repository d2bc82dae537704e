"""Random golds and completions for the maths verifier, built to be slow: every operator nested, repeated and mixed.

Each pair depends only on its seed and index, so any one can be reproduced. The pairs don't say which answer is right:
the tests and `benchmarks/hostile_text.py math --fuzz` check the cost of a verdict, and that there always is one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Pair(NamedTuple):
    gold: str
    text: str
    how: str  # the shapes of gold and completion


LEAVES = (
    "1", "2", "7", "-3", "0", "10", "0.5", "3.14159", "x", "y", "n", "k", "t", "x_1", "a_n", r"\pi", "e", "i",
    r"\infty", r"\alpha", "f(x)", r"\frac{1}{2}", "2^{10}", r"\sqrt{2}", "1e4000", "1.5e-3999", "9" * 300,
    "0." + "3" * 200, "0.(3)", "10^{100}", "999!", r"\binom{2000}{1000}", r"\emptyset", r"\mathbb{R}", "50%",
    r"30^\circ", "1,234,567", "101_2", "2.5", r"\text{apples}", "5 cm", "...", r"2\frac{3}{4}", r"1\pm2", "3:4",
    r"\vec{a}", "x'", "abc", r"\$5", "12:30", "(A)", "yes",
)  # fmt: skip
WRAPS = (
    r"\int_0^1 {}\,dx", r"\int_0^1 {}", r"\int {}\,dx", r"\sum_{{k=1}}^{{3}} {}", r"\sum_{{k=1}}^{{n}} {}",
    r"\sum_{{k=1}}^{{400}} {}", r"\sum_{{n=1}}^{{\infty}} {}", r"\prod_{{k=1}}^{{5}} {}", r"\lim_{{x\to 0}} {}",
    r"\lim_{{x\to\infty}}({})", r"\frac{{d}}{{dx}} {}", "({})'", "{}^*", r"\overline{{{}}}", r"\sqrt{{{}}}",
    r"\sqrt[3]{{{}}}", r"\sqrt[{}]{{2}}", r"\frac{{{}}}{{3}}", r"\frac{{2}}{{{}}}", r"1\frac{{{}}}{{2}}", "({})",
    "[{}]", "{{{}}}", r"\{{{}\}}", r"\left({}\right)", "|{}|", r"\lfloor {}\rfloor", r"\lceil {}\rceil", "({})!",
    "{}!", "-{}", "-({})", r"1\pm {}", r"\pm({})", r"{}\mp 1", "{}^2", "({})^2", "({})^{{-1}}", "({})^{{1/2}}",
    "({})^{{20}}", "2^{{{}}}", "x^{{{}}}", "{}^x", r"e^{{{}}}", "1+{}", "{}+x", "{}-1", "x-({})", r"2\cdot {}",
    "({})({})", "x({})", "{}/2", "2/{}", "2/({})", "{}/x", r"\sin {}", r"\cos({})", r"\tan({})", r"\ln({})",
    r"\log_2({})", r"\log_{{{}}}(2)", r"\arcsin({})", r"\sinh({})", r"\exp({})", r"\sin^2({})", r"\sin^{{-1}}({})",
    "f({})", "f(x,{})", "g({},{})", r"\theta({})", r"\binom{{{}}}{{2}}", r"\binom{{5}}{{{}}}", r"\max({},1)",
    r"\gcd({},6)", r"\min\{{{},2\}}", r"\text{{{}}}", r"\mathrm{{{}}}", r"\mathbf{{{}}}", r"\boxed{{{}}}",
    r"\vec{{{}}}", r"\begin{{pmatrix}}{}&1\\2&3\end{{pmatrix}}", r"\begin{{pmatrix}}{}\end{{pmatrix}}",
    r"\begin{{vmatrix}}{}&1\\2&{}\end{{vmatrix}}", r"\det\begin{{pmatrix}}{}&x\\y&1\end{{pmatrix}}",
    r"\begin{{cases}}{}&x>0\\1&x\le0\end{{cases}}", r"\begin{{pmatrix}}1&{}\\0&1\end{{pmatrix}}^5", "({},1)",
    "(1,{})", "[0,{}]", "({},{})", "({}]", "[{})", r"\{{{},1\}}", r"\{{x\mid x>{}\}}", r"\{{{}\mid x<1\}}",
    r"\{{x\in\mathbb{{Z}}:0<x<{}\}}", r"\langle {},2\rangle", r"[0,1]\cup [2,{}]", r"(0,5)\cap(1,{})",
    r"\mathbb{{R}}\setminus\{{{}\}}", "x={}", "{}=x", "y={}+x", "x>{}", "1<x<{}", r"{}\le x", r"{}\ne 1",
    r"x\equiv {}\pmod 7", r"x\equiv 3\pmod{{{}}}", r"{} \bmod 7", r"{}\in[0,1]", r"\forall x>0, {}", "{}%",
    r"{}^\circ", "{} cm", r"{}\text{{ m/s}}", r"{}\text{{ where }}x>0", "x_{{{}}}", "{}_2", "a:{}:2", r"2,{}",
    r"{}\text{{ and }}2", r"{}\text{{ or }}3", "${}$", r"\({}\)", r"\[{}\]", "**{}**", "<sup>{}</sup>", "{{,}}{}",
    "0.{}", r"\operatorname{{lcm}}({},4)", r"\tfrac{{{}}}{{{}}}", r"{{{}\over 2}}", r"\left|{}\right|", r"\|{}\|",
    "{}'", "{}**2", r"\lim_{{n\to {}}} n", r"\sum_{{k={}}}^{{9}} k", r"\sum_{{k=1}}^{{{}}} k", r"\int_{{{}}}^1 x\,dx",
    r"\int_0^{{{}}} x\,dx", "C_{{{}}}^2", r"\dot{{{}}}", "0.\\overline{{{}}}", "{}e9", "{}...", r"\sqrt {}",
    r"{}\sqrt{{2}}", r"\frac{}2", r"\frac1{}",
)  # fmt: skip
# These can be nested in one another to a readable expression.
SCALARS = (
    r"\int_0^1 {}\,dx", r"\sum_{{k=1}}^{{3}} {}", r"\sum_{{k=1}}^{{n}} {}", r"\prod_{{k=1}}^{{5}} {}",
    r"\lim_{{x\to 0}} {}", r"\sum_{{n=1}}^{{\infty}} {}", r"\frac{{d}}{{dx}} {}", r"\overline{{{}}}", r"\sqrt{{{}}}",
    r"\sqrt[3]{{{}}}", r"\sqrt[{}]{{2}}", r"\frac{{{}}}{{3}}", r"\frac{{2}}{{{}}}", r"\frac{{{}}}{{{}}}", "({})",
    "|{}|", r"\lfloor {}\rfloor", "({})!", "-({})", "({})^2", "({})^{{-1}}", "({})^{{1/2}}", "({})^{{20}}",
    "2^{{{}}}", "x^{{{}}}", r"e^{{{}}}", "1+({})", "x-({})", "({})({})", "({})+({})", "({})-({})", r"2\cdot({})",
    r"\sin({})", r"\cos({})", r"\ln({})", r"\log_2({})", r"\arctan({})", "f({})", "f(x,{})", r"\binom{{{}}}{{2}}",
    r"\max({},1)", r"\gcd({},6)", r"\det\begin{{pmatrix}}{}&x\\y&{}\end{{pmatrix}}", "({})^{{{}}}",
)  # fmt: skip
PLAIN = (*r"1 2 7 10 0.5 x y n k \pi e i 3 100 \frac12".split(), "9" * 200, "1e4000", "10^{100}")
OPERATORS = ("+", "-", "*", "/", " ", r"\cdot ", ", ", "=", "<", "^", " or ", r"\cup ", r"\pm ", ":", r"\bmod ")
JOINTS = (
    "; ", " and ", r"\times ", r"\mp ", r"\cap ", r"\setminus ", r"\le ", "&", r"\\", "!", "'", "%", r"\bmod ", "_",
    r"\to ", r"\in ", "|", "...", r"\circ ", r"\text{ or }", r"\quad ", "\n", "$", "**", "==", r"\approx ",
    r"\equiv ", "^{2}", "(", ")", "[", "{", r"\{", r"\frac", r"\sqrt", r"\left(", r"\text{", r"\int_0^1 ",
    r"\sum_{k=1}^{9} ", r"\boxed{", r"\sin ", r"\begin{pmatrix}", "1", "x", "12,", "0.", "\\", r"\mathrm{a}",
    "\u00bd", "\u00b2", "\u221a", "\u2212", "\u4e00", "\u3001", "\u6216", "\xa0", "e", "de", "is", "~",
)  # fmt: skip
VALID = (
    "7", "42", r"\frac{3}{4}", "0.75", "-12", "1,024", "x^2+2x+1", r"(x+1)^2", r"\{1,2,3\}", "(1,2)", r"[0,\infty)",
    "x=5", r"(-\infty,2)\cup(3,5]", r"\frac{-1\pm\sqrt{5}}{2}", r"2\sqrt{3}", r"\frac{\pi}{6}", "y=2x+1", "3:4:5",
    "12 km/h", r"\$5.50", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "x>3", "30^\\circ", "50%", "1, 2 and 3",
    r"\frac{x^2-1}{x+1}", "e^{i\\pi}+1", r"\sum_{k=1}^{10} k^2", r"\int_0^1 x^2\,dx",
    r"\lim_{x\to 0}\frac{\sin x}{x}", r"\log_2 8", r"\binom{10}{3}", "5!", "f(x)=x^2",
    r"\{x\in\mathbb{Z}\mid -2<x<3\}", "A", "no solution", r"x\equiv 2\pmod 5", "(1,2),(3,4),(5,6)",
    "2 hours 30 minutes", r"|x-1|<3", "101_2", "0.\\overline{3}", r"\langle 1,2,3\rangle", r"a_n=2^n-1", "12:30",
    "March 5", r"(a+b)(a-b)=a^2-b^2", ",".join(f"({i},{i * i})" for i in range(40)),
    r"\{" + ",".join(str(i) for i in range(60)) + r"\}", "+".join(f"{i}x^{{{i}}}" for i in range(30)),
    r"\frac{1}{1+\frac{1}{1+\frac{1}{2}}}", "2^{2^{2^{2}}}", r"\sin^2x+\cos^2x",
)  # fmt: skip
PLACES = (
    r"\boxed{{{}}}", r"So \(x\) is $\boxed{{{}}}$.", "<think>so</think><answer>{}</answer>", "<answer>${}$</answer>",
    "The answer is {}.", "The final answer is ${}$", "#### {}", "{}", r"\boxed{{(1, {})}}", r"\boxed{{\{{{}, 2\}}}}",
    r"\boxed{{x = {}}}", r"\boxed{{1, {}}}", r"\boxed{{{}}} or \boxed{{{}}}", r"\boxed{{{} = 7}}",
    r"Answer: \boxed{{{}}}, \boxed{{2}}",
)  # fmt: skip
_MAX_CHARS = 2950  # a longer answer is refused without being read


def pairs(count: int, seed: int = 0, start: int = 0) -> Iterator[Pair]:
    """Yields `count` pairs; for a seed, the pair at an index is always the same."""
    for index in range(start, start + count):
        yield pair(seed, index)


def pair(seed: int, index: int) -> Pair:
    rng = random.Random(f"{seed}/{index}")
    ours, answer = _expression(rng)
    place = rng.choice(PLACES)
    text = _put(place, answer)
    match rng.randrange(5):
        case 0:
            return Pair(answer, text, f"itself: {ours}")
        case 1:
            return Pair(_mutated(answer, rng), text, f"like itself: {ours}")
        case 2:
            theirs, gold = _expression(rng)
            return Pair(gold, text, f"{theirs} / {ours}")
        case 3:
            return Pair(answer, _put(place, rng.choice(VALID)), f"{ours} / valid")
    return Pair(rng.choice(VALID), text, f"valid / {ours}")


def _put(form: str, *fillings: str) -> str:
    """Returns the form with its holes filled in turn; the last filling fills all remaining holes."""
    holes = form.replace("{{", "").replace("}}", "").count("{}")
    return form.format(*fillings[:holes], *[fillings[-1]] * (holes - len(fillings)))


def _expression(rng: random.Random) -> tuple[str, str]:
    """Returns (the name of its shape, an expression)."""
    shape = rng.choice(list(_SHAPES))
    return shape, _SHAPES[shape](rng)[:_MAX_CHARS]


def _wrapped(text: str, wrap: str, rng: random.Random) -> str:
    other = rng.choice(LEAVES)
    return (
        _put(wrap, *((text, other) if rng.random() < 0.5 else (other, text)))
        if wrap.count("{}") > 1
        else _put(wrap, text)
    )


def _deep(rng: random.Random) -> str:
    """One wrap, or two or three in turn, nested many times."""
    turns = [rng.choice(rng.choice((WRAPS, SCALARS))) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    text = rng.choice(rng.choice((LEAVES, PLAIN)))
    for level in range(rng.choice((3, 6, 9, 12, 15, 18, 22, 30, 39, 60, 150))):
        longer = _wrapped(text, turns[level % len(turns)], rng)
        if len(longer) > _MAX_CHARS:
            break
        text = longer
    return text


def _doubling(rng: random.Random) -> str:
    """The expression built so far fills every hole of the next level."""
    turns = [wrap for wrap in rng.sample(WRAPS + SCALARS, 60) if wrap.count("{}") > 1][:2] or ["{}+{}"]
    text = rng.choice(LEAVES)
    for level in range(12):
        longer = _put(turns[level % len(turns)], text, text)
        if len(longer) > _MAX_CHARS:
            break
        text = longer
    return text


def _tree(rng: random.Random, depth: int = 5) -> str:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(LEAVES)
    if rng.random() < 0.5:
        return _put(rng.choice(WRAPS), _tree(rng, depth - 1), _tree(rng, depth - 1))
    joint = _joint(rng)
    return joint.join(_tree(rng, depth - 1) for _ in range(rng.randint(2, 3)))


def _joint(rng: random.Random) -> str:
    return rng.choice(OPERATORS if rng.random() < 0.7 else JOINTS)


def _scalar(rng: random.Random, depth: int = 7) -> str:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(PLAIN)
    return _put(rng.choice(SCALARS), _scalar(rng, depth - 1), _scalar(rng, depth - 2 if depth > 1 else 0))


def _scalars(rng: random.Random) -> str:
    """A list, sum, product, set, point or matrix of scalars."""
    items = [_scalar(rng, rng.choice((1, 2, 3))) for _ in range(rng.choice((1, 2, 3, 10, 60)))]
    form, joint = rng.choice((
        ("{}", ","), (r"\{{{}\}}", ","), ("({})", ","), ("{}", "+"), ("{}", r"\cdot "), ("{}", "="), ("{}", "<"),
        ("{}", " or "), ("{}", ":"), (r"\begin{{pmatrix}}{}\end{{pmatrix}}", "&"), ("[{},1]", r",1]\cup["),
        (r"\{{x\mid x>{}\}}", " , x<"), (r"\begin{{pmatrix}}{}\end{{pmatrix}}", r"\\"),
    ))  # fmt: skip
    return form.format(joint.join(items * rng.choice((1, 1, 2, 10))))


def _wide(rng: random.Random) -> str:
    """One item, or a few in turn, joined many times."""
    items = [_tree(rng, rng.choice((0, 0, 1, 2))) for _ in range(rng.choice((1, 1, 2, 5)))]
    joint = _joint(rng)
    count = min(rng.choice((5, 20, 60, 127, 400, 1500)), 1 + _MAX_CHARS // (1 + len(joint) + min(map(len, items))))
    return joint.join(items[k % len(items)] for k in range(count))


def _numbered(rng: random.Random) -> str:
    """Items that all differ: the worst case for sets and lists."""
    form = rng.choice(
        (*r"x+{} ({},{}) \sqrt{{{}}} [{},{}] x^{{{}}} \frac{{{}}}{{x}} a_{{{}}} {} 1/{}".split(), r"\sin {}")
    )
    joint = rng.choice((",", "+", "*", " ", r"\cup ", "=", "<", " or "))
    count = rng.choice((5, 20, 40, 60, 127))
    numbers = rng.sample(range(1000), count)
    text = joint.join(_put(form, str(k), str(k + 1)) for k in numbers)
    return rng.choice(("{}", r"\{{{}\}}", "({})", "{}")).format(text)


def _both(rng: random.Random) -> str:
    """A wide expression within a deep one."""
    text = _wide(rng)[: rng.choice((40, 200, 800))]
    for _ in range(rng.choice((2, 5, 10))):
        text = _wrapped(text, rng.choice(WRAPS), rng)
    return text


def _noise(rng: random.Random) -> str:
    """Signs and leaves in random order."""
    return "".join(rng.choice(rng.choice((LEAVES, JOINTS))) for _ in range(rng.choice((3, 10, 40, 150, 500))))


def _repeated(rng: random.Random) -> str:
    """A few signs, repeated."""
    piece = "".join(rng.choice(rng.choice((LEAVES, JOINTS))) for _ in range(rng.choice((1, 2, 3, 5))))
    return piece * (1 + rng.choice((10, 100, _MAX_CHARS)) // len(piece))


def _varied(rng: random.Random) -> str:
    """A valid answer after a few mutations."""
    text = rng.choice(VALID)
    for _ in range(rng.randint(1, 4)):
        text = _mutated(text, rng)
    return text


def _mutated(text: str, rng: random.Random) -> str:
    """One random change: cut, copy, swap, replace or wrap."""
    if not text:
        return rng.choice(LEAVES)
    low, high = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    part = text[low:high]
    match rng.randrange(6):
        case 0:
            return text[:low] + text[high:]
        case 1:
            return text[:low] + part * rng.choice((2, 3, 20)) + text[high:]
        case 2:
            return text[:low] + part[::-1] + text[high:]
        case 3:
            return text[:low] + rng.choice(rng.choice((LEAVES, JOINTS))) + text[high:]
        case 4:
            return text[:low] + _wrapped(part, rng.choice(WRAPS), rng) + text[high:]
    return _wrapped(text, rng.choice(WRAPS), rng)


_SHAPES: dict[str, Callable[[random.Random], str]] = {
    "deep": _deep, "doubling": _doubling, "tree": _tree, "wide": _wide, "numbered": _numbered, "both": _both,
    "scalar": _scalar, "scalars": _scalars, "noise": _noise, "repeated": _repeated, "varied": _varied,
}  # fmt: skip
