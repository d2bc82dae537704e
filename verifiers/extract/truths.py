"""Finds a text's "yes" or "no": the word that opens it or that its last sentence says, or what that sentence states.

"So yes, it is prime" says it. "So 91 is not prime" states it in the words of the question "Is 91 prime?".
"""

from __future__ import annotations

import itertools
import re

from verifiers.extract.asked import NOTHING, question_of, stems
from verifiers.extract.clauses import main_clause, opposed, reports, supposes
from verifiers.extract.numerals import language_of
from verifiers.extract.spans import Extraction, Span
from verifiers.extract.statement_words import NOT, SO, STOP, UNREAL, WORD
from verifiers.extract.turns import CORRECTION
from verifiers.extract.wordings import TRUTHS
from verifiers.lazy_pattern import any_case, lazy_pattern

_LOOK = 400  # characters before the end that are read
_WORDS = sorted({"yes", "no", "true", "false", *TRUTHS} - {"正", "真", "假", "正しい", "正确"}, key=len, reverse=True)
# A yes or no that stands alone: after punctuation, a concluding word or a copula, and before punctuation.
_ALONE = lazy_pattern(
    r"(?:^|[,:;：，、—–]\s*|\b(?:is|ist|est|es|è|é|is|jest|là|adalah|so|also|donc|quindi|portanto|так что|ответ"
    r"|значит)\s+|(?:所以|因此|よって|ので|따라서)[、,，]?\s*)[\"“«'*_$]*"
    rf"(?P<truth>{'|'.join(map(re.escape, _WORDS))})[\"”»'*_$]*(?=\s*(?:[.,;!:。，、—–]|$)|\slo )",
    re.IGNORECASE | re.MULTILINE,
)
_TURN = any_case(
    r"(?<![^\W\d_])(?:but(?! not\b)|however|yet|aber|doch|mais|pero|но|однако|maar|ale|ama|(?<=[,;.!] )(?:mas|ma"
    r"|men))(?![^\W\d_])|但是?|しかし|하지만"
)
_DOUBTED = any_case(
    r"[?？؟]|(?<![^\W\d_])(?:i|we|you|let|question|problem|task|ich|wir|je|nous|yo|eu|io|я|if|whether|maybe|perhaps"
    r"|would|could|might|may|or|says?|said|think\w*|guess\w*|not sure|claim\w*|wenn|ob|vielleicht|oder|sagt|si|ou|dit"
    r"|peut-être|dice|quizás|talvez|diz|se|forse|если|или|может|говорит|кажется|wrong|falsch ist)(?![^\W\d_])"
    r"|如果|或|可能|说|もし|かも|만약"
)
_HAVE_TO = any_case(r"\b(?:would (?:\w+ )?(?:have to|need|be)|you|we)\b|(?<!\w)не мо[гж]\w+")
# A yes or no that opens a text: "No, 221 isn't prime."
_OPENS = any_case(rf"[\s\"“«'*_¡]*(?P<truth>{'|'.join(map(re.escape, _WORDS))})[\"”»'*_]*\s*(?:[.,;:!。，、،—–]|$)")
# Words that leave such an answer open, take it back or make it conditional.
_OPEN = any_case(
    r"[?？؟]|(?<![^\W\d_])(?:I|you|we|question|problem|true|false|wahr|vrai|faux|verdad|vero|if|unless|whether|maybe"
    r"|perhaps|possibly|probably|would|might|depend\w*|provided|except|sometimes|seems?|says?|said|claims?|thinks?"
    r"|guess\w*|sure|wait|actually|sorry|wrong|mistake\w*|at first|wenn|falls|vielleicht|sofern|außer|sagt|glaub\w*"
    r"|moment|falsch|si(?! (?:ottiene|trova|ha|può|divide|deduce|ricava|vede|scrive|tratta)\b)|peut-être|sauf|dit"
    r"|quizás?|tal vez|salvo|dice|perdón|talvez|depende|diz|forse|dipende|tranne|если|может|возможно|говорит"
    r"|als (?:je|we|men|het|de)|misschien|tenzij|jeśli|może|chyba|om (?:man|det|vi)|kanske|eğer|belki|nếu|có lẽ|jika"
    r"|mungkin)(?![^\W\d_])|如果|也许|可能|除非|もし|かも|만약|아마|إذا|ربما|अगर|यदि|शायद"
)
_EASY = any_case(r",? which (?:is|can be) (?:easy|hard|simple|difficult|tempting) to \w+(?: if you [^.,;]*)?")
_NEGATES = any_case(
    r"(?<![^\W\d_])(?:not|never|nicht|kein\w*|pas|no|não|non|niet|geen|inte|nie|не|değil\w*|không|tidak"
    r"|bukan|ليس|ليست|لا|नहीं)(?![^\W\d_])|n['’]t\b|[不没]|ない|ません|않|아니|아닙"
)
# Asks for yes or no, in languages with spaces between words.
_ASKS = any_case(
    r"\W*+(?:(?:and|so|then|but|now|und|et|y|e)\s)?(?:is|are|was|were|can|could|does|do|did|has|have|will|would|must"
    r"|ist|sind|kann|können|hat|haben|gibt|teilt|reich(?:t|en)|passt|liegt|est-ce|peut-on|y a-t-il|es|son|está|puede"
    r"|tiene|hay|é|são|pode|tem|há|è|sono|può|ha|c['’]è|zijn|kan|heeft|är|har|finns|czy|chy|чи|apakah|هل|آیا|האם|क्या|je"
    r"|jsou|má)(?![^\W\d_])"
    r"|[^?]*(?:-(?:t-)?(?:il|elle|on|ils|elles)\b|(?<!\w)ли(?!\w)|\bm[ıiuü](?:d[ıiuü]r|y\w+)?\W*$|không\W*$)"
    r"|[^?¿]*,? (?:es|é|è|sono|son)\b[^?]{0,60}\?\s*$"
)
_ALTERNATIVES = any_case(
    r"(?<![^\W\d_])(?:or|oder|eller|czy [^?]* czy|lub|albo|или|або|veya|hay|atau|أم|یا|nebo|who|what|which|how|why|when"
    r"|where|wie|wer|was|welche\w*|combien|quel\w*|qui|cuánt\w*|qué|cuál\w*|quién|quant\w*|qual\w*|quem|hoeveel|welke?"
    r"|hur|vilke\w*|ile|jak\w*|kto|сколько|как\w*|кто|скільки|kaç|hangi|berapa|bao nhiêu)(?![^\W\d_])"
)
# Words that a statement may have beside those of the question.
_FUNCTION = frozenset(
    "the and for its her his their our your not can are was were has have had does did will must that this these those"
    " there they them she you one both cannot never none thus hence also indeed therefore then all any even still being"
    " been just enough really clearly certainly der die das den dem des ein eine einen einem einer kein keine keinen"
    " keiner ist sind war kann können hat haben wird also daher somit nicht nie niemals ja doch sie man gibt muss und"
    " les une des est sont peut peuvent ont pas jamais aucun aucune donc ainsi elle ils elles cela los las una unos del"
    " son está puede pueden tiene tienen hay nunca ningún ninguna ello esto eso así que entonces por tanto luego uma"
    " são pode podem tem têm não nenhum nenhuma ele ela isso isto portanto logo então gli sono può possono non nessun"
    " nessuna mai quindi dunque questo ciò это она оно они может могут является являются есть быть нет никогда значит"
    " поэтому следовательно итак том het een deze dit zijn kan kunnen heeft hebben geen niet nooit dus och det den som"
    " kan har är inte aldrig inget ingen alltså jest są może mogą nie ani więc zatem czyli żaden żadna żadną żadnym"
    " değil bir vậy nên không phải là jadi maka bukan tidak adalah ليس ليست لا إذن هو هي نہیں नहीं है हैं अतः इसलिए mıdır"
    " midir mudur müdür bien it's they're that's he's she's lässt sich rest gehört gehören zählt belongs belong count"
    " counts remainder without ohne appartient воно вона він вони може можуть ніколи отже тому".split()
)
_GENERIC = frozenset("numb inte zahl nomb núme nume numm geta tal licz числ sayı số bila here".split())
_NO = any_case(
    r"(?<![^\W\d_])(?:not|never|cannot|none|nicht|kein\w*|nie|niemals|pas|jamais|aucune?|não|nenhum\w*|non|nessun\w*"
    r"|ning[uú]n\w*|nunca|niet|geen|nooit|inte|aldrig|ingen|inget|не|нет|ни|ні|żad\w*|değil\w*|không|tidak|bukan|ليس"
    r"|ليست|لا|नहीं|nic|není|nejsou|nemá|δεν|نیست|לא|אינו|אינה)(?![^\W\d_])|n['’]t\b|(?<![^\W\d_])n['’](?=[^\W\d_])"
)
_NO_ALONE = any_case(r"(?<![^\W\d_])no(?![^\W\d_])")  # "in the" in Portuguese
# "Can a triangle have ...?", answered by "Such a triangle doesn't exist."
_ASKS_POSSIBLE = any_case(
    r"(?<![^\W\d_])(?:can|could|possible|exists?|(?:is|are) there|kann|können|möglich|gibt es|existier\w+|peut|peuvent"
    r"|existe|y a-t-il|puede|posible|hay|pode|possível|há|può|possibile|esiste|c['’]è|kan|mogelijk|bestaat|może"
    r"|istnieje|может|могут|можно|возможно|существует)(?![^\W\d_])|能|可以|可能|存在|できます|ありますか|있습니까|있나요"
)
_POSSIBLE = any_case(
    r"\W*+(?:(?:so|thus|therefore|hence|then|also|donc|así que|luego|quindi|portanto|итак|значит),?\s)?"
    r"(?:(?P<none>no such|keine? solche[srn]?|aucun(?:e)? tel(?:le)?|ning[uú]na? tal|nessun(?:a|o)? tale)\s[^\W\d_]+"
    r"|(?:such an?|this|that|so eine?|(?:eine? )?solche[srn]?|une? tel(?:le)?|tal|ese|este|tale?|questo|такой|такая"
    r"|такое)\s[^\W\d_]+|it|that|this|es|das|c['’]|cela|ça|eso|esto|isso|ciò|это|so etwas|(?=impossible|unmöglich"
    r"|imposible|impossível|impossibile))\s?"
    r"(?:(?:therefore|indeed|clearly|simply|really|just|also|daher|somit|doch|donc|bien|pues|quindi|tak)\s)?"
    r"(?P<not>(?:can|could|do|does|is|wo|would)(?:n['’]t| not|not)\s|can['’]t\s|cannot\s|will never\s|can never\s"
    r"|n['’]|no\s|não\s|non\s|не\s)?"
    r"(?:(?:can|could|does|do|is|will|ist|geht|est|es|é|è)\s)?(?:(?:therefore|indeed|clearly|simply|really|just"
    r"|always)\s)?"
    r"(?:be\s)?(?:exists?|drawn|built|made|constructed|formed|done|achieved|work(?:s|ed)?(?: out)?|happen|possible"
    r"|existiert|möglich|machbar|gibt es|geht|existe|existent|posible|possível|possibile|esiste|существует|возможно"
    r"|se puede(?: hacer| construir)?|(?P<impossible>impossible|unmöglich|imposible|impossível|impossibile|невозможно))"
    r"(?P<later>\s(?:nicht|pas))?(?:,?\s(?:at all|after all|without (?:any )?(?:trouble|problem\w*|difficulty)"
    r"|therefore|donc|par conséquent|also|folglich|por tanto|here|hier|problemlos|sans problème"
    r"|sin problemas?))?[\s.!*_]*"
)
# Questions for yes or no in Chinese, Japanese and Korean, their predicates, and how a sentence denies or states these.
_EASTERN = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ASKS_EASTERN = lazy_pattern(
    r"(?:は|が)(?P<noun>[^はが、。？?]{1,14}?)(?:ですか|でしょうか|であるか)[。？?]?\s*$"
    r"|(?:は|が|で|に|を)(?P<verb>[^はがでにを、。？?]{1,12}?)ますか[。？?]?\s*$"
    r"|(?:能|可以)(?P<able>[^，。？?吗]{1,14}?)吗[？?]?\s*$|是(?P<is>[^，。？?吗是]{1,12}?)吗[？?]?\s*$"
    r"|(?:은|는|이|가)\s(?P<korean>[^.?？]{1,14}?)(?:입니까|인가요?|이에요|예요|일까요)[.?？]?\s*$"
)
_OPEN_EASTERN = lazy_pattern(r"[?？]|[谁哪几]|什么|多少|还是|何|いくつ|どれ|どちら|誰|か、|몇|무엇|누구|어느|아니면")
_IF_EASTERN = lazy_pattern(r"如果|假如|若|要是|もし|なら|れば|たら|만약|[다라]면|かも|可能|아마|と思|[言说]|라고")
_EASTERN_FORMS = {
    "noun": (r"P(?:では|じゃ)(?:ありません|な[いく])", r"P(?:です|である|だ|となります|になります)?[。!！.\s]*$"),
    "verb": (r"P(?:ません|ない)", r"P(?:ます|る)[。!！.\s]*$"),
    "able": (r"(?:不能|无法|不可以|没法)P", r"(?<!不)(?:能|可以)P"),
    "is": (r"(?:不是|并非|并不是|不属于)[^，。]{0,4}P", r"(?<![不非])是(?:一个|个)?P"),
    "korean": (r"P(?:이|가|은|는)?\s?(?:아닙니다|아니에요|아니다|아니므로)", r"P(?:입니다|이다|이에요|예요)[.!\s]*$"),
}
# "It is 7 · 13 and is therefore not prime.": the rest is the statement
_AND_SO = any_case(
    r"(?<![^\W\d_])(?:and|und|et|y|e|en)\s(?P<rest>(?:is|are|ist|sind|est|sont|es|son|é|são|è|sono|zijn)\s(?:therefore"
    r"|thus|hence|so|also|somit|daher|deshalb|donc|por (?:lo )?tanto|portanto|quindi|dunque|dus)\s)"
)
_EXACTLY = any_case(
    r"\b(?:ohne rest|without (?:a |any )?remainder|sans reste|sin resto|sem resto|senza resto|zonder rest|bez reszty"
    r"|exactly|evenly)\b|без остатка"
)
_BASED_ON = any_case(  # "D'après le théorème de Pythagore, ..."
    r"^\W*(?:d['’]après|selon|nach|laut|gemäß|by|according to|per|según|pelo|pela|secondo|per il|volgens|по|według)\s"
    r"[^,;:.]{1,80},\s"
)
_ELLIPTIC = any_case(
    r"\W*+(?:it|they|he|she|this|that|these|those)\s(?:is|are|does|do|did|can|could|will|would|has|have|was|were)"
    r"(?:n['’]t|not| not)?[\s.!*_]*|\W*(?:it|they)\scan['’]t[\s.!*_]*"
)
# The beginnings of words that deny what another word asks: a composite number is not prime.
_OPPOSITES = {
    "composite": "prime", "zusammengesetzt": "primzahl", "composé": "premier", "compuest": "primo", "compost": "primo",
    "samengesteld": "priem", "составн": "прост", "złożon": "pierwsz", "bileşik": "asal", "irrational": "rational",
    "irrationnel": "rationnel",
    "irracional": "racional", "odd": "even", "ungerade": "gerade", "impair": "pair", "dispari": "pari",
}  # fmt: skip
_DIGITS = lazy_pattern(r"\d+(?:[.,]\d+)*")
_STEM = 4  # characters by which words are compared: "teilbar" and "teilen"
_FEW = 5  # words of "so it does not"
_MOST = 12  # sentences before the end that may state an answer
_LONGEST = 1500  # characters of a text that answers yes or no


def said_truth(text: str, start: int, end: int, prompt: str) -> Extraction | None:
    """Returns the yes or no that opens a text, or that its last sentence says or states, or None.

    None also if the text limits the answer, takes it back, or says the opposite elsewhere.
    """
    if end - start > _LONGEST:
        return None
    said = _said(text, start, end, prompt)
    if said is not None:
        return Extraction(said, "truth")
    if not prompt or _OPENS.match(text, start, end) or any(_ALONE.finditer(text, start, end)):
        return None
    return _stated(text, start, end, prompt)


def asks_for_truth(prompt: str) -> bool:
    """Returns whether a question asks for yes or no."""
    asked = question_of(prompt)
    if _EASTERN.search(asked):
        return _ASKS_EASTERN.search(asked) is not None and _OPEN_EASTERN.search(asked.rstrip("?？ ")) is None
    return _ASKS.match(asked) is not None and _ALTERNATIVES.search(_ASKS.sub(" ", asked, count=1)) is None


def _stated(text: str, start: int, end: int, prompt: str) -> Extraction | None:
    """Returns the last sentence if it states or denies what the question asks, in the question's words, or None."""
    asked = question_of(prompt)
    if not asks_for_truth(prompt):
        return None
    language = language_of(f"{prompt[-400:]} {text[max(start, end - 400) : end]}")
    ends = [start, *(stop.end() for stop in STOP.finditer(text, start, end)), end]
    meanings = [
        _meaning_of(text, (low, high), asked, language)
        for low, high in itertools.pairwise(ends[-_MOST - 1 :])
        if text[low:high].strip()
    ]
    last = meanings[-1] if meanings else ""
    if not last or any(meaning not in ("", last) for meaning in meanings):
        return None
    stop = len(text[:end].rstrip())
    begin = max((low for low in ends if low < stop), default=start)
    return Extraction((begin, stop), "truth", said=last)


def _meaning_of(text: str, sentence: Span, asked: str, language: str) -> str:
    """Returns "yes" or "no" if a sentence states or denies what is asked and says nothing else, or ""."""
    if _EASTERN.search(asked):
        return _in_eastern_words(text[slice(*sentence)], asked)
    tail = _AND_SO.search(text, *sentence)
    clause, concluded = ((tail.start("rest"), sentence[1]), True) if tail else main_clause(text, sentence, language)
    possible = _possible(text, clause, sentence, asked)
    if possible:
        return possible
    part, whole = text[slice(*clause)], text[slice(*sentence)]
    part = _EXACTLY.sub(" ", _BASED_ON.sub(" ", part, count=1))
    for opposite, word in _OPPOSITES.items():
        if re.search(rf"(?<![^\W\d_]){word}", asked, re.IGNORECASE) and opposite in part.lower():
            part = "not " + re.sub(rf"{opposite}[^\W\d_]*", word, part, flags=re.IGNORECASE)
            break
    negations = len(_NO.findall(part)) + (language != "pt" and len(_NO_ALONE.findall(part)))
    bare = _NO_ALONE.sub(" ", _NO.sub(" ", part))
    if negations > (1 if language == "en" else 2) or "?" in whole or UNREAL.search(bare):
        return ""
    function = _FUNCTION - {"even"} if "even" in asked else _FUNCTION
    own = [word.lower() for word in WORD.findall(bare) if len(word) > 2]
    words = [word for word in own if word not in function and word[:_STEM] not in _GENERIC]
    known = [word.lower() for word in WORD.findall(asked) if len(word) > 2 and word.lower() not in function]
    key = next((word[:_STEM] for word in reversed(known) if word[:_STEM] not in _GENERIC), "")
    numbers = set(_DIGITS.findall(part))
    if not key or not {word[:_STEM] for word in words} <= {word[:_STEM] for word in known}:
        return ""
    if numbers and numbers != set(_DIGITS.findall(asked)):
        return ""
    if set(words) <= set(known) and _in_another_order(part, asked, set(words)):
        return ""  # "So Ben is taller than Anna." for "Is Anna taller than Ben?"
    concluded = concluded or _ELLIPTIC.fullmatch(part) is not None
    elliptic = not words and concluded and not numbers and 1 < len(WORD.findall(part)) <= _FEW
    if not elliptic and key not in {word[:_STEM] for word in words}:
        return ""
    if opposed(bare, language) or reports(whole, NOTHING) or supposes(whole):
        return ""
    return "no" if negations else "yes"


def _in_another_order(part: str, asked: str, words: set[str]) -> bool:
    """Returns whether a statement has these words or its numbers in another order than the question."""
    orders = []
    for text in (part, asked):
        said = dict.fromkeys(word.lower() for word in WORD.findall(text))
        orders.append(([word for word in said if word in words], list(dict.fromkeys(_DIGITS.findall(text)))))
    numbers = bool(orders[0][1]) and orders[0][1] != orders[1][1]
    return numbers or orders[0][0] != orders[1][0]


def _in_eastern_words(sentence: str, asked: str) -> str:
    """Returns "yes" or "no" if a Chinese, Japanese or Korean sentence states or denies what is asked, or ""."""
    found = _ASKS_EASTERN.search(asked)
    if found is None or _OPEN_EASTERN.search(sentence) or _IF_EASTERN.search(sentence):
        return ""
    name, predicate = next((name, text) for name, text in found.groupdict().items() if text)
    denied, stated = (
        re.search(form.replace("P", re.escape(predicate.strip())), sentence) for form in _EASTERN_FORMS[name]
    )
    return "no" if denied else "yes" if stated else ""


def _possible(text: str, clause: Span, sentence: Span, asked: str) -> str:
    """Returns "yes" or "no" if a sentence says that what is asked for is possible or impossible, or ""."""
    if not _ASKS_POSSIBLE.search(asked) or supposes(text[slice(*sentence)]):
        return ""
    found = _POSSIBLE.fullmatch(text, *clause) or _POSSIBLE.fullmatch(text, *sentence)
    if found is None:
        return ""
    denied = bool(found["not"] or found["none"] or found["later"])
    return "no" if denied != bool(found["impossible"]) else "yes"


def _said(text: str, start: int, end: int, prompt: str) -> Span | None:
    """Returns the span of the yes or no that opens a text, or that its last sentence says, or None."""
    opened = _OPENS.match(text, start, end)
    if opened is None:
        return _in_last_sentence(text, start, end)
    rest = _EASY.sub(" ", text[opened.end() : end])
    if _TURN.search(rest) or CORRECTION.search(rest) or _OPEN.search(rest):
        found = _in_last_sentence(text, start, end)
        return found if found is not None and found[0] > opened.end() else None
    meaning = _meaning(opened["truth"])
    if any(_meaning(other["truth"]) != meaning for other in _ALONE.finditer(rest)):
        return None
    asked = stems(question_of(prompt)) if prompt else set()
    for sentence in STOP.split(rest):
        repeated = bool(asked) and len(asked & stems(sentence)) * 3 > len(asked) * 2
        if repeated and (_NEGATES.search(sentence) is not None) == (meaning == "yes"):
            return None
    return opened.span("truth")


def _meaning(word: str) -> str:
    word = word.casefold()
    return {"yes": "yes", "true": "yes", "no": "no", "false": "no"}.get(word) or TRUTHS[word]


def _in_last_sentence(text: str, start: int, end: int) -> Span | None:
    """Returns the span of the last sentence's yes or no, or None if the sentence expresses doubt or contains two."""
    low = max(start, end - _LOOK)
    stop = len(text[:end].rstrip())
    begin = max((match.end() for match in STOP.finditer(text, low, stop - 1)), default=low)
    turns = list(_TURN.finditer(text, begin, stop))
    begin = turns[-1].end() if turns else begin
    concluded = [
        match for match in SO.finditer(text, begin, stop) if _ALONE.match(text[match.end() : stop].lstrip(" ,:"))
    ]
    begin = concluded[-1].end() if concluded else begin
    begin += len(text[begin:stop]) - len(text[begin:stop].lstrip())
    found = list(_ALONE.finditer(text[begin:stop]))
    if len(found) != 1:
        return None
    after = begin + found[0].end("truth")
    if _DOUBTED.search(text, begin, after) or _DOUBTED.search(_HAVE_TO.sub(" ", text[after:stop])):
        return None
    if NOT.search(text[begin:stop][: found[0].start("truth")]):
        return None
    place = text.index(found[0]["truth"], begin + found[0].start())
    return place, place + len(found[0]["truth"])
