"""Spellings of structured answers: each right one is paid, and none of its near misses."""

import pytest

from verifiers import Completion, Problem, resolve

CASES = [  # (question, gold, right answers, wrong answers)
    (
        "Find a formula for a_n.",
        "(-2)^n",
        [r"(-1)^n 2^n", r"(-1)^n\,2^n", r"(-1)^{n} 2^{n}"],
        [r"(-1)^n 3^n", r"(-1)^{n+1} 2^n", r"(-1)^n 2^{n+1}", r"(-1)^n + 2^n"],
    ),
    ("Factor 360.", r"2^3\cdot 3^2\cdot 5", [r"2^3 3^2 5", r"2^3\,3^2\,5"], [r"2^3 3^2 7", r"2^2 3^3 5"]),
    (
        "Write in polar form.",
        r"2e^{i\pi/3}",
        [r"2\operatorname{cis}\frac{\pi}{3}", r"2\,\text{cis}\,60^\circ", r"2\angle 60^\circ", r"2∠60°", r"2 cis(60°)"],
        [r"2\operatorname{cis}\frac{\pi}{6}", r"2\operatorname{cis}60", r"2\angle -60^\circ", r"\mathrm{cis}60^\circ"],
    ),
    ("Find D.", r"\begin{pmatrix}2&0\\0&5\end{pmatrix}",
     [r"\operatorname{diag}(2,5)", r"\text{diag}\{2,5\}", r"D=\mathrm{diag}(2,5)",
      r"\begin{pmatrix*}[r]2&0\\0&5\end{pmatrix*}"],
     [r"\operatorname{diag}(5,2)", r"\operatorname{diag}(2,5,0)", r"\operatorname{diag}(2)", "(2,5)"]),
    ("Find A^4.", r"\begin{pmatrix}1&0\\0&1\end{pmatrix}", ["I_2", "I", r"\mathbf{I}_2", r"I_{2\times2}"],
     ["I_3", "-I_2", "2I", "1", "O"]),
    ("Find A^2.", "4I_2", [r"\begin{pmatrix}4&0\\0&4\end{pmatrix}", r"4\begin{bmatrix}1&0\\0&1\end{bmatrix}"],
     ["4I_3", "2I_2", "4", r"\begin{pmatrix}4&4\\4&4\end{pmatrix}"]),
    ("Find the sum.", r"\frac{n(n+1)}{2}", [r"\sum_{i=1}^n i"], [r"\sum_{i=1}^n i^2", r"\sum_{i=1}^{n-1} i"]),
    (
        "Expand 1/(1+x^2).",
        r"\sum_{n=0}^{\infty}(-1)^n x^{2n}",
        [r"\sum_{k=0}^{\infty}(-x^2)^k", r"\sum_{n=1}^{\infty}(-1)^{n-1}x^{2n-2}", r"\sum_{n\ge0}(-1)^n x^{2n}",
         r"1-x^2+x^4-\cdots", r"1-x^2+x^4-\cdots+(-1)^kx^{2k}+\cdots"],
        [r"\sum_{k=0}^{\infty}(x^2)^k", r"\sum_{k=1}^{\infty}(-x^2)^k", r"\sum_{n=1}^{\infty}(-1)^{n}x^{2n-2}",
         r"\sum_{k=0}^{9}(-x^2)^k", r"1-x^2+x^4", r"1-x^2-\cdots", r"1+x^2+x^4+\cdots",
         r"1-x^2+x^4-\cdots+(-1)^kx^{k}+\cdots", r"1+\sum_{k=0}^{\infty}(-x^2)^k"],
    ),
    (
        "Find the Fourier series.",
        r"\frac{\pi}{2}-\frac{4}{\pi}\sum_{n=1}^\infty\frac{\cos((2n-1)x)}{(2n-1)^2}",
        [r"\frac{\pi}{2}-\frac{4}{\pi}\sum_{k=0}^\infty\frac{\cos((2k+1)x)}{(2k+1)^2}",
         r"\frac{\pi}{2}-\sum_{n=1}^\infty\frac{4\cos((2n-1)x)}{\pi(2n-1)^2}"],
        [r"\frac{\pi}{2}-\frac{4}{\pi}\sum_{n=1}^\infty\frac{\sin((2n-1)x)}{(2n-1)^2}",
         r"\pi-\frac{4}{\pi}\sum_{n=1}^\infty\frac{\cos((2n-1)x)}{(2n-1)^2}",
         r"\frac{\pi}{2}-\frac{4}{\pi}\sum_{n=0}^\infty\frac{\cos((2n-1)x)}{(2n-1)^2}"],
    ),
    ("Set up the volume.", r"\pi\int_0^4 x\,dx",
     [r"\int_0^4\pi(\sqrt x)^2\,dx"], [r"\int_0^4x\,dx", r"\pi\int_0^2x\,dx"]),
    ("Set up.", r"\int_0^1\int_0^x xy\,dy\,dx", [r"\frac18"], [r"\frac14", r"\int_0^1\int_0^1 xy\,dy\,dx"]),
    (
        "Find f(x).",
        r"\begin{cases} x^2 & \text{if } x<0\\ 2x+1 & \text{if } x\ge 0\end{cases}",
        [r"\begin{cases} x^2 & \text{se } x<0\\ 2x+1 & \text{altrimenti}\end{cases}",
         r"\begin{cases} x^2, & \text{falls } x<0,\\ 2x+1, & \text{sonst}.\end{cases}",
         r"\begin{cases} x^2 & \text{для } x<0\\ 2x+1 & \text{иначе}\end{cases}",
         r"\begin{cases} x^2 & \text{jeśli } x<0\\ 2x+1 & \text{jeśli } x\ge0\end{cases}",
         r"\begin{cases} x^2 \text{ si } x<0\\ 2x+1 \text{ si } x\ge0\end{cases}",
         r"\begin{dcases} x^2 & : x<0\\ 2x+1 & : x\ge 0\end{dcases}",
         r"\left\{\begin{aligned} &x^2, & x<0\\ &2x+1, & x\ge 0\end{aligned}\right."],
        [r"\begin{cases} x^2 & \text{se } x>0\\ 2x+1 & \text{altrimenti}\end{cases}",
         r"\begin{cases} x^2 & \text{falls } x\le 0\\ 2x+1 & \text{sonst}\end{cases}",
         r"\begin{cases} x^2 & \text{se não } x<0\\ 2x+1 & \text{se } x\ge 0\end{cases}",
         r"\begin{cases} x^2 & \text{if not } x<0\\ 2x+1 & \text{otherwise}\end{cases}",
         r"\begin{cases} 2x+1 & \text{si } x<0\\ x^2 & \text{sinon}\end{cases}"],
    ),
    (
        "Find the unit vector.",
        r"\left(\frac35,\frac45\right)",
        [r"\frac15(3,4)", r"\frac{\langle3,4\rangle}{5}", r"\frac15(3\mathbf{i}+4\mathbf{j})", r"\frac15(3,4)^T",
         r"\frac15\begin{pmatrix}3\\4\end{pmatrix}", r"\left\{\left(\frac35,\frac45\right)\right\}"],
        [r"\frac15(4,3)", r"\frac15(3,-4)", r"\frac{1}{25}(3,4)", "(3,4)"],
    ),
    (
        "Find the vector.",
        r"\begin{pmatrix}3\\4\end{pmatrix}",
        [r"\binom{3}{4}", "<3, 4>", r"3\hat{x}+4\hat{y}", r"3\mathbf{e}_1+4\mathbf{e}_2", "(3,4)^T"],
        [r"\binom{4}{3}", "<4, 3>", r"3\mathbf{e}_2+4\mathbf{e}_1", "7", r"\frac12(3,4)"],
    ),
    (
        "Parametrise the line.",
        "(x,y,z)=(1,2,3)+t(4,5,6)",
        [r"\mathbf{r}=\langle1,2,3\rangle+t\langle4,5,6\rangle", "x=1+4t, y=2+5t, z=3+6t", "(1,2,3)+s(4,5,6)"],
        ["(1,2,3)+t(4,5,7)", "(4,5,6)+t(1,2,3)", "x=1+4t, y=2+5t, z=3-6t", "(1,2,3)"],
    ),
    (
        "Find the general solution of y'' + a y = 0.",
        r"y=C_1\cos(\sqrt{a}x)+C_2\sin(\sqrt{a}x)",
        [r"y=A\cos(\sqrt{a}x)+B\sin(\sqrt{a}x)", r"y=B\cos(\sqrt{a}x)+A\sin(\sqrt{a}x), A, B\in\mathbb{R}",
         r"y=C_1\cos(\sqrt{a}x)+C_2\sin(\sqrt{a}x), \text{ where } C_1, C_2 \text{ are constants}"],
        [r"y=a\cos(\sqrt{A}x)+B\sin(\sqrt{A}x)", r"y=A\cos(\sqrt{a}x)+A\sin(\sqrt{a}x)",
         r"y=A\cos(ax)+B\sin(ax)"],
    ),
    ("Find the general solution of $y' = 2y$.", "y=Ce^{2x}", ["y=Ae^{2x}", "y=ke^{2x}", r"y=C_1\exp(2x)"],
     ["y=e^{2x}", "y=Ae^{-2x}", "y=e^{2x}+A", "y=xe^{2x}"]),
    ("Find the general solution of $y' = ay$.", "y=Ce^{ax}", ["y=Ke^{ax}"], ["y=ae^{Cx}", "y=Ke^{Cx}", "y=Ke^{bx}"]),
    ("Find the integral.", "x^2+C", [r"x^2+\text{C}", r"x^2+\text{const}", "x^2 + constant"], [r"2x^2+\text{C}"]),
    ("How many ways?", r"\binom{2n}{n}", ["C(2n,n)", "C_{2n}^{n}"], ["C(n,2n)", "C_{2n}^{2}", r"C(2n,n)\cdot 2"]),
    ("Solve.", r"x\equiv 3\pmod 7", [r"x\equiv3\ [7]"], [r"x\equiv3\ [8]", r"x\equiv4\ [7]", "3"]),
    ("Solve sin x = 1/2.", r"x=\frac{\pi}{6}+2\pi k, x=\frac{5\pi}{6}+2\pi k",
     [r"\left\{\frac{\pi}{6}+2k\pi,\frac{5\pi}{6}+2k\pi\mid k\in\mathbb{Z}\right\}"],
     [r"\left\{\frac{\pi}{6}+k\pi,\frac{5\pi}{6}+k\pi\mid k\in\mathbb{Z}\right\}"]),
    ("Find the domain.", r"\mathbb{R}\setminus\{1\}", [r"\mathbb{R}-\{1\}"], [r"\mathbb{R}-\{2\}", r"\mathbb{R}-1"]),
    ("Solve.", "x>2", [r"\{x\in\mathbb{R}; x>2\}"], [r"\{x\in\mathbb{R}; x<2\}", r"\{x\in\mathbb{R}; 2\}"]),
    ("Describe the region.", r"x^2+y^2\le 4", [r"\{(x,y)\in\mathbb{R}^2: x^2+y^2\le4\}"],
     [r"\{(x,y): x^2+y^2<4\}", r"\{(x,y): x^2+z^2\le4\}"]),
    ("Solve the system.", "(2,-1)", [r"\{x=2,y=-1\}", r"\{y=-1,x=2\}"], [r"\{x=-1,y=2\}", r"\{2,-1\}"]),
    ("Find f.", "f(x)=x^2+1", [r"f:x\mapsto x^2+1", r"x\mapsto x^2+1", r"f\colon t\mapsto t^2+1"],
     [r"x\mapsto x^2-1", r"f:x\mapsto t^2+1", r"g:x\mapsto x^2+1"]),
    ("Find f''(x).", "f''(x)=6x", [r"f^{\prime\prime}(x)=6x"], [r"f^{\prime}(x)=6x", r"f^{\prime\prime}(x)=5x"]),
    ("Expand 1/(z(1-z)).", r"\sum_{n=-1}^{\infty}z^n",
     [r"\frac1z+\sum_{n=0}^\infty z^n", r"\frac1z+1+\sum_{n=1}^\infty z^n"],
     [r"z+\sum_{n=0}^\infty z^n", r"\frac1z+\sum_{n=1}^\infty z^n", r"\sum_{n=0}^\infty z^n"]),
    ("Solve the system.", "(t,2-t,3)", [r"\{(t,2-t,3)\mid t\in\mathbb{R}\}"],
     [r"\{(t,2+t,3)\mid t\in\mathbb{R}\}", "(1,1,3)"]),
    ("Find A^n.", r"\begin{pmatrix}1&n\\0&1\end{pmatrix}", [r"I+n\begin{pmatrix}0&1\\0&0\end{pmatrix}"],
     [r"I-n\begin{pmatrix}0&1\\0&0\end{pmatrix}", r"I+n\begin{pmatrix}0&0\\1&0\end{pmatrix}"]),
    ("Find the general solution.", "x^2+y^2=C", ["x^2+y^2=K", "x^2+y^2=C_1"], ["x^2-y^2=K", "x^2+y^2=Kx", "x^2+y^2=1"]),
    ("Find all functions.", "f(x)=cx", ["f(x)=kx", r"f(x)=cx, c\in\mathbb{R}"], ["f(x)=x", "f(x)=kx+1", "f(x)=kx^2"]),
    ("Find the line.", r"\frac{x-1}{2}=\frac{y+1}{3}=\frac{z}{4}", [r"\frac{z}{4}=\frac{x-1}{2}=\frac{y+1}{3}"],
     [r"\frac{z}{4}=\frac{x+1}{2}=\frac{y+1}{3}", r"\frac{x-1}{2}=\frac{y+1}{3}"]),
    ("Find the polynomial.", r"1+x+\frac{x^2}{2}+\frac{x^3}{6}", [r"\sum_{k=0}^3\frac{x^k}{k!}"],
     [r"\sum_{k=0}^4\frac{x^k}{k!}"]),
    ("Convert to base 2.", "11011_2", ["11011_{(2)}", r"11011\text{ (base 2)}", r"11011\text{ in base 2}"],
     ["11011_{(3)}", r"11010\text{ (base 2)}"]),
    ("Convert to base 16.", "1F_{16}", ["(1F)_{16}", r"\mathrm{1F}_{16}"], ["(1E)_{16}", "(1F)_{17}"]),
]  # fmt: skip


@pytest.mark.parametrize(("question", "gold", "right", "wrong"), CASES)
def test_spellings(question, gold, right, wrong):
    verify = resolve("math")
    problem = Problem(prompt=question, answer=gold)
    scores = {text: verify(problem, Completion(rf"\boxed{{{text}}}")).score for text in (*right, *wrong)}
    assert scores == dict.fromkeys(right, 1.0) | dict.fromkeys(wrong, 0.0)


def test_a_letter_of_the_question_is_no_parameter():
    problem = Problem(prompt="Give the position at time t.", answer="(1+4t, 2-t)")
    assert resolve("math")(problem, Completion(r"\boxed{(1+4s, 2-s)}")).score == 0.0
