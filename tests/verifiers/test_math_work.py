"""The work of one verdict is bounded: random nested, repeated and mixed expressions on either side, and long texts."""

import ast
import contextlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tables_for_tests import each

from verifiers import Completion, GoldError, Problem, resolve
from verifiers.audit.math_fuzz import SCALARS, WRAPS, pair, pairs
from verifiers.extract import squeezed
from verifiers.mathexpr import calculus, modular
from verifiers.mathexpr.golds import read_gold
from verifiers.mathexpr.limits import BUDGET, Budget, TooHard, current, spend
from verifiers.mathexpr.naming import nodes_of
from verifiers.mathexpr.nodes import Node, digest, has_op, number, rename, substitute, symbol, symbols
from verifiers.mathexpr.reading import read

VERIFY = resolve("math")
MOST_CALLS = 400_000  # Python calls and returns of one verdict; the budget runs out before
MOST_MS = 50 * 3  # a loaded machine is slower than the one that the bound of 50 ms is for


class Counted:
    """Counts the calls and returns made within, which no load on the machine changes."""

    def __enter__(self):
        self.calls = 0
        self.before = sys.getprofile()
        sys.setprofile(self._count)
        return self

    def _count(self, frame, event, argument):
        self.calls += 1

    def __exit__(self, *error):
        sys.setprofile(self.before)


def judged(gold, text):
    with contextlib.suppress(GoldError):
        return VERIFY(Problem(answer=gold), Completion(text))


def cpu_ms(work):
    found = []
    for _ in range(3):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
        if found[-1] < MOST_MS / 1e3:
            break
    return 1e3 * min(found)


@pytest.mark.parametrize("seed", [11, 12])
def test_random_pairs_get_a_verdict_in_bounded_time(seed):
    judged(r"\int_0^1 x\,dx", "1")  # SymPy is loaded once a process
    for index, (gold, text, how) in enumerate(pairs(500, seed)):
        with contextlib.suppress(GoldError):
            VERIFY.gold(Problem(answer=gold))
        spent = cpu_ms(lambda gold=gold, text=text: judged(gold, text))
        assert spent < MOST_MS, (seed, index, how)


def test_random_pairs_make_a_bounded_number_of_calls():
    for index, (gold, text, how) in enumerate(pairs(150, 21)):
        with contextlib.suppress(GoldError):
            VERIFY.gold(Problem(answer=gold))
        with Counted() as work:
            judged(gold, text)
        assert work.calls < MOST_CALLS, (index, how)


@each(sorted({*WRAPS, *SCALARS}))
def test_nesting_never_multiplies_the_work(form):
    """Work that doubles with every level would not end: a tree is walked once, however deep it is."""
    holes = form.replace("{{", "").replace("}}", "").count("{}")
    text = "x"
    for _ in range(19):
        text = form.format(text, *["2"] * (holes - 1))
    for gold in ("7", text):
        if calculus_free(gold):
            with Counted() as work:
                judged(gold, rf"\boxed{{{text}}}")
            assert work.calls < MOST_CALLS


def calculus_free(gold):
    """SymPy has a bound of its own; its work is done when the gold is read."""
    with contextlib.suppress(GoldError):
        VERIFY.gold(Problem(answer=gold))
    return True


def test_a_pair_depends_on_its_seed_and_index_alone():
    assert list(pairs(3, seed=5, start=40)) == [pair(5, 40), pair(5, 41), pair(5, 42)]
    assert pair(5, 40) != pair(6, 40)


# -- SymPy is for golds only


@pytest.fixture
def no_sympy(monkeypatch):
    def entered():
        raise AssertionError("a completion reached SymPy")

    monkeypatch.setattr(calculus, "_loaded", entered)
    monkeypatch.setitem(sys.modules, "sympy", None)


GOLDS = [
    "7", "x^2", "(1,2)", r"\{1,2\}", "x=3", "[0,1]", "f(x)=x^2", "y=2x+1", "3:4", "0.5", "Monday", "x>2", "1,2",
    r"\int_0^1 x^2\,dx", r"\sum_{n=1}^\infty \frac{1}{n^2}", r"\frac{d}{dx} x^3", r"\left(\int_0^1 x\,dx, 2\right)",
    r"F(x)=\int_0^x t\,dt", r"\lim_{x\to0}\frac{\sin x}{x}",
]  # fmt: skip
CALCULUS = [
    r"\int_0^3\sqrt{x^5+\sin x+2}\,dx", r"\sum_{n=1}^{\infty}\frac{1}{n^3}", r"\lim_{x\to0}\frac{\tan x}{x}",
    r"\frac{d}{dx}x^x", r"\prod_{n=1}^\infty (1+\frac{1}{n^2})", r"\int_0^1\int_0^1 xy\,dx\,dy", r"\int x\,dx",
    r"\int_0^1 x^2\,dx",
]  # fmt: skip
SHAPES = [
    "{}", "{}=7", "7={}", "x={}", "x={}=7", "({},1)", r"\{{{},1\}}", "{},1", "[0,{}]", "y={}+x", "f(x)={}", "x>{}",
    "{}:2", r"\begin{{pmatrix}}{}\\1\end{{pmatrix}}", "{}=\\frac{{1}}{{3}}", r"{} \text{{ or }} 7", "2({})+1",
    r"\sqrt{{{}}}", "|{}|", r"\{{x\mid x<{}\}}", r"{} \approx 0.33", r"(-\infty,{})\cup(9,10)", "x^{{{}}}",
    r"x\equiv {} \pmod 5", "{}={}", "({},1)=(7,1)",
]  # fmt: skip


@pytest.mark.parametrize("gold", GOLDS)
def test_no_completion_reaches_sympy(gold, request):
    VERIFY.gold(Problem(answer=gold))
    request.getfixturevalue("no_sympy")
    for body in CALCULUS:
        for shape in SHAPES:
            judged(gold, rf"\boxed{{{shape.format(body, body)}}}")
            judged(gold, rf"<answer>{shape.format(body, body)}</answer>")


def test_no_random_completion_reaches_sympy(request):
    found = [(gold, text) for gold, text, _ in pairs(200, 31) if calculus_free(gold)]
    request.getfixturevalue("no_sympy")
    for gold, text in found:
        judged(gold, text)


def test_only_the_reading_of_a_gold_imports_calculus_and_only_that_imports_sympy():
    root = Path(calculus.__file__).parent.parent
    using: dict[str, set[str]] = {"sympy": set(), "verifiers.mathexpr.calculus": set()}
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                if name in using or name.startswith("sympy."):
                    using[name if name in using else "sympy"].add(path.name)
    assert using == {"sympy": {"calculus.py"}, "verifiers.mathexpr.calculus": {"golds.py"}}


@pytest.mark.parametrize(
    ("gold", "text", "reason"),
    [
        ("7", r"\int_0^3\sqrt{x^5+\sin x+2}\,dx = 7", "equal"),
        ("7", r"\int_0^3\sqrt{x^5+\sin x+2}\,dx = 8", "different"),
        ("7", r"I = \int_0^3\sqrt{x^5+\sin x+2}\,dx = 7", "equal"),
        ("7", r"\int_0^3\sqrt{x^5+\sin x+2}\,dx", "unsolved"),
        (r"\int_0^1 x^2\,dx", r"\frac13", "equal"),
        (r"\int_0^1 x^2\,dx", r"\frac14", "different"),
        (r"\int_0^1 x^2\,dx", r"\int_0^1 x\cdot x\,dx", "equal"),
        (r"\int_0^1 x^2\,dx=\frac13", r"\int_0^2 x^2\,dx=\frac13", "different"),
        (r"3+\int_0^1 x^2\,dx", r"\frac{10}{3}", "equal"),
        (r"\left(\int_0^1 x^2\,dx, 2\right)", r"(\frac13, 2)", "equal"),
        (r"\sum_{n=1}^\infty \frac1{2^n}", "1", "equal"),
        (r"\int_0^\infty e^{-x^2}\,dx", r"\frac{\sqrt\pi}{2}", "equal"),
        ("2.0", "f(3)", "different"),  # nothing is known of f: no number stands for it
        ("1.0", "g(1)", "different"),
    ],
)
def test_calculus_is_looked_up(gold, text, reason):
    assert judged(gold, rf"\boxed{{{text}}}").reason == reason


HARD = [
    r"\int_0^3\sqrt{x^5+\sin x+2}\,dx", r"\int_0^1 \sin(\sin(\sin(x)))\,dx", r"\int_0^1\frac{x^7}{1+x^9+\sin x}\,dx",
    r"\sum_{n=1}^\infty \frac{\sin n}{n^3+n+1}",
    r"\lim_{x\to0}\frac{\sin(\tan(\sin x))-\tan(\sin(\tan x))}{x^7}",
]  # fmt: skip


@pytest.mark.parametrize("gold", HARD)
def test_a_gold_that_sympy_finds_hard_is_left_unevaluated_in_bounded_work(gold):
    calculus._loaded()
    read_gold.cache_clear()
    with Counted() as work:  # what is counted inside SymPy is counted there, and not here
        judged(gold, "1")
    assert work.calls < MOST_CALLS
    assert judged(gold, rf"\boxed{{{gold}}}").reason == "equal"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_work_is_stopped_even_if_the_stop_is_lost_in_a_finalizer():
    turns = 0

    def held():
        nonlocal turns
        try:
            yield
        finally:
            for _ in range(100):
                turns += len("x")  # what is raised here is lost

    def work():
        for _ in range(1000):
            next(held())

    before = sys.getprofile(), sys.gettrace()
    with pytest.raises(calculus._Stop):
        calculus._Calls(5000).of(work)
    assert turns < 10_000
    assert (sys.getprofile(), sys.gettrace()) == before


# -- trees


def test_golds_read_in_threads_are_those_read_in_turn():
    """SymPy's cache made some golds cheaper beside others, and a thread left its hook behind."""
    golds = [rf"\int_0^{k} x\cdot\sin(x)\,dx" for k in range(1, 7)]
    hook = sys.unraisablehook
    wanted = [VERIFY.gold(Problem(answer=gold)).evaluated for gold in golds]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda gold: read_gold.__wrapped__(gold).evaluated, golds * 2))
    finally:
        sys.setswitchinterval(interval)
    assert found == wanted * 2
    assert sys.unraisablehook is hook


def test_free_names_know_what_binds():
    x, k = symbol("x"), symbol("k")
    total = Node("sum", (Node("mul", (k, x)), number(1), symbol("n")), "k")
    assert symbols(total) == {"x", "n"}
    assert symbols(Node("int", (x,), "x")) == {"x"}
    assert symbols(Node("int", (x, number(0), x), "x")) == {"x"}
    assert substitute(total, {"k": number(5)}) is total
    assert substitute(total, {"x": number(5), "n": k}) == Node("sum", (Node("mul", (k, number(5))), number(1), k), "k")
    assert rename(Node("int", (x,), "x"), {"x": "t"}) == Node("int", (symbol("t"),), "t")


def test_substitution_is_of_all_names_at_once():
    both = Node("add", (symbol("x"), symbol("y")))
    assert substitute(both, {"x": symbol("y"), "y": symbol("x")}) == Node("add", (symbol("y"), symbol("x")))


def test_digests_tell_trees_apart():
    a, b = symbol("a"), symbol("b")
    trees = [
        a, b, number(1), Node("const", (), "e"), Node("add", (a, b)), Node("mul", (a, b)), Node("add", (b, a)),
        Node("fn", (a,), "sin"), Node("add", (Node("add", (a, b)), a)), Node("add", (a, Node("add", (b, a)))),
        Node("matrix", (a, b), 1), Node("matrix", (a, b), 2), Node("chain", (a, b), ("=",)),
        Node("chain", (a, b), ("<",)), Node("base", (), ("10", 2)), Node("base", (), ("1", 12)),
    ]  # fmt: skip
    assert len({digest(tree) for tree in trees}) == len(trees)
    assert digest(number(10**5000)) == digest(Node("num", (), number(10**5000).value))


def grown(turns, op, copies):
    node = symbol("x")
    for _ in range(turns):
        node = Node(op, (node,) * copies)
    return node


@pytest.mark.parametrize(("op", "copies"), [("neg", 1), ("add", 2)])
def test_a_tree_that_is_too_high_or_too_large_is_never_made(op, copies):
    assert grown(10, op, copies).height == 10
    with pytest.raises(TooHard):
        grown(500, op, copies)


def test_kinds_hold_every_operation():
    node = Node("add", (Node("fn", (symbol("x"),), "sin"), number(1)))
    assert has_op(node, frozenset({"fn"}))
    assert not has_op(node, frozenset({"pow", "int"}))


# -- the budget


def test_spending_is_from_the_check_that_is_under_way():
    spend(10 * BUDGET)  # outside of any check nothing is counted
    with Budget(100) as outer:
        spend(30)
        with Budget(50) as inner:
            assert current() is inner
            spend(20)
        assert (outer.left, inner.left) == (70, 30)
        with pytest.raises(TooHard):
            spend(71)
    assert current() is not outer


def test_the_same_pair_spends_the_same_every_time(monkeypatch):
    left = []

    class Watched(Budget):
        def __exit__(self, *error):
            left.append(self.left)
            super().__exit__(*error)

    monkeypatch.setattr("verifiers.mathexpr.verify.Budget", Watched)
    text = r"\boxed{\frac{x^{12}-1}{x-1}+\sqrt{2}^{20}}"
    for _ in range(3):
        judged(r"\frac{1-x^{12}}{1-x}+2^{10}", text)
    assert left[-1] == left[-2] == left[-3] < BUDGET


# -- long texts


LONG = [
    "1", "x", r"\boxed{", r"\boxed{x}", "{", "$", r"\(", r"\[", "#### 7", "<answer>", "</answer>", "<think>",
    "the answer is ", "answer:", " ", "\n", ".", "1,", "1 ", "(", r"\text{", "actually ", "not ", "7 or ", "^", "\\",
    "\u7b54\u6848", "\u00b2", "A. ", "is ", "**", "-", "=", "therefore ", "1/2", r"\begin{",
]  # fmt: skip


@pytest.mark.parametrize("place", ["{}", r"{}\boxed{{7}}", r"\boxed{{7}}{}", r"\boxed{{{}}}", "The answer is 7 {}"])
def test_a_long_text_costs_time_in_line_with_its_length(place):
    """Cost that grows with the square of the length would be 16 times as much for 4 times the text."""
    for piece in LONG:
        short, long = (place.format(piece * (size // len(piece))) for size in (10_000, 40_000))
        for tries in range(3):  # a loaded machine slows one of the two down
            spent = cpu_ms(lambda long=long: judged("7", long))
            if spent <= 20 or spent < 10 * cpu_ms(lambda short=short: judged("7", short)) + 20:
                break
            assert tries < 2, (piece, spent)


RUNS = [
    "\xa0",
    "A is wrong. ",
    "Option B ",
    "Yes, ",
    "thirds ",
    "一",
    "times 2 ",
    "這",
    " ",
    "\u3000",
    "(",
    "1,",
    "a ",
    "7 ",
    "7 or ",
    "°C ",
    "\\ ",
    "{",
    "-",
    "7$ ",
    "，",
    "not ",
]


@pytest.mark.parametrize("unit", RUNS)
def test_a_run_of_one_sign_is_read_in_linear_time(unit):
    for head in ("The final answer is $", "The answer is ", r"\boxed{7} ", "$", "<answer>"):
        for tail in ("", "7$"):
            text = head + unit * (20_000 // len(unit)) + tail
            assert cpu_ms(lambda text=text: judged("7", text)) < 2 * MOST_MS, (head, tail)


@each(["é{}x", "1{}é", "x={}...", "Is it 1{}é"])
def test_a_run_within_an_answer_is_read_in_linear_time(frame):
    for unit in ("*", "个半", "(", "!", ".", "\\quad "):
        for wrap, length in (("<answer>{}</answer>", 2900), ("The answer is {}", 15_000)):
            text = wrap.format(frame.format(unit * (length // len(unit))))
            assert cpu_ms(lambda text=text: judged("7", text)) < 2 * MOST_MS, (unit, text[:20])


SIGNS = ["_", ">", "*", "-", "- ", "#", ";", "; ", "–;", "!", ". ", "(", "number ", "step\n", r"\quad ", r"\, "]


@pytest.mark.parametrize("sign", SIGNS)
def test_a_run_of_signs_beside_an_answer_costs_little(sign):
    """Shorter than the parts of a text that patterns read, in which such a run once took seconds."""
    question = Problem("Which one is right? A) 8 B) 72", "A")
    for before in ("", "The answer is ", "The answer is 72, ", "It ", r"\boxed{\{1, 2"):
        for after in (" A", " is wrong", " x 72.", "\nThe answer is 72."):
            completion = Completion(before + sign * (590 // len(sign)) + after)
            assert cpu_ms(lambda completion=completion: VERIFY(question, completion)) < MOST_MS, (before, after)


def test_places_in_a_text_with_long_blanks_are_those_of_the_text():
    for shift in range(16):  # wherever a run begins, it is seen
        text = "x" * shift + " " * 33 + "y"
        assert squeezed(text) == ("x" * shift + " " * 32 + "y", [(shift + 16, 1)])
    for before, between, after in [(0, 0, 500), (40, 0, 0), (33, 34, 0), (100, 200, 300), (32, 32, 32)]:
        text = " " * before + "So the answer is" + "\n" * between + r" $\frac{1}{2}$." + "\t" * after
        verdict = judged("0.5", text)
        assert verdict.score == 1.0, verdict
        assert "frac{1}{2}" in text[slice(*verdict.span)]
        assert text[slice(*verdict.span)].strip(" $.") == r"\frac{1}{2}"


def test_exponents_are_reduced_before_a_power_is_taken(monkeypatch):
    lengths = []

    def power(base, exponent, modulus):
        lengths.append(exponent.bit_length())
        return pow(base, exponent, modulus)

    monkeypatch.setattr(modular, "pow", power, raising=False)
    (node,) = nodes_of(read(r"x^{7^{1e900}}"))
    for which, (chain, _) in enumerate(modular.CHAINS):
        x, prime = modular.Modular(which).symbol("x"), chain[0]
        found, guessed = modular.fingerprint(node, which, Budget())
        assert (found, guessed) == (pow(x, pow(7, 10**900, prime - 1), prime), False)
    assert max(lengths) <= 68  # 64 times a modulus of 61 bits
