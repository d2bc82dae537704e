"""Finds out whether the words before a value lead to it as an answer: "comes out at 7", "consists of seven days"."""

from __future__ import annotations

from verifiers.extract.asked import Asked, stems
from verifiers.extract.asked_values import OPERATION
from verifiers.extract.gates import Gated
from verifiers.extract.joined_quantities import Quantity
from verifiers.extract.spans import Span
from verifiers.extract.stated_sentence import ASKED, Sentence, pairs_of_words
from verifiers.extract.statement_words import PLAIN_WORD, WORD
from verifiers.lazy_pattern import any_case, lazy_pattern

_THAT_IS = {"pl": "to ", "es": "da "}  # which precede arguments in other languages
_BY = any_case(r"\bby\s+\W*$")
_LABEL_OF = any_case(r"\b([^\W\d_]{3,})\s+(?:number |nr\. |no\. )?$")
# A preposition after which a value of the asked kind is no argument: "consists of seven days", "consta de 24 horas".
_LED_TO = any_case(
    r"(?!(?:half|cube|root|part|more|less|each|most|some|many|none|third|other|fewer|square|quarter|multiple|instead"
    r"|out|ahead|short|one|two|three|moitié|mitad|metade|metà|hälfte|plus|moins|más|menos|mais|più|meno)\b)"
    r"\b[^\W\d_]+ (?:of|de|di|von|aus|van|av|out of|from|z|ze|из|от|من)\s+(?:just |only |exactly )?$"
)

# "The sample has a density of 3 g/cm³.": what is asked for, as something that the thing in question has.
_HAS_A = any_case(
    r"\b(?:has|have|had|with|gives?|hat|haben|mit|a|avec|tiene|con|tem|com|ha|heeft|met|har)\s(?:(?:er|sie|es|il|elle|hij|zij)\s)?(?:an?|eine?n?r?|une?"
    r"|una|uma?|een|en|ett)\s(?:[^\W\d_]+\s)?([^\W\d_]{4,})\s(?:[^\W\d_]+\s)?(?:of|von|de|di|van|av|på)\s+$"
)
# A preposition that may lead to the asked value: "leaves her with 12 eggs", "they average out at 85".
_LEADS = any_case(
    r"(?:\b(?:leav\w+|left|ends?|ended|up|remain\w*|stay\w*|walk\w*|go|goes|went|comes?|came|return\w*|out|home|is|are"
    r"|was|were|be|finish\w*|winds?|bleib\w*|endet|steht|reste\w*|retrouve\w*|finit|repart|queda\w*|qued[óo]|acaba\w*"
    r"|fica\w*|ficou|rimane|resta|ritrova|finisce|blijft|остаётся|останется|остался|осталась"
    r"|zostaje)(?: [^\W\d_]+){0,4}\s(?:with|mit|avec|con|com|met|med|с|z)"
    r"|(?<!^)\b(?:at|by|to))\s+(?:(?:just|only|exactly|a|an|the|nur|genau|seulement|sólo|solo|só|exactamente|exatamente"
    r"|esattamente|только|ровно)\s+)*\W{0,3}$"
)
_NO_LEAD = any_case(
    r"\b(?:multipl\w+|divid\w+|add(?:s|ed|ing)?|compar\w+|close|equal|prior|due|next|up|corresponds?|begin\w*|start\w*"
    r"|began|buys?|bought|sells?|costs?|together|along|each|empez\w+|comenz\w+|comme[nç]\w+)"
    r"(?: [^\W\d_]+){0,3}\s+(?:with|at|by|to|mit|avec|con|com|met|med|с|z)\W"
)
_AFTER_TIME = any_case(
    r"\b(?:after|in|for|within|nach|in|après|en|pendant|después de|tras|depois de|após|em|dopo|за|через|после)\s*$"
)
_BESIDE_TIME = any_case(
    r"(?:\b(?:than|als|before|after|until|till|by|past|since|vor|nach|bis|seit|avant|après|antes|después|depois|prima"
    r"|dopo|voor|na|före|przed|trước|sebelum)|(?<!\w)(?:до|после|раньше|позже|قبل|بعد))(?: de| delle| d['’])?\s*$"
)  # a time after these words is not the stated time
_LED_BY = lazy_pattern(r"(?<!\w)([^\W\d_]{3,20})\s+([^\W\d_]{1,6})\s*$")  # "started with"
# Phrases whose final preposition leads to the stated value, not to an argument: "comes out at", "a share of".
_PLACED = Gated(
    r"\b(?:liegt|liegen|lag|landet|landen|bleibt) (?:also |somit |damit |daher |demnach )?(?:genau )?bei\s*$|"
    r"\b(?:averages?|works?|comes?|tops?|totals?)(?: (?:out|in|up))? at\s*$"
    r"|\b(?:puts?|sets?|brings?|keeps?|stands?|stays?|lands?|remains?)\b[^,.;]{0,60} at\s*$"
    r"|\b(?:br(?:ings?|ought)|t(?:akes?|ook)|raise[sd]?|lower(?:s|ed)?|reduce[sd]?|cuts?|drop(?:s|ped)?|f(?:alls?|ell)"
    r"|rises?|rose|gr(?:ows?|ew)|goes|went|got|gets?|works? out|rounds?|converts?|lead(?:s|ing)?|led|collaps(?:es?|ed)"
    r"|c(?:omes?|ame)|amounts?|adds? up|sums? up|boils? down|shr[ia]nks?|carr(?:y|ies|ied)|climb(?:s|ed)?|jump(?:s|ed)?"
    r"|mov(?:es?|ed)|push(?:es|ed)?|lifts?|multipl(?:y|ies) out|turns? out)"
    r"(?: [^\W\d_]+){0,4}(?: from \S{1,12}(?: [^\W\d_]+)?)? to\s*$"
    r"|\b(?:proportion|share|fraction|rate|ratio|mean|width|size|depth|age|loss|gain|salary|fee|bill|discount|capacity"
    r"|quotient|difference|product|remainder|circumference|perimeter|radius|diameter|mass|balance|change|tip|tax"
    r"|interest|duration) of\s*$"
    r"|\b(?:total|distance|distancia|distância|longueur|longitud|comprimento|aire|área|area|superficie|volume|volumen"
    r"|prix|precio|preço|somme|suma|soma|durée|duración|duração|hauteur|altura|vitesse|velocidad|velocidade|poids|peso"
    r"|probabilité|probabilidad|probabilidade|montant|importe|périmètre|perímetro|âge|edad|idade|largeur|anchura"
    r"|largura|reste|reparto|bénéfice|beneficio|lucro|coût|coste|costo|custo|proportion|part) (?:est )?de\s*$"
    r"|\b(?:totale|distanza|lunghezza|area|volume|prezzo|somma|durata|altezza|velocità|peso|probabilità|importo"
    r"|perimetro|età|larghezza|costo|guadagno|resto) (?:è )?di\s*$"
    r"|\b(?:Gesamtsumme|Summe|Länge|Höhe|Breite|Fläche|Flächeninhalt|Volumen|Preis|Betrag|Strecke|Wahrscheinlichkeit"
    r"|Gewicht|Rest|Gewinn|Anteil|Alter|Geschwindigkeit|Umfang) von\s*$"
)


def is_placed(sentence: Sentence, clause: Span, value: Quantity) -> bool:
    """Returns whether the words of a clause before a value show that the value is the answer."""
    text, wanted = sentence.text, sentence.wanted
    if value.kind == "relation" or (
        value.kind == "time" and _BESIDE_TIME.search(text, clause[0], value.span[0]) is None
    ):
        return True
    if _is_led_by_phrase(text, clause[0], value.span[0]) or _as_asked(text, clause, value, sentence):
        return True
    if text.endswith(_THAT_IS.get(sentence.language, "\n"), clause[0], value.span[0]):
        return True
    led = text[clause[0] : value.span[0]]
    is_wanted = wanted.is_wanted(text, value)
    had = _HAS_A.search(led)
    if had is not None and had[1][:5].lower() in wanted.sentence.lower():
        return True
    if _leads(led, wanted, is_wanted) or (is_wanted and _LED_TO.search(led)):
        return True
    closes = bool(sentence.prompt) and not WORD.search(text[value.span[1] : sentence.span[1]])
    return closes and not _BY.search(led) and _leads(led, wanted, True)


def _is_led_by_phrase(text: str, low: int, high: int) -> bool:
    """Returns whether a phrase such as "comes out at" leads to the value. All such phrases end in one of six words."""
    led = text[low:high].rstrip().lower()
    return led.endswith(("at", "to", "of", "de", "di", "von", "bei")) and _PLACED.search(text, low, high) is not None


def _as_asked(text: str, clause: Span, value: Quantity, sentence: Sentence) -> bool:
    """Returns whether the words before a value repeat the question's ("start with") or say how long something takes."""
    span = value.span
    led = _LED_BY.search(text, clause[0], span[0])
    if led is not None:
        begun, preposition = led[1][:4].lower(), led[2].lower()
        if any(
            first.startswith(begun) and second == preposition
            for first, second in pairs_of_words(sentence.prompt[-ASKED:])
        ):
            return True
    question = sentence.question
    labelled = _LABEL_OF.search(text, clause[0], span[0])
    if labelled is not None and labelled[1].lower()[:5] in question.which:
        return True  # "on day 8" in answer to "on which day"
    before = PLAIN_WORD.findall(text[max(clause[0], span[0] - OPERATION) : span[0]])
    if before and before[-1].lower() in question.prepositions:
        return True  # "by 25 percent" in answer to "by what percentage"
    return question.time and value.kind != "time" and _AFTER_TIME.search(text, clause[0], span[0]) is not None


def _leads(led: str, wanted: Asked, is_wanted: bool) -> bool:
    """Returns whether a preposition leads to the answer.

    The value must be of the asked kind, or the words before it must share at least two words with the question.
    """
    found = _LEADS.search(led)
    if found is None or not led[: found.start()].strip() or _NO_LEAD.search(led):
        return False
    if found[0].lower().startswith("by "):
        return is_wanted and wanted.difference
    return is_wanted or len(stems(led) & stems(wanted.sentence)) > 1
