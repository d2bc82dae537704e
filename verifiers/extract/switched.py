"""Finds a later choice of another option: "Answer: B. Actually, C is right." """

from __future__ import annotations

from verifiers.extract.choices import RIGHT
from verifiers.extract.spans import Span
from verifiers.lazy_pattern import any_case, lazy_pattern

_LOOK = 600  # characters
_LETTER = r"[(*\"'$]{0,3}(?-i:(?P<%s>[A-J]))(?![\w'’])"
_ALONE = lazy_pattern(r"(?<![A-Za-z])[A-J](?![A-Za-z'’])")
_SWITCHES = any_case(
    r"(?<!not )(?<!n['’]t )(?<![^\W\d_])(?:(?:i|we)(?: would| will|['’]d|['’]ll|['’]m going to)?"
    r" (?:now )?(?:choose|pick|select|go with"
    r"|went with|say|mean|meant|switch to|stick with|submit)(?: option| choice| answer)?"
    r"|change (?:it|my answer|that|this) to|switch(?:ing)? to|make (?:it|that)"
    r"|(?:the )?(?:right|correct|best|real|actual|final|true|better) (?:answer|option|choice|one)(?: is|:)"
    r"|(?:ich (?:wähle|nehme|meine)|richtig (?:ist|wäre)|die richtige antwort ist|je (?:choisis"
    r"|prends)|la bonne réponse est(?: la)?"
    r"|(?:elijo|escojo|marco|me quedo con)(?: la)?|la (?:respuesta )?correcta es(?: la)?|(?:escolho"
    r"|fico com|marco)(?: a)?"
    r"|a (?:resposta )?correta é(?: a)?|scelgo(?: la)?|la risposta (?:giusta|corretta) è(?: la)?"
    r"|выбираю|правильный ответ[:—-]?"
    r"|верный ответ[:—-]?))\s*"
    + _LETTER % "chosen"
    + r"|(?:(?:应该?|还是)?选|选择|正确答案(?:是|为)|正解は|정답은)\s*"
    + _LETTER % "cjk"
    + r"|(?<![\w(])"
    + _LETTER % "called"
    + r"[)*\"'$]{0,3}\s+(?:is|seems|looks|must be|has to be|ist|est|es|é|è)\s+(?:actually |really |clearly )?(?:the )?"
    rf"(?:{RIGHT}|best|better)(?![^\W\d_])"
)


def switched(text: str, span: Span) -> str:
    """Returns the other letter that the text after the one at `span` chooses, or ""."""
    chosen = _ALONE.search(text, *span)
    own = chosen.start() if chosen else span[0]
    for found in _SWITCHES.finditer(text, own + 1, span[1] + _LOOK):
        letter = next(part for part in found.groups() if part)
        if letter != text[own]:
            return str(letter)
    return ""
