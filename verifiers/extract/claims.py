"""Finds answers that are words: the name or day that a question asks for, or the word of the gold's class.

A gold such as "even", "Tuesday" or "greater" belongs to a closed class. The text claims the word of this class that its
concluding clause says of something ("the sum is therefore even"). Numbers and words beside it are working.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping

from verifiers.extract.asked import Asked, shared_with
from verifiers.extract.asked_days import DAYS, FROM, MONTHS, asked_date, asked_day
from verifiers.extract.asked_names import THAT_IS, asked_name, asks_for_a_name, without_denied_names
from verifiers.extract.clauses import main_clause, opposed, reports, supposes
from verifiers.extract.other_subjects import NEIGHBOUR
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import ANOTHER, FRAMES, JOINS, NOT, SO, SOMEBODY, STOP, UNREAL, UNSPACED, WORD
from verifiers.extract.turns import CORRECTION
from verifiers.extract.vocabulary import SAFE
from verifiers.lazy_pattern import any_case, lazy_pattern

_LONGEST = 400  # characters of a sentence
_BRIEF = 4  # words: "so it is even"
_PARTS = any_case(  # separates the statements of a clause
    r"[,;:，；：、]\s?(?!\d)|\s(?:and|und|et|y|e|en|och|i|и|ve|và|dan)\s"
)
# The members of closed classes, and ";" after each class; "/" separates words of one meaning, "_" is a space.
_CLASSES = (
    "even odd; gerade/gerades/gerader ungerade/ungerades/ungerader; pair/paire/pairs/paires"
    " impair/impaire/impairs/impaires; par/pares impar/impares/ímpar/ímpares; pari dispari; even oneven;"
    " jämn/jämnt/jämna udda; parzysta/parzyste/parzysty/parzystą nieparzysta/nieparzyste/nieparzysty/nieparzystą;"
    " чётное/четное/чётна/четна/чётная/четная/чётным/четным/чётно/четно/чётный/четный"
    " нечётное/нечетное/нечётна/нечетна/нечётная/нечетная/нечётным/нечетным/нечётно/нечетно/нечётный/нечетный;"
    " çift/çifttir tek/tektir; chẵn lẻ; genap ganjil; 偶数 奇数; 짝수 홀수; زوجي/زوجية/زوجيا/زوجياً"
    " فردي/فردية/فرديا/فردياً; सम विषम; greater/larger/bigger/more/higher smaller/less/lower/fewer equal/the_same;"
    " größer/mehr/höher kleiner/weniger gleich/gleich_groß; plus_grand/plus_grande/supérieur/supérieure"
    " plus_petit/plus_petite/inférieur/inférieure égal/égale/égaux; mayor/más_grande/maior"
    " menor/más_pequeño/más_pequeña igual/iguales/iguais; maggiore/più_grande minore/più_piccolo/più_piccola"
    " uguale/uguali; groter/meer kleiner/minder gelijk; större/fler mindre/färre lika; większy/większa/większe/więcej"
    " mniejszy/mniejsza/mniejsze/mniej równy/równa/równe; больше меньше равно/равны; büyük/büyüktür/fazla"
    " küçük/küçüktür/az eşit/eşittir; lớn_hơn nhỏ_hơn/bé_hơn bằng_nhau; lebih_besar lebih_kecil sama; 大于/更大"
    " 小于/更小 等于/相等; 大きい 小さい 等しい; 크다/큽니다 작다/작습니다 같다/같습니다; prime composite;"
    " prim/primzahl zusammengesetzt/zusammengesetzte; premier composé; primo compuesto/composto; priemgetal/priem"
    " samengesteld; простое/простым составное/составным; 质数/素数 合数; 素数 合成数; positive negative zero; positiv"
    " negativ null; positif/positive négatif/négative nul/nulle; positivo/positiva negativo/negativa cero/zero;"
    " rational irrational; rationnel irrationnel; racional/razionale irracional/irrazionale; increasing decreasing"
    " constant; acute right obtuse; heads tails; spring summer autumn/fall winter"
).split("; ")
# Words by which a clause says what something is or becomes.
_SAYS = any_case(
    r"(?<![^\W\d_])(?:is|are|was|were|be|been|becomes?|gives?|makes?|making|yields?|produces?|producing|getting|gets?"
    r"|remains?|stays?|falls? on|in|ist|sind|war|bleibt|wird|ergibt|liefert|est|sont|était|devient|reste|donne|es|son"
    r"|era|fue|queda|da|resulta|será|é|são|foi|dá|fica|è|sono|risulta|dà|wordt|geeft|blijft|är|blir|ger|to|jest|są|daje"
    r"|będzie|это|будет|является|получится|là|adalah|هو|هي|يكون)"
    r"(?![^\W\d_])|(?<=\b(?i:it|at|he))['’]s\b|[—–:]|[是为為成得]"
)
# What may stand between a word and the end of its clause: "is an even number", "짝수입니다".
_CLOSED = any_case(
    r"[\s*_\"”»']*+(?:(?:number|one|zahl|nombre|número|numero|getal|tal|liczba|liczbą|число|числом|sayı\w*"
    r"|bir sayı\w*|số|bilangan|عدد|संख्या)\b)?"
    r"[\s*_\"”»']*+(?P<copula>입니다|이다|이에요|예요|[가이] 됩니다|です|だ|である|になります|になる|[dt][ıiuü]r|है"
    r"|होग[ाी]|होता है|günü\b[^,.;]*)?[\s*_\"”»']*+(?:[.,;:!。，、।)（(]|$)"
)
_WITHOUT_COPULA = lazy_pattern(
    r"[\u0400-\u04ff\u0600-\u06ff\u0900-\u097f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7afıİğşçẵẻ]|genap|ganjil"
    r"|tek|besar|kecil"
)
# "谁跑得快", "誰が一番高い", "누가 더 많이 읽": the predicate ends before its inflection.
_ASKS_WHO = lazy_pattern(
    r"(?:谁|哪个|誰が|だれが|どちらが|どっちが|누가|어느 (?:것|쪽)이)的?\s*(?P<predicate>[^?？。，,]{1,20}?)"
    r"(?:ですか|ますか|でしょうか|[었았]?습니까|ㅂ니까|나요|呢|吗)?[?？。\s]*$"
    r"|(?P<named>[^.?？。，、,]{1,20}?)(?:(?:のは|人は|[ほ方]うは|方は)\s?(?:どちら|どっち|誰|だれ|どれ)(?:の方"
    r"|のほう)?(?:です|でしょう)か|\s?(?:사람|것|쪽)은 (?:누구|어느 (?:것|쪽))(?:입니까|인가요|일까요|예요|이에요)"
    r"|的(?:人)?是(?:谁|哪个|哪一个))[?？。\s]*$"
)
# What something is compared with.
_COMPLEMENT = any_case(
    r"\b(?:than|als|que|di|do que|de|dan|än|niż|od|daripada)\s[^,.;:]{1,40}$|(?<!\w)чем\s[^,.;:]{1,40}$"
)
_BEFORE_DAY = any_case(
    r"\b(?:before|after|past|later than|earlier than|but|except|(?:veille|lendemain) (?:de|du)|víspera del?"
    r"|después del?|antes del?|dag (?:na|voor)|tag (?:nach|vor)|frühestens|spätestens)\s*$|день (?:после|перед)\s*$"
)
_BEHIND_DAY = any_case(r"['’]s eve|\s?at the (?:earliest|latest)|的[前后]一天|の[翌前]日|\s?다음 날|\s?전날")
_ASKS_WHICH = any_case(
    r"(?<![^\W\d_])([^\W\d_]{6,})\s(?:or|oder|ou|o|или|czy|eller)\s(?:\w{2,5}\s)?([^\W\d_]{6,})\s*\?"
)
_STEM = 6  # characters
_COMMAND = lazy_pattern(r"\\[A-Za-z]+")
_CONVERGING = frozenset("series sum integral sequence reihe folge série suite serie sucesión".split())
_PRONOUNS = frozenset("it this that es sie elle il lo la".split())
_AFTER_VERB = any_case(r"(?:\s(?:absolutely|conditionally|too|here|indeed|absolut|absolument))?[\s.!*_]*")


def claimed(
    text: str, sentences: list[Span], prompt: str, wanted: Asked, language: str, gold: str
) -> Extraction | None:
    """Returns the word of the gold's class that the text claims, or None if it claims none or several.

    `sentences`: the sentences of the text up to the one that states the answer.
    """
    members = _class_of(gold.casefold().strip(" .。"))
    if members is None:
        return _who(text, sentences[-1], prompt, language, gold)
    pattern, meaning = members
    text = without_denied_names(text, sentences[-1], prompt)
    for index in range(len(sentences) - 1, -1, -1):
        sentence = sentences[index]
        if pattern.search(text, *sentence) is None:
            continue
        rest = text[sentence[1] : sentences[-1][1]]
        if CORRECTION.search(rest) or NOT.search(rest) or reports(rest, wanted):
            return None
        found, concluded = _in_clause(text, sentence, language, wanted, pattern)
        if found is None or FRAMES.search(text, sentences[0][0], sentence[0]):
            return None
        own = _meaning_of(found[0], meaning)
        earlier = (_in_clause(text, span, language, wanted, pattern)[0] for span in sentences[:index])
        if not concluded and any(other is not None and _meaning_of(other[0], meaning) != own for other in earlier):
            return None
        return Extraction(found.span(), "statement", said=gold if own == _meaning_of(gold, meaning) else found[0])
    return None


def _meaning_of(word: str, meaning: Mapping[str, str]) -> str:
    return meaning.get(word.casefold(), word.casefold())


def _in_clause(
    text: str, sentence: Span, language: str, wanted: Asked, pattern: re.Pattern[str]
) -> tuple[re.Match[str] | None, bool]:
    """Returns the only word of a class that the main clause says of something, and whether it is a conclusion.

    If its parts say several, the part counts that shares the most words with the question.
    """
    clause, concluded = main_clause(text, sentence, language)
    said = [word for word in pattern.finditer(text, *clause) if _is_said(text, clause[0], word, clause[1])]
    if len({word[0].casefold() for word in said}) > 1:
        ends = [clause[0], *(joint.end() for joint in _PARTS.finditer(text, *clause)), clause[1] + 1]
        parts = [(low, high - 1) for low, high in itertools.pairwise(ends)]
        shares = [len(shared_with(wanted.sentence, text[slice(*part)])) for part in parts]
        clause = parts[-1]
        said = [word for word in said if word.start() >= clause[0]] if shares[-1] > max(shares[:-1], default=0) else []
    if len({word[0].casefold() for word in said}) != 1:
        return None, concluded
    clause = (max(clause[0], *(text.rfind(sign, 0, said[-1].start()) + 1 for sign in ":;：；")), clause[1])
    part, whole = text[slice(*clause)], text[slice(*sentence)]
    before, after = text[clause[0] : said[-1].start()], text[said[-1].end() : clause[1]]
    doubted = any(pattern.search(before) for pattern in (NOT, UNREAL, FROM)) or reports(part, wanted)
    if doubted or supposes(whole) or opposed(f"{_SAYS.sub(' ', before)} § {after}", language):
        return None, concluded
    if NEIGHBOUR.match(part) or NEIGHBOUR.match(whole):
        return None, concluded
    brief = len(WORD.findall(before)) < _BRIEF and not UNSPACED.search(before)
    about = not wanted.sentence or brief or shared_with(pattern.sub(" ", wanted.sentence), pattern.sub(" ", part))
    return (said[-1] if about else None), concluded


def _is_said(text: str, low: int, word: re.Match[str], end: int) -> bool:
    """Returns whether a clause says the word of something, and does not only describe a thing by it ("odd numbers")."""
    before = text[low : word.start()]
    if _COMPLEMENT.search(before):
        return False
    if _SAYS.search(before):
        return True
    closed = _CLOSED.match(text, word.end(), end)
    return closed is not None and (closed["copula"] is not None or _WITHOUT_COPULA.search(word[0]) is not None)


def _who(text: str, sentence: Span, prompt: str, language: str, gold: str) -> Extraction | None:
    """Returns the name that stands beside the asked predicate in a script without capitals: 小红最高, 太郎が速い."""
    asked = _ASKS_WHO.search(prompt) if max(gold) > "\u3000" and gold in prompt else None
    if asked is None:
        return None
    name, predicate = re.escape(gold), re.escape((asked["predicate"] or asked["named"]).strip()[-12:])
    clause, _ = main_clause(text, sentence, language)
    found = re.search(
        rf"(?<![比和跟于如没有])(?P<before>{name})(?:の方|のほう|쪽|的)?[がはも이가은는]?\s*"
        rf"(?:比[^，。]{{1,6}}|[^、。,]{{1,10}}(?:より|보다)も?\s*)?[更最还要]*{predicate}"
        rf"|{predicate}[^，、。,]{{0,6}}?(?:是|のは|人は|方は|사람은|것은|쪽은)\s*(?P<after>{name})",
        text[slice(*clause)],
    )
    if found is None or opposed(text[slice(*clause)], language) or supposes(text[slice(*sentence)]):
        return None
    start = clause[0] + found.start("before" if found["before"] else "after")
    return Extraction((start, start + len(gold)), "statement")


@functools.lru_cache(maxsize=256)
def _class_of(gold: str) -> tuple[re.Pattern[str], Mapping[str, str]] | None:
    """Returns the pattern of the words of the gold's class and the meanings of its words, or None for other golds."""
    for pattern in (DAYS, MONTHS):
        if pattern.fullmatch(gold):
            return pattern, {}
    line = next((line for line in _CLASSES if gold.replace(" ", "_") in re.split("[ /]", line)), None)
    if line is None:
        return None
    words = {word.replace("_", " "): group for group in line.split() for word in group.split("/")}
    listed = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    if max(listed) > "\u3000":
        return re.compile(listed), words
    return re.compile(rf"(?<![^\W\d_])(?:{listed})(?![^\W\d_])", re.IGNORECASE), words


def named(text: str, sentence: Span, prompt: str, language: str) -> Span | None:
    """Returns the span of the name, weekday or date with which the last clause answers the question, or None."""
    if not asks_for_a_name(prompt) or (NEIGHBOUR.match(text, *sentence) and not NEIGHBOUR.search(prompt)):
        return None
    clause, concluded = main_clause(text, sentence, language)
    for find in (asked_day, asked_date):
        found = find(text, sentence, clause, prompt)
        if found is None:
            continue
        if find is asked_day and not concluded and _another_day(text, sentence, found, prompt):
            return None
        said = ANOTHER.sub(" ", text[slice(*(clause if concluded else sentence))])
        return None if _is_neighbour(text, sentence, found) or opposed(said, language) else found
    found = asked_name(text, clause, prompt, concluded=concluded)
    joint = max((match.end() for match in JOINS.finditer(text, *clause)), default=0)
    if found is None and joint:
        clause = (joint, clause[1])
        found = asked_name(text, clause, prompt, concluded=SO.search(text, *clause) is not None)
    other = SOMEBODY.search(text, *clause) if found else None
    if other and other[0].lower() not in prompt.lower():
        return None
    return None if found is None or opposed(THAT_IS.sub(" ", text[slice(*clause)]), language) else found


def _is_neighbour(text: str, sentence: Span, span: Span) -> bool:
    """Returns whether words beside a day make it another one ("the day after Thursday") or a bound."""
    low = max(sentence[0], span[0] - 24)
    return bool(_BEFORE_DAY.search(text, low, span[0]) or _BEHIND_DAY.match(text, span[1], sentence[1]))


def _another_day(text: str, sentence: Span, span: Span, prompt: str) -> bool:
    """Returns whether this sentence begins with its day and the sentence before names another day."""
    low = max(0, sentence[0] - _LONGEST)
    before = max((stop.start() for stop in STOP.finditer(text, low, sentence[0] - 2)), default=low)
    other = asked_day(text, (before, sentence[0]), (before, sentence[0]), prompt)
    named = other is not None and text[slice(*other)].lower() != text[slice(*span)].lower()
    return named and not WORD.search(text[sentence[0] : span[0]])


def alternative(text: str, sentence: Span, asked: str, language: str) -> Span | None:
    """Returns the span of the verb with which a sentence answers "does it converge or diverge?", or None."""
    choices = _ASKS_WHICH.search(asked)
    if choices is None:
        return None
    stems = {word[:_STEM].lower() for word in choices.groups()}
    (begin, end), _ = main_clause(text, sentence, language)
    begin = max(begin, text.rfind(",", begin, end) + 1)
    clause = text[begin:end]
    said = [word for word in WORD.finditer(text, begin, end) if word[0][:_STEM].lower() in stems]
    if len(said) != 1 or len(stems) < 2 or NOT.search(clause) or opposed(clause, language) or UNREAL.search(clause):
        return None
    led, after = text[begin : said[0].start()], text[said[0].end() : end]
    words = {word.lower() for word in WORD.findall(led)}
    things = {word.lower() for word in WORD.findall(_COMMAND.sub(" ", asked))}
    named = words & things or (words & _CONVERGING if _CONVERGING.isdisjoint(things) else set())
    if not words <= SAFE | named or not (named or words & _PRONOUNS) or any(char.isdigit() for char in clause):
        return None
    if not _AFTER_VERB.fullmatch(after):
        return None
    return said[0].span()
