"""The parts of curation: filters, contamination, near duplicates, formats, rewriting, the Hub."""

import functools
import gzip
import json
import subprocess
import sys

import pytest
from curation_for_tests import problems
from hypothesis import given
from hypothesis import strategies as st

from r1lite.config import RejectConfig
from r1lite.curation.contamination import EvaluationSets
from r1lite.curation.filters import Rejection, chain
from r1lite.curation.planning import evaluation_sets
from r1lite.curation.rewrite import house_form
from r1lite.curation.rows import FORMATS, Candidate, Provenance, as_line, columns
from r1lite.curation.similar import bands, jaccard, shingles
from r1lite.errors import RunError, UserError
from r1lite.hub.upload import SET_FILES, push
from r1lite.tasks import find
from verifiers import Completion, Problem, Reward
from verifiers.reward import score_one
from verifiers.rows import RowError, completion_of


def candidate(text, *, answer="4", prompt="How many are left?", finish="stop", tokens=None):
    problem = Problem(prompt=prompt, answer=answer, id="p")
    return Candidate(problem, Completion(text, (), (), finish), prompt, 0, None, Provenance(), None, tokens)


def think(text, answer="4"):
    return f"<think>{text}</think> <answer>{answer}</answer>"


def checked(link, item):
    if link.verifier is not None:
        item.scores[link.name] = score_one(link.verifier, item.problem, item.completion)
    return link.check(item)


WORDS = "we add two and two and get four because that is how it works"


@pytest.mark.parametrize(
    ("spec", "item", "reason"),
    [
        ("correct", candidate(think("a")), None),
        ("correct", candidate(think("a", "5")), "different"),
        ("correct", candidate("<think>4"), "no_answer"),
        ("correct", candidate(think("a"), answer=None), "unscored"),
        ("finished", candidate("a"), None),
        ("finished", candidate("a", finish="length"), "cut_off"),
        ("length:max=3", candidate("a b c"), None),
        ("length:max=3", candidate("a b c d"), "too_long"),
        ("length:max=3", candidate("a b c d", tokens=3), None),
        ("length:min=2,unit=words", candidate("a", tokens=9), "too_short"),
        ("length:max=2,unit=chars", candidate("abc"), "too_long"),
        ("paragraphs:max_words=3", candidate(think("a b c\n\nd e f")), None),
        ("paragraphs:max_words=3", candidate(think("a b\nc d")), "long_paragraph"),
        ("paragraphs:max_number=1", candidate(think("a\n \nb")), "many_paragraphs"),
        ("code_blocks", candidate(think("a\n```python\nprint(1)\n```")), "code_block"),
        ("code_blocks", candidate(think("a") + "\n```\n1\n```"), None),
        ("code_blocks", candidate(think("inline ``` is no block")), None),
        ("format", candidate(think(WORDS)), None),
        ("format", candidate(think(WORDS) + " so 4"), "text_outside"),
        ("language", candidate(think(WORDS)), None),
        ("language", candidate(think("wir rechnen zwei und zwei zusammen und das sind dann vier")), "other_language"),
        ("language", candidate(think("half")), None),  # too short to tell
        ("language", candidate(think("2 + 2 = 4")), None),  # abstains
        ("language:min=0.2", candidate(think(f"{WORDS} und das ist dann auch schon alles was wir wissen")), None),
        ("repetition", candidate(think(WORDS)), None),
        ("repetition", candidate("wait let me see. " * 30), "loop"),
        ("thinking:min=1,min_words=5", candidate(think("a b c")), "little"),
        ("curation_for_tests:no_hedging", candidate("maybe 4"), "hedge"),
        ("curation_for_tests:no_hedging:word=four", candidate("maybe 4"), None),
    ],
)
def test_filters(spec, item, reason):
    found = checked(next(link for link in chain([spec], Reward("math"), {}) if link.spec == spec), item)
    assert (found and found.reason) == reason
    assert found is None or isinstance(found, Rejection)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["langage"], "unknown filter 'langage'; did you mean 'language'"),
        (["length:most=3"], "it takes min, max, unit"),
        (["length:max=x"], "max must be a whole number"),
        (["length:unit=lines"], "unit is tokens, words or chars"),
        (["format:min=2"], "min is the lowest score"),
        (["format:policy=odd"], "policy must be"),
        (["paragraphs", "paragraphs:max_words=3"], "'paragraphs' is named twice"),
        (["math"], "is already the filter 'correct'"),
        (["correct:precision=3"], "under verifiers: in a recipe"),
        (["nowhere:fn"], "ModuleNotFoundError"),
    ],
)
def test_filters_that_make_no_sense(specs, message):
    with pytest.raises(UserError) as caught:
        chain(specs, Reward("math"), {})
    assert message in str(caught.value)


def test_all_bad_filters_are_told_at_once():
    with pytest.raises(UserError) as caught:
        chain(["langage", "formt", "length:max=9"], Reward("math"), {})
    assert len(str(caught.value).splitlines()) == 2


def test_filters_take_the_options_that_the_run_had():
    (_, link) = chain(["format"], Reward("math"), {"format": {"prefilled_think": True}})
    assert checked(link, candidate("a</think> <answer>4</answer>")) is None


TEST_PROBLEM = (
    "Tina buys 3 crates of 12 bottles and gives 5 bottles to each of her 4 friends. How many bottles does she keep?"
)


def sets(*questions, share=0.5):
    made = EvaluationSets(8, share)
    made.add("test", [Problem(prompt=question, id=str(n)) for n, question in enumerate(questions)])
    return made


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        (TEST_PROBLEM, "exact"),
        (TEST_PROBLEM.upper().replace(" ", "  \n"), "exact"),
        (TEST_PROBLEM.replace("12", "１２"), "exact"),  # full-width digits
        (TEST_PROBLEM.replace("12", "24").replace("5", "1,000.5"), "digits_masked"),
        (f"Here is one for you. {TEST_PROBLEM} Think hard before you answer that.", "ngrams"),
        (TEST_PROBLEM[: len(TEST_PROBLEM) * 3 // 4], "ngrams"),
        (TEST_PROBLEM.replace("Tina", "Ahmed").replace("she", "he"), "ngrams"),
        ("Sam buys 3 crates and sells them. How many bottles does she keep?", None),
        ("What is 2 + 3?", "exact"),
        ("Tell me: what is 2 + 3? Be quick about it, please, since I have to go now.", "short"),
        ("What is 2 + 4?", None),  # its numbers make a short problem
        ("What is 2 - 3?", None),
        ("x", "exact"),
        ("Find x such that x is prime.", None),  # a problem of one token is in every text
        ("", None),
    ],
)
def test_contamination(question, rule):
    found = sets(TEST_PROBLEM, "what is 2+3?", "x").find(question)
    assert (found and found.rule) == rule
    if found:
        assert found.where.startswith("test: ")


def test_one_ngram_is_enough_where_that_is_asked():
    common = "Sam is out. How many bottles does she keep? 5 bottles to each of her 4 friends. How many is that?"
    assert sets(TEST_PROBLEM).find(common) is None
    assert sets(TEST_PROBLEM, share=0.0).find(common).rule == "ngrams"


@given(st.text(min_size=1))
def test_an_evaluation_problem_is_always_found(question):
    found = sets(question).find(question)
    assert found is not None
    assert found.rule == "exact"


def test_every_file_of_an_evaluation_folder_is_read(tmp_path):
    line = json.dumps({"question": TEST_PROBLEM}).encode() + b"\n"
    for name, text in (("a.jsonl", line), ("b.jsonl.gz", gzip.compress(line)), ("c.json", b"[" + line + b"]")):
        (tmp_path / name).write_bytes(text)
    config = RejectConfig(decontaminate=[str(tmp_path)])
    (problems,) = evaluation_sets(config, find("gsm8k"), None, None).values()
    assert [problem.prompt for problem in problems] == [TEST_PROBLEM] * 3


def test_bundled_problems_are_mostly_clean():
    """Half of the n-grams is what a copy shares; one would be a common phrase."""
    questions = [question for _, question, _, _ in problems(400)]
    half, one = sets(*questions[:200]), sets(*questions[:200], share=0.0)
    flagged = [sum(made.find(q) is not None for q in questions[200:]) for made in (half, one)]
    assert flagged[0] <= 6 < 40 < flagged[1]


@given(st.lists(st.integers(0, 400), min_size=20, max_size=60), st.integers(0, 60))
def test_near_duplicates_meet_in_a_band(numbers, place):
    """One word changed in a text of 60 or more: Jaccard over 0.85, so a band is shared nearly always."""
    words = [f"word{number} and{i}" for i, number in enumerate(numbers)]
    question = shingles("how many are left of them in the end")
    changed = list(words)
    changed[place % len(words)] += "x"
    a, b = shingles(" ".join(words * 2)), shingles(" ".join(words * 2 + ["end"]))
    assert jaccard(a, b) > 0.85
    assert set(bands(question, a)) & set(bands(question, b))
    assert jaccard(a, a) == 1.0
    assert bands(question, a) == bands(question, a)


def test_other_texts_hardly_ever_meet():
    found = [(shingles(question), shingles(work)) for _, question, work, _ in problems(60)]
    signatures = [set(bands(*pair)) for pair in found]
    meetings = sum(bool(a & b) for i, a in enumerate(signatures) for b in signatures[:i])
    assert meetings <= 5


def test_bands_are_the_same_in_another_process():
    code = "from r1lite.curation.similar import *; print(bands(shingles('a b c d'), shingles('x y z w')))"
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert json.loads(printed) == bands(shingles("a b c d"), shingles("x y z w"))


def test_formats():
    """Each has its own columns and no other's; where a chat template stands around it, the reply is whole."""
    item = Candidate(Problem("Q?"), Completion("A", prefill="<think>"), "[Q?] <think>", 0, None, Provenance())
    assert {name: columns(name, item) for name in FORMATS} == {
        "prompt_completion": {"prompt": "[Q?] <think>", "completion": "A"},
        "messages": {
            "messages": [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": "<think>A"}],
        },
        "sharegpt": {
            "conversations": [{"from": "human", "value": "Q?"}, {"from": "gpt", "value": "<think>A"}],
        },
        "alpaca": {"instruction": "Q?", "input": "", "output": "<think>A"},
    }
    for name in FORMATS:
        assert completion_of({**columns(name, item), "prefill": "<think>"}) == "A"
    for broken in ({}, {"messages": []}, {"messages": [{"role": "assistant"}]}, {"output": 4}):
        with pytest.raises(RowError):
            completion_of(broken)


def test_a_lone_surrogate_does_not_reach_the_file():
    assert json.loads(as_line({"a": "x\ud800y é"})) == {"a": "x?y é"}


@pytest.mark.parametrize(
    ("text", "answer", "made"),
    [
        ("<think>a</think> <answer>4</answer>", "4", "<think>a</think> <answer>4</answer>"),
        ("<think> 2+2 = <<2+2=4>>4\n\n\n\nso **four**  \n</think>\nIt is <answer> 4 </answer>", "4",
         "<think>2+2 = 4\n\nso four</think> <answer>4</answer>"),
        ("## Work\n2 + 2 = 4\n#### 4", "4", "<think>Work\n2 + 2 = 4</think> <answer>4</answer>"),
        ("#### Step 1: add\n2 + 2 = 4\n##### Step 2: check\n4 - 2 = 2\n#### 4\nDone.", "4",
         "<think>Step 1: add\n2 + 2 = 4\nStep 2: check\n4 - 2 = 2\n\nDone.</think> <answer>4</answer>"),
        ("#### Why\nb\n#### 4 apples\n", "4", "<think>Why\nb</think> <answer>4</answer>"),
        ("2**3 + 3**2 = 17, x**(y)**2, f(**a), g(**b)", "17",
         "<think>2**3 + 3**2 = 17, x**(y)**2, f(**a), g(**b)</think> <answer>17</answer>"),
        ("**a** (**b**), __c d__, __init__, __x__, **e f**.", "4",
         "<think>a (b), c d, __init__, __x__, e f.</think> <answer>4</answer>"),
        ("1 << 3 >> 1, a<<b>>c, <<1+1=2>>2, $<<3*0.5=1.5>>1.5", "4",
         "<think>1 << 3 >> 1, a<<b>>c, 2, $1.5</think> <answer>4</answer>"),
        ("So:\n```python\n# two\nx = a**b if c else **d\n```\n`# e` # f `**g**`", "4",
         "<think>So:\n```python\n# two\nx = a**b if c else **d\n```\n`# e` # f `**g**`</think> <answer>4</answer>"),
        ("2 * 3 ** 2 = 18", "18", "<think>2 * 3 ** 2 = 18</think> <answer>18</answer>"),
        ("<think>a</think> <answer>x</answer>", None, "<think>a</think> <answer>x</answer>"),
        ("<think></think> <answer>4</answer>", "4", None),
        ("#### 4", "4", None),
    ],
)  # fmt: skip
def test_house_form(text, answer, made):
    assert house_form(text, answer) == made
    if made:
        assert house_form(made, answer) == made


class FakeHub:
    """The boundary: what would go over the wire."""

    def __init__(self, error=None):
        self.calls, self.error = [], error

    def create_repo(self, name, **options):
        self.calls.append(("create", name, options))

    def upload_folder(self, **options):
        if self.error:
            raise self.error
        self.calls.append(("upload", options["repo_id"], options))


def test_upload(tmp_path):
    hub = FakeHub()
    upload = functools.partial(push, tmp_path, "me/set", kind="dataset", files=SET_FILES, what="set")
    assert upload(api=hub) == "me/set"
    (_, _, made), (_, _, sent) = hub.calls
    assert made == {"repo_type": "dataset", "private": True, "exist_ok": True}
    assert sent["folder_path"] == str(tmp_path)
    assert "config.yaml" not in sent["allow_patterns"]
    with pytest.raises(RunError, match="no route"):
        upload(api=FakeHub(OSError("no route")))
