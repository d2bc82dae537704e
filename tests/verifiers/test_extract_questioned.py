"""What a last sentence says in answer to a question: (question, gold, completion, score)."""

from tables_for_tests import each

from verifiers import Completion, Problem, resolve

EGGS = "How many eggs does the farmer have?"
ANNA = "Is Anna taller than Ben?"
SOLVE = "Solve the inequality x - 4 > 0."
GERMAN_TRAIN, BUS = "Wann kommt der Zug an?", "When does the bus arrive?"
YUAN = "小明买了两本书，一共花了多少元？"
QUESTIONED = [
    # a contraction denies like "not"
    *(
        (EGGS, "12", f"So {said}.", 0)
        for said in (
            "the farmer hasn't 12 eggs", "there weren't 12 eggs", "the farmer ain't got 12 eggs",
            "the farmer mustn't have 12 eggs", "the farmer needn't have 12 eggs", "the number of eggs ain't 12",
            "there weren't \\boxed{12} eggs", "the answer ain't \\boxed{12}",
        )
    ),
    (EGGS, "12", "\\boxed{12} ain't right.", 0),
    (EGGS, "12", "So the farmer has 12 eggs. Let me make sure I haven't miscounted: 3 + 9 = 12. Yes.", 1),
    # a word that makes another value of the number before it, unless the question has it
    *(
        (EGGS, "7", text, 0)
        for text in (
            "So the farmer has 7 tenths.", "So the farmer has 7 pairs of eggs.", "So the farmer has 7² eggs.",
            "The answer is 8. Wait, it is 7 dozens.", "The answer is 8. No, it is 7 thirds.", "The answer is 8. No 7.",
            "The answer is 8. Oh, 7 wrong.", "The answer is 8. Sorry, it is 7 short.",
            "The answer is 8. Sorry, 7 maybe.",
            "The answer is not 8 but 7 dozens.", "The answer is not 8 but 7 tenths.",
            "The answer is not 8 but 7 cubed.",
            "\\boxed{7}$ million", "\\boxed{7} thousand eggs", "\\boxed{7}\\text{ dozen}",
        )
    ),
    (EGGS, "7", "The answer is 8. Wait, it is 7 eggs.", 1),
    (EGGS, "7000", "The answer is 8. No, it is 7000 eggs.", 1),
    (EGGS, "84", "So the farmer has 7 dozen eggs.", 1),
    ("How many dozens of eggs does he have?", "7", "\\boxed{7} dozen", 1),
    ("How many quarters does she have?", "7", "So she has 7 quarters.", 1),
    ("Wie viele Eier hat der Bauer?", "7", "Die Antwort ist 8. Nein, es sind 7 Dutzend.", 0),
    ("¿Cuántos huevos tiene?", "7", "La respuesta no es 8 sino 7 docenas.", 0),
    ("Wie hoch ist der Gewinn?", "125000000", "Der Gewinn beträgt also 0,125 Millionen Euro.", 0),
    # a per cent sign behind a box belongs to it
    ("What is the probability?", "0.07", "$\\boxed{7}\\%$", 1),
    (EGGS, "7", "$\\boxed{7}\\%$", 0),
    # bounds in words
    (SOLVE, "x>4", "So all numbers greater than 4 work.", 1),
    (SOLVE, "x>4", "So every number that isn't greater than 4 works.", 0),
    (SOLVE, "x>4", "So all numbers except those greater than 4 work.", 0),
    (SOLVE, "x>4", "So all numbers greater than 4 fail.", 0),
    (SOLVE, "x>=4", "So any number that is not at least 4 works.", 0),
    ("Löse die Ungleichung x - 4 > 0.", "x>4", "Also alle Zahlen, die nicht größer als 4 sind.", 0),
    ("Résous l'inéquation x - 4 > 0.", "x>4", "Donc tous les nombres qui ne sont pas supérieurs à 4.", 0),
    (SOLVE, "x<=4", "So x is not greater than or equal to 4.", 0),
    (SOLVE, "[-2,3)", "So x lies between -2 and 3, where -2 is included and 3 is excluded.", 1),
    (SOLVE, "[-2,3)", "So x lies between -2 and 3, where 3 is included and -2 is excluded.", 0),
    (SOLVE, "(-2,3]", "So x lies between -2 and 3, where 3 is included and -2 is excluded.", 1),
    (EGGS, "12", "Answer: > 12", 0),
    (EGGS, "12", "Answer: >= 12", 0),
    (EGGS, "12", "Answer: => 12", 1),
    (EGGS, "12", "Answer:\n\n> **12**", 1),
    # one of several points; a comma that groups
    ("At which point do the curves meet?", "(3,4)", "So the curves meet at (1, 2) and also (3, 4).", 0),
    ("Find the midpoint of (1,2) and (5,6).", "(3,4)", "So the midpoint of (1, 2) and (5, 6) is (3, 4).", 1),
    ("Solve for x.", "x=1200 or x=3", "So x = 1,200 or x = 3.", 1),
    ("Solve for x.", "x=1.2 or x=3", "So x = 1,200 or x = 3.", 0),
    # an objection under a heading is no other question
    (EGGS, "5", "The answer is 5.\nQuestion: is that right? No! The answer is 7.", 0),
    (EGGS, "5", "The answer is 5.\nProblem: I forgot to double it. So the answer is 10.", 0),
    (EGGS, "5", "The answer is 5.\n\nQuestion: A man has 12 cows and sells 3. How many are left?\nAnswer: 9", 1),
    # a last sentence that concludes with another value, or takes the value before it back
    *(
        (EGGS, "12", f"{answer}\n{conclusion}", 0)
        for answer in ("\\boxed{12}", "The answer is 12.", "#### 12", "<answer>12</answer>")
        for conclusion in ("So the farmer has 15 eggs.", "Therefore, after all, there are 24 eggs.")
    ),
    (EGGS, "12", "\\boxed{12}. So the farmer has 12 eggs.", 1),
    (EGGS, "12", "The answer is 12.\nHe sells 3 of 15. So the farmer has 12 eggs.", 1),
    (EGGS, "12", "12\nSo the farmer has 15 eggs.", 0),
    (EGGS, "12", "There are 12 eggs. The answer is 15.", 0),
    ("Hoeveel eieren heeft de boer?", "12", "Dus heeft de boer 12 eieren. Dat is fout.", 0),
    ("农夫有多少个鸡蛋？", "12", "**所以农夫有12个鸡蛋。** 这是错的。", 0),
    # a statement that swaps what the question compares
    (ANNA, "yes", "So Anna is taller than Ben.", 1),
    (ANNA, "yes", "So Ben is taller than Anna.", 0),
    ("Is 7 a factor of 91?", "yes", "So 91 is a factor of 7.", 0),
    ("Is every square a rectangle?", "yes", "So every rectangle is a square.", 0),
    ("Is 91 divisible by 7?", "yes", "So 7 divides 91.", 1),
    # times in words
    (GERMAN_TRAIN, "2:25", "Also kommt der Zug um fünf vor halb drei an.", 1),
    (GERMAN_TRAIN, "2:30", "Also kommt der Zug um fünf vor halb drei an.", 0),
    (GERMAN_TRAIN, "12:30", "Also kommt der Zug um halb eins an.", 1),
    ("Hoe laat komt de trein aan?", "2:30", "Dus komt de trein aan om vijf voor half drie.", 0),
    (BUS, "12:45", "So the bus arrives at a quarter to one.", 1),
    (BUS, "12:30 AM", "So the bus arrives at 12:30 at night.", 1),
    (BUS, "12:30 PM", "So the bus arrives at 12:30 at night.", 0),
    (BUS, "10:30 PM", "So the bus arrives at 10:30 at night.", 1),
    # 一百五 leaves out the unit
    (YUAN, "150", "所以一共花了一百五元。", 1),
    (YUAN, "105", "所以一共花了一百五元。", 0),
    (YUAN, "105", "所以一共花了一百零五元。", 1),
    ("全部でいくらですか。", "105", "よって、答えは百五です。", 1),
]  # fmt: skip


@each(QUESTIONED)
def test_what_a_last_sentence_says_in_answer_to_a_question(prompt, gold, text, score):
    verdict = resolve("math")(Problem(prompt, gold), Completion(text))
    assert verdict.score == score, verdict
