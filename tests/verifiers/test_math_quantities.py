"""Spellings of quantities and numbers: units, currencies, signs, shares, ratios, and values that are stated twice."""

import pytest

from verifiers import Completion, Problem, resolve

MATH = resolve("math")
# (question, gold, right answers, wrong answers)
CASES = [
    ("What is its speed in m/s?", "20",
     ["20m/s", r"20\ \frac{m}{s}", r"20\frac{\text{m}}{\text{s}}", r"20\,m\cdot s^{-1}", r"20\text{ ms}^{-1}",
      r"20\,[\mathrm{m/s}]", r"20\ (\text{m/s})", r"\SI{20}{m/s}", r"\qty{20}{\metre\per\second}"],
     ["21m/s", "20m/h", r"20\frac{s}{m}", "20 km/s", "20m", r"\SI{20}{km/h}", "20x/s", "20+m/s"]),
    ("", "20", ["20m/s", r"20\frac{m}{s}"], ["20x/s", "20L", "20s/m"]),
    ("Let $m = 2s$. What is 10m/s?", "20", ["20"], ["20m/s"]),
    ("", r"20\text{ m/s}", ["20m/s", r"20\frac{m}{s}", "72km/h"], ["20km/h", r"20\frac{s}{m}", "20m/s^2"]),
    ("", r"2.7\text{ g/cm}^3", ["2.7g/cm^3", r"2.7\frac{g}{cm^3}", "2.7 g cm^{-3}"], ["2.7 g/cm^2", "2.7 cm^3/g"]),
    ("What is the acceleration in m/s^2?", "9.8", ["9.8m/s^2", r"9.8\,\mathrm{m\,s^{-2}}"], ["9.8 m/s", "9.8m/s"]),
    ("What is the momentum in kg m/s?", "12", ["12 kg m/s", r"12\,\mathrm{N\cdot s}"], ["12 kg", "12 m/s"]),
    ("What is the area in cm^2?", "24",
     ["24cm^2", "24 cm²", "24 cm2", "24㎠", r"\text{24 cm²}", "24 sq cm", r"\SI{24}{\square\centi\metre}",
      r"24\ cm{}^2", r"24\text{ cm}\textsuperscript{2}", r"24\,\text{cm}^2\text{.}"],
     ["24 cm", "24 m^2", "24㎡", "24 cm^3", r"\SI{24}{\square\metre}"]),
    (r"Find the area in $\text{cm}^2$.", "24", ["24cm^2", "24"], ["24 cm", "24 m^2", "24m^2"]),
    (r"Find the value in terms of $m$.", "m", ["m"], ["m^2"]),
    ("Find the angle in radians.", "1", ["1", r"1\text{ rad}"], [r"1^\circ", "1°", r"1\text{ degree}"]),
    ("Find the angle in radians.", r"\frac{\pi}{3}", [r"\pi/3", r"60^\circ"], [r"30^\circ"]),
    ("Find the angle in degrees.", "60",
     [r"60^\circ", "60^o", r"60^{\text{o}}", r"\ang{60}", r"60\text{°}", r"60{}^\circ", r"\frac{\pi}{3}\text{ rad}"],
     [r"60\text{ rad}", "6^o", "60'"]),
    ("What is the temperature in degrees Celsius?", "25", ["25°C", r"25\degree C", "77°F"], ["25°F", r"25\text{ K}"]),
    ("By how many degrees Celsius does it rise?", "25", ["25°C", r"25\text{ K}"], ["24°C"]),
    ("How many dollars?", "12.50", [r"{\$}12.50", r"\textdollar 12.50", "$12.50"], ["€12.50", "£12.50"]),
    ("How many euros?", "12.50", ["EUR 12.50", r"\euro 12.50", "12 euros and 50 cents"],
     [r"\$12.50", "50 euros and 12 cents"]),
    ("How many rupees?", "500", ["Rs. 500", r"\text{Rs }500", "INR 500"], ["500 paise", "Rs. 50", "500 euros"]),
    ("How much per hour?", "15", ["$15/hour", r"\$15/\text{hr}"], ["$150/hour"]),
    ("What is the area in cm^2?", r"16\pi",
     [r"16\pi\ \text{cm}^2\approx 50.27\ \text{cm}^2", r"A = 16\pi\text{ cm}^2\;(\approx 50.3\text{ cm}^2)"],
     [r"16\pi\ \text{cm}^2\approx 60.27\ \text{cm}^2", r"8\pi\text{ cm}^2\approx 25.13\text{ cm}^2",
      r"16\pi\text{ cm}^2\approx 50.27\text{ m}^2"]),
    ("", "12", ["12 cm = 0.12 m"], ["12 cm = 1.2 m", "12 cm = 12 m", "10 cm = 0.1 m"]),
    ("", "0.12", [], ["12 cm = 0.12 m"]),  # one guess, not one for each unit
    ("What is the length in metres?", "0.12", [r"12\text{ cm} = 0.12\text{ m}"], ["12 m = 1200 cm"]),
    ("How many minutes?", "135", ["135min", r"2\text{ h }15\text{ min}=135\text{ min}"], ["2 h 51 min", "135 s"]),
    ("What is the chance?", r"\frac{1}{221}", [r"1 \text{ in } 221", "1 in 221", r"1\text{ out of }221"],
     [r"221\text{ in }1", r"2\text{ in }221", "1 in 212"]),
    ("", "0.003", ["3‰", r"3\permil"], ["3%", "0.3‰"]),
    ("", r"25\%", ["25%"], ["25‰"]),
    ("", "3:4", [r"\text{3:4}", r"3\text{:}4", r"3\mathbin{:}4"], [r"\text{4:3}", r"4\text{:}3"]),
    ("", "2:3:5", ["2 to 3 to 5", r"2\text{ to }3\text{ to }5"], ["5 to 3 to 2", "2 to 3"]),
    ("", "1.75", ["1.75"], [r"\text{-}1.75", r"{-}1.75", "‒1.75", "―1.75", "➖1.75", "⁻1.75", "˗1.75"]),
    ("", "-1.75", [r"\text{-}1.75", r"{-}1.75", r"\mathord{-}1.75", "‒1.75", "➖1.75"], ["1.75"]),
    ("", "x", ["x"], [r"\text{-}x", r"{-}x"]),
    ("", r"3\times10^8", ["3 x 10^8", r"3\,\text{x}\,10^8", r"3{\times}10^8", r"\num{3e8}"], ["3x^8", "3 x 10^9"]),
    ("", r"\frac13", ["0,(3)", r".\overline{3}"], ["3,(3)", r".\overline{6}"]),
    ("", "1250", [r"1\text{,}250", r"1\!,250", r"1\,{,}\,250"], ["1,25", r"12\text{,}50"]),
    ("", "8", [r"\smash{8}", r"\ensuremath{8}", r"\mathop{8}", r"\bbox[5px]{8}"], [r"\overbrace{2}^{3}"]),
    ("", r"2\frac34", [r"2{}^{3}/_{4}"], [r"2^{3}/_{4}"]),
]  # fmt: skip


@pytest.mark.parametrize(("question", "gold", "right", "wrong"), CASES)
def test_a_boxed_quantity(question, gold, right, wrong):
    scores = {text: MATH(Problem(question, gold), Completion(rf"\boxed{{{text}}}")).score for text in (*right, *wrong)}
    assert scores == {**dict.fromkeys(right, 1.0), **dict.fromkeys(wrong, 0.0)}


BOYS = "There are 9 boys and 12 girls. What is the ratio of boys to girls?"
BOOKS = "Eine Bibliothek hat 4 Stockwerke mit je 3000 Büchern. Wie viele Bücher hat sie insgesamt?"
FLOORS = "A library has 4 floors with 3000 books each. How many books does it have?"
SPEED = "ある電車が400mの橋を20秒で渡りました。この電車の速さは秒速何mですか？"


@pytest.mark.parametrize(
    ("question", "gold", "text", "score"),
    [
        (BOYS, "3:4", "So the ratio of boys to girls is 3∶4.", 1.0),
        (BOYS, "3:4", "So the ratio of boys to girls is 4∶3.", 0.0),
        (BOOKS, "12000", "Die Bibliothek hat insgesamt 12.000 Bücher.", 1.0),
        (BOOKS, "12000", "**12.000 Bücher**", 1.0),
        (BOOKS, "12000", "Die Bibliothek hat insgesamt 1.200 Bücher.", 0.0),
        (FLOORS, "12000", "It has 12.000 books.", 0.0),  # in English the point separates decimals
        (SPEED, "20", "答え　秒速20m", 1.0),
        (SPEED, "20", "答え　20m/s", 1.0),
        (SPEED, "20", "答え　時速20km", 0.0),
        (SPEED, "20", "答え　秒速30m", 0.0),
        ("", "12", "$n=12$. $\\blacksquare$", 1.0),
        ("", "12", "Thus $n=12$.\n\n$$\\blacksquare$$", 1.0),
        ("", "12", "Thus $n=13$. \\(\\square\\)", 0.0),
    ],
)
def test_a_quantity_in_a_sentence(question, gold, text, score):
    verdict = MATH(Problem(question, gold), Completion(text))
    assert verdict.score == score, verdict
