"""Finds out whether a sentence speaks of another quantity, colour or person than the question asks for."""

from __future__ import annotations

import functools

from verifiers.extract.everyday import EVERYDAY
from verifiers.extract.gates import Gated
from verifiers.extract.vocabulary import SAFE
from verifiers.lazy_pattern import any_case, lazy_pattern

PERIMETER = (
    r"perimeter|circumference|umfang|périmètre|circonférence|per[ií]metro|периметр\w*|周长|周の長さ|둘레|omtrek|obwód"
)
MEAN = r"mean|average|mittelwert|durchschnitt\w*|moyenne|media|média|平均\w*|평균"
MEDIAN = r"median\w*|médiane|медиан\w*|中位数|中央値|중앙값"
MEASURES = (
    r"areas?|fläche\w*|aire|superficie|área|площад\w*|面积|面積|넓이|oppervlakte",
    PERIMETER,
    r"volumen?|rauminhalt|объ[её]м\w*|体积|体積|부피|objętość",
    r"diagonale?n?|диагонал\w*|对角线|対角線|대각선",
)
# Members of a group exclude each other: "The perimeter is 24." does not answer a question for the area.
_GROUPS = (
    (  # extreme
        r"maxim\w*|máxim\w*|massim\w*|höchst\w*|größt\w*|largest|greatest|highest|наибол\w*|максим\w*|最大|최댓값|최대",
        r"minim\w*|mínim\w*|kleinst\w*|niedrigst\w*|smallest|least|lowest|наимен\w*|миним\w*|最小|최솟값|최소",
    ),
    MEASURES,
    (MEAN, MEDIAN, r"mode|modus|modalwert|moda|众数|最頻値|최빈값"),
    (  # line
        r"radius|rayon|radio|raio|raggio|радиус\w*|半径|반지름",
        r"diameter|durchmesser|diamètre|di[áa]metro|диаметр\w*|直径|(?<!반)지름",
    ),
    (  # journey
        r"arriv\w+|ankommt|ankunft|llega\w*|chega\w*|прибы\w+|приб[уы]д\w+|прие\w+|到达|抵达|到着|着[きく]|도착\w*",
        r"leaves?|leaving|departs?|departed|sets? off|abfährt|salió|отправ\w+|выезж\w+|出发|出発|출발\w*",
    ),
    (  # course
        r"ends?|ended|finish\w*|endet|terminent?|termina\w*|finisce|закончи\w+|заканчива\w+|кончи\w+|结束|終わ\w|끝나\w*",
        r"starts?|started|begins?|began|beginnt|commencent?|empieza|comienza|começa|comincia|inizia|начин\w+|начал\w+"
        r"|开始|始ま\w|시작\w*",
    ),
    (  # trade
        r"buys?|buying|bought|purchased?|kauft?e?n?|achète\w*|acheté\w*|compr[aóo]\w*|купил\w*|покупа\w+|买|買\w|샀\w*",
        r"sells?|selling|sold|verkauf\w+|vend\w+|прода\w+|卖|売\w|팔\w*",
    ),
    (  # day of the week
        r"mondays?|montags?|lundi|lunes|segunda-feira|lunedì|понедельник\w*|星期一|周一|月曜日?|월요일",
        r"tuesdays?|dienstags?|mardi|martes|terça-feira|martedì|вторник\w*|星期二|周二|火曜日?|화요일",
        r"wednesdays?|mittwochs?|mercredi|miércoles|quarta-feira|mercoledì|сред[ауы]|星期三|周三|水曜日?|수요일",
        r"thursdays?|donnerstags?|jeudi|jueves|quinta-feira|giovedì|четверг\w*|星期四|周四|木曜日?|목요일",
        r"fridays?|freitags?|vendredi|viernes|sexta-feira|venerdì|пятниц\w*|星期五|周五|金曜日?|금요일",
        r"saturdays?|samstags?|samedi|sábado|sabato|суббот\w*|星期六|周六|土曜日?|토요일",
        r"sundays?|sonntags?|dimanche|domingo|domenica|воскресень\w*|星期日|周日|日曜日?|일요일",
    ),
    (  # part of a day
        r"mornings?|(?:vor)mittags?|matin|mattina|утр\w+|上午|早上|午前|아침|오전",
        r"afternoons?|nachmittags?|après-midi|tarde|pomeriggio|дн[её]м|下午|午後|오후",
        r"evenings?|abends?|soir|sera|вечер\w*|晚上|夕方|저녁",
    ),
    (  # change
        r"increas\w+|rais(?:e[sd]?|ing)|rose|risen|rises?|went up|goes up|erhöh\w+|gestiegen|stieg|augment\w+|aument\w+"
        r"|subi[óu]|увелич\w+|вырос\w*|上涨|增加|増え\w|上が\w|증가\w*|올랐\w*",
        r"decreas\w+|reduc\w+|lower(?:ed|s)?|fell|falls?|fallen|drop\w*|went down|goes down|gesenkt|gefallen|sank"
        r"|réduit|baiss\w+|diminu\w+|baj[óa]\w*|ca[íi]\w*|уменьш\w+|сниз\w+|упал\w*|下降|减少|下が\w|減\w|감소\w*|내렸\w*",
    ),
    (r"upstream|stromaufwärts|逆流", r"downstream|stromabwärts|顺流"),
    (  # colour
        r"red|rote?[rnms]?|rouges?|roj[oa]s?|vermelh[oa]s?|ross[aeio]|красн\w*|红\w?|赤\w?",
        r"blue|blaue?[rnms]?|bleue?s?|azul(?:es)?|blu|син\w+|蓝\w?|青\w?",
        r"green|grüne?[rnms]?|vert[es]*|verdes?|verdi|зел[её]н\w*|绿\w?|緑\w?",
        r"yellow|gelbe?[rnms]?|jaunes?|amarill[oa]s?|amarel[oa]s?|giall[aeio]|ж[её]лт\w*|黄\w?",
        r"white|weiße?[rnms]?|blanch?e?s?|blanc[oa]s?|branc[oa]s?|bianc\w+|бел\w+|白\w?",
        r"black|schwarze?[rnms]?|noire?s?|negr[oa]s?|pret[oa]s?|ner[aeio]|ч[её]рн\w*|黑\w?|黒\w?",
    ),
)
# "The one right before it is 19": a neighbour of the value that the sentence before gives.
NEIGHBOUR = any_case(
    r"\W*+(?:and )?(?:(?:the|its) (?:(?:one|number|term|value|day|page|prime|square|multiple)s? )?(?:(?:right"
    r"|just|directly|immediately) )?"
    r"(?:before|after|following|preceding|previous|next|prior)\b|its (?:successor|predecessor|neighbou?r)"
    r"|(?:der|die|das) (?:davor|danach|nächste|vorige)"
    r"|(?:le|la) (?:suivante?|précédente?)|(?:el|la) (?:siguiente|anterior)|(?:o|a) (?:seguinte|anterior)"
    r"|(?:il|la) (?:successiv[oa]|precedente))"
)
_NAME = lazy_pattern(r"(?<![^\W\d_])[A-ZÀ-ÞА-Я][^\W\d_]+")
_PRONOUN = any_case(
    r"\b(?:he|she|they|we|it|you|i|il|elle|ils|elles|on|él|ella|ellos|ele|ela|eles|lui|lei|loro|hij|zij|ze|hon|han|de|o|ona)\b"
    r"|(?<!\w)(?:он|она|они)(?!\w)"
)


def group_pattern(members: tuple[str, ...]) -> Gated:
    """Returns a pattern with a group for each member; words of scripts without spaces may stand inside others."""
    parts = []
    for number, words in enumerate(members):
        spaced = "|".join(word for word in words.split("|") if word[0] < "\u3000")
        unspaced = "|".join(word for word in words.split("|") if word[0] > "\u3000")
        either = rf"(?<![^\W\d_])(?:{spaced})(?![^\W\d_])" + f"|{unspaced}" * bool(unspaced)
        parts.append(f"(?P<m{number}>{either})")
    return Gated("|".join(parts))


_MEMBERS = [group_pattern(members) for members in _GROUPS]


def of_another_subject(part: str, asked: str, prompt: str, language: str) -> bool:
    """Returns whether a sentence names another member of a group than the question, or another of its persons only."""
    for members, wanted in _wanted(asked):
        said = named_members(members, part)
        if said and wanted not in said:
            return True
    if language in ("de", "zh", "ja", "ko") or _PRONOUN.search(part) or _PRONOUN.search(asked):
        return False
    persons = _names(asked.lstrip(" ¿(\"'").partition(" ")[2])
    said_persons = _names(part)
    return bool(persons) and persons.isdisjoint(said_persons) and bool(said_persons & _names(prompt))


@functools.lru_cache(maxsize=256)
def _wanted(asked: str) -> tuple[tuple[Gated, str], ...]:
    """Returns the groups of which a question names exactly one member, and that member."""
    found = ((members, named_members(members, asked)) for members in _MEMBERS)
    return tuple((members, next(iter(wanted))) for members, wanted in found if len(wanted) == 1)


def named_members(members: Gated, text: str) -> set[str]:
    return {str(found.lastgroup) for found in members.finditer(text)}


@functools.lru_cache(maxsize=256)
def _names(text: str) -> frozenset[str]:
    """Returns the words with a capital that are no common words."""
    words = (word.lower() for word in _NAME.findall(text))
    return frozenset(word for word in words if word not in SAFE and word not in EVERYDAY and len(word) > 2)
