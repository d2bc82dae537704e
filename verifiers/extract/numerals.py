"""The numbers 0 to 100, and 1,000, in words of 20 languages: "vingt-sept", "kırk iki", 열한.

Languages share spellings (Turkish "on" is ten, Vietnamese "ba" is three). So words are looked up only in the language
of their text, which is recognised by its script or its most common words. In Chinese and Japanese, numerals are
characters: 二十五.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter

from verifiers.lazy_pattern import lazy_pattern

# 0 to 19, then 20, 30 ... 90, then 100 and 1000. "/" separates spellings and genders; "-" means none.
_BASES = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred/a_hundred"
    " thousand/a_thousand",
    "de": "null eins/ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn"
    " siebzehn achtzehn neunzehn zwanzig dreißig/dreissig vierzig fünfzig sechzig siebzig achtzig neunzig"
    " hundert/einhundert tausend/eintausend",
    "fr": "zéro un/une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept"
    " dix-huit dix-neuf vingt trente quarante cinquante soixante - quatre-vingts - cent mille",
    "es": "cero uno/un/una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis"
    " diecisiete dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien mil",
    "pt": "zero um/uma dois/duas três quatro cinco seis sete oito nove dez onze doze treze quatorze/catorze quinze"
    " dezesseis/dezasseis dezessete/dezassete dezoito dezenove/dezanove vinte trinta quarenta cinquenta sessenta"
    " setenta oitenta noventa cem mil",
    "it": "zero uno/un/una due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici"
    " sedici diciassette diciotto diciannove venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento"
    " mille",
    "nl": "nul een/één twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien"
    " zeventien achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig negentig honderd duizend",
    "sv": "noll ett/en två tre fyra fem sex sju åtta nio tio elva tolv tretton fjorton femton sexton sjutton arton"
    " nitton tjugo trettio fyrtio femtio sextio sjuttio åttio nittio hundra/etthundra tusen",
    "pl": "zero jeden/jedna/jedno/jedną dwa/dwie trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście"
    " dwanaście trzynaście czternaście piętnaście szesnaście siedemnaście osiemnaście dziewiętnaście dwadzieścia"
    " trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt dziewięćdziesiąt sto tysiąc",
    "ru": "ноль/нулю один/одна/одно/одну/одному два/две/двум три/трём/трем"
    " четыре/четырём/четырем пять шесть семь восемь девять десять одиннадцать двенадцать"
    " тринадцать четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать тридцать сорок"
    " пятьдесят шестьдесят семьдесят восемьдесят девяносто сто тысяча",
    "uk": "нуль один/одна/одне/одну два/дві три чотири п'ять шість сім вісім дев'ять десять одинадцять дванадцять"
    " тринадцять чотирнадцять п'ятнадцять шістнадцять сімнадцять вісімнадцять дев'ятнадцять двадцять тридцять сорок"
    " п'ятдесят шістдесят сімдесят вісімдесят дев'яносто сто тисяча",
    "cs": "nula jeden/jedna/jedno/jednu dva/dvě tři čtyři pět šest sedm osm devět deset jedenáct dvanáct třináct"
    " čtrnáct patnáct šestnáct sedmnáct osmnáct devatenáct dvacet třicet čtyřicet padesát šedesát sedmdesát"
    " osmdesát devadesát sto tisíc",
    "el": "μηδέν ένα/ένας/μία/μια δύο/δυο τρία/τρεις τέσσερα/τέσσερις πέντε έξι επτά/εφτά οκτώ/οχτώ εννέα/εννιά δέκα"
    " έντεκα δώδεκα δεκατρία/δεκατρείς δεκατέσσερα/δεκατέσσερις δεκαπέντε δεκαέξι/δεκάξι δεκαεπτά/δεκαεφτά"
    " δεκαοκτώ/δεκαοχτώ δεκαεννέα/δεκαεννιά είκοσι τριάντα σαράντα πενήντα εξήντα εβδομήντα ογδόντα ενενήντα"
    " εκατό χίλια",
    "fa": "صفر یک دو سه چهار پنج شش هفت هشت نه ده یازده دوازده سیزده چهارده پانزده شانزده هفده هجده نوزده بیست سی چهل"
    " پنجاه شصت هفتاد هشتاد نود صد هزار",
    "he": "אפס אחד/אחת שניים/שתיים/שני/שתי שלושה/שלוש ארבעה/ארבע חמישה/חמש שישה/שש שבעה/שבע שמונה תשעה/תשע עשרה/עשר"
    " אחד_עשר/אחת_עשרה שנים_עשר/שתים_עשרה שלושה_עשר/שלוש_עשרה ארבעה_עשר/ארבע_עשרה חמישה_עשר/חמש_עשרה"
    " שישה_עשר/שש_עשרה שבעה_עשר/שבע_עשרה שמונה_עשר/שמונה_עשרה תשעה_עשר/תשע_עשרה עשרים שלושים ארבעים חמישים שישים"
    " שבעים שמונים תשעים מאה אלף",
    "da": "nul en/et to tre fire fem seks syv/sju otte ni ti elleve tolv tretten fjorten femten seksten sytten atten"
    " nitten tyve tredive fyrre halvtreds tres halvfjerds firs halvfems hundrede tusind",
    "ro": "zero unu/una/un/o doi/două trei patru cinci șase șapte opt nouă zece unsprezece doisprezece/douăsprezece"
    " treisprezece paisprezece cincisprezece șaisprezece șaptesprezece optsprezece nouăsprezece douăzeci treizeci"
    " patruzeci cincizeci șaizeci șaptezeci optzeci nouăzeci sută/o_sută mie/o_mie",
    "tr": "sıfır bir iki üç dört beş altı yedi sekiz dokuz on - - - - - - - - - yirmi otuz kırk elli altmış yetmiş"
    " seksen doksan yüz bin",
    "vi": "- một/mốt hai ba bốn/tư -/lăm sáu bảy tám chín mười - - - - - - - - - - - - - - - - - - -",
    "id": "nol satu dua tiga empat lima enam tujuh delapan sembilan sepuluh sebelas - - - - - - - - - - - - - - - -"
    " seratus seribu",
    "hi": "शून्य एक दो तीन चार पाँच/पांच छह/छः/छे सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह/पन्द्रह सोलह सत्रह अठारह"
    " उन्नीस बीस तीस चालीस पचास साठ सत्तर अस्सी नब्बे सौ हज़ार/हजार",
    "ko": "영 하나/한 둘/두 셋/세 넷/네 다섯 여섯 일곱 여덟 아홉 열 - - - - - - - - - 스물/스무 서른 마흔 쉰 예순 일흔"
    " 여든 아흔 백 천",
    "ar": "صفر واحد/واحدة اثنان/اثنتان/اثنين/اثنتين ثلاثة/ثلاث/ثلاثا أربعة/أربع/أربعا خمسة/خمس/خمسا ستة/ست/ستا"
    " سبعة/سبع/سبعا ثمانية/ثماني/ثمان/ثمانيا تسعة/تسع/تسعا عشرة/عشر/عشرا -/أحد_عشر/إحدى_عشرة"
    " -/اثنا_عشر/اثنتا_عشرة/اثني_عشر/اثنتي_عشرة -/ثلاثة_عشر/ثلاث_عشرة -/أربعة_عشر/أربع_عشرة -/خمسة_عشر/خمس_عشرة"
    " -/ستة_عشر/ست_عشرة -/سبعة_عشر/سبع_عشرة -/ثمانية_عشر/ثماني_عشرة -/تسعة_عشر/تسع_عشرة عشرون/عشرين ثلاثون/ثلاثين"
    " أربعون/أربعين خمسون/خمسين ستون/ستين سبعون/سبعين ثمانون/ثمانين تسعون/تسعين مئة/مائة ألف",
}
# "Ten two" is 12 and "two ten three" is 23: the words before the ones of 11 to 19, and after the tens digit up to 99.
NUMBER_LANGUAGES = tuple(_BASES)
_COUNTED_TENS = {"vi": ("mười", "mươi"), "id": ("", "puluh"), "tr": ("on", ""), "ko": ("열", "")}
# Patterns that join tens and ones if the tens come first; `_ONES_FIRST` has the others.
_JOINED = {
    "en": ("{t}-{u}",), "fr": ("{t}-{u}",), "es": ("{t} y {u}",), "pt": ("{t} e {u}",), "it": ("{t}{u}",),
    "sv": ("{t}{u}",), "pl": ("{t} {u}",), "ru": ("{t} {u}",), "uk": ("{t} {u}",), "cs": ("{t} {u}",),
    "he": ("{t} ו{u}",), "ro": ("{t} și {u}",),
    "el": ("{t} {u}",), "fa": ("{t} و {u}",), "tr": ("{t} {u}",), "ko": ("{t}{u}", "{t} {u}"),
}  # fmt: skip
_ONES_FIRST = {
    "de": ("{u}und{t}",),
    "nl": ("{u}en{t}", "{u}ën{t}"),
    "cs": ("{u}a{t}",),
    "da": ("{u}og{t}",),
    "ar": ("{u} و{t}",),
}
# 200 to 900 in languages with separate words for them; below, the words for 100 in a number above 100.
_HUNDREDS = {
    "es": "doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos",
    "pt": "duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos",
    "pl": "dwieście trzysta czterysta pięćset sześćset siedemset osiemset dziewięćset",
    "uk": "двісті триста чотириста п'ятсот шістсот сімсот вісімсот дев'ятсот",
    "ru": "двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот",
}
_HUNDREDS_JOINED = {"de": "hundert", "nl": "honderd", "sv": "hundra", "it": "cento"}  # "zweihundertfünf"
_ALSO_HUNDRED = {"es": "ciento", "pt": "cento", "en": "one hundred", "id": "satu ratus", "vi": "một trăm"}
_HINDI = (  # 21 to 99 without the tens
    "इक्कीस बाईस तेईस चौबीस पच्चीस छब्बीस सत्ताईस अट्ठाईस उनतीस इकतीस बत्तीस तैंतीस चौंतीस पैंतीस छत्तीस सैंतीस अड़तीस"
    " उनतालीस इकतालीस बयालीस तैंतालीस चौवालीस पैंतालीस छियालीस सैंतालीस अड़तालीस उनचास इक्यावन बावन तिरपन चौवन पचपन"
    " छप्पन सत्तावन अट्ठावन उनसठ इकसठ बासठ तिरसठ चौंसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर"
    " पचहत्तर छिहत्तर सतहत्तर अठहत्तर उनासी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी नवासी इक्यानवे"
    " बानवे तिरानवे चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे"
)
_CHARACTERS = {**{char: value for value, char in enumerate("零一二三四五六七八九")}, "〇": 0, "两": 2, "兩": 2}
_CHARACTER_TENS = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = "万萬"
_UNITS_LEFT_OUT = {"百": 10, "千": 100, "万": 1000, "萬": 1000}  # behind 五 in 一百五
CHARACTERS = f"[{''.join((*_CHARACTERS, *_CHARACTER_TENS))}{_MYRIADS}]{{1,12}}"  # the input of `in_characters`
KOREAN = "(?:[일이삼사오육칠팔구]?[십백천만]\\s?)*[일이삼사오육칠팔구]?"  # the input of `in_korean`
_KOREAN = {char: value for value, char in enumerate("일이삼사오육칠팔구", 1)}
_KOREAN_TENS = {"십": 10, "백": 100, "천": 1000}
# The words for thousand within one word, as in "zweitausendfünfhundert", and what precedes one thousand.
THOUSANDS = {"de": "tausend", "it": "mila", "nl": "duizend", "sv": "tusen"}
# Words for 1 that are also articles or pronouns, so that by themselves they are not numbers.
ARTICLES = frozenset(
    "one ein eins un une uno una um uma een en et ett jeden jedna jedno один одна одно одну одне jedną jednu bir một"
    " satu 하나 한 एक واحد واحدة ένα ένας μία μια یک".split()
)
_SCRIPTS = (
    ("ja", lazy_pattern("[\u3040-\u30ff]")),
    ("ko", lazy_pattern("[\uac00-\ud7af]")),
    ("zh", lazy_pattern("[\u4e00-\u9fff]")),
    ("uk", lazy_pattern("[іїєґІЇЄҐ]")),
    ("ru", lazy_pattern("[\u0400-\u04ff]")),
    ("fa", lazy_pattern("[پچژگکی]")),
    ("ar", lazy_pattern("[\u0621-\u064a]")),
    ("he", lazy_pattern("[\u05d0-\u05ea]")),
    ("hi", lazy_pattern("[\u0904-\u0939]")),
    ("el", lazy_pattern("[άέήίόύώ]")),
    ("cs", lazy_pattern("[řěů]")),
)
_COMMON = {
    "en": "the of and is are in to has have how many so with for each he she they there that it",
    "de": "der die das und ist sind ein eine wie viele viel hat er sie es von den dem im mit also auf zu man",
    "fr": "le la les des du et est un une combien de il elle dans donc chaque en qui avec il a pour on",
    "es": "el la los las y es un una cuántos cuántas cuánto de en tiene por hay se le con al qué son cada",
    "pt": "o a os as e é um uma quantos quantas quanto de em tem por há se com ao do da são cada não logo",
    "it": "il lo la i gli le e è un una quanti quante quanto di in ha per ci sono con ne che quindi dunque ogni",
    "nl": "de het een en is zijn hoeveel van in heeft dus met op er hij ze te voor elk elke per wij",
    "sv": "och är en ett det att i hur många mycket har så alltså med på som av den han hon finns varje",
    "pl": "i jest są ile w na z ma więc po do to że się każdy każdym razem zatem czyli przez wynosi wynik dla oblicz"
    " jaki",
    "cs": "kolik tedy celkem dohromady jsou když každý má zbylo zbývá",
    "da": "og hvor mange hvad af der koster har så med han hun tilbage på til ikke",
    "ro": "și sunt câte câți cât are din deci cu pe la că este în mai",
    "tr": "ve bir kaç vardır var ile için eder olur her de da tane bu ne kadar dolayısıyla göre",
    "vi": "là có và mỗi một bao nhiêu của số được vậy thì hỏi cho trong các",
    "id": "adalah dan berapa di yang ada jadi setiap dengan untuk ini itu maka banyak dari",
}
_SIGNS: dict[str, list[str]] = {}
for _language, _words in _COMMON.items():
    for _word in _words.split():
        _SIGNS.setdefault(_word, []).append(_language)
for _language, _words in _BASES.items():
    for _word in re.split(r"[ /]", _words):
        if len(_word) > 2 and (_word.isascii() or not any("\u0370" < _char < "\u1e00" for _char in _word)):
            _SIGNS.setdefault(_word, []).append(_language)
_LETTERS = lazy_pattern(r"[^\W\d_]+")


@functools.lru_cache(maxsize=64)
def language_of(text: str) -> str:
    """Returns the code of the most likely language of a short text, "en" if there is no evidence."""
    if not text.isascii():
        for language, script in _SCRIPTS:
            if script.search(text):
                return language
    seen = Counter(language for word in _LETTERS.findall(text.lower()) for language in _SIGNS.get(word, ()))
    return max(_COMMON, key=lambda language: seen[language])


def in_characters(text: str, language: str = "") -> int | None:
    """Returns the value of e.g. 二十五, or None for 二五, which is ambiguous, and for 万, which multiplies a number.

    百五 is 150 in Chinese, 105 in Japanese, and ambiguous if the language is not known.
    """
    if text[0] in _MYRIADS or (len(text) > 1 and all(char in _CHARACTERS for char in text)):
        return None
    total = section = digit = 0
    for char in text:
        if char in _CHARACTERS:
            if digit:
                return None
            digit = _CHARACTERS[char]
        elif char in _CHARACTER_TENS:
            section += (digit or 1) * _CHARACTER_TENS[char]
            digit = 0
        else:
            total, section, digit = total + (section + digit) * 10**4, 0, 0
    if digit and (unit := _UNITS_LEFT_OUT.get(text[-2:-1])) and language != "ja":
        if language != "zh":
            return None
        digit *= unit
    return total + section + digit


def in_korean(text: str) -> int | None:
    """Returns the value of a Sino-Korean number such as 이십삼, or None for a single syllable and for none."""
    total = section = digit = 0
    syllables = "".join(text.split())
    for char in syllables:
        if char in _KOREAN:
            digit = _KOREAN[char]
        elif char in _KOREAN_TENS:
            section, digit = section + (digit or 1) * _KOREAN_TENS[char], 0
        else:
            total, section, digit = (section + digit or 1) * 10**4, 0, 0
    return (total + section + digit) or None


def in_one_word(word: str, language: str) -> int | None:
    """Returns the value of thousands in one word ("zwölftausend", "duemilacinquecento"), or None."""
    count, thousand, rest = word.partition(THOUSANDS.get(language, " "))
    known = numerals(language)
    if not thousand or not count or count not in known or (rest and rest not in known):
        return None
    return known[count] * 1000 + (known[rest] if rest else 0)


@functools.cache
def numerals(language: str) -> dict[str, int]:
    """Returns the value of each spelling, in lower case and with spaces for hyphens."""
    if language not in _BASES:
        return {}
    base = [words.split("/") for words in _BASES[language].split()]
    known = {word.replace("-", " "): value for word, value in _spellings(language, base)}
    return known | {word.replace("'", sign): value for word, value in known.items() for sign in "’ʼ" if "'" in word}


@functools.cache
def first_words(language: str) -> frozenset[str]:
    """Returns the first words of all numbers in words."""
    return frozenset(word.split()[0] for word in numerals(language))


def _spellings(language: str, base: list[list[str]]) -> list[tuple[str, int]]:
    base = [[word.replace("_", " ") for word in words if word != "-"] for words in base]
    known = [(word, value) for value in range(20) for word in base[value]]
    known += [(word, 10 * tens) for tens in range(2, 10) for word in base[18 + tens]]
    known += [(word, value) for value, words in ((100, base[28]), (1000, base[29])) for word in words]
    known += [(word, 100 * n) for n, word in enumerate(_HUNDREDS.get(language, "").split(), 2)]
    known += [(word[:-2] + "as", value) for word, value in known if word.endswith("cientos")]  # "doscientas"
    known += [(_ALSO_HUNDRED[language], 100)] if language in _ALSO_HUNDRED else []
    for tens, ones in itertools.product(range(2, 10), range(1, 10)):
        for t, u in itertools.product(base[18 + tens], base[ones]):
            for shape in (*_JOINED.get(language, ()), *_ONES_FIRST.get(language, ())):
                known.append((shape.format(t=t, u=u), 10 * tens + ones))
    known += _irregular(language, base)
    hundred = _HUNDREDS_JOINED.get(language)
    if hundred is None:
        return known
    below = [(word, value) for word, value in known if 0 < value < 100]
    whole = [(f"{word}{hundred}", 100 * n) for word, n in known if 1 < n < 10] + [
        (hundred, 100),
        (f"ein{hundred}", 100),
    ]
    return known + whole + [(f"{first}{rest}", n + m) for first, n in whole for rest, m in below]


def _irregular(language: str, base: list[list[str]]) -> list[tuple[str, int]]:
    if language in _COUNTED_TENS:
        ten, tens_word = _COUNTED_TENS[language]
        joint = "" if language == "ko" else " "
        known = [(f"{ten}{joint}{u}", 10 + n) for n in range(1, 10) for u in base[n]] if ten else []
        if language == "id":
            known += [(f"{base[n][0]} belas", 10 + n) for n in range(2, 10)]
        if tens_word:
            for n in range(2, 10):
                known.append((f"{base[n][0]} {tens_word}", 10 * n))
                known += [(f"{base[n][0]} {tens_word} {u}", 10 * n + m) for m in range(1, 10) for u in base[m]]
        return known
    if language == "fr":
        teens = [(10 + n, base[10 + n][0]) for n in range(10)]
        return [
            *((f"soixante-{word}", 60 + n) for n, word in teens),
            *((f"quatre-vingt-{word}", 80 + n) for n, word in (*((m, base[m][0]) for m in range(1, 10)), *teens)),
            *((f"{base[18 + t][0]} et {one}", 10 * t + 1) for t in range(2, 7) for one in ("un", "une")),
            ("soixante et onze", 71),
        ]
    if language == "es":
        accented = [("veintidós", 22), ("veintitrés", 23), ("veintiséis", 26)]
        return [(f"veinti{word}", 20 + n) for n in range(1, 10) for word in base[n]] + accented
    if language == "it":  # venti + uno: ventuno
        short = [(f"{base[18 + t][0][:-1]}{base[n][0]}", 10 * t + n) for t in range(2, 10) for n in (1, 8)]
        return short + [(f"{base[18 + t][0]}tré", 10 * t + 3) for t in range(2, 10)]
    if language == "hi":
        values = [value for value in range(21, 100) if value % 10]
        return list(zip(_HINDI.split(), values, strict=True))
    return []
