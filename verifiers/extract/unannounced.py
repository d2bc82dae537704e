"""Reads the end of a text that announces no answer: it is one expression, or the end states or displays a value."""

from __future__ import annotations

import re

from verifiers.extract.conclusions import ANNOUNCING, CONCLUDES, FORMULA, NEED, SETUP, UNSURE, stands_as_value
from verifiers.extract.denials import starts_negated
from verifiers.extract.gates import Gated
from verifiers.extract.hedges import CONTRAST, OR_VALUE, RESTATEMENT
from verifiers.extract.quantities import ROOT
from verifiers.extract.sentences import BEFORE_AND, MATHS, NUMBER, last_sentence, sentence_ends, sentence_start
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import OPPOSED
from verifiers.lazy_pattern import any_case, lazy_pattern

_LATE = 600  # characters before the end that can be the conclusion
_COURTESY = any_case(
    r"(?:thanks?|thank you|i hope|hope|let me know|feel free|please let|good luck|cheers|enjoy|best|q\.?e\.?d|done"
    r"|that['’]?s (?:it|all)|ich hoffe|danke|j['’]espère|merci|espero|gracias|obrigad[oa]|grazie|spero|надеюсь|спасибо"
    r"|希望|谢谢|ありがとう|감사|شكرا|धन्यवाद)"
)
_LONGEST_CHECK = 200  # characters of a check that is cut off
_CHECK = any_case(
    r"[\s*_`-]*(?:(?:quick |sanity |self-?)?check(?:ing)?\b|verif(?:y|ying|ication)\b|to (?:verify|check)\b"
    r"|let(?:['’]s| us| me) (?:check|verify)\b|(?:zur )?(?:probe|kontrolle)\b|vérifi\w+|comprob\w+|verific\w+"
    r"|провер\w+|検算|検証|验算|驗算|检验|檢驗|검산)"
)
# Words that make a check part of the answer: it reaches another value or takes the first one back.
_AFTER_ALL = any_case(
    r"\b(?:so|therefore|thus|hence|but|however|answer|instead|should|also(?! )|daher|somit|aber|donc"
    r"|mais|pero|mas|ma|но|поэтому|значит|fail\w*|wrong|falsch|faux|mal|erro\w*)\b|所以|因此|但|よって|しかし"
    r"|따라서|하지만"
)
_JSON = any_case(r"""\{\s*["']?(?:final[_ ]?)?answer["']?\s*:\s*["']?([^"',{}:]+)["']?\s*\}""")
_LAST_KEY = lazy_pattern(r"""[,{]\s*"answer"\s*:\s*"?([^"{}\[\]:]{1,200}?)"?\s*\}$""")
_JSON_BLOCK = lazy_pattern(r"```(?:json)?\s*(\{[^`{}]{1,4000}\})\s*```\Z")
_LEAD_IN = any_case(
    r"(?:(?:i(?:['’]d| would|['’]ll| will) (?:go with|pick|choose)|(?:so|thus|hence|therefore|yes|clearly|i think"
    r"|i believe),? (?:it['’]s|it is|it must be|it has to be)|it['’]s|it is|that['’]s|that makes|we get|so|thus|hence"
    r"|therefore|clearly|certainly|yes|indeed|finally|altogether|overall|in total|also|somit|daher|dann|donc|ainsi"
    r"|alors|por lo tanto|entonces|así|portanto|então|logo|quindi|allora|итак|значит"
    r"|следовательно)\b[,:]?\s+(?=[$\\\d-]|[A-Za-z]\s*=|(?-i:\(?[A-J]\)?)[.\s]*$)"
    r"|(?:(?:so|thus|hence|therefore|then|donc|ainsi|alors|also|daher|somit|entonces|portanto|quindi|итак),? )?"
    r"(?:we (?:find|obtain)|on (?:trouve|obtient)|wir (?:erhalten|finden)|obtenemos|hallamos|encontramos|obtemos"
    r"|otteniamo|troviamo|получаем|находим)\s+(?=[A-Za-z]\s*=)"
    r"|(?:所以|因此|故|综上(?:所述)?|由此(?:可得)?|解得|求得|可得|于是|即|よって|したがって|ゆえに|따라서"
    r"|∴)[，,、:：]?\s*(?=[$\\\d-]|[A-Za-z]\s*=))"
)
_REVERSED = Gated(
    r"(?:^|[\s(*])(?:(?:option|choice)\s+)?(?P<value>\$[^$\n]{1,100}\$|[-−]?[\d][\d,]*(?:\.\d+)?(?:/\d+)?%?"
    r"|\(?[A-J]\)?)[*]*\s+"
    r"(?:is|are)\s+(?:(?:the|our|my|your|therefore|thus|then)\s+)*(?:(?:final|correct|right|required|desired|best)\s+)*"
    r"(?:answer|result|solution|option|choice|(?<=\bcorrect )|(?<=\bright ))\W*$"
    r"|\b(?:i|we)(?:['’]d| would|['’]ll| will)?\s+(?:choose|pick|select|go with|went with|chose)\s+(?:(?:option|choice"
    r"|answer)\s+)?(?P<pick>\(?[A-J]\)?)\W*$"
    r"|\b(?P<so>so|therefore|thus|hence),?\s+(?:i (?:think|believe|conclude|am sure)\s+(?:that\s+)?)?"
    r"it(?:['’]s| is| must be| has to be)\s+(?P<left>(?-i:\(?[A-J]\)?))\W*$"
)
_EXPRESSION = (
    r"(?P<value>(?=[^\W_]|[(\[{\\√±+−∅$-])(?:\$[^$\n]{1,120}\$|\\(?:[A-Za-z]+|[{},;!:|])"
    r"|(?<![A-Za-z])(?:sin|cos|tan|cot|sec|csc|arc(?:sin|cos|tan)|[sct](?:inh|osh|anh)|ln|log|exp|sqrt|pi|infinity|gcd"
    r"|lcm|max|min|mod|and|or)(?![A-Za-z])|(?<![A-Za-z])[A-Za-zα-ω](?![A-Za-z])"
    r"|[\d\s²³¹⁰⁴-⁹ⁿ⁻√π∞±+−–*·×⋅/÷^_()\[\]{}<>≤≥≡=,;:.%°'′|!∅∪∩∈-])+?)"
)
# "(2, -3) is the answer."
_CALLED_ANSWER = any_case(
    rf"[\s*_]*{_EXPRESSION}[\s*_]+(?:is|are|ist|sind|est|es|é|è)\s+(?:(?:therefore|thus|then|indeed|also|donc|por tanto"
    r"|portanto|quindi)\s+)?(?:the|our|my|die|la|a|el|il)\s+(?:(?:final|correct|right|required|desired|richtige|gesuchte"
    r")\s+)*(?:answer|result|solution|antwort|lösung|réponse|solution|respuesta|solución|resposta|solução|risposta"
    r"|soluzione)s?\W*"
)
_CONCLUSION = any_case(
    r"[\s*_]*(?=[^\W\d_]{2})(?:(?:and )?(?:so|thus|hence|therefore|then|finally|consequently|in conclusion|also|somit"
    r"|daher|folglich|damit|donc|ainsi|finalement|por lo tanto|por tanto|así|entonces|luego|portanto|logo|assim|então"
    r"|quindi|dunque|pertanto|итак|значит|следовательно|поэтому|таким образом)\b,?\s+)?(?:(?:we (?:get|have|obtain|find"
    r"|conclude)|this (?:gives|yields|means|is)|that(?:['’]s| gives| is)|which gives|it(?:['’]s| is)|it follows that"
    r"|(?:it|this|the expression) (?:simplifies to|becomes|equals)|erhalten wir|ergibt sich|ist das|on (?:a|obtient"
    r"|trouve)|obtenemos|tenemos|queda|obtemos|temos|fica|otteniamo|abbiamo|si ha|si ottiene|получаем|имеем)\b[,:]?"
    rf"(?: that\b)?\s+)?(?<=\s)[*_]*{_EXPRESSION}[*_]*"
)
_DENIES = any_case(r"\b(?:not|never)\b|n['’]t\b")
_IN_BLOCK = lazy_pattern(r"(?:[A-Za-z]\s?=\s?)?[-−+\d\s.,/^*()\[\]{}√π±²³]+")
_BLOCK = lazy_pattern(r"\n```\w{0,10}[ \t]*\n([^\n`]{1,200})\n```\Z")
_COMPOSED = lazy_pattern(r"[=<>≤≥≡^√π∞±+*·×/()\[\]{}\\²³⁴-⁹∅,]|\d[-−–]\d|\w [-−–] \w|\d\s?[A-Za-z]|pi")
_NAMED = lazy_pattern(r"[\s$\\(]*(?:[A-Za-z](?:\([a-z]\))?['′]{0,2}(?:\([a-z]\))?|d[a-z]/d[a-z])\s?=")
_OR = lazy_pattern(r"\b(?:or|oder|ou|o)\b")
_ASIDE = any_case(
    r"\W*+(?:confidence|certainty|difficulty|rating|(?:my |a )?(?:\w+ )?guess|step|note|problem|question|exercise"
    r"|example|recall|remember|hint|find|let|suppose|assume|consider|claim|draft|attempt|prove|show)\b"
)
_UNFINISHED = any_case(
    r"\b(?:next|then|still|now|need|needs|remains to|continue|continuing"
    r"|we (?:want|seek|(?:are|were) (?:looking for|asked)))\b"
)
_TOO_LITTLE = any_case(
    r"\b(?:not enough|insufficient|too little) (?:information|data|context)\b|\bi have no (?:clue|idea)\b"
    r"|\b(?:i|we) (?:can['’]?t|cannot|could(?: not|n['’]t)|am unable to|was unable to) (?:\w+ )?(?:solve|answer"
    r"|figure)\b"
)
OPTION_LABEL = lazy_pattern(r"(?:^|\s|(?<![A-Za-z])[(\[])[A-J][).\]:]\s*\S")  # but not P(A)
_EQUALS = lazy_pattern(r"\s*=\s*\S")
_LONGEST_LINE = 160
_LEADS_TO_LINE = any_case(
    r"[\s*_>#-]*(?:[^\d=\n:：]{1,60}[:：]|(?:so|thus|hence|therefore|also|daher|somit|donc|ainsi|por tanto|así"
    r"|luego|portanto|logo|quindi|dunque"
    r"|dus|alltså|więc|zatem|значит|итак|следовательно|所以|因此|故|よって|したがって|따라서)[,，、]?)?[\s*_]*"
)
_ALGEBRA = lazy_pattern(
    r"(?P<list>[A-Za-z]\s?=\s?[-−]?\d[\d./]*(?:,\s[-−]?\d[\d./]*)+)"
    r"|(?:(?:sin|cos|tan|ln|log|exp|sqrt)(?![A-Za-z])|(?<![A-Za-z])[A-Za-z](?![A-Za-z])['’′]{0,2}"
    r"|[\d²³¹⁰⁴-⁹ⁿ√π+−–*·×⋅/^()=.| -])+"
)
_IN_A_LETTER = lazy_pattern(r"[A-Za-z][^=]*[-+−–*·×⋅/^²³(]|[-+−–*·×⋅/^√\d][^=]*[A-Za-z]")
_UNSPACED = lazy_pattern(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f\u0900-\u0dff]"
)  # Chinese, Japanese, Korean, Thai
_SAID_EQUAL = any_case(
    r"[^\W\d_²³][^\W\d_²³' ]*(?: [^\W\d_²³' ]+)*?"
    r"(?:\s(?:equals|is|ist|est|es|égale?|igual a|uguale a|gleich|vaut|vale|[éè]|рав[ен]\w*|هو|هي|تساوي|يساوي))"
    r"\s+[$\\(]*[-+]?\d[\d,./]*(?:\s+[A-Za-z°²³]{1,4})?\W*"
)  # "x equals 42"
# A second sentence, a formula that follows from another one, or an emphasised value in a sentence.
_IN_SENTENCES = lazy_pattern(
    r"[\w$)%][.!?]\s+[^\W\d_]{3}|\$\s?(?:より|から|ゆえに)\s?\$|[^\W\d_]{2}\s+[^\W\d_]{2,20}\s+\*\*"
)


def unannounced(text: str, start: int, end: int) -> Extraction:
    """Returns the whole text if it is one expression, else the closing formula or the number that the end states."""
    part = text[start:end]
    begin, end = start + len(part) - len(part.lstrip()), start + len(part.rstrip())
    if begin >= end:
        return Extraction(None, "empty")
    begin, end = _fenced(text, begin, end)
    block = _JSON_BLOCK.search(text, max(begin, end - _LATE), end) if text.endswith("```", begin, end) else None
    begin, end = block.span(1) if block else (begin, end)
    keyed = _JSON.fullmatch(text, begin, end) if text[begin] == "{" and end - begin < 400 else None
    if keyed is None and text[begin] == "{" and end - begin < 4000 and text[begin:end].count('"answer"') == 1:
        keyed = _LAST_KEY.search(text, begin, end)
    if keyed:
        return Extraction(keyed.span(1), "anchor")
    low = max(begin, end - _LATE)
    end = _without_check(text, low, _without_courtesy(text, low, end))
    reverse = _reversed(text, low, end)
    if reverse is not None:
        return reverse
    lead = _LEAD_IN.match(text, begin, end)
    begin = lead.end() if lead else begin
    whole = text[begin:end]
    concluded = _concluded(text, low, end)
    if concluded is not None:
        return Extraction(concluded, "anchor")
    if len(whole) < 400 and not _ASIDE.match(whole) and (MATHS.fullmatch(whole) or _no_prose(whole)):
        return Extraction((begin, end), "whole")
    displayed = _displayed(text, low, end)
    if displayed is not None:
        return displayed
    sentence = last_sentence(text, low, end)
    end = _before_stop(text, sentence[0], end)
    stated = text[sentence[0] : end]
    if UNSURE.may_match(stated) and UNSURE.search(OR_VALUE.sub(" ", RESTATEMENT.sub(" ", CONTRAST.sub("", stated)))):
        return Extraction(None, "unsure")
    if _TOO_LITTLE.search(text, low, end):
        return Extraction(None, "unsure")
    if text.count("```", 0, sentence[0]) % 2:
        return Extraction(None, "code")
    if len(OPTION_LABEL.findall(text[sentence[0] : sentence[1]])) > 1 or len(OPTION_LABEL.findall(text[low:end])) > 2:
        return Extraction(None, "options")
    if _UNFINISHED.search(text, sentence[1], end):
        return Extraction(None, "unfinished")
    contrast = CONTRAST.search(text, sentence[0], _before_stop(text, *sentence))
    sentence = (sentence[0], contrast.start()) if contrast else sentence
    formulas = [match.span() for match in FORMULA.finditer(text, *sentence)]
    formulas += [match.span() for match in ROOT.finditer(text, *sentence)] if "π" in text or "√" in text else []
    numbers = [match.span() for match in NUMBER.finditer(text, *sentence)]
    if formulas:
        numbers = [span for span in numbers if not any(low <= span[0] < high for low, high in formulas)]
    spans = sorted((*formulas, *numbers))
    if not spans:
        return Extraction(None, "nothing")
    span = (spans[_list_start(text, spans)][0], spans[-1][1])
    # If an equals sign follows, the result after it was not read as a number: "60 * 1.2 = 72Mb".
    if _EQUALS.match(text, span[1], end) or not stands_as_value(text, sentence, span, evidence=True):
        return Extraction(None, "prose")
    return Extraction(span, "number" if spans[-1] in numbers else "maths")


def closing_expression(text: str, start: int, end: int) -> Span | None:
    """Returns the expression in a variable that is the last line ("f'(x) = 6x² − 2", "Thus **x = 1, 5**"), or None."""
    end = _before_stop(text, start, end, " \t\n*_`.。")
    low = max(text.rfind("\n", start, end) + 1, start)
    if end - low > _LONGEST_LINE:
        return None
    lead = _LEADS_TO_LINE.match(text, low, end)
    begin = lead.end() if lead else low
    algebra = _ALGEBRA.fullmatch(text, begin, end)
    if algebra is None or not (algebra["list"] or _IN_A_LETTER.search(text[begin:end].rpartition("=")[2])):
        return None
    before = text[start:low].rstrip()
    led = [text[low:begin], before[before.rfind("\n") + 1 :] if before[-1:] in (":", "：") else ""]
    if any(SETUP.match(part) or UNSURE.search(part) or ANNOUNCING.search(part) for part in led):
        return None
    return begin, end


def _before_stop(text: str, low: int, end: int, signs: str = " \t\n.*") -> int:
    return low + len(text[low:end].rstrip(signs))


def _reversed(text: str, low: int, end: int) -> Extraction | None:
    """Returns the answer of a last sentence such as "7 is the answer", "Option B is correct" or "I would choose B"."""
    begin = sentence_start(text, end - 1, low)
    quoted = text[low:begin].rstrip().endswith((":", "："))  # "The key says:"
    called = None if quoted or end - begin > _LONGEST_LINE else _CALLED_ANSWER.fullmatch(text, begin, end)
    if called is not None and not UNSURE.search(_OR.sub(" ", called[0])):
        return Extraction(called.span("value"), "anchor")
    match = _REVERSED.search(text, begin, end)
    if match is None or SETUP.match(text, begin, match.start()):
        return None
    if UNSURE.search(text, match.start() if match["so"] else begin, end):
        return None
    return Extraction(match.span(next(name for name in ("value", "pick", "left") if match[name])), "anchor")


def _concluded(text: str, low: int, end: int) -> Span | None:
    """Returns the expression that the last sentence consists of behind "Thus, we get", or None."""
    stop = _before_stop(text, low, end, " \t\n.*_")
    begin = max([low, *(text.rfind(sign, low, stop) + len(sign) for sign in ("\n", ". ") if sign in text[low:stop])])
    found = _CONCLUSION.fullmatch(text, begin, stop) if stop - begin <= _LONGEST_LINE else None
    if found is None or not _COMPOSED.search(found["value"]) or found["value"].count("=") > 1:
        return None
    return None if "=" in found["value"] and not _NAMED.match(found["value"]) else found.span("value")


def _list_start(text: str, spans: list[Span]) -> int:
    """Returns the index of the first value in the last list of values that commas, "and" or "or" join."""
    index = len(spans) - 1
    while index and (
        BEFORE_AND.fullmatch(text, spans[index - 1][1], spans[index][0])
        or RESTATEMENT.fullmatch(text, spans[index - 1][1], spans[index][0])
    ):
        index -= 1
    return index


def _fenced(text: str, begin: int, end: int) -> Span:
    """Returns the span inside the code fence if the text is one code fence, else the span unchanged."""
    if text.startswith("```", begin) and text.endswith("```", begin, end) and end - begin < 400:
        inner = re.fullmatch(r"```(?:text|latex|tex|math|plaintext)?[ \t]*\n?([^\n`]+)\n?```", text[begin:end])
        if inner:
            return begin + inner.start(1), begin + inner.end(1)
    return begin, end


def _without_courtesy(text: str, low: int, end: int) -> int:
    """Returns the end of the text before closing words such as "I hope it is correct."."""
    for _ in range(3):
        stop = _before_stop(text, low, end, " \t\n.!*_`-")
        starts = [match.end() for match in sentence_ends(text).finditer(text, low, stop)]
        if not starts or not _COURTESY.match(text[starts[-1] : stop].lstrip(" \t\n*_`-")):
            return end
        end = starts[-1]
    return end


def _without_check(text: str, low: int, end: int) -> int:
    """Returns the end before a check such as "Probe: 9 - 4 = 5, passt."; one that finds a fault or concludes stays."""
    starts = [low, *(match.end() for match in sentence_ends(text).finditer(text, low, end))]
    checks = [start for start in starts[1:] if _CHECK.match(text, start, end)]
    if not checks or not any(char.isdigit() for char in text[low : checks[0]]):
        return end
    check = text[checks[0] : end]
    doubted = "≠" in check or "\\ne" in check or UNSURE.search(check) or _AFTER_ALL.search(check)
    return end if doubted or len(check) > _LONGEST_CHECK else checks[0]


def _displayed(text: str, low: int, end: int) -> Extraction | None:
    """Returns the displayed formula, or the code block of one line of maths, that ends the text, or None."""
    span = _one_line_of_code(text, low, end) or _display(text, low, _before_stop(text, low, end))
    if span is None:
        return None
    lead = text[max(low, span[0] - 200) : span[0]].partition("```")[0].rstrip(" \t\n:*")
    sentences = sentence_ends(lead).split(lead)
    if SETUP.match(sentences[-1]) and not CONCLUDES.search(sentences[-1].partition(",")[2]):
        return Extraction(None, "premise")
    in_code = text.endswith("`", low, end)
    if UNSURE.search(sentences[-1]) or NEED.search(sentences[-1]) or starts_negated(sentences[-1][-4:]):
        return Extraction(None, "code" if in_code else "unsure")
    if in_code and (OPPOSED.search(sentences[-1]) or _DENIES.search(sentences[-1])):
        return Extraction(None, "code")
    return Extraction(span, "maths")


def _one_line_of_code(text: str, low: int, end: int) -> Span | None:
    block = _BLOCK.search(text, low, end) if text.endswith("`", low, end) else None
    return block.span(1) if block and text.count("```", low, end) == 2 and _IN_BLOCK.fullmatch(block[1]) else None


def _display(text: str, low: int, stop: int) -> Span | None:
    closing = next((sign for sign in ("\\]", "$$", "*}", "}") if text.endswith(sign, low, stop)), "")
    opening = {"\\]": text.rfind("\\[", low, stop - 2), "$$": text.rfind("$$", low, stop - 2)}.get(
        closing, text.rfind("\\begin{", low, stop) if closing else -1
    )
    match = MATHS.match(text, opening, stop) if opening >= 0 else None
    if match is None or match.end() != stop or (match[0][0] == "$" and not match[0].startswith("$$")):
        return None
    return match.span()


def _no_prose(text: str) -> bool:
    plain = re.sub(r"\\text\w*\{[^{}]*\}|\\[A-Za-z]+", " ", text)
    words = re.findall(r"(?<![\\\w])[^\W\d_]{3,}", plain)
    if re.match(r"(?:since|because|as|if|when|let|suppose)\b", text, re.IGNORECASE):
        return False
    if _SAID_EQUAL.fullmatch(text) or _IN_SENTENCES.search(text):
        return False
    spoken = len(re.findall(r"(?<![\\\w])[^\W\d_]{2,}", plain))
    if spoken > 2 + (not text[:2].isalpha()) and any(char.isdigit() for char in text):
        return False
    if words and ("$" in text or "\\(" in text):
        return False
    if len(_UNSPACED.findall(plain)) > 3:
        return False
    most = 1 if text[0].isalpha() and text[1:2].isalpha() else 3  # sentences begin with a word, expressions seldom do
    if most == 1 and len(words) == 2 and len(text) < 30:
        most = 2 if re.fullmatch(r"[A-Za-z ]+\.?", text) else 1  # "no solution"
    return len(words) <= most and "\n" not in text
