"""Answers as several languages write them, and values by name: rights and look-alikes, spellings parted by "|"."""

import pytest

from verifiers import Completion, Problem, check_gold, resolve

MATH = resolve("math")
# gold, right answers, wrong answers; each is tried as the text of a box
IN_WORDS = [
    (
        "1.5 litres",
        "a litre and a half|one and a half litres|1 litre and a half|anderthalb Liter|eineinhalb Liter|un litro y medio"
        "|un litre et demi|um litro e meio|un litro e mezzo|anderhalve liter|en och en halv liter|półtora litra"
        "|полтора литра|bir buçuk litre|một lít rưỡi|لتر ونصف|1升半",
        "a litre|half a litre|two and a half litres|a litre and a third|one and a half metres|a half"
        "|a litre and a quarter|not a litre and a half|anderthalb Stunden|a litre and a half or two|полтора часа",
    ),
    (
        "2.5 hours",
        "two hours and a half|two and a half hours|2 and a half hours|zweieinhalb Stunden|dos horas y media"
        "|deux heures et demie|duas horas e meia|due ore e mezza|twee en een half uur|två och en halv timme"
        "|dwie i pół godziny|два с половиной часа|iki buçuk saat|hai giờ rưỡi|两个半小时|2個半小時|2時間半|2시간 반",
        "two hours|zweieinhalb Tage|two minutes and a half|两个小时|三个半小时|2時半|deux jours et demi|half past two"
        "|two hours and a half more|три с половиной часа|hai phút rưỡi|2분 반",
    ),
    (
        "0.5 hours",
        "half an hour|eine halbe Stunde|media hora|une demi-heure|meia hora|een half uur|en halv timme|pół godziny"
        "|полчаса|yarım saat|nửa giờ|نصف ساعة|半小时|半个小时",
        "half a day|media|半天|30 seconds|half an hour ago|полдня|half an hour more",
    ),
    ("0.75 hours", "three quarters of an hour|45 minutes", "a quarter of an hour|three quarters of a minute"),
    ("1.25 hours", "an hour and a quarter|one and a quarter hours", "an hour and three quarters|a day and a quarter"),
    (
        "60 km/h",
        "時速60km|时速60公里|每小时60千米|시속 60km|60 km/giờ|60 km per uur|60 km na godzinę|60 km/timme|saatte 60 km"
        "|60 km i timmen|60 km/saat|60 公里/小时|60 km/jam|毎時60キロメートル",
        "時速60m|分速60km|秒速60km|時速61km|60 km/phút|60 km na minutę|60 m/giờ|saatte 6 km|dakikada 60 km",
    ),
    ("時速60km", "60 km/h|時速60km|1 km/min", "分速60km|時速50km|60 m/h|60分"),
    ("5 m/s", "秒速5m|每秒5米|초속 5m|18 km/h|5 m/giây", "分速5m|每分钟5米|5 m|秒速5km"),
    ("5 giờ", "5 giờ|5|300 phút", "5 phút|6 giờ|5 ngày|5 km"),
    ("5 godzin", "5 godzin|5|5 godziny|5 hours", "5 minut|5 dni|5 kilometrów|6 godzin"),
    ("21", "21 lat|21 yıl|21 tuổi|21 歳|21 jaar|21 سنة", "21 lat i 3 dni|22 lat"),
    ("5 people", "5 people met|5", "5 met|5 lat"),
    ("Pazar", "pazardır|Pazar günü|pazar", "pazartesi|pazartesidir|cumartesi|Pazar değil|pazar veya salı"),
    ("Sunday", "on Sunday|Sunday|the Sunday", "Monday|not Sunday|on Monday|before Sunday|Sunday or Monday"),
    ("niedziela", "w niedzielę|Niedziela", "w sobotę|nie niedziela"),
    ("среда", "в среду|Среда", "в пятницу|четверг"),
    ("星期日", "周日|星期天|礼拜天", "星期一|日|不是周日"),
    ("日曜日", "日曜", "月曜|日"),
    ("Chủ nhật", "ngày chủ nhật|chủ nhật", "thứ hai|chủ"),
    ("Ayşe", "Ayşe'dir|Ayşedir", "Fatma'dır|Ayşen|Ayşenur|Ayşe değil"),
    (
        "March 4",
        "Due date: March 4|March 4th|the 4th of March",
        "Due date: March 14|Not the date: March 4|before March 4",
    ),
    ("4:15 PM", "Arrival time: 4:15 p.m.|4:15 p.m.", "Time: 4:15 a.m.|Arrival time: 4:25 PM|not this time: 4:15 PM"),
]
# gold, right answers, wrong answers, as the formula of a box
NAMED = [
    (
        r"\{1, 3\}",
        r"A\cap B=\{1,3\}~A \cup B = \{3, 1\}~M\setminus N=\{1,3\}~\overline{A}=\{1,3\}~A^c=\{1,3\}"
        r"~\complement_U A=\{1,3\}~A\cap(B\cup C)=\{1,3\}~A-B=\{1,3\}~A∩B={1,3}",
        r"A\cap B=\{1,2\}~\{1,3\}\subset A~A\cap B\ne\{1,3\}~A\cup\{1,3\}~A\supset\{1,3\}~A\cap B=A\cup\{1,3\}",
    ),
    (r"A\cap B=\{1,3\}", r"\{1,3\}~B\cap A=\{3,1\}", r"A\cup B=\{1,3\}~A\cap B=\{1\}~A\cap C=\{1,3\}"),
    ("(1,3]", r"A\cap B=(1,3]~A\cap B=\{x\mid 1<x\le3\}", r"A\cap B=(1,3)~A\cap B=[1,3]"),
    ("1/2", r"P(A\cap B)=\frac12~P(A|B)=0.5~P(X\le 2)=1/2", r"P(A|B)=\frac13~P(A\cap B)=2~P(A|B)~P(A|B)>\frac12"),
    ("P(A|B)=1/2", r"P(A\mid B)=0.5~\frac12", r"P(B|A)=\frac12~P(A|B)=\frac23"),
    (
        "3",
        r"n(A\cup B)=3~\text{card}(A)=3~\max f=3~\operatorname{Var}(X)=3~\operatorname{rank}(A)=3",
        r"n(A\cup B)=4~\operatorname{rank}(A)=2~\max f\le 3~\operatorname{double}(A)=3",
    ),
    ("120", r"{}_{10}C_3~C(10,3)~_{10}C_{3}~\binom{10}{3}", r"{}_{10}C_4~C(10,4)~C(3,10)~x_{10}C_3~(10,3)"),
]
# question, gold, answers, score
BY_LANGUAGE = [
    ("Wie viele Meter sind 1,5 km?", "1.500", "1500|1 500|1.500", 1),
    ("Wie viele Meter sind 1,5 km?", "1.500", "15000|1.5|150|1501", 0),
    ("Wie viele Gramm sind 2 kg minus 500 g?", "1.500", "1500", 0),
    ("Wie lang ist 1.5 mal 1.0 und wie viel ist das?", "1.500", "1500", 0),
    ("How many metres are 1.5 km?", "1.500", "1500", 0),
    ("Wie viel kosten die drei Brote?", "3,75", "3,75 €|3{,}75 \\text{ €}|3.75|3,75 Euro", 1),
    ("Wie viel kosten die drei Brote?", "3,75", "3,76 €|3|75|3.57|375", 0),
    ("", "3,75", "3,75 €", 1),
    ("", "3,75", "3,57 €|3.75", 0),
    ("", "0,111", "0.111", 1),
    ("", "0,111", "0.112|111", 0),
    ("", "0,1", "0.1", 0),
    ("Ile godzin mają 2 dni?", "48", "48 godzin", 1),
    ("Ile godzin mają 2 dni?", "48", "48 dni|48 minut|2 dni", 0),
    ("Kaç saat sürer?", "3", "3 saat|180 dakika", 1),
    ("Kaç saat sürer?", "3", "3 dakika", 0),
    ("Mất bao nhiêu phút?", "120", "2 giờ|120 phút", 1),
    ("Mất bao nhiêu phút?", "120", "120 giờ", 0),
]


@pytest.mark.parametrize(("gold", "right", "wrong"), IN_WORDS)
def test_words_of_several_languages(gold: str, right: str, wrong: str) -> None:
    boxes = {text: rf"\boxed{{\text{{{text}}}}}" for text in (*right.split("|"), *wrong.split("|"))}
    paid = {text for text, box in boxes.items() if MATH(Problem(answer=gold), Completion(box)).score == 1.0}
    assert paid == set(right.split("|"))


@pytest.mark.parametrize(("gold", "right", "wrong"), NAMED)
def test_values_by_name(gold: str, right: str, wrong: str) -> None:
    boxes = {text: rf"\boxed{{{text}}}" for text in (*right.split("~"), *wrong.split("~"))}
    paid = {text for text, box in boxes.items() if MATH(Problem(answer=gold), Completion(box)).score == 1.0}
    assert paid == set(right.split("~"))


@pytest.mark.parametrize(("prompt", "gold", "texts", "score"), BY_LANGUAGE)
def test_the_question_s_language_says_how_numbers_are_written(prompt: str, gold: str, texts: str, score: int) -> None:
    problem = Problem(prompt, gold)
    verdicts = {text: MATH(problem, Completion(rf"\boxed{{{text}}}")).score for text in texts.split("|")}
    assert verdicts == dict.fromkeys(texts.split("|"), float(score))


@pytest.mark.parametrize("gold", [gold for gold, _, _ in (*IN_WORDS, *NAMED)])
def test_these_golds_are_understood(gold: str) -> None:
    assert check_gold(Problem(answer=gold))
