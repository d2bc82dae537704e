"""Finds the sentence that states the answer: those behind it only check, explain, thank or name other things."""

from __future__ import annotations

import functools
import itertools
import re
from fractions import Fraction

from verifiers.extract.asked import NOTHING, Asked, asked_of, counted, says_other, stems
from verifiers.extract.clauses import main_clause, objection, reports
from verifiers.extract.conclusions import unsure
from verifiers.extract.numerals import language_of
from verifiers.extract.operands import total_of
from verifiers.extract.other_subjects import NEIGHBOUR
from verifiers.extract.quantities import quantities
from verifiers.extract.remark_words import FITS
from verifiers.extract.spans import Span
from verifiers.extract.statement_words import OPPOSED, ORNAMENT, REPORTS, SO, STOP, UNREAL, UNSPACED
from verifiers.extract.turns import CORRECTION
from verifiers.lazy_pattern import any_case, lazy_pattern

_LONGEST_EQUATION = 160  # characters of a sentence that confirms one
_LOOK = 1000  # characters before the end that are read
_EQUATION = lazy_pattern(
    r"(?<![\d.,/·*×x+=−-])(?<![·*×x+−-] )(\d{1,9}(?:[.,]\d{1,6})?)\s*([-+−–·*×x/÷:])\s*(\d{1,9}(?:[.,]\d{1,6})?)\s*="
    r"\s*[$€£]?(\d{1,9}(?:[.,]\d{1,6})?)(?![\d/]|[.,]\d)"
)
_COURTESY = any_case(
    r"(?:many |so |and |just )?(?:thanks?|thank you|i(?:['’]m| am| would be|['’]d be) (?:always )?happy to"
    r"|i (?:really )?hope|hope|hoping|let me know|feel free|please (?:let|feel)"
    r"|good luck|cheers|enjoy|best (?:of luck|wishes|regards)|have (?:a|fun)|happy to|glad|you['’]re welcome"
    r"|any (?:other|more|further)? ?questions|q\.?e\.?d|done|that['’]?s (?:it|all)|(?:a |what a |such a )?(?:very "
    r"|quite )?(?:nice|fun|neat|lovely|great|cute|easy|simple|pleasant)\b|(?:that|this|it) was (?:\w+ )?(?:fun|nice"
    r"|easy|a pleasure|simple)|ich hoffe|hoffentlich|danke|vielen dank|viel (?:erfolg|spaß|glück)|gern|fertig"
    r"|j['’]espère|merci|bonne|bon courage|voilà|espero|gracias|muchas gracias|suerte|mucha suerte|listo|un saludo"
    r"|saludos|obrigad[oa]|boa sorte|pronto|abraços?|grazie|spero|in bocca al lupo|buona|ecco|hopelijk|bedankt|dank"
    r"|succes|veel (?:succes|plezier)|graag gedaan|tack|hoppas|jag hoppas|lycka till|mam nadzieję|dziękuję"
    r"|powodzenia|umarım|teşekkür|iyi|kolay gelsin|hy vọng|cảm ơn|chúc|semoga|terima kasih|selamat"
    r"|надеюсь|спасибо|удачи|готово|希望|谢谢|谢|祝|加油|ありがとう|お役|ご参考|以上です|頑張|감사|도움이|고맙"
    r"|수고|شكرا|آمل|أتمنى|بالتوفيق|أرجو|धन्यवाद|आशा|शुभ)"
)
_CHECK = any_case(
    r"(?:as a |for a |by way of |a |the |on |nous |wir |we |man |si |quick |sanity |to |we can |one can |let['’]s "
    r"|let us |let me |just to |self-|zur |als |en |per |come |para |pour |ter |för |na |dla |经过?|經過?)*"
    r"(?:(?:double-|re)?check\w*|verif\w+|proof|probe|kontroll\w*|controle\w*|controll\w*|gegenprobe|überprüf\w+"
    r"|vérif\w+|preuve|comprob\w+|prueba|prova|confer\w+|sprawdz\w+|провер\w+|kontrol\w*|sağlama\w*|thử lại|kiểm tra\w*"
    r"|periksa|pemeriksaan|cek|जाँच|जांच|التحقق|للتحقق|検算|検証|確認|確かめ|验算|驗算|检验|檢驗|代入する|代入して|代入检"
    r"|代入檢|검산|확인)"
    r"|(?:it|this|that|which|the result) (?:also )?(?:matches|agrees with|fits|is consistent with|coincides with)"
    r"(?=[^.]*(?<![^\W\d_])[a-z](?![^\W\d_]))"  # a formula in letters
    r"|(?=[^.]*(?:both sides|same|equals?\b|indeed|works|holds|true|satisf|efectivamente|effectivement|tatsächlich"
    r"|infatti|de fato|действительно|一致|成り立|満た))(?:(?:plugging|putting|substituting)(?: \w+){0,3} back\b"
    r"|si (?:lo|la|los|las) (?:sustitu|reemplaz)\w+|si (?:on|l['’]on) (?:le |la |les )?rem(?:et|place)\w*"
    r"|setzt man (?:das|dies|es|ihn|sie|x)\b[^.]{0,40}? ein\b|se (?:o|a) substituirmos|se (?:lo|la) sostituiamo"
    r"|если подставить|このとき)"
)
# "Indeed, 12 + 12 + 6 is 30": the sentence only confirms an equation.
_INDEED = any_case(
    r"\W*+(?:and |und |et |y |e )?(?:indeed|in fact|after all|sure enough|efectivamente|en efecto|en effet"
    r"|effectivement|tatsächlich|in der tat|infatti|in effetti|de fato|com efeito|inderdaad|rzeczywiście|действительно"
    r"|確かに|実際|确实|的确|실제로)(?![^\W\d_])"
)
_CHAIN = lazy_pattern(
    r"(\d{1,9}(?:\.\d{1,6})?(?:\s?[-+−–·*×x/÷]\s?\d{1,9}(?:\.\d{1,6})?){1,8})"
    r"\s*(?:=|is|makes?|equals|gives?|ist|sind|macht|ergibt|font|fait|es|son|da|é|são|dá|è|fa|dà|равно|это)\s*"
    r"(\d{1,9}(?:\.\d{1,6})?)(?![\d/]|[.,]\d)"
)
# A sentence that gives a reason and concludes nothing: "99 = 9 × 11 だからです。"
_GIVES_REASON = any_case(
    r"\W*+(?:(?:this|that|it) is |that['’]s )?(?:because|denn|c['’]est que|parce que|потому что|なぜなら)(?![^\W\d_])"
    r"(?![^.]*[,，][^.]*\d)|.*(?:から|ため)(?:です|である|だ)\W*$|.*때문(?:입니다|이다)\W*$"
)
# Begins an explanation of the text before it, or a remark that it is plausible. All later sentences belong to it.
_EXPLAINS = any_case(
    r"\W*+(?:(?:you|we|one) can (?:also )?see (?:this|it|that|why) (?:from|by|in|because|since|if|when)"
    r"|(?:this|that|it) (?:follows|can be seen|is (?:easily )?seen) (?:from|by|because|since)"
    r"|(?:man sieht (?:das|es)|das (?:sieht man|folgt|ergibt sich)) (?:an|aus|daran|daraus|weil|wenn)"
    r"|(?:on le voit|cela (?:se voit|découle)) (?:à|de|avec|en|car)"
    r"|(?:esto|se) (?:puede ver|se ve|se deduce) (?:a partir|de|en|por)"
    r"|to see (?:why|this)(?: (?:is|holds|works)[^,:]{0,30})?[,:]|here['’]?i?s (?:why|how)|the reason(?: for (?:this"
    r"|that))? is|(?:short |brief )?(?:explanation|reason(?:ing)?|justification)\s*:"
    r"|(?:this|that|it|which) (?:makes sense|is (?:plausible|reasonable|sensible|logical|to be expected"
    r"|as expected)),? (?:because|since|as|for)"
    r"|(?:begründung|erklärung)\s*:|(?:das|dies) (?:ist (?:plausibel|logisch|sinnvoll)|ergibt sinn|passt),? (?:denn"
    r"|weil|da)"
    r"|(?:explication|justification)\s*:|c['’]est (?:logique|plausible|cohérent),? (?:car|puisque|parce que)"
    r"|(?:explicación|justificación)\s*:|(?:esto )?(?:es lógico|tiene sentido|es plausible),? (?:porque|ya que|pues)"
    r"|(?:explicação|justificativa)\s*:|(?:isso )?(?:é lógico|faz sentido|é plausível),? (?:porque|pois|já que)"
    r"|(?:spiegazione|motivo)\s*:|(?:è logico|è plausibile|ha senso),? (?:perché|poiché)|(?:uitleg|toelichting"
    r"|förklaring|wyjaśnienie|uzasadnienie|объяснение|açıklama|giải thích|penjelasan)\s*:"
    r"|(?:check|verification|double-check|probe|überprüfung|vérification|comprobación|verificação|verifica|controle"
    r"|sprawdzenie|проверка|验证|检验|验算|検算|確認|검산|확인)[\s*_:.。：]*\Z"
    r"|(?:это логично|это правдоподобно),? (?:потому что|так как|ведь))(?:(?<=[,:])|(?![^\W\d_]))"
)
# "The 11 I started with was wrong", "12 would be wrong": the sentence rejects another value.
_CALLS_WRONG = any_case(
    r"\b(?:(?:is|was|were|would be|would have been) (?:wrong|incorrect|a mistake|an error|not right|not "
    r"correct)|(?:ist|war|wäre) falsch|(?:est|était|serait) faux"
    r"|(?:es|era|sería) (?:incorrecto|un error|falso)|(?:é|era|seria|estava) (?:errado|incorreto|um erro)|(?:è"
    r"|era|sarebbe) (?:sbagliato|un errore)|(?:was|is|zou) fout)\W*$"
)
_APPROXIMATE = any_case(
    r"\b(?:about|around|almost|nearly|roughly|approximately|just|not quite|environ|presque|fast|etwa|rund|casi"
    r"|quase|quasi|circa)\b|почти|около|примерно|大约|約|约|几乎|거의|약 "
)
_LATEX_FRACTION = lazy_pattern(r"\\[dt]?frac\{(\d{1,9})\}\{(\d{1,9})\}")
_DELIMITERS = lazy_pattern(r"\\[()\[\]]|\$")
_MULTIPLIES = lazy_pattern(r"\\(?:cdot|times)\s?")
_CALCULATION = lazy_pattern(r"\d{1,9}(?:\.\d{1,6})?(?:\s?[-+−–·*×/÷]\s?\d{1,9}(?:\.\d{1,6})?){0,8}")
_MINE = lazy_pattern(r"\b(?:I|my)\b")
_DOING = any_case(r"\W*+(?!(?:the|this|that)\b)\w+ing\b")
# "I'm happy to give you 3 similar problems."
_OFFERS = any_case(
    r"\W*+(?:i(?:['’]m| am| would be|['’]d be) (?:always )?happy to (?:give|show|go|explain|walk|help|offer|make)"
    r"|let me know if|feel free)\b"
)


def closing(text: str, start: int, end: int, prompt: str) -> tuple[int, list[Span], Asked, str]:
    """Returns where reading begins, the sentences up to the one that states the answer, what is asked, the language."""
    low, sentences, wanted, language = _closing(text, start, end, prompt)
    return low, [*sentences], wanted, language


def before_check(text: str, start: int, end: int, prompt: str) -> int:
    """Returns where the sentence that confirms a correct equation begins, if the text ends with one, else `end`."""
    low = max(start, end - _LONGEST_EQUATION)
    if text.find("=", low, end) < 0 or not any(
        _INDEED.match(text, stop.end(), end) for stop in STOP.finditer(text, low, end)
    ):
        return end
    _, sentences, _, _ = _closing(text, start, end, prompt)
    if not sentences:
        return end
    return sentences[-1][1] if _is_equation(text[sentences[-1][1] : end].strip()) else end


@functools.lru_cache(maxsize=4)  # a refused text is read again
def _closing(text: str, start: int, end: int, prompt: str) -> tuple[int, list[Span], Asked, str]:
    low = max(start, end - _LOOK)
    language = language_of(f"{prompt[-400:]} {text[max(low, end - 400) : end]}")
    sentences = all_sentences(text, low, end)
    wanted = asked_of(prompt[-2000:]) if sentences else NOTHING
    while len(sentences) > 2 and _is_courtesy(text[slice(*sentences[-1])], language):
        sentences.pop()
    del sentences[_explained_from(text, sentences, language) :]
    while len(sentences) > 1 and _adds_nothing(text, sentences, language, wanted):
        sentences.pop()
    return low, sentences, wanted, language


def all_sentences(text: str, low: int, end: int) -> list[Span]:
    """Returns the spans of all sentences that contain a letter or a digit."""
    ends = itertools.pairwise((low, *(stop.end() for stop in STOP.finditer(text, low, end)), end))
    parts = ((text[begin:stop].lstrip(ORNAMENT), stop) for begin, stop in ends)
    return [(stop - len(part), stop) for part, stop in parts if any(char.isalnum() for char in part)]


def _adds_nothing(text: str, sentences: list[Span], language: str, wanted: Asked) -> bool:
    """Returns whether the last sentence leaves the statement of the sentence before it unchanged."""
    part = text[slice(*sentences[-1])]
    return (
        _is_courtesy(part, language)
        or _is_check(part, language)
        or _is_equation(part)
        or _is_aside(text, sentences, language)
        or _is_reason(part, language)
        or _is_of_others(text, sentences, language, wanted)
        or _is_beside(text, sentences, language, wanted)
    )


def _is_aside(text: str, sentences: list[Span], language: str) -> bool:
    """Returns whether the last sentence is in brackets and objects to nothing, after a sentence with a value."""
    part, before = text[slice(*sentences[-1])].strip("*_ \n"), sentences[-2]
    if not (part[:1] in "(（" and part.rstrip(".。!")[-1:] in ")）" and len(part) < 160 and "?" not in part):
        return False
    if any(pattern.search(part) for pattern in (SO, OPPOSED, CORRECTION, REPORTS, UNREAL)):
        return False
    own = {quantity.key for quantity in quantities(text, *before, language) if not quantity.article}
    return bool(own) and not (objection(part, language) or unsure(part))


def _is_equation(part: str) -> bool:
    """Returns whether a sentence only confirms a correct equation ("Indeed, 12 + 12 + 6 is 30 again.")."""
    led = _INDEED.match(part)
    if led and len(part) < _LONGEST_EQUATION and _holds_throughout(part[led.end() :]):
        return True
    chain = _CHAIN.search(part) if led and len(part) < _LONGEST_EQUATION else None
    if chain is None or any(char.isdigit() for char in part[: chain.start()] + part[chain.end() :]):
        return False
    return not (OPPOSED.search(part) or unsure(part)) and total_of(chain[1]) == Fraction(chain[2])


def _holds_throughout(part: str) -> bool:
    """Returns whether a part is a correct equation of numbers and nothing else: "10/3 + 10/6 = 30/6 = 5"."""
    plain = _LATEX_FRACTION.sub(r"\1/\2", part)
    plain = _MULTIPLIES.sub("·", _DELIMITERS.sub(" ", plain)).strip(" ,.:;!")
    sides = [side.strip() for side in plain.split("=")]
    if len(sides) < 2 or not all(_CALCULATION.fullmatch(side) for side in sides):
        return False
    totals = [total_of(side) for side in sides]
    return totals[0] is not None and len(set(totals)) == 1


def _is_reason(part: str, language: str) -> bool:
    """Returns whether a sentence only gives a reason for the text before it, without a conclusion or an objection."""
    if len(part) > 200 or not _GIVES_REASON.match(part):
        return False
    (begin, end), _ = main_clause(part, (0, len(part)), language)
    if begin and quantities(part, begin, end, language):
        return False  # "Because a pentagon has five corners, five edges meet there."
    return not _turns(_GIVES_REASON.sub(" ", part) if UNSPACED.search(part) else part[8:], language)


def _turns(part: str, language: str) -> bool:
    """Returns whether a part concludes, opposes, objects or doubts."""
    return bool(SO.search(part) or OPPOSED.search(part) or objection(part, language) or unsure(part))


def _is_of_others(text: str, sentences: list[Span], language: str, wanted: Asked) -> bool:
    """Returns whether the last sentence gives only values of other things, after a sentence with an asked value."""
    part = text[slice(*sentences[-1])]
    values = quantities(text, *sentences[-1], language)
    if not values or len(part) > 200 or "=" in part or not all(says_other(text, wanted, value) for value in values):
        return False
    bare = _APPROXIMATE.sub(" ", part)
    if _turns(bare, language) or REPORTS.search(bare) or CORRECTION.search(part) or UNREAL.search(part):
        return False
    keys = {value.key for value in values}
    before = quantities(text, *sentences[-2], language)
    own = [value for value in before if wanted.is_wanted(text, value) and value.key not in keys]
    named = {stem for value in values for stem in counted(text, value)}
    return bool(own) and all(named.isdisjoint(counted(text, value)) for value in own)


def _explained_from(text: str, sentences: list[Span], language: str) -> int:
    """Returns the index of the sentence that begins an explanation of what precedes it, or the number of sentences."""
    for index, span in enumerate(sentences[1:], 1):
        found = _EXPLAINS.match(text, *span)
        if found is None:
            continue
        rest = text[found.end() : sentences[-1][1]]
        if _turns(FITS.sub("", rest), language) or reports(rest, NOTHING) or CORRECTION.search(rest):
            break
        before = text[slice(*sentences[index - 1])]
        return index if quantities(before, 0, len(before), language) else len(sentences)
    return len(sentences)


def _is_beside(text: str, sentences: list[Span], language: str, wanted: Asked) -> bool:
    """Returns whether the last sentence rejects another value or names a neighbour of the value concluded before it."""
    part = text[slice(*sentences[-1])]
    wrong, neighbour = _CALLS_WRONG.search(part), NEIGHBOUR.match(part)
    if not (wrong or neighbour) or len(sentences) < 2 or len(part) > 120:
        return False
    before = text[slice(*sentences[-2])]
    values = {value.key for value in quantities(text, *sentences[-1], language) if not value.article}
    known = {value.key for value in quantities(text, *sentences[-2], language)}
    if not values or not known or not values.isdisjoint(known if wrong else ()) or not SO.search(before):
        return False
    if wrong and (len(values) > 1 or (_DOING.match(part) and "would" not in wrong[0])):
        return False  # "Multiplying 3 by 8 was wrong"
    rest = part[: wrong.start()] if wrong else part[neighbour.end() :] if neighbour else ""
    if SO.search(rest) or OPPOSED.search(_MINE.sub(" ", rest)) or objection(rest, language) or REPORTS.search(rest):
        return False
    return bool(wrong) or (
        NEIGHBOUR.search(wanted.sentence) is None and len(stems(before) & stems(wanted.sentence)) > 1
    )


def _is_courtesy(part: str, language: str) -> bool:
    return (
        len(part) < 160
        and _COURTESY.match(part.lstrip(" (¡")) is not None
        and "?" not in part
        and (_OFFERS.match(part) is not None or not any(char.isdigit() for char in part))
        and not objection(_OFFERS.sub("", part).replace(" or ", " "), language)
    )


def _is_check(part: str, language: str) -> bool:
    """Returns whether a sentence is a check that confirms the answer, without an objection or a new conclusion."""
    if len(part) > 200 or not _CHECK.match(part.lstrip(" (*_")) or not any(char.isdigit() for char in part):
        return False
    part = part.replace("i.e. ", "")
    confirmed = FITS.search(part) is not None
    part = FITS.sub("", part)
    if (SO.search(part) and not confirmed) or OPPOSED.search(part) or objection(part, language) or unsure(part):
        return False
    return all(_holds(match) for match in _EQUATION.finditer(part))


def _holds(equation: re.Match[str]) -> bool:
    first, sign, second, result = equation.groups()
    a, b, c = (Fraction(number.replace(",", ".")) for number in (first, second, result))
    if sign in "/÷:":
        return b != 0 and a == b * c
    return c == (a + b if sign == "+" else a - b if sign in "-−–" else a * b)
