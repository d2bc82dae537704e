"""Golds that only stand where an answer would be: "see figure", "proof", "I don't know", 1/0.

Data sets hold such texts for problems without a short answer. A completion that repeats one would be paid.
"""

from __future__ import annotations

from verifiers.lazy_pattern import lazy_pattern
from verifiers.mathexpr.exact import rational
from verifiers.mathexpr.forms import plain_words
from verifiers.mathexpr.nodes import Node, walk

_LONGEST = 80  # characters
_EDGES = " $*_\t\r\n.,;:!()[]<>「」“”\"'。，；：（）【】《》"
_SHOWN = (
    r"(?:figures?|fig\.?|graphs?|diagrams?|pictures?|images?|drawings?|plots?|sketch(?:es)?|tables?|charts?"
    r"|number lines?|solutions?|explanations?|proofs?|answer keys?|answers?|texts?|work|attachments?|comments?"
    r"|above|below)"
)
_PLACEHOLDER = lazy_pattern(
    # English
    rf"(?:please )?(?:see|refer to|look at|check|(?:as )?(?:shown|given|drawn|explained) (?:in|on))"
    rf"(?: (?:the|our|my|your))?(?: (?:attached|following|complete|full|detailed|sample))? {_SHOWN}"
    rf"(?: (?:above|below|\d[\w.]*))?"
    r"|(?:the |student )?(?:answers?|responses?|solutions?|examples?|explanations?) (?:may|will|can|might|could) "
    r"(?:vary|differ)(?:[,.;:] .*)?|n\s*/\s*a|tbd|tba|to ?do|unknown|(?:answer )?not ?(?:found|available|provided|given"
    r"|specified)|(?:answer )?(?:missing|omitted|unavailable)|no (?:final |short )?answer(?: (?:given|provided|found"
    r"|available))?|(?:i|we) (?:do not|don['’]?t|cannot|can['’]?t) (?:know|tell|say|answer(?: (?:this|that|it))?)"
    r"|(?:i(?:['’]m| am) )?not sure|no idea|idk|free response|open[- ]ended|(?:the |a |see )?proofs?(?: (?:omitted|only"
    r"|needed|required|given|question|problem|above|below))?|proof[- ]based|q\.?e\.?d|to (?:be )?(?:prove|shown?|proven"
    r"|proved)"
    # Chinese and Japanese
    r"|(?:证明|證明|解|答|答案|图|圖|作图|過程|过程|解答)?[：:]?\s*(?:省略|略)|(?:证明|證明|详情?|詳|请|請|具体|过程"
    r"|答案)*(?:参见|參見|见|見|参看|如)"
    r"(?:解析|解答|详解|證明|证明|图|圖|图像|答案|上|下|下图|上图|上文|过程)(?:所示)?|(?:答案|结果|結果)(?:不唯一"
    r"|不确定|略|无|無|暂无)(?:[，,;；].*)?|(?:暂无|暫無|没有|無|无)答案|不知道|不清楚|不会|不會|未知|(?:図|グラフ|解説"
    r"|証明|下|上)(?:を)?(?:参照|の通り)|証明(?:問題|略)|わかりません|分かりません|不明"
    # German
    r"|(?:s\.|siehe|vgl\.|vergleiche)(?: die| das| den)? ?(?:abbildung|abb\.?|bild|zeichnung|skizze|graph"
    r"|graphik|grafik|lösung|beweis|tabelle|text|oben|unten)(?: \d+)?|individuelle (?:lösung(?:en)?|antwort(?:en)?)"
    r"|(?:der )?beweis|k\. ?a\.?|keine (?:antwort|angabe)|(?:ich )?weiß (?:ich )?(?:es )?nicht|unbekannt"
    # French
    r"|(?:voir|cf\.?)(?: la| le| les)? ?(?:figure|fig\.?|graphique|schéma|dessin|solution|démonstration|corrigé"
    r"|ci-dessus|ci-dessous)(?: \d+)?|réponses? (?:libres?|variables?|personnelles?)"
    r"|(?:la )?démonstration|je ne sais pas"
    # Spanish, Portuguese, Italian
    r"|(?:ver|véase|vea|veja|vedi|vedere)(?: a| o| as| os| la| el| las| los| il| lo)? ?(?:figura|fig\.?|gráfic[ao]"
    r"|grafico|diagrama|dibujo|desenho|disegno|imagen|imagem|immagine|solución|solução|soluzione|demostración|tabla"
    r"|tabela|tabella)(?: \d+)?|(?:las |as )?(?:respuestas?|respostas?) (?:pueden?|podem?) variar"
    r"|respuesta libre|resposta (?:livre|pessoal)|risposta libera|no (?:lo )?sé|não sei|non (?:lo )?so"
    r"|(?:la |a )?(?:demostración|demonstração|dimostrazione)|desconocid[ao]|desconhecid[ao]|sconosciut[ao]"
    # Russian, Polish
    r"|(?:см\.?|смотри(?:те)?)(?: на)? ?(?:рис(?:\.|унок|унке)?|график|чертеж|чертёж|решение|доказательство|таблицу)"
    r"(?: \d+)?|доказательство|(?:я )?не знаю|неизвестно|нет ответа|(?:zob\.?|zobacz|patrz)(?: na)? ?(?:rysunek|rys\.?"
    r"|wykres|rozwiązanie|dowód|tabela|tabelę)(?: \d+)?|dowód|nie wiem|nieznan[aey]|brak odpowiedzi"
)


def no_answer(text: str, nodes: list[Node]) -> str | None:
    """Returns why a gold names no answer that a completion could give, or None if it may name one. Raises TooHard.

    Args:
        nodes: the gold's expressions.
    """
    if ":" not in text and any(
        part.op == "div" and rational(part.args[1]) == 0 for node in nodes for part in walk(node)
    ):
        return "it divides by zero; the gold of a problem without a value is 'undefined'"
    if len(text) > _LONGEST:
        return None
    bare = plain_words(text).strip(_EDGES).casefold()
    return "it stands for a missing answer" if _PLACEHOLDER.fullmatch(bare) else None
