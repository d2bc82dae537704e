"""The language verifier: shares, mixed text, neutral parts, and what must not pay."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers import Completion, GoldError, Problem, resolve
from verifiers.language.identify import LANGUAGES, units

pytestmark = pytest.mark.quick

SENTENCES = {
    "en": "First we need to find how many clips Natalia sold in May, and then add them to the total of April.",
    "es": "Primero tenemos que encontrar cuántos clips vendió Natalia en mayo y luego sumarlos al total de abril.",
    "fr": "D'abord, nous devons trouver combien de clips Natalia a vendus en mai, puis les ajouter au total d'avril.",
    "de": "Zuerst müssen wir herausfinden, wie viele Clips Natalia im Mai verkauft hat, und sie zur Summe addieren.",
    "it": "Prima dobbiamo trovare quante clip ha venduto Natalia a maggio e poi sommarle al totale di aprile.",
    "pt": "Primeiro precisamos descobrir quantos clipes a Natália vendeu em maio e depois somá-los ao total de abril.",
    "vi": "Trước tiên chúng ta cần tìm xem Natalia đã bán bao nhiêu chiếc kẹp trong tháng năm rồi cộng vào tổng.",
    "tr": "Önce Natalia'nın mayıs ayında kaç toka sattığını bulmamız ve sonra bunu toplama eklememiz gerekiyor.",
    "ru": "Сначала нам нужно найти, сколько заколок Наталья продала в мае, и затем прибавить их к сумме за апрель.",
    "ar": "أولاً نحتاج إلى معرفة عدد المشابك التي باعتها ناتاليا في مايو ثم إضافتها إلى مجموع أبريل.",
    "hi": "सबसे पहले हमें यह पता लगाना होगा कि नतालिया ने मई में कितनी क्लिप बेचीं और फिर उन्हें जोड़ना होगा।",
    "zh": "首先我们需要求出娜塔莉亚在五月份卖了多少个夹子，然后把它们加到四月份的总数中。",
    "ja": "まず、ナタリアが五月に売ったクリップの数を求めて、それから四月の合計に加える必要があります。",
    "ko": "먼저 나탈리아가 5월에 클립을 몇 개 팔았는지 구한 다음 4월의 합계에 더해야 합니다.",
}
OTHER = [
    "Eerst moeten we weten hoeveel knopen er in de doos zaten voordat zij de helft aan haar broer gaf.",
    "Najpierw musimy dowiedzieć się, ile guzików było w pudełku, zanim oddała połowę swojemu bratu.",
    "Först måste vi ta reda på hur många knappar som låg i lådan innan hon gav hälften till sin bror.",
]


def judge(text, language, **options):
    return resolve("language", **options)(Problem(language=language), Completion(text))


def words(text):
    return sum(unit.weight for unit in units(text))


def test_all_languages_are_covered():
    assert sorted(SENTENCES) == sorted(LANGUAGES)


@pytest.mark.parametrize("language", sorted(SENTENCES))
def test_pure_text(language):
    assert judge(SENTENCES[language], language).score >= 0.88
    for target in LANGUAGES:
        if target != language:
            assert judge(SENTENCES[language], target).score <= 0.12


@pytest.mark.parametrize("text", OTHER)
def test_languages_that_are_none_of_ours_count_against_all(text):
    assert max(judge(text, target).score for target in LANGUAGES) <= 0.5


def test_the_share_of_mixed_text():
    errors = []
    for a in SENTENCES:
        for b in SENTENCES:
            if a != b:
                true = words(SENTENCES[a]) / (words(SENTENCES[a]) + words(SENTENCES[b]))
                errors.append(abs(judge(f"{SENTENCES[a]} {SENTENCES[b]}", a).score - true))
    assert sum(errors) / len(errors) <= 0.01
    assert max(errors) <= 0.1


@pytest.mark.parametrize(
    ("text", "target", "low", "high"),
    [
        ("so we get $x^2 + \\alpha = 3$ and \\(y = \\frac{1}{2}\\) from that line", "en", 1.0, 1.0),
        ("we run this code\n```python\nfor i in range(3):\n    print(i)\n```\nand see the same", "en", 1.0, 1.0),
        ("所以 sin(x) 等于 3，而且 `max(a, b)` 是 GCD 的值", "zh", 1.0, 1.0),
        ("Natalia 在四月卖了48个夹子，在五月卖了24个。", "zh", 1.0, 1.0),
        ("The price is $5 and the other one costs $7 more than that", "en", 1.0, 1.0),
        ("see https://example.org/une/page/en/francais for what we need", "en", 1.0, 1.0),
        ("let x be the number of days, so x = 3 and n is even here", "en", 1.0, 1.0),
        # What must not pay: text hidden in neutral places, look-alikes, hidden characters, padding.
        ("so we get $\\text{nous devons trouver combien de jours il reste}$ here", "en", 0.1, 0.45),
        ("so $nous devons trouver combien de jours il reste$ here", "en", 0.0, 0.45),
        ("so we get this\n```\nnous devons trouver combien de jours il reste encore\n```\n", "en", 0.1, 0.5),
        ("so we get this\n```\n# nous devons trouver combien de jours\n```\n", "en", 0.1, 0.6),
        ("so we `nous devons trouver combien de jours il reste` here", "en", 0.1, 0.45),
        ("Тhe аnswer is hеre nоw", "en", 0.0, 0.45),
        ("ｗｅ ｎｅｅｄ ｔｈｉｓ ｎｕｍｂｅｒ", "en", 0.0, 0.0),
        ("w\u200be ne\u200bed th\u200bis num\u200bber", "en", 0.0, 0.0),
        ("the the " * 100 + SENTENCES["zh"], "en", 0.0, 0.3),
        ("we need to add all of these. " * 60 + SENTENCES["zh"], "en", 0.0, 0.5),
        (f"{SENTENCES['en']} {SENTENCES['zh']} {SENTENCES['zh']}", "en", 0.2, 0.4),
    ],
)
def test_neutral_parts_and_hacks(text, target, low, high):
    assert low <= judge(text, target).score <= high


@pytest.mark.parametrize(
    ("text", "score", "reason"),
    [
        ("48/2 = 24, 48 + 24 = 72", None, "no_evidence"),
        ("", None, "no_evidence"),
        ("<think></think><answer>4</answer>", None, "no_evidence"),
        ("so", 0.0, "short"),  # a single word is no reasoning
        ("so we", 1 / 3, "short"),
        ("так мы", 0.0, "short"),
    ],
)
def test_little_evidence(text, score, reason):
    verdict = judge(text, "en")
    assert (verdict.score, verdict.reason) == (score if score is None else pytest.approx(score), reason)


def test_only_the_thinking_counts():
    text = f"<think>{SENTENCES['en']}</think><answer>{SENTENCES['fr']}</answer>"
    assert judge(text, "en").score == 1.0
    assert judge(f"{SENTENCES['en']}</think>{SENTENCES['fr']}", "en").score == 1.0  # the prompt opened the block


def test_the_target_is_the_prompt_s_own_language():
    verify = resolve("language")
    for language, text in SENTENCES.items():
        assert verify(Problem(prompt=text), Completion(text)).score >= 0.88, language
    assert verify(Problem(prompt="1+1=?"), Completion(SENTENCES["en"])).reason == "no_target"
    assert resolve("language", target="fr")(Problem(), Completion(SENTENCES["fr"])).score >= 0.88


def test_mistakes_of_use():
    with pytest.raises(GoldError, match="'xx' is none of"):
        judge("a text", "xx")
    with pytest.raises(ValueError, match="target must be one of"):
        resolve("language", target="english")


@given(st.text(max_size=200), st.sampled_from(LANGUAGES))
def test_any_text_has_a_share_or_none(text, language):
    score = judge(text, language).score
    assert score is None or 0 <= score <= 1


@pytest.mark.parametrize(
    "piece", ["a", "aa ", "a_", "a/", "a.", "$", "`a", "\\text{", "a\u0301", "@", "中", "aaaa bbbb "]
)
def test_hostile_text_costs_time_in_proportion(piece):
    began = time.process_time()
    judge((piece * 200_000)[:200_000], "en")
    assert time.process_time() - began < 5.0  # a quadratic scan would take minutes
