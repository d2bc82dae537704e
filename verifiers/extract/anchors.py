"""Phrases that announce an answer, by language: literal stems for substring search, and patterns that must match."""

from __future__ import annotations

import operator
import re
from typing import NamedTuple

from verifiers.lazy_pattern import any_case, lazy_pattern

_VALUE = r"(?=\s*[*_`]*[-+\d$\\(（]|\s*[*_`]*[A-J]\b)"
_GAP = r"[^\n:.=\d?!]{0,24}?"  # "final", "correcta", "finale à la question"
# language: (stems in lower case, pattern that begins with a stem)
_TABLE: dict[str, tuple[str, str]] = {
    "en": (
        "answer|result|solution|option|choice|ans:|ans =|ans=",
        r"(?:\b(?:answers?|results?|solutions?|(?:option|choice)(?=\s+is))\b[*_`]*(?:,\s*(?:then|therefore|thus|hence"
        r"|finally),)?\s*"
        r"(?:(?:to|for|of)\s+(?:the|this|our)\s+\w+(?:\s+\w+)?\s+|(?:to|for)\s+\w+\s+\d+\s*(?=:))?"
        r"(?:(?:is|are|was)(?!n['’]t)|(?:stays|remains)(?=\s+[$*]*[-\d])|=|equals|will be|would be|comes out to"
        r"|should be|must be|:|of\b(?=\s+[-\d$\\])(?![^\n?!]{0,80}\s(?:is|are|equals|was|gives)\s)|→|->|=>|⇒)"
        r"|\b(?:answer|ans)\b[*_`]*\s*[:=\n]|\banswer\b[*_`]*\s+(?=\$"
        r"|\\[(\[])|(?:(?<=\bfinal )|(?<=\bthe ))answer\b[*_`]*\s+(?=[-\d]))",
    ),
    "de": (
        "antwort|ergebnis|lösung|loesung|resultat|nullstelle",
        rf"(?:antwort|ergebnis|l(?:ö|oe)sung(?:en|smenge)?|nullstellen?|resultat)\b{_GAP}(?:\bist\b|\bsind\b"
        rf"|\blaute[nt]\b|\bbeträgt\b|:|="
        r"|\s(?=[-\d$\\(]))",
    ),
    "fr": (
        "réponse|reponse|résultat|resultat|solution|racines",
        rf"\b(?:r[ée]ponses?|r[ée]sultats?|solutions?|racines)\b{_GAP}(?:\best\b|\bsont\b|\bvaut\b|:|=)",
    ),
    "es": (
        "respuesta|resultado|solución|solucion|soluciones|raíces|opción corr|alternativa corr",
        rf"\b(?:(?:alternativa|opción) correcta\s*(?:es|:)|respuestas?|resultados?|soluci[óo]n(?:es)?"
        rf"|raíces)\b{_GAP}(?:\bes\b|\bson\b|\bsería\b|:|=)",
    ),
    "pt": (
        "resposta|resultado|solução|soluções|gabarito|raízes|alternativa corr|opção corr",
        rf"\b(?:(?:alternativa|opção) correta\s*(?:é|:)|respostas?|resultados?|solução|soluções|gabarito"
        rf"|raízes)\b{_GAP}(?:\bé\b|\bsão\b|\bseria\b|:|=)",
    ),
    "it": (
        "risposta|risposte|risultato|risultati|soluzion",
        rf"\b(?:rispost[ae]|risultat[oi]|soluzion[ei])\b{_GAP}(?:\bè\b|\bsono\b|\bsarebbe\b|:|=)",
    ),
    "nl": (
        "antwoord|resultaat|uitkomst|oplossing",
        rf"\b(?:antwoord|resultaat|uitkomst|oplossing(?:en)?)\b{_GAP}(?:\bis\b|\bzijn\b|\bluidt\b|:|=|\s(?=[-\d$]))",
    ),
    "scandinavian": (
        "svar|resultatet",
        rf"\b(?:svaret|svar|resultatet)\b{_GAP}(?:\bär\b|\ber\b|\bblir\b|:|=|\s(?=[-\d$]))",
    ),
    "pl": (
        "odpowied|wynik|rozwiązani",
        rf"\b(?:odpowied[źz]\w*|wynik\w*|rozwiązani\w+)\b{_GAP}(?:\bto\b|\bjest\b|\bsą\b|\bwynosi\b|\bbrzmi\b|:|=)",
    ),
    "cs": ("odpov|výsled", rf"\b(?:odpov[ěe][ďd]|výsledk?ek?)\b{_GAP}(?:\bje\b|:|=)"),
    "tr": (
        "cevap|sonuç|yanıt|çözümle|kökle",
        rf"\b(?:cevap|sonuç|yanıt|çözümleri?|kökleri?)\b\s*[*_`]*\s*(?:[:=]|{_VALUE})",
    ),
    "id": (
        "jawaban|hasilnya|solusi",
        rf"\b(?:jawaban|hasil|solusi)(?:nya)?\b{_GAP}(?:\badalah\b|\bialah\b|:|=)",
    ),
    "vi": (
        "đáp án|đáp số|kết quả|câu trả lời|nghiệm của",
        rf"\b(?:(?:đáp án|đáp số|kết quả|câu trả lời)\b(?:{_GAP}(?:\blà\b|:|=))?|nghiệm của\b{_GAP}\blà\b)",
    ),
    "ro": ("răspuns|rezultat", rf"\b(?:răspuns\w*|rezultat\w*)\b{_GAP}(?:\beste\b|\be\b|:|=)"),
    "hu": ("válasz|eredmény", rf"\b(?:válasz|eredmény)\w*\b\s*(?:az?\b)?\s*(?:[:=]|{_VALUE})"),
    "fi": ("vastaus|tulos", r"\b(?:vastaus|tulos)\b\s*(?:on\b|:|=)"),
    "el": ("απάντηση|αποτέλεσμα", rf"\b(?:απάντηση|αποτέλεσμα)\b{_GAP}(?:\bείναι\b|:|=)"),
    "ru": (
        "ответ|результат|корни|корнями|решени",
        r"\b(?:ответ\b[^\n:.—–=\d?!]{0,16}(?:[:—–=-]|\bравен\b|\bравно\b|\bесть\b)?"
        rf"|результат\b{_GAP}(?:\bрав\w+|\bсоставля\w+|[:—–=])"
        rf"|(?:корни|корнями|решени(?:я|ями|й))\b{_GAP}(?:\bрав\w+|\bявля\w+|[:—–=]))",
    ),
    "uk": ("відповід|результат", r"\b(?:відповідь)\b[^\n:.—–=\d?!]{0,16}[:—–=-]?"),
    "zh": (
        "答案|答：|答:|结果|結果|选|選|解为|解是|解為|解集|根为|根是|根為",
        r"(?:答案\s*(?:(?:就|应该|應該|即|应|應|只能)?(?:是|为|為|选|選)\s*[:：]?|[:：＝=]|\s(?=[\d$\\(（-])"
        r"|(?=[\d$\\（(]))"
        r"|答\s*[:：]|(?:正确|正確)?[选選](?:项|項)\s*(?:是|为|為|[:：])|[结結]果\s*(?:就)?(?:是|为|為|等于"
        r"|等於|[:：＝=])|[解根](?:是|为|為)|解集\s*(?:是|为|為)"
        r"|(?<!不)(?<!不应)(?<!不能)[选選](?:项|項|择|擇)?\s*+[:：]?[\s*_]*+(?=[（(]?\s*+\$?\s*+[A-J]))",
    ),
    "ja": (
        "答え|答は|正解|解答|求める|結果は|解は|正しくは",
        r"(?:答え?\s*(?:は|[:：＝=])|答え\s+(?=[-\d$\\])|(?:正解|解答|結果|解|正しく)\s*(?:は|[:：＝=])"
        r"|求める[^\n。はを?？]{0,12}は)\s*[、,]?",
    ),
    "ko": (
        "정답|답은|답이|답:|답：|답 :|해답|결과는|값은|의 해는|의 근은",
        r"(?:정답|해답|답)\s*(?:은|이|[:：=])|(?:결과|값)(?:는|은)|의 (?:해는|근은)",
    ),
    "ar": (
        "حلول|جذور|مجموعة|الحل|الجواب|الإجابة|الاجابة|ناتج|النتيجة|جواب|إجابة",
        rf"(?:(?:الجواب|الإجابة|الاجابة|جواب|إجابة)(?:\s+(?:النهائي|الصحيح)ة?)?\s*(?:(?:هو|هي|يساوي|ليس"
        rf"|[:=])\s*:?|{_VALUE})"
        r"|الحل\s*[:=]|(?:حلول|جذور|مجموعة)[^.\n:=؟]{0,40}?(?:هي|هما|[:=])\s*:?|الحلول\s+(?:هي|هما)"
        r"|(?:ناتج|النتيجة)[^.\n:=؟]{0,40}?(?:هو|هي|يساوي|[:=])\s*:?)",
    ),
    "fa": ("پاسخ", rf"پاسخ(?:\s+(?:نهایی|درست|صحیح))?\s*(?:برابر(?:\s+با)?|[:=]|{_VALUE})"),
    "he": ("תשובה", rf"תשובה(?:\s+הסופית)?\s*(?:היא|הוא|[:=]|{_VALUE})"),
    "hi": (
        "उत्तर|जवाब|परिणाम|के हल",
        rf"(?:के हल(?=\s+[$\d-])|उत्तर|जवाब|परिणाम)\s*(?:(?:है|होगा|[:=-])\s*:?|{_VALUE})",
    ),
    "bn": ("উত্তর", rf"উত্তর\s*(?:হলো?|[:=-]|{_VALUE})"),
    "sw": ("jibu", r"\bjibu(?:\s+(?:la mwisho|sahihi))?\s*(?:ni\b|:|=)"),
    "te": ("సమాధానం|జవాబు", rf"(?:సమాధానం|జవాబు)\s*(?:[:=]|{_VALUE})"),
    "th": ("คำตอบ|ตอบ", r"(?:คำตอบ|ตอบ)\s*(?:คือ|[:=])"),
}
WEAK = any_case(
    r"results?|solutions?|options?|choices?|nullstell|racines|ra[íi][cz]es|oplossing|ergebnis|resultat|lösung|loesung"
    r"|r[ée]sultat|resultado|soluci|solu[çc]|risultat|soluzion|resultaat|uitkomst|wynik|rozwi|výsl|sonuç|çözüm|kök"
    r"|hasil|solusi|nghiệm|kết quả|rezultat|eredmény|tulos|αποτ|результат|корн|решени|结果|結果|解|根|値|값|의|結|الحل"
    r"|حلول|جذور|مجموعة|के हल|ناتج|النتيجة|परिणाम"
)  # these words also announce intermediate results
MOST = 64  # anchors that are checked, from the end of the text
Stem = tuple[str, re.Pattern[str]]
_STEMS: dict[str, list[Stem]] = {
    language: [(stem, any_case(pattern)) for stem in stems.split("|")] for language, (stems, pattern) in _TABLE.items()
}
_ENGLISH = _STEMS["en"]
_ELSE = [stem for language, stems in _STEMS.items() if language != "en" for stem in stems]
_LATIN = [stem for stem in _ELSE if stem[0].isascii()]
_LETTER = lazy_pattern(r"[^\W\d_]")
_LOWER = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}


class Anchor(NamedTuple):
    """A phrase that announces an answer. The answer may begin at `end`."""

    start: int
    end: int
    word: str


def anchors(text: str, start: int) -> list[Anchor]:
    """Returns the last 64 announcing phrases from `start` on, in order, with one substring search per stem."""
    part = text[start:] if start else text
    lower = part.lower()
    if len(lower) != len(part):  # "İ" becomes two characters, which would shift positions
        lower = part.translate(_LOWER)
    found = _matches(text, start, _candidates(lower, _ENGLISH, 0))
    low = found[-1].end - start if found else 0  # texts seldom change their language
    if found and not _LETTER.search(lower, low):
        return found  # the rest has no letter and so no stem
    rest = _LATIN if lower.isascii() else _ELSE
    more = _matches(text, start, _candidates(lower, rest, low))
    return sorted({anchor.start: anchor for anchor in (*more, *found)}.values())[-MOST:] if more else found


def _candidates(lower: str, stems: list[Stem], low: int) -> list[tuple[int, re.Pattern[str]]]:
    candidates = []
    for stem, pattern in stems:
        position = lower.find(stem, low)
        while position >= 0:
            candidates.append((position, pattern))
            position = lower.find(stem, position + len(stem))
    if len(candidates) > 1:
        candidates.sort(key=operator.itemgetter(0))
    return candidates[-MOST:]


def _matches(text: str, start: int, candidates: list[tuple[int, re.Pattern[str]]]) -> list[Anchor]:
    found = []
    for position, pattern in candidates:
        match = pattern.match(text, start + position)
        if match:
            found.append(Anchor(match.start(), match.end(), match[0]))
    return found
