"""Finds the value that the end of a text puts in the place of an announced one: "The answer is 8. Wait, no, it is 7."

Every word from the correction to the end belongs to one of the patterns below, so nothing there is left to be judged.
"""

from __future__ import annotations

from verifiers.extract.announcements import announced
from verifiers.extract.gates import Gated
from verifiers.extract.joined_quantities import unit_name
from verifiers.extract.scaled import changes_value
from verifiers.extract.spans import Span
from verifiers.extract.words import VALUE, any_of

_LOOK = 200  # characters before the end
_STEM = 4  # letters by which the noun is compared with those of the question
_OBJECTION = any_of(
    r"no(?!\s+[$\d])",  # "No 7" is a label
    r"nope|oh|ah|hmm+|wait|hold on|oops|whoops|sorry|apologies|actually|in fact|correction|scratch that|my mistake"
    r"|my bad|i misspoke|i mean|i meant|on second thought|(?:let me|i(?:['’]ll| must| should)?) (?:correct|fix)"
    r"(?: (?:that|this|it|myself))?|i (?:made|see) (?:a|my|an|the) (?:mistake|slip|error)|i was wrong|i miscounted"
    r"|i miscalculated|(?:that|this)(?:['’]s| is| was) (?:wrong|incorrect|not right|not correct|a mistake|an error"
    r"|a slip)",
    r"nein|moment(?: mal)?|halt|stopp?|warte(?: mal)?|entschuldigung|sorry|korrektur|falsch|ich korrigiere"
    r"(?: mich)?|ich habe mich (?:vertan|verrechnet|geirrt|verzählt)|das (?:ist|war) (?:falsch|nicht richtig"
    r"|ein fehler)|vielmehr",
    r"non|attend(?:s|ez)|pardon|oups|désolée?|excusez-moi|erreur|je me (?:corrige|reprends)|je rectifie"
    r"|je me suis trompée?|(?:c['’]est|c['’]était) (?:faux|une erreur)|en fait|plutôt",
    r"espera|espere|perd[oó]na?|disculpa|ups|corrección|corrijo|me corrijo|me equivoqué|me he equivocado|en realidad"
    r"|mejor dicho|(?:eso )?(?:está mal|es incorrecto|era incorrecto)",
    r"não|espera|espere|opa|ops|desculp[ae]|correção|corrigindo|errei|me enganei|enganei-me|na verdade|melhor dizendo"
    r"|(?:isso )?(?:está errado|estava errado)",
    r"aspetta|aspettate|scusa(?:te)?|ops|correzione|correggo|mi correggo|mi sono sbagliat[oa]|ho sbagliato|in realtà"
    r"|anzi|(?:è|era) (?:sbagliato|un errore)",
    r"nee|wacht(?: even)?|oeps|correctie|fout|ik vergiste me|ik heb me vergist|(?:dat (?:is|was) )?(?:fout|verkeerd)",
    r"nie|czekaj|chwila|przepraszam|pomyłka|korekta|poprawka|błąd|pomylił[ae]m się|to błąd|poprawiam",
    r"нет|стоп|подожди(?:те)?|погоди(?:те)?|извини(?:те)?|простите|ой|исправление|поправка|исправляю(?:сь)?|ошибка"
    r"|я ошиб(?:ся|лась)|это (?:неверно|неправильно|ошибка)|на самом деле|точнее|вернее",
    r"hayır|bekle(?:yin)?|pardon|özür dilerim|düzeltiyorum|düzeltme|yanlış|hata yaptım|aslında",
    r"不对|不對|不|等等|等一下|抱歉|对不起|對不起|更正(?:一下)?|纠正(?:一下)?|(?:我)?(?:算|弄|搞)错了|错了|其实|其實",
    r"いや|いえ|いいえ|待って(?:ください)?|すみません|失礼(?:しました)?|訂正(?:します)?|(?:計算を)?間違えました|間違いです",
    r"아니(?:요|다|에요)?|잠깐(?:만요)?|죄송합니다|정정(?:합니다)?|틀렸(?:습니다|네요|어요)|실수(?:했습니다|입니다)?",
)
_IS = any_of(
    r"(?:so |and |but |rather )?(?:it|that|this)(?:['’]s| is| should be| must be| has to be)(?: actually| really"
    r"| in fact)?|(?:so |and |but )?(?:the|my) (?:correct |right |final |real |true |actual )?(?:answer|result|value"
    r"|total|number) (?:is|should be|must be)(?: actually| really)?|should be|make (?:it|that)",
    r"(?:also )?(?:es|das) (?:ist|sind|sollten? sein)|(?:die|das) (?:richtige |korrekte )?(?:antwort|ergebnis|lösung) "
    r"(?:ist|lautet)|richtig (?:ist|sind)",
    r"c['’]est|ce sont|ça fait|il y en a|(?:la |le )?(?:bonne |vraie )?(?:réponse|résultat|solution)(?: correcte)? est",
    r"(?:es|son)|(?:la |el )?(?:respuesta|resultado|solución)(?: correct[ao])? es|lo correcto es|debe ser|debería ser",
    r"(?:é|são)|(?:a |o )?(?:resposta|resultado)(?: corret[ao]| cert[ao])? é|o correto é|deve ser",
    r"(?:è|sono)|(?:la |il )?(?:risposta|risultato)(?: corrett[ao]| giust[ao])? è|deve essere",
    r"het (?:is|zijn)|dat is|het (?:juiste |goede )?antwoord is|het moet zijn",
    r"to|jest|(?:poprawna |prawidłowa )?odpowiedź(?: to| brzmi)?|powinno być",
    r"это|(?:правильный |верный )?ответ|должно быть|получается|будет",
    r"(?:doğru )?(?:cevap|yanıt|sonuç)",
    r"是|应该是|應該是|应为|應為|应是|(?:正确)?(?:答案|结果)(?:是|应该是|应为)?|为",
    r"(?:正しくは|(?:正しい)?答え?は|正解は)",
    r"(?:정답은|답은|맞는 답은)",
)
_BETWEEN = r"[\s,.!:;，。！：；、…—–-]"
_LED = (  # "Wait, no, it is "
    rf"(?:[.!。！\n…]|\w[—–]|\s[—–-])[\s\"'*_(]*+(?:{_OBJECTION}){_BETWEEN}+(?:(?:{_OBJECTION}){_BETWEEN}+){{0,3}}"
    rf"(?:(?:{_IS})[\s:：—–-]*)?"
)
_BEFORE_BOX = Gated(rf"{_LED}[\s$*_(\[\\]*$")
_CORRECTED = Gated(
    rf"{_LED}[*_]{{0,2}}(?P<value>(?-i:\(?[A-J]\)?)(?![\w'’])|(?:\$?[a-z]\s?=\s?)?{VALUE})[*_]{{0,2}}"
    r"(?:\s*(?!(?:that|which|who|times|more|less|fewer|or|and|mal|fois|veces|vezes|volte|keer|razy|раз|тысяч\w*|倍|万|亿|千"
    r"|百)(?![^\W\d_]))(?P<noun>[^\W\d_°]{1,12}))?[\s.。!！)\"'*]*$"
)


def corrected(text: str, low: int, end: int, prompt: str) -> Span | None:
    """Returns the other value that replaces an announced one at the end of the text, or None.

    The question or the text must have the noun behind it: "no, 7 wrong" and "no, 7 dozens" don't replace 8 by 7.
    """
    first = max(low, end - _LOOK)
    found = _CORRECTED.search(text[first:end])
    if found is None:
        return None
    noun = found["noun"] or ""
    said = f"{prompt}\n{text[low : first + found.start()]}".lower()
    if changes_value(noun, prompt) or not (noun[:_STEM].lower() in said or unit_name(noun, 0) or noun > "\u3000"):
        return None
    earlier = announced(text[: first + found.start()], low)
    if earlier is None or earlier.span is None:
        return None
    start, stop = first + found.start("value"), first + found.end("value")
    same = text[slice(*earlier.span)].strip(" $*") == text[start:stop].strip(" $*")
    return None if same else (start, stop)  # "The answer is 24. Wrong: 24." corrects nothing


def without_correction(text: str, start: int) -> str:
    """Returns the text with blanks for the correction before a box whose content begins at `start`, if it has one and
    follows another box: "\\boxed{8} Sorry, I made a mistake: \\boxed{7}"."""
    opening = text.rfind("\\boxed", 0, start)
    if opening < 0 or text.find("\\boxed", 0, opening) < 0:
        return text
    first = max(0, opening - _LOOK)
    found = _BEFORE_BOX.search(text[first:opening])
    if found is None:
        return text
    low = first + found.start() + 1
    return f"{text[:low]}{' ' * (opening - low)}{text[opening:]}"
