"""Reads days of the week in 18 languages: "Sunday", "on Sunday", "w niedzielę", 日曜, pazardır.

The words below are in lower case and without accents, as in cleaned texts.
"""

from __future__ import annotations

from verifiers.lazy_pattern import lazy_pattern

_DAYS = (  # Monday to Sunday; "/" separates spellings and cases, "_" is a space, "-" a missing name
    "monday tuesday wednesday thursday friday saturday sunday",
    "montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag",
    "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "lunes martes miercoles jueves viernes sabado domingo",
    "segunda_feira terca_feira quarta_feira quinta_feira sexta_feira - -",
    "lunedi martedi mercoledi giovedi venerdi sabato domenica",
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    "mandag tisdag onsdag torsdag fredag lordag sondag",
    "poniedziałek wtorek sroda/srode czwartek piatek sobota/sobote niedziela/niedziele",
    "понедельник вторник среда/среду четверг пятница/пятницу суббота/субботу воскресенье",
    "понеділок вівторок середа/середу - п'ятниця/п'ятницю субота/суботу неділя/неділю",
    "pazartesi salı carsamba persembe cuma cumartesi pazar",
    "thu_hai thu_ba thu_tu thu_nam thu_sau thu_bay chu_nhat",
    "senin selasa rabu kamis jumat sabtu minggu",
    "الاثنين/الإثنين الثلاثاء الأربعاء الخميس الجمعة السبت الأحد",
    "월요일 화요일 수요일 목요일 금요일 토요일 일요일",
    "月曜日/月曜 火曜日/火曜 水曜日/水曜 木曜日/木曜 金曜日/金曜 土曜日/土曜 日曜日/日曜",
    "星期一/周一/礼拜一 星期二/周二/礼拜二 星期三/周三/礼拜三 星期四/周四/礼拜四 星期五/周五/礼拜五 星期六/周六/礼拜六"
    " 星期日/星期天/周日/周天/礼拜天",
    "सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार रविवार",
)
_DAY = {
    name.replace("_", " "): day
    for line in _DAYS
    for day, names in enumerate(line.split())
    for name in names.split("/")
    if name != "-"
}
_BEFORE = frozenset("on am an am le el il la lo la o no na de w we в во на у hari ngay يوم".split())
_COPULA = lazy_pattern(r"(?<=\w{3})[td][ıiu]r$")


def weekday(words: tuple[str, ...]) -> int | None:
    """Returns 0 (Monday) to 6 if the words name one day of the week and nothing else, else None."""
    if not 0 < len(words) < 5:
        return None
    kept = words[1:] if words[0] in _BEFORE and len(words) > 1 else words
    kept = kept[:-1] if kept[-1] in ("gunu", "gunudur") and len(kept) > 1 else kept
    name = " ".join(kept)
    return _DAY.get(name, _DAY.get(without_copula(name)))


def without_copula(word: str) -> str:
    """Returns "pazar" for Turkish "pazardır" ("it is Sunday"); other words unchanged."""
    return _COPULA.sub("", word)
