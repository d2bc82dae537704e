"""Reads what a question asks for, the things that it counts or a kind of value, to tell values of a sentence apart."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Set
from dataclasses import dataclass

from verifiers.extract.gates import Gated
from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.statement_words import ASKS_TIME, DIFFERS, PLAIN_WORD, STOP, UNSPACED, WORD
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.units.reading import Unit, atoms, read_unit

# The words of a question that counts things, up to the name of the things: "how many (more) cows"
_COUNTS = any_case(
    r"(?:\bhow many(?: (?:more|fewer|other|extra|additional|of (?:the|these|those|his|her|their)))?"
    r"|\bhow much(?: more)?|\b(?:what|which) number of|\bnumber of|\bwie ?viele?(?: mehr)?|\bcombien (?:y a-t-il"
    r"|[^\W\d_]+(?:-t)?-(?:ils?|elles?|on)) de|\bcombien(?: de\b)?|\bcu[aá]nt[oa]s(?: más)?"
    r"|\bquant[oa]s|\bquant[eio]|\bсколько|\bскільки|\bkolik|πόσ[αεο]\w*|(?<!\w)چند(?! درصد)"
    r"|\bnombre (?:total )?de|\bn[uú]mero (?:total )?d[ei]|\banzahl (?:der|von|aller)"
    r"|(?<!\w)количество|\baantal|\bantalet"
    r"|\bhoeveel|\bhur många|\bile|\bkaç|\bbao nhiêu|\bberapa(?: banyak)?"
    r"|(?<!\w)كم|(?<!\w)कितने|(?<!\w)कितनी)\s+|\bcombien d['’]"
)
# The same words followed by a counter without a space: 几只, 何枚, 몇 명
_COUNTER = lazy_pattern(r"(?:多少|[几幾何몇])\s?([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{1,3}|[a-zA-Z]{1,3}[²³]?)")
_BESIDE = frozenset(
    "do does did is are was were will would can could has have had the a an of in on at to he she it they"
    " we you i there"
    " be get gets hat haben ist sind hatte bleiben bleibt es er sie a t il elle lui en reste restent font fait y le les"
    " tiene tienen hay quedan queda le les se hay tem há restam ficam ha hanno ci le restano sono si всего у в".split()
)
_MONEY = any_case(
    r"[$€£¥₹]|\b(?:dollars?|euros?|cents?|pounds?|rupees?|money|costs?|price[sd]?|pay|paid|earn\w*|spen[dt]\w*"
    r"|charge\w*|bill|profit|budget|salary|wages?|change|savings?|save[sd]?|tips?|tax\w*|fares?|fees?|owe[sd]?|kost\w*"
    r"|preis\w*|bezahl\w*|verdien\w*|geld|wechselgeld|coût\w*|prix|pa[iy]e\w*|gagn\w*|dépens\w*|argent|cuesta\w*|precio"
    r"|pag\w+|gan\w+|dinero|gast\w+|cust\w+|preço|dinheiro|troco|cost\w+|prezzo|guadagn\w*|soldi|spende\w*)\b"
    r"|(?<!\w)(?:руб\w*|стоит|стоимость|цена|заплат\w*|денег)"
    r"|元|円|いくら|代金|原?价|多少钱|원|얼마|ريال|رुप"
)
_MEASURED = Gated(
    r"\bhow (?:long|tall|high|far|wide|deep|large|heavy|fast|old|big|thick|warm|cold|hot)(?:er)?\b"
    r"|\bhow much (?:long|tall|high|wid|deep|larg|heavi|fast|old|bigg|thick)\w*"
    r"|\b(?:length|height|width|depth|distance|area|volume|weight|mass|speed|perimeter|angle|temperature"
    r"|circumference)\b|\bwie (?:lang|hoch|weit|breit|tief|groß|schwer|schnell|alt|warm)\w*|\bum wie viel\w*"
)
_SPEED = any_case(
    r"\b(?:speed|velocity|how fast|schnell|geschwindigkeit|vitesse|velocidade?|velocità|snelheid|hur fort|hastighet"
    r"|prędkość|hız\w*|vận tốc|tốc độ|kecepatan|laju)\b|скорость|速[さ度]|時速|时速|속력|속도|سرعة|चाल|गति"
)
_PERCENT = Gated(
    r"\bper ?cent\w*|\bpercentage|%|prozent|pour ?cent|por ?cento|por ?ciento|porcentaje|percentuale|процент|百分"
    r"|パーセント|割合|퍼센트|بالمئة|نسبة"
)
_CURRENCY = any_case(
    r"\s?[$€£¥₹]|\s?(?:dollars?|euros?|cents?|pounds?|rupees?|reales|reais|pesos?|rubles?|руб\w*)(?!\w)|\s?[元円块원]"
    r"|\s?Ft\b|\s?ريال"
)
_AN_AMOUNT = Gated(r"\bhow much|wie ?viel\b|combien|cu[aá]nto|quanto|сколько|多少|いくら|얼마")
_UNIT_NAME = lazy_pattern(
    r"(?<![^\W\d_])(?:(?<=\d)|(?<=\d )|(?=[^\W\d_]{2}))[^\W\d_]+[²³]?(?:(?:/| per )[^\W\d_]+)?|°\s?[CF]?"
)
_SAID_UNIT = lazy_pattern(r"\\text\{ (.*)\}|(\^\\circ)$")
_EQUATION = lazy_pattern(r"[=<>≤≥]")
_UNKNOWN = lazy_pattern(r"(?<![^\W\d_\\])([a-z])(?![^\W\d_'’])")
_FINDS = any_case(
    r"\b(?:find|determine|what is|value of|bestimme|berechne|trouver?|calculer?|halla|encuentra|calcula"
    r"|encontre|trova|calcola|найдите|найти)"
    r" (?:the value of |den wert von |la valeur de |el valor de |o valor de |il valore di )?\$?[a-z]\b"
)
_SOLVED = lazy_pattern(
    r"[\s$\\(]*([a-z])\s*(?:[=<>≤≥]|\\[lg]eq?\b)\s*[-−+]?\s*[\d\\{}/.,√a-z]{1,40}(?:°|\^\{?\\circ\}?)?[\s$\\)]*"
)
_FRACTION = Gated(
    r"fra[cz]|simplif|semplific|\bbruch|kürze|vereinfach|\bwhat (?:part|share) of|anteil|\bhalf of|дроб|сократи"
    r"|част|分数|約分|约分|분수|ułam|breuk"
)
_HOW_LONG = any_case(
    r"how (?:long|many|much)|wie (?:lange|viel)|combien|cu[aá]nt|quant[oaie]|сколько (?!времени сейчас)|hoe "
    r"?(?:lang|veel)|hur (?:lång|många)|bao lâu|berapa lama|多久|多长|多少|[几何몇](?:分|時間|小时|시간|분)|ile "
)
_QUESTION = lazy_pattern(r"[?？؟]")
_LONGEST = 300  # characters of a question
_STEM = 4  # characters by which words are compared: "cow" and "cows", "марок" and "марки"
_NEAR = 3  # words after a number that may name what it counts: "3 big yellow buses"
_NOUN_GAP = lazy_pattern(r"[,;:.!?()，。；、\d]")
# Words of doubt that a question may use itself: "how much should he pay?"
_SHARED = frozenset(
    "should would wants wanted plans planned intends try tries tried expect expects expected estimate estimated predict"
    " predicts predicted hope hopes hoped wish wishes wished guess guessed guesses dream between around hard difficult"
    " pas ohne without soll sollte möchte devrait voudrait quisiera quería vorrebbe".split()
)
_NO_THINGS = frozenset(
    "and are was were has have had left more less fewer remain remains remaining altogether total in for is will with"
    " after before per each when because since so then now und hat sind bleiben übrig et sont reste restent ont quedan"
    " quedaron tiene restam ficaram restano rimangono ne che que die der das y pero mais ma но и а осталось times plus"
    " minus as once still instead from by pro por pour against out too also not nicht pas non no ones only"
    " again".split()
)
OF_TIME = frozenset(
    "the and for how whe wha doe did wil lon tim its are was wie wan uhr que hor der die das les une"
    " heure heur hora horas".split()
)
INTERROGATIVES = frozenset("many much combi cuánt cuant quant wievi viele сколь siapa berap hoeve".split())
_COMMON = OF_TIME | {stem[:4] for stem in INTERROGATIVES}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the last question of a prompt asks for."""

    sentence: str = ""
    doubts: frozenset[str] = frozenset()  # words of doubt that the question itself uses
    things: frozenset[str] = frozenset()  # stems of the things that the question counts
    counter: str = ""  # the counter that follows a number without a space
    money: bool = False
    measured: bool = False
    units: frozenset[Unit] = frozenset()  # units that the prompt names if it asks for a measure
    percent: bool = False
    time: bool = False
    clock: bool = False  # a time of day, not a duration
    difference: bool = False  # a difference or a change
    fraction: bool = False
    unknowns: frozenset[str] = frozenset()  # letters of the equations that the prompt asks to solve

    def is_wanted(self, text: str, quantity: Quantity) -> bool:
        """Returns whether the unit or noun of a value in the text shows that the question asks for such a value."""
        start, end = quantity.span
        if self.time and quantity.kind in ("time", "duration"):
            return True
        if quantity.kind in ("relation", "formula"):
            solved = _SOLVED.fullmatch(text, start, end)
            return solved is not None and solved[1] in self.unknowns
        if self.fraction and quantity.kind == "word" and quantity.value is not None and quantity.value.denominator > 1:
            return True
        if self.percent and (_PERCENT.search(text[start:end]) or _PERCENT.match(text[end : end + 12].lstrip())):
            return True
        if self.money and (
            text[start] in "$€£¥₹-−+" or _CURRENCY.match(text, end) or _CURRENCY.search(text[start:end])
        ):
            return True
        if self.counter and text.startswith(self.counter, end + (text[end : end + 1] == " ")):
            return True
        if self.things and not self.things.isdisjoint(counted(text, quantity)):
            return True
        named = _SAID_UNIT.search(quantity.said) if self.measured else None
        return named is not None and _units(named[1] or "°") <= self.units and bool(self.units)


NOTHING = Asked()


def _stem(word: str) -> str:
    return word.lower()[:_STEM]


def counted(text: str, quantity: Quantity) -> set[str]:
    """Returns the stems of the words in a quantity and right after it."""
    start, end = quantity.span
    after = _NOUN_GAP.split(text[end : end + 48], maxsplit=1)[0]
    words = WORD.findall(after)[:_NEAR]
    own = WORD.findall(text[start:end]) if quantity.kind == "number" else []
    return {_stem(word) for word in (*own, *words)}


def says_other(text: str, asked: Asked, quantity: Quantity) -> bool:
    """Returns whether a value names a unit or thing other than the asked one ("34 students" if buses are counted)."""
    if quantity.kind in ("relation", "formula") or asked.is_wanted(text, quantity):
        return False
    end = quantity.span[1]
    named = WORD.match(text, end + 1) if text[end : end + 1] == " " else None
    if quantity.kind in ("time", "ratio") or text[quantity.span[0]] in "$€£¥₹" or text[end - 1] == "%":
        return True
    if quantity.value is not None and quantity.value.denominator > 1 and not quantity.said.strip("0123456789/"):
        in_words = quantity.kind == "word" or "/" in text[slice(*quantity.span)]
        return bool(asked.things) or asked.percent or (asked.money and in_words)  # a fraction of something
    if named is None or len(named[0]) < 3 or named[0].lower() in _BESIDE or named[0].lower() in _NO_THINGS:
        return False
    return bool(asked.things) or asked.money


@functools.lru_cache(maxsize=256)
def asked_of(prompt: str) -> Asked:
    """Returns what the last question of a prompt asks for."""
    sentence = question_of(prompt)
    if not sentence:
        return NOTHING
    counted = _COUNTS.search(sentence)
    things: list[str] = []
    if counted is not None:
        for word in WORD.findall(_NOUN_GAP.split(sentence[counted.end() :], maxsplit=1)[0])[:2]:
            if word.lower() in _BESIDE:
                break
            things.append(word)
    unit = _unit(things[0]) if things else None
    counter = _COUNTER.search(sentence)
    money = bool(_MONEY.search(sentence)) or (
        _CURRENCY.search(prompt) is not None and bool(_AN_AMOUNT.search(sentence))
    )
    time = ASKS_TIME.search(sentence) is not None
    return Asked(
        sentence,
        _SHARED.intersection(PLAIN_WORD.findall(sentence.lower())),
        frozenset(_stem(word) for word in things if len(word) > 1),
        counter[1][:1] if counter else "",
        money and not _no_money(things),
        unit is not None or _MEASURED.search(sentence) is not None,
        frozenset({unit}) if unit is not None else _asked_units(prompt, sentence),
        _PERCENT.search(sentence) is not None,
        time,
        time and not _HOW_LONG.search(sentence),
        DIFFERS.search(sentence) is not None,
        _FRACTION.search(sentence) is not None,
        frozenset(_UNKNOWN.findall(prompt)) if _EQUATION.search(prompt) or _FINDS.search(sentence) else frozenset(),
    )


def _unit(name: str) -> Unit | None:
    found, rest = read_unit(atoms(name))
    return found if found is not None and found.dimension and not rest else None


def _asked_units(prompt: str, sentence: str) -> frozenset[Unit]:
    """Returns the prompt's units that suit a question for a measure; for a speed, only units that divide by a unit."""
    if _SPEED.search(sentence):
        return frozenset(unit for unit in _units(prompt) if any(power < 0 for _, power in unit.dimension))
    return _units(prompt) if _MEASURED.search(sentence) else frozenset()


def _units(text: str) -> frozenset[Unit]:
    """Returns the units that a text names."""
    found = (read_unit(atoms(name[0])) for name in _UNIT_NAME.finditer(text))
    return frozenset(unit for unit, rest in found if unit is not None and unit.dimension and not rest)


def _no_money(things: list[str]) -> bool:
    """Returns whether a question counts things and none of them is money."""
    return bool(things) and not any(_MONEY.search(word) for word in things)


def question_of(prompt: str) -> str:
    """Returns the last sentence that ends in a question mark, or the last sentence if none does."""
    ends = [0, *(stop.end() for stop in STOP.finditer(prompt)), len(prompt)]
    parts = [part for low, high in itertools.pairwise(ends) if (part := prompt[low:high].strip())]
    asking = [part for part in parts if _QUESTION.search(part[-3:])]
    return (asking or parts or [""])[-1][-_LONGEST:]


def shared_with(question: str, part: str) -> Set[str]:
    """Returns the beginnings of the words that a question and a sentence share."""
    if UNSPACED.search(part):
        return topics(question) & topics(part)
    return (_beginnings(question) & _beginnings(part)) - _COMMON


@functools.lru_cache(maxsize=64)
def _beginnings(part: str) -> frozenset[str]:
    return frozenset(word.lower().rstrip("s")[:4] for word in WORD.findall(part) if len(word) > 2)


def topics(part: str) -> set[str]:
    """Returns the stems of words, or pairs of characters in scripts without spaces between words."""
    if not UNSPACED.search(part):
        return stems(part)
    return {part[at : at + 2] for at in range(len(part) - 1) if all(UNSPACED.match(char) for char in part[at : at + 2])}


def stems(text: str) -> set[str]:
    return {word[:5].lower() for word in WORD.findall(text) if len(word) > 2} - OF_TIME
