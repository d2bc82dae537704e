"""Finds times of day and parts of an hour in words: "ten past eleven", "halb drei", "a quarter of an hour"."""

from __future__ import annotations

import re

from verifiers.extract.gates import Gated
from verifiers.extract.numerals import numerals
from verifiers.extract.spans import Span
from verifiers.lazy_pattern import any_case

_WORD = r"(?:[^\W\d_]+(?:-[^\W\d_]+)?|\d{1,2})"
_DAYTIME = (
    r"(?P<day>\s?(?:[ap]\.?m\b\.?|in the (?:morning|afternoon|evening)|(?:in the|at) night|de la (?:mañana|tarde|noche)"
    r"|da (?:manhã|tarde|noite)|(?:del mattino|di mattina|del pomeriggio|di sera)|du (?:matin|soir)|de l['’]après-midi"
    r"|'s (?:ochtends|morgens|middags|avonds|nachts)|(?:morgens|vormittags|nachmittags|abends|nachts)\b))?"
)
_DAY = any_case(_DAYTIME)
# Times of day by language: "m" minutes past or, if "less" is present, before the hour "h"; "half" is half past it.
_CLOCKS = {
    "en": r"(?:(?P<half>half)|(?:a )?(?P<m>quarter|(?:twenty[ -])?NUM)(?: minutes?)?) (?:past|(?P<less>to)) (?P<h>NUM)"
    r"|(?P<o>NUM) o['’]clock",
    "de": r"(?:(?P<m>viertel|NUM)(?: minuten?)? (?:nach|(?P<less>vor))(?P<of_half> halb)?|(?P<half_to>halb))"
    r" (?P<h>NUM)",
    "nl": r"(?:(?P<m>kwart|NUM)(?: minu(?:ut|ten))? (?:over|(?P<less>voor))(?P<of_half> half)?|(?P<half_to>half))"
    r" (?P<h>NUM)",
    "sv": r"(?:(?P<m>kvart|fem|tio|tjugo) (?:över|(?P<less>i))(?P<of_half> halv)?|(?P<half_to>halv)) (?P<h>NUM)",
    "es": r"las? (?P<h>NUM) (?:y|(?P<less>menos)) (?:(?P<half>media)|(?P<m>cuarto|NUM))",
    "it": r"(?:le|l['’]) ?(?P<h>NUM) (?:e|(?P<less>meno)) (?:(?P<half>mezz[ao])|(?:un )?(?P<m>quarto|NUM))",
    "pt": r"[àa]s (?P<h>NUM) (?:e|(?P<less>menos)) (?:(?P<half>meia)|(?P<m>NUM))",
    "fr": r"(?:à|est|vers) (?P<h>NUM) heures? (?:et (?:(?P<half>demie)|(?P<m>quart))|(?P<less>moins) (?:le )?"
    r"(?P<m2>quart|NUM))",
}
_AT_CLOCK = {
    language: any_case(rf"(?<![^\W_])(?:{pattern.replace('NUM', _WORD)})(?![^\W_]){_DAYTIME}")
    for language, pattern in _CLOCKS.items()
}
_QUARTERS = frozenset(("quarter", "viertel", "kwart", "kvart", "cuarto", "quarto", "quart"))
# Before these words "ten to six" is a time and no range.
_SAYS_TIME = any_case(r"(?:\b(?:at|is|it['’]s|be|until|till|by|about|around|was|time)|^|[,:—–])\W*(?:a )?$")
# Minutes and hours by phrase, "n" for the minutes.
_SPANS = {
    "en": "(?P<n15>(?:a|one) quarter (?:of )?(?:an )?hour)|(?P<n30>(?:a )?half (?:an )?hour|half of an hour)"
    "|(?P<n45>(?:three )quarters of an hour)",
    "de": "(?P<n15>(?:eine )?viertelstunde)|(?P<n30>(?:eine )?halbe stunde)|(?P<n45>(?:eine )?dreiviertelstunde)"
    "|(?P<n90>(?:andert|einein)halb stunden)",
    "fr": "(?P<n15>(?:un )?quart d['’]heure)|(?P<n30>(?:une )?demi-heure)|(?P<n45>(?:trois )quarts d['’]heure)",
    "es": "(?P<n15>(?:un )?cuarto de hora)|(?P<n30>media hora)|(?P<n45>(?:tres )cuartos de hora)",
    "pt": "(?P<n15>(?:um )?quarto de hora)|(?P<n30>meia hora)|(?P<n45>(?:três )quartos de hora)",
    "it": "(?P<n15>(?:un )?quarto d['’]ora)|(?P<n30>mezz['’]ora)|(?P<n45>(?:tre )quarti d['’]ora)",
    "nl": "(?P<n15>(?:een )?kwartier)|(?P<n30>(?:een )?half uur)|(?P<n45>drie kwartier)",
    "sv": "(?P<n15>(?:en )?kvart)|(?P<n30>(?:en )?halvtimme)|(?P<n45>tre kvart)",
    "pl": "(?P<n15>kwadrans)|(?P<n30>pół godziny)|(?P<n45>trzy kwadranse)",
    "ru": "(?P<n15>четверть часа)|(?P<n30>полчаса)|(?P<n45>три четверти часа)|(?P<n90>полтора часа)",
    "uk": "(?P<n15>чверть години)|(?P<n30>пів ?години)|(?P<n45>три чверті години)|(?P<n90>півтори години)",
    "tr": "(?P<n15>çeyrek saat)|(?P<n30>yarım saat)",
    "ja": "(?P<n30>半時間)", "zh": "(?P<n15>一刻钟)|(?P<n30>半个?小时)|(?P<n45>三刻钟)", "ko": "(?P<n30>반 ?시간)",
    "vi": "(?P<n30>nửa (?:giờ|tiếng))", "id": "(?P<n30>setengah jam)|(?P<n15>seperempat jam)",
    "hi": "(?P<n30>आधा घंटा)|(?P<n15>पौन घंटा)", "ar": "(?P<n30>نصف ساعة)|(?P<n15>ربع ساعة)",
    "cs": "(?P<n15>čtvrt hodiny)|(?P<n30>půl hodiny)|(?P<n45>tři čtvrtě hodiny)", "el": "(?P<n30>μισή ώρα)"
    "|(?P<n15>ένα τέταρτο)",
}  # fmt: skip
_AT_SPAN = {language: Gated(rf"(?:{pattern})(?![^\W\d_\u3040-\u9fff])") for language, pattern in _SPANS.items()}
_TELLS_IN_ENGLISH = Gated(
    r"\b(?:past|to (?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve))\b|o['’]clock"
)
_TELLS = Gated(
    r"\b(?:vor|nach|halb|over|voor|half|över|halv|menos|media|cuarto|meno|mezz|quarto|meia|heures?|las?|às?|l[e'’])\b"
)
_LATE = tuple("afternoon evening middags avonds nachmittags abends tarde pomeriggio sera soir après-midi".split())
_NIGHT = ("night", "noche", "noite")


def spoken_times(text: str, start: int, end: int, language: str) -> list[tuple[Span, str, str]]:
    """Returns span, kind ("time" or "duration") and digits ("11:10", "15 minutes") of times in words."""
    found: list[tuple[Span, str, str]] = []
    spans = _AT_SPAN.get(language)
    for match in spans.finditer(text, start, end) if spans else ():
        found.append((match.span(), "duration", f"{str(match.lastgroup)[1:]} minutes"))
    tells = _TELLS_IN_ENGLISH if language == "en" else _TELLS
    clock = _AT_CLOCK.get(language) if tells.search(text, start, end) else None
    told = clock.search(text, start, end) if clock else None
    while clock and told:
        said = _clock(told, language)
        if said:
            found.append((told.span(), "time", said))
        told = clock.search(text, told.end() if said else told.start() + 1, end)
    return found


def _clock(match: re.Match[str], language: str) -> str:
    """Returns the time of day that a match says, or "" if it says none."""
    parts = {name: value.lower() for name, value in match.groupdict().items() if value}
    hour = _number(parts.get("h") or parts.get("o", ""), language)
    minutes = parts.get("m") or parts.get("m2", "")
    past = 0 if "o" in parts or "half_to" in parts else 30 if "half" in parts else _minutes(minutes, language)
    if hour is None or past is None or not 0 < hour < 25 or past > 59:
        return ""
    if "h" in parts and not parts["h"].isalpha():
        return ""
    if language == "en" and "less" in parts and not _SAYS_TIME.search(match.string[: match.start()]):
        return ""
    at = 60 * hour + (-past if "less" in parts else past)
    at -= 30 * ("half_to" in parts or "of_half" in parts)  # "fünf vor halb drei" is 2:25
    if at < 60 * hour:
        at = (at - 60) % 720 + 60  # a quarter to one is 12:45
    day = parts.get("day", "").strip()
    return f"{at // 60}:{at % 60:02d}" + (f" {_half_of(day, at // 60)}" if day and at // 60 < 13 else "")


def _half_of(day: str, hour: int) -> str:
    if any(word in day for word in _NIGHT):
        return "pm" if 5 < hour < 12 else "am"
    return "pm" if day[0] in "p" or any(word in day for word in _LATE) else "am"


def half_of_day(text: str, position: int, hour: int) -> tuple[int, str]:
    """Returns where "in the evening" after the time that ends at `position` ends, and " pm"; or `position` and ""."""
    found = _DAY.match(text, position)
    return (found.end(), f" {_half_of(found[0].lower().strip(), hour)}") if found and found[0] else (position, "")


def _minutes(words: str, language: str) -> int | None:
    return 15 if words in _QUARTERS else _number(words, language)


def _number(words: str, language: str) -> int | None:
    return int(words) if words.isdecimal() else numerals(language).get(words.replace("-", " "))
