"""Removes remarks after an answer that say nothing about it: offers to the reader, asides that deny other values."""

from __future__ import annotations

import re

from verifiers.extract.spans import ending
from verifiers.lazy_pattern import lazy_pattern

_STOPS = frozenset(".!?。！？؟)）")
_BETWEEN = (". ", "! ", "? ", "\n", "。", "！", "？", "؟ ")  # separators of sentences
_INSIDE = frozenset(">}0123456789")  # last characters of texts that end with their answer
_LONGEST = 240  # characters of a remark
_MOST = 3
_OFFER = lazy_pattern(
    r"[\s¿*_(-]*(?:would you like|do you (?:want|have|need)|shall i|should i (?:also )?(?:show|explain|solve)"
    r"|want me to|can i help"
    r"|(?:does|did) (?:that|this|it) (?:make sense|help)|is (?:that|this|it|everything) clear|(?:any|more"
    r"|other) (?:other )?questions"
    r"|need (?:more|any) help|let me know|feel free|if you(?:['’]d| would)? (?:have|need|want|like)"
    r"|möchtest du|möchten sie|soll ich|willst du|(?:wenn|falls) (?:du|sie) (?:noch )?(?:weitere )?(?:fragen"
    r"|hilfe)|brauchst du|hast du noch"
    r"|ist (?:das|alles) klar|frag (?:gern|einfach)|veux-tu|voulez-vous|souhaite[sz]|dois-je|puis-je|si (?:tu as"
    r"|vous avez) (?:d['’]autres )?"
    r"|as-tu|avez-vous|n['’]hésite|(?:quieres|quiere|deseas|desea) (?:que|ver|otr)|te gustaría|le gustaría"
    r"|si (?:tienes|necesitas|quieres)"
    r"|tienes (?:alguna|más)|(?:você )?(?:quer|gostaria) (?:que|de|ver)|se (?:tiver|precisar|quiser)|posso ajudar"
    r"|vuoi (?:che|vedere|un)"
    r"|vorresti|se (?:hai|vuoi|ti serve)|hai (?:altre )?domande|posso aiutar|wil je|zal ik|als je (?:nog )?vragen"
    r"|heb je (?:nog )?vragen"
    r"|vill du|om du har|chcesz|czy chcesz|jeśli masz|masz pytania|хочешь|хотите|если (?:есть|у вас|у тебя|нужн)"
    r"|есть ли (?:ещё )?вопрос"
    r"|(?:başka )?sorun(?:uz)? varsa|ister misin|bạn có (?:muốn|cần)|nếu bạn|apakah (?:kamu|anda) (?:ingin|mau)"
    r"|jika (?:kamu|anda)"
    r"|(?:你|您)?(?:想|要|需要)(?:不要|我|看|了解)|如果(?:你|您)?(?:还|有|需要|想)|还有(?:什么|其他)|他に|もし(?:他に|さらに)|質問が"
    r"|더 궁금|다른 질문|질문이 있|원하시면|هل (?:تريد|ترغب|لديك)|إذا (?:كان لديك|أردت)|क्या आप|अगर आपको|यदि आपको)",
    re.IGNORECASE,
)
# If an offer contains one of these words, it doubts the answer and is kept.
_DOUBTS = lazy_pattern(
    r"answer|instead|correct|right|wrong|\bsure\b|change|rather|really|actually|true|trust|\bcheck|mistake|different|antwort|richtig"
    r"|falsch|réponse|juste|respuesta|resposta|risposta|ответ|верн|правильн|答案|答え|正し|正确|错|정답|맞|الجواب|الإجابة|cevap|doğru|đáp"
    r"|jawab|benar|उत्तर|सही|svar|rätt|odpowied",
    re.IGNORECASE,
)
_CONFUSED = (
    r"(?:do not|don['’]t|not to be|be careful not to|never)\s+confuse\w*|not to be confused"
    r"|nicht (?:zu )?verwechseln|verwechsle"
    r"|ne pas confondre|ne confond\w*|à ne pas confondre|no (?:lo )?confund\w*|não confund\w*|non confond\w*"
    r"|da non confondere|не путать"
    r"|не путай\w*|不要(?:和|与|跟)?[^,，。]{0,12}混淆|混同し"
)
_CONTRAST = (
    r"(?:and |but |und |et |y |e |а )?(?:not|nicht|non(?: pas)?|pas|no|não|не|niet|inte|nie|bukan|değil"
    r"|instead of|rather than)(?!\w)"
    r"|不是|而不是|而非|न कि"
)
_UNREAL = (
    r"(?:if|for|with|wenn|bei|mit|si|se|con|pour|avec|если|при)\b[^()]{0,160}(?:\bwould\b|\bwäre[n]?\b|\bserait\b|\bsería\b|\bseria\b"
    r"|\bsarebbe\b|\bбыло бы\b)|如果[^()（）]{0,80}就"
)
# "Someone online claims 336, but that counts ordered selections"
_OTHERS_SAY = (
    r"(?![^()]*\b(?:ask\w*|question|want\w*|need\w*|probably|maybe|perhaps|know|possible|agree\w*)\b)"
    r"(?:some(?:one|body)?|people|many|others|one might|you might|manche|viele|jemand|certains|beaucoup|quelqu['’]un"
    r"|algun[oa]s|much[oa]s|alguien|alguns|muitos|alguém|alcuni|molti|qualcuno|некоторые|многие|кто-то)\b[^()]{1,80}\d"
    r"[^()]{0,40},\s(?:but|aber|mais|pero|mas|ma|но)\b"
)
_ASIDE = lazy_pattern(
    rf"\s*[(（]\s*(?:{_CONFUSED}|{_CONTRAST}|{_UNREAL}|{_OTHERS_SAY})[^()（）]*[)）][.。!]?\s*", re.IGNORECASE
)
# "It isn't 41, which is the sum of the legs.", "If you got 12, you counted the pieces.": one other value is given up.
_GIVEN_UP = lazy_pattern(
    r"[\s*_-]*(?:(?:it|that|this)(?:['’]s not| is not| isn['’]t)|(?:es|das) (?:ist|sind) nicht|ce n['’]est pas"
    r"|no (?:es|son)"
    r"|não (?:é|são)|non (?:è|sono)|это не"
    r"|(?:if|when) you (?:answered|got|get|wrote|put|said|have)(?=[^,]{1,30}, (?:then )?you(?:['’]ve| have)? (?:\w+ )?"
    r"(?:count|forg[eo]t|add|includ|doubl|miss|us|mix|subtract|divid|multipli|stopp|overlook|omit|left)\w*\b))"
    r"\s+(?=[$*€£]*\d[\d.,]*[^\d]*$)",
    re.IGNORECASE,
)
_TURNS = lazy_pattern(
    r"\b(?:but|rather|it is|it['’]s|that['’]s|sondern|mais|sino|mas|bensì|ma)\b|(?<!\w)а(?!\w)", re.IGNORECASE
)
_WARNING = lazy_pattern(rf"[\s*_-]*(?:{_CONFUSED})", re.IGNORECASE)
_NUMBERS = lazy_pattern(r"\$[^$\n]{1,80}\$|\\[dt]?frac\{[^{}]{1,20}\}\{[^{}]{1,20}\}|\d+(?:[.,/:]\d+)*")
# "1/11 (≈ 0.0909)": an exact value and its decimal approximation.
_ROUNDED = lazy_pattern(
    r"(?:\d\s?/\s?\d{1,9}|\\(?:[dt]?frac|sqrt)\{[^()]{1,60}\}|\\pi|π|√\d{1,9}|\\sqrt\d)\s?\$?(\s*\((?:≈|~|\\approx|approx\w*\.?|about"
    r"|numerically|roughly|rund|etwa|ca\.|environ|circa|około|около|примерно)\s*\$?\d{1,9}[.,]\d{1,12}(?:\.\.\.|…)?\$?\)[.*\s]*)$"
)
_NEAR = 120  # characters before a remark that contain the answer


def without_remarks(text: str) -> str:
    """Returns the text without the remarks after its answer."""
    if text[-1:] in _INSIDE:
        return text
    for _ in range(_MOST):
        end = len(text[: ending(text)].rstrip("*"))
        cut = _before_remark(text, end) if end and text[end - 1] in _STOPS else None
        if cut is None:
            break
        text = text[:cut]
    return text


def _before_remark(text: str, stop: int) -> int | None:
    low = max(0, stop - _LONGEST)
    rounded = _ROUNDED.search(text, low, stop)
    if rounded is not None:
        return rounded.start(1)
    closing = stop - 1 if text[stop - 1] in ")）" else stop - 2
    if text[closing] in ")）":
        opening = max(text.rfind("(", low, stop), text.rfind("（", low, stop))
        if opening > 0 and _ASIDE.fullmatch(text, opening, stop) and _of_other_values(text, opening, stop):
            return opening
    begin = max(text.rfind(sign, low, stop - 1) + len(sign) for sign in _BETWEEN)
    if begin <= low or not text[:begin].strip():
        return None
    if _OFFER.match(text, begin, stop) and not _DOUBTS.search(text, begin, stop):
        return begin
    given_up = _GIVEN_UP.match(text, begin, stop)
    if given_up and not _TURNS.search(text, given_up.end(), stop) and _of_other_values(text, given_up.end(), stop):
        return begin
    if _WARNING.match(text, begin, stop) and _of_other_values(text, begin, stop):
        return begin
    return None


def _of_other_values(text: str, begin: int, end: int) -> bool:
    """Returns whether a remark names values or is in brackets, names no value directly before it and doubts nothing."""
    near = text[max(0, begin - _NEAR) : begin]
    named = [name.strip("$ ") for name in _NUMBERS.findall(text, begin, end)]
    return (
        all(re.search(rf"(?<![\d.,/]){re.escape(name)}(?![\d/]|[.,]\d)", near) is None for name in named)
        and _DOUBTS.search(text, begin, end) is None
        and bool(named or "(" in text[begin : begin + 2])
    )
