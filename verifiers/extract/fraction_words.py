"""Words for fractions, which follow a number or stand alone: "three quarters", "la mitad", "anderthalb"."""

from __future__ import annotations

import functools
from fractions import Fraction

# Words for fractions, halves to twelfths, as they follow a number.
_PARTS = {
    "en": "half/halves third/thirds quarter/quarters/fourth/fourths fifth/fifths sixth/sixths seventh/sevenths"
    " eighth/eighths ninth/ninths tenth/tenths eleventh/elevenths twelfth/twelfths",
    "de": "- drittel viertel fünftel sechstel siebtel achtel neuntel zehntel elftel zwölftel",
    "fr": "- tiers quart/quarts cinquième/cinquièmes sixième/sixièmes septième/septièmes huitième/huitièmes"
    " neuvième/neuvièmes dixième/dixièmes onzième/onzièmes douzième/douzièmes",
    "es": "medio/medios tercio/tercios cuarto/cuartos quinto/quintos sexto/sextos séptimo/séptimos"
    " octavo/octavos noveno/novenos"
    " décimo/décimos onceavo/onceavos doceavo/doceavos",
    "pt": "meio/meios terço/terços quarto/quartos quinto/quintos sexto/sextos sétimo/sétimos oitavo/oitavos"
    " nono/nonos"
    " décimo/décimos",
    "it": "mezzo/mezzi terzo/terzi quarto/quarti quinto/quinti sesto/sesti settimo/settimi ottavo/ottavi nono/noni"
    " decimo/decimi undicesimo/undicesimi dodicesimo/dodicesimi",
    "nl": "- derde kwart/vierde vijfde zesde zevende achtste negende tiende elfde twaalfde",
    "sv": "- tredjedel/tredjedelar fjärdedel/fjärdedelar femtedel/femtedelar sjättedel/sjättedelar"
    " sjundedel/sjundedelar åttondel/åttondelar niondel/niondelar tiondel/tiondelar elftedel/elftedelar"
    " tolftedel/tolftedelar",
    "pl": "druga/drugie/drugich trzecia/trzecie/trzecich czwarta/czwarte/czwartych piąta/piąte/piątych"
    " szósta/szóste/szóstych siódma/siódme/siódmych ósma/ósme/ósmych dziewiąta/dziewiąte/dziewiątych"
    " dziesiąta/dziesiąte/dziesiątych jedenasta/jedenaste/jedenastych dwunasta/dwunaste/dwunastych",
    "uk": "друга/других третя/третини/третіх чверть/чверті/четвертих п'ята/п'ятих шоста/шостих сьома/сьомих"
    " восьма/восьмих"
    " дев'ята/дев'ятих десята/десятих",
    "cs": "- třetina/třetiny čtvrtina/čtvrtiny pětina/pětiny šestina/šestiny sedmina/sedminy osmina/osminy"
    " devítina/devítiny desetina/desetiny",
    "el": "- τρίτο/τρίτα τέταρτο/τέταρτα πέμπτο/πέμπτα έκτο/έκτα έβδομο/έβδομα όγδοο/όγδοα ένατο/ένατα δέκατο/δέκατα",
    "fa": "- سوم چهارم پنجم ششم هفتم هشتم نهم دهم",
    "id": "- pertiga perempat perlima perenam pertujuh perdelapan persembilan persepuluh",
    "hi": "- तिहाई चौथाई",
    "ru": "вторая/вторых треть/трети/третям/третья/третьих четверть/четверти/четвертям/четвёртых/четвертых"
    " пятая/пятых шестая/шестых седьмая/седьмых восьмая/восьмых"
    " девятая/девятых"
    " десятая/десятых одиннадцатая/одиннадцатых двенадцатая/двенадцатых",
    "ar": "- أثلاث أرباع أخماس أسداس أسباع أثمان أتساع أعشار",
}
LANGUAGES = tuple(_PARTS)
# Words for further fractions.
_SMALLER = {
    "en": {"thirteenths": 13, "fourteenths": 14, "fifteenth": 15, "fifteenths": 15, "sixteenth": 16, "sixteenths": 16,
           "eighteenths": 18, "twentieth": 20, "twentieths": 20, "hundredth": 100, "hundredths": 100},
    "de": {"fünfzehntel": 15, "sechzehntel": 16, "achtzehntel": 18, "zwanzigstel": 20, "hundertstel": 100},
    "fr": {"quinzième": 15, "quinzièmes": 15, "seizième": 16, "seizièmes": 16, "vingtième": 20, "vingtièmes": 20,
           "centième": 100, "centièmes": 100},
    "es": {"quinceavo": 15, "quinceavos": 15, "dieciseisavos": 16, "veinteavo": 20, "veinteavos": 20,
           "centésimo": 100, "centésimos": 100},
    "pt": {"centésimo": 100, "centésimos": 100}, "it": {"ventesimo": 20, "ventesimi": 20, "centesimo": 100,
           "centesimi": 100, "quindicesimi": 15, "sedicesimi": 16},
    "ru": {"пятнадцатых": 15, "двадцатая": 20, "двадцатых": 20, "сотая": 100, "сотых": 100},
    "pl": {"dwudziesta": 20, "dwudziestych": 20, "setna": 100, "setnych": 100},
}  # fmt: skip
# Words for a whole number and a half.
_WITH_HALF = {
    "de": "eineinhalb zweieinhalb dreieinhalb viereinhalb fünfeinhalb sechseinhalb siebeneinhalb achteinhalb",
    "nl": "- tweeënhalf drieënhalf vierenhalf vijfenhalf zesenhalf zevenenhalf achtenhalf",
}
# Words that mean one part by themselves ("la mitad") or before a word for a part ("la cuarta parte").
_THREE_HALVES = Fraction(2, 3)  # the number of parts in a whole, as for the others
_ONE_PART: dict[str, dict[str, int | Fraction]] = {
    "de": {"hälfte": 2, "anderthalb": _THREE_HALVES},
    "fr": {"moitié": 2}, "es": {"mitad": 2}, "pt": {"metade": 2}, "it": {"metà": 2},
    "nl": {"helft": 2, "kwart": 4, "anderhalf": _THREE_HALVES, "anderhalve": _THREE_HALVES},
    "sv": {"hälften": 2},
    "pl": {"połowa": 2, "połowę": 2, "ćwierć": 4, "półtora": _THREE_HALVES, "półtorej": _THREE_HALVES},
    "uk": {"половина": 2, "половину": 2, "третина": 3, "третину": 3, "чверть": 4},
    "cs": {"polovina": 2, "polovinu": 2, "třetina": 3, "třetinu": 3, "čtvrtina": 4, "čtvrtinu": 4},
    "el": {"μισό": 2, "μισή": 2}, "fa": {"نصف": 2, "نیم": 2}, "vi": {"nửa": 2},
    "id": {"setengah": 2, "separuh": 2, "sepertiga": 3, "seperempat": 4}, 
    "hi": {"आधा": 2, "आधी": 2, "आधे": 2, "डेढ़": _THREE_HALVES, "ढाई": Fraction(2, 5)},
    "ar": {"نصف": 2, "ثلث": 3, "ربع": 4, "ثلثان": Fraction(3, 2), "ثلثين": Fraction(3, 2)},
    "ru": {"половина": 2, "половину": 2, "треть": 3, "четверть": 4, "полтора": _THREE_HALVES,
           "полторы": _THREE_HALVES},
}  # fmt: skip
# The word between numerator and denominator, or after the denominator.
DIVIDED = {"vi": (("phần",), ""), "pt": ((), "avos")}
# Words that name the denominator before the numerator.
BEFORE = {"tr": {"üçte": 3, "dörtte": 4, "beşte": 5, "altıda": 6, "yedide": 7, "sekizde": 8, "dokuzda": 9}}
_PART_WORDS = frozenset("parte partes część части часть".split())
_ORDINALS = {
    "es": "- tercera/terceras cuarta/cuartas quinta/quintas sexta/sextas séptima/séptimas octava/octavas "
    "novena/novenas décima/décimas",
    "pt": "- terça/terças quarta/quartas quinta/quintas sexta/sextas sétima/sétimas oitava/oitavas nona/nonas "
    "décima/décimas",
    "it": "- terza/terze quarta/quarte quinta/quinte sesta/seste settima/settime ottava/ottave nona/none decima/decime",
    "pl": "- trzecia/trzecie czwarta/czwarte piąta/piąte szósta/szóste siódma/siódme ósma/ósme dziewiąta/dziewiąte "
    "dziesiąta/dziesiąte",
    "ru": "- третья/третьих четвёртая/четвёртых пятая/пятых шестая/шестых седьмая/седьмых восьмая/восьмых "
    "девятая/девятых десятая/десятых",
}


@functools.cache
def parts(language: str) -> dict[str, int]:
    """Returns the words for fractions and their denominators."""
    rows = enumerate(_PARTS.get(language, "").split(), 2)
    known = {word: whole for whole, words in rows for word in words.split("/") if word != "-"}
    return known | _SMALLER.get(language, {})


@functools.cache
def one_part(language: str) -> dict[str, int | Fraction]:
    """Returns the words that mean one part of a whole by themselves, and their denominators."""
    halves = enumerate(_WITH_HALF.get(language, "-").split(), 1)
    return _ONE_PART.get(language, {}) | {word: Fraction(2, 2 * n + 1) for n, word in halves if word != "-"}


@functools.cache
def ordinal_parts(language: str) -> dict[str, int]:
    """Returns the ordinals that name a fraction before a word such as "parte", and their denominators."""
    rows = enumerate(_ORDINALS.get(language, "").split(), 2)
    return {word: whole for whole, words in rows for word in words.split("/") if word != "-"}


def is_part(word: str) -> bool:
    """Returns whether `word` means a part, such as "parte"."""
    return word in _PART_WORDS
