"""Signs beside a box that make it a part of an expression, and others like them: (gold, completion, score)."""

from tables_for_tests import each

from verifiers import Completion, Problem, resolve

# The signs beside a box that make it a part of an expression, and others like them.
BESIDE_A_BOX = {
    0: r"B\pi|B\sqrt{2}|Bx|Bx^2|2B|B*3|B - x|B-\sqrt{2}|B(x+1)|B\left(x+1\right)|Bi|x^{B}|\log_{B}|\frac{1}{B}|x - B"
    r"|2x + B|B\,x|B < x|B \le x|x \le B|B:2|\pi B|B\frac{1}{2}|B.5|B,5|0.B|Be^x|\sqrt[3]{B}|-(B)|2(B)",
    1: r"x=B|\text{B}|B\text{ cm}|B \frac{m}{s}|\textcolor{red}{B}|x\equiv B\pmod{12}|\frac{21}{3} = B|x \to B",
}


@each(
    [("7", f"${form.replace('B', chr(92) + 'boxed{7}')}$", score) for score, forms in BESIDE_A_BOX.items()
     for form in forms.split("|")]
    + [("7", text, 1) for text in (
        "Solve for x\n\\boxed{7}", "Step 5\n\\boxed{7}", "**Answer** - \\boxed{7}", "\\boxed{7}: the sum.",
        "Vậy \\boxed{7}.", "\\framebox{7}",
    )]
)  # fmt: skip
def test_a_box_that_is_part_of_an_expression_is_no_answer(gold, text, score):
    verdict = resolve("math")(Problem(answer=gold), Completion(text))
    assert verdict.score == score, verdict
