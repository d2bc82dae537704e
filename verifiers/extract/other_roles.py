"""Finds out whether a number has another role in its sentence than that of the answer: "We subtract 7.", "Score: 7".

Words that the question uses too are no sign of another role: "How many steps are there?", "7 steps".
"""

from __future__ import annotations

from verifiers.extract.gates import Gated
from verifiers.extract.spans import Span
from verifiers.lazy_pattern import any_case

_OPENING = r"[\s$([\\*\"“]*$"
# What stands directly before a number that is no answer, whatever the question is.
_NEVER = (
    # an operand
    r"add(?:s|ed|ing)?|subtract(?:s|ed|ing)?|take away|(?:divid|multipl)(?:es?|ed?|ying|y|ies|ing)(?: \w+){0,3} by",
    r"addier\w+(?: wir)?|subtrahier\w+(?: wir)?|(?:teil|dividier)\w+(?: \w+){0,2} durch|multiplizier\w+ (?:\w+ )?mit",
    r"ajout\w+|soustra\w+|(?:divis|multipli)\w+ par|sumamos|restamos|(?:dividi|multiplica)\w+ (?:por|per)|somamos"
    r"|subtraímos|aggiung\w+|sottra\w+|прибав\w+|вычт\w+|вычита\w+|(?:раздел|дел)\w+ на|умнож\w+ на",
    # a candidate
    r"check(?:s|ed|ing)?|test(?:s|ed|ing)?|try|tries|tried|trying|prüf\w+|probier\w+|teste\w*|vérifi\w+|essay\w+"
    r"|prob(?:ar|amos|ando)|provando|testando|проверим",
    # known of the answer
    r"divisible by|multiples? of|teilbar durch|divisible par|divisible por|divisibile per|делится на",
    # what was once, is due or gone (unless `_ASKED_OTHERWISE`), or is a bound; what a curve stands beside
    r"used to be|had been|war früher|était avant|owes?|owed|lost|loses?|wants?|schulde\w*|verlor\w*"
    r"|doit|perdu|debe|perdió|deve",
    r"tops|surpass(?:es|ed)|exceed(?:s|ed)?|beats|outnumbers?|übersteigt|dépasse|supera",
    r"(?:parallel|perpendicular|orthogonal|normal|tangent|equivalent|similar) to|(?:mirror image|reflection) of"
    r"|(?:lies|runs|stays|is) (?:above|below|under|over|beside)|meets|intersects|crosses|touches|avoids",
    r"parallel zu|senkrecht (?:auf|zu)|parallèle à|perpendiculaire à|paralel[ao] a|perpendicular a|parallel[ao] a"
    r"|perpendicolare a|параллельна|schneidet|coupe|corta",
    # the answer to another question, or a part of it
    r"(?:answer|solution) (?:to|of|for) (?:the )?(?:second|previous|next|other|first|third|last|wrong|another"
    r"|opposite|following)\b[^.,;:\d]{0,30} (?:is|was)",
    r"(?:half|twice|double|triple|three times|a third of|a quarter of) (?:the|of|as|my|his|her|its|their)\b"
    r"[^.,;\d]{0,40} (?:is|are|was|were|equals)|halbe [^.,;\d]{0,20} (?:ist|beträgt)|doppelte [^.,;\d]{0,20} ist",
)
# The same where there is a question that could ask for it.
_BESIDE_A_QUESTION = (
    r"(?:upper|lower) bound (?:is|of|=)|(?:ober|unter)e schranke ist",
    r"(?:its|their|seine?|ihre?|sa|son|su|sua) (?:(?:first|last|final|leading|letzte|erste|dernier|último|última"
    r"|ultima) )?(?:digit|ziffer|chiffre|cifra|dígito|digit sum|quersumme|square|cube|half|double|negative|opposite"
    r"|reciprocal|inverse|square root|quadrat|hälfte|kehrwert|carré|moitié|cuadrado|mitad)"
    r" (?:is|are|equals|ist|est|es|é|è)",
    r"sum of its digits is|the (?:first|last|final|leading|units|ones|tens|hundreds) digit is",
    r"(?:other|another|second) (?:answer|solution|possibility) is",
)
_BEFORE = Gated(
    rf"(?:(?<![^\W\d_])(?P<never>{'|'.join(_NEVER)})|(?P<east>加上?|减去?|乘以|除以)"
    rf"|\b(?P<asked>{'|'.join(_BESIDE_A_QUESTION)}))(?![^\W\d_]){_OPENING}",
)
# What a line begins with that is a remark and no answer: "Score: 7".
_LABEL = any_case(
    r"[\s*#>-]*(?P<asked>score|grade|points|confidence|difficulty|length|tokens|version|seed|id|line|equation|track|level"
    r"|reward|rating|date|room|chapter|theorem|lemma|formula|exercise|problem|question|case|attempt|trial|bus|page|step"
    r"|note|zeile|gleichung|aufgabe|schritt|seite|ligne|équation|étape|línea|ecuación|paso|linha|equação|riga|equazione)"
    rf"\b\s?[:#=]?{_OPENING}",
)
# What stands directly behind such a number.
_BEHIND = any_case(
    r"[\s*$)\]-]*(?P<asked>(?:works?|fits?) too\b|also (?:works?|fits?)\b|is one of\b|divides\b|[❌✗✘]"
    r"|is (?:the first|a possible|another) (?:answer|solution)|digits?\b|factorial\b|stellig\w*|chiffres\b|cifras\b"
    r"|remain to\b|[^\W\d_]+ before (?:he|she|they|it|the|any)\b|(?:[^\W\d_]+ )?(?:of which|each counted|still to be)\b"
    r"|(?:[^\W\d_]+ )?(?:minus|less than|more than|plus)\b|off (?:the|from|by)\b|too (?:many|few|much|little)\b"
    r"|(?:are|is|were|was|have|has|had) (?:missing|gone|lost|absent|broken)|before$|yesterday\b|tomorrow\b"
    r"|(?:words?|ideas?|tries|attempts?|guesses|characters?|letters?|tokens?|sentences?|theorems?)\b"
    r"|cases? (?:to|remain|left)|(?:を足|を引|を掛|で割|を加え|を試)|(?:을|를) (?:더|빼|곱|시도)|(?:으?로) 나[누눠]"
    r"|位数|桁|자리)",
)
# Questions that ask by other words for what was once, is due or gone, or for a count of letters.
_ASKED_OTHERWISE = (
    (
        any_case(r"used to|had been|war früher|était avant|before|yesterday"),
        any_case(
            r"\b(?:was|were|did|had|originally|initially|(?:at )?first|beginning|start\w*|previous\w*|once|war(?:en)?"
            r"|hatten?|ursprünglich\w*|anfangs?|était|étaient|avai(?:t|ent)|début|era[nm]?|había[nm]?|inicial\w*|inizial\w*)\b"
            r"|(?<!\w)(?:был\w*|сначала|первоначальн\w*)|原来|最初|以前|처음"
        ),
    ),
    (
        any_case(r"owe[sd]?|schulde\w*|doit|debe|deve"),
        any_case(r"\b(?:pay|paid|cost|debt|bill|price|spen[dt]|charge|zahl|kost|schuld|coût|prix|pa[gy]|prezzo|preço)"),
    ),
    (
        any_case(r"lost|loses?|verlor\w*|perdu|perdió|(?:\w+ )?(?:missing|gone|lost|absent|broken)"),
        any_case(
            r"n['’]t\b|\b(?:not|no longer|without|cannot|fewer|unus\w+|stolen|remov\w+|disappear\w*|nicht|kein\w*|ohne"
            r"|fehl\w*|pas|sans|manqu\w+|perd\w+|falt\w+|sin|sem|senza|non|não)\b|(?<!\w)(?:не|без)(?!\w)|[不没]|없|않"
        ),
    ),
    (
        any_case(r"wants?"),
        any_case(r"\b(?:need|buy|order|ask|request|look\w* for|wish|should|must)"),
    ),
    (
        any_case(r"digits?|stellig\w*|chiffres|cifras|words?|characters?|letters?|tokens?|sentences?|位数|桁|자리"),
        any_case(r"\b(?:long|length|large|lang|länge|longueur|largo|longitud|comprimento|lung\w+)\b|длин|长|長|길"),
    ),
)
_STEM = 4  # letters by which words of an answer and its question are compared


def has_another_role(text: str, start: int, value: Span, end: int, asked: str) -> bool:
    """Returns whether the words at a value, in the sentence [start, end), give it another role than the answer's.

    Without a question, only operands, candidates and the like are known to have one.
    """
    before = _BEFORE.search(text, start, value[0])
    if before is not None and not before["asked"]:
        return not _is_asked(before["never"] or before["east"], asked, most=1)
    if not asked:
        return False
    found = (before, _LABEL.match(text, start, value[0]), _BEHIND.match(text, value[1], end))
    return any(match is not None and not _is_asked(match["asked"], asked) for match in found)


def _is_asked(said: str, asked: str, most: int | None = None) -> bool:
    """Returns whether a question uses one of the words (of the first `most`), or asks for their role by others."""
    if any(role.match(said) and otherwise.search(asked) for role, otherwise in _ASKED_OTHERWISE):
        return True
    words = said.split()[:most]
    stems = {word[:_STEM].lower() for word in words if len(word) >= _STEM} or {said.lower()}
    return any(stem in asked.lower() for stem in stems)
