"""Finds the first word of a clause or sentence around an answer that speaks against it, or that is not known."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from verifiers.extract.everyday import EVERYDAY
from verifiers.extract.gates import Gated
from verifiers.extract.statement_words import GOT, JOINS, MAY, OPPOSED, REPORTS, UNREAL
from verifiers.extract.vocabulary import HARMLESS, SAFE, SAFE_UNSPACED, UNSAFE
from verifiers.extract.wordings import CONCEDING
from verifiers.lazy_pattern import any_case, lazy_pattern

_TEXT = lazy_pattern(r"\\(?:text|textbf|textit|mathrm|mbox|textrm)\s*\{([^{}]*)\}")
_MATHS = lazy_pattern(
    r"\\(?:begin|end|color|textcolor)\{[^{}]*\}|\$\$[^$]*\$\$|\$[^$\n]*\$|\\\[.{0,400}?\\\]|\\\(.{0,400}?\\\)"
    r"|\\(?:boxed|fbox|d?frac|sqrt)\s*(?:\{[^{}]*\})*|\\[A-Za-z]+|\b(?:exp|ln|log|sin|cos|tan|sqrt|arcsin|arccos|arctan"
    r"|gcd|lcm|min|max)(?=\s*[(\d])|</?\w+>|https?://\S+|[$€£¥]?\d[\d.,:/]*\d*(?:st|nd|rd|th)?%?",
    re.DOTALL,
)
WORD = lazy_pattern(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_UNSPACED = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af々]+")
_UNJUDGED = lazy_pattern(r"[\u0e00-\u0e7f\u0900-\u0dff\u0590-\u05ff\u06a9\u06af\u06cc\u067e]")
_BREAK = any_case(
    r"(?:[,:—–-]|^|\s)\s*(?:and\s+)?\b(?:so|but|yet|therefore|thus|hence|consequently|daher|also|somit|folglich|aber"
    r"|donc|mais|por lo tanto|por tanto|así que|pero|portanto|logo|mas sim|mas|quindi|dunque|ma|поэтому|значит|но"
    r"|sondern|sino|mas sim|bensì|no(?=:)|а|nên|vậy|bu yüzden|bu nedenle|więc|zatem|czyli|dlatego|dus|daarom|därför"
    r"|alltså|jadi|maka|which (?:shows|means|implies|tells us)(?: that)?)\b,?|[;；]"
    r"|所以|因此|但是?|这是?(?:错误|不对|错)的?[,，]|我?[算写弄说]错了?[,，]|其实|而是|应该是(?=§)|よって"
    r"|したがって|ゆえに|が、|ではなく|따라서|이 아니라|지만|므로|니까|إذن|لذلك|لكن|بل|§[^,，。]*[,，](?!\W*§\W*$)"
)
_HALVING = any_case(r"\bhalving\b")
_SAYING = any_case(r"\b(?:said|says?|told|tells?|claim(?:s|ed)?|thinks?|believes?|guess(?:es|ed)?)\b")
# "At least", "Ballpark:": what bounds the content of a box, unless the question asks for an extreme value.
_BOUNDED = any_case(
    r"(?:\b(?:at (?:least|most)|(?:less|more|fewer|greater) than|no more than|up to|höchstens|mindestens"
    r"|au (?:plus|moins)|environ|a lo (?:más|sumo)|al menos|como (?:máximo|mínimo)|até|no máximo|ballpark|roughly"
    r"|approximately|somewhere near|circa|etwa|ungefähr)|(?:не )?(?:менее|более|меньше|больше)|примерно|最多|至多|至少"
    r"|大约|最大で|少なくとも|多くとも)[\s:：$]*$"
)
_ASKS_EXTREME = any_case(
    r"least|most|minim|maxim|mínim|máxim|small|larg|great|few|wenigst|mindest|höchst|kleinst|größt|plus (?:petit"
    r"|grand)|menor|mayor|maior|наимен|наибол|最[多少大小]|至[多少]|최[대소]"
)
_HEADING = lazy_pattern(r"\s*(?:\*{1,3}|#{2,6}\s)[^*#\n?]{2,40}[.:]?\*{0,3}\s*")  # "**Why.**" before an explanation
_INTRO = any_case(
    r"^\W*(?:surprisingly|unsurprisingly|remarkably|interestingly|fortunately|luckily|of course|either way"
    r"|in (?:any|either|each|every|both) cases?"
    r"|in the end|oops|wait|correction|at last|no matter (?:how|what|which|the|where|who)(?: \w+){1,4}|anyway"
    r"|however|but|still|nevertheless|no|yes|again|as (?:you|we|one) can see"
    r"|(?:by|since|because|from|(?!assum|guess|suppos|imagin|pretend|suspect|hop|kidd|jok|say|claim|ly"
    r"|cheat)[a-z]{2,}ing|[^\W\d_]{3,}(?:ando|endo|indo)|en [^\W\d_]{3,}ant|after|regardless of)\b[^,¤:]{0,120})(?:,\s*"
    r"|\s(?=(?:we|i) ))"
)
_MINE = any_case(r"\b(?:i|me|my|you|your|he|she|they|his|her|their|key|hearsay|luck|guess\w*)\b")
# "..., even though 8 looks right": what is conceded leaves the answer as it is, unless it is the writer's doubt.
_CONCEDED = any_case(rf",?\s{CONCEDING}[^,.;¤]*")
# "My decoy is", "My neighbour touches the wall at", "The tempting value is": says whose or what the box is.
_CALLED = any_case(
    r"\W*+(?:my|mein|meine|mon|ma|mi|meu|minha|il mio|la mia|мой|моя)\s(?:\w+\s){0,2}\w+|.*\b(?:answers?|results?"
    r"|solutions?|values?|numbers?)\s(?:is|was|are)\W*$"
)
_NAMED = lazy_pattern(
    r"^\W*(?:(?i:therefore|thus|hence|so|in total|altogether|in conclusion|finally)\b,?\s+)?[A-Z][a-z]+ "
    r"(?=(?:makes?|needs?|paid|pays|spent|spends|earns"
    r"|earned|bought|sold|saved|saves|ate|eats|read|reads|has|had|have|will|walks|walked|ran|runs)\b(?! it\b))"
)
_NAMED_ELSE = lazy_pattern(
    r"^\W*(?:(?i:ainsi|donc|así|por lo tanto|entonces|portanto|assim|logo|quindi|dunque|also|daher"
    r"|итак|значит)\b,?\s+)?"
    r"(?!As\b|In\b|On\b|At\b|Il\b|Elle\b)[A-ZÀ-ÖА-Я][^\W\d_]+ (?=(?:a|tiene|tem|ha|hat|paie|paye|paga"
    r"|bezahlt|zahlt|имеет)\b)"
)
_NEW_VALUE = any_case(
    r"\W*+(?:(?:to )?repeat|once more|again|nochmals?|noch einmal|(?:ich )?wiederhole|(?:je )?répète|repito"
    r"|repetimos|ripeto|ripetiamo|повторяю|powtarzam|tekrar|final(?: answer)?|result|total|hence|thus|so|therefore"
    r"|rather|better|now)\W+§\W*$"
)
_CONDITION = any_case(
    r"\W*+(?:if(?! (?:we|you|one)\b)|unless|suppose|supposing|assuming|assume|had|were|should|provided"
    r"|imagine|pretend|in case|for (?:even|odd|small|large|big|positive|negative"
    r"|prime)\b(?! (?:factors|divisors))|whenever|at (?:best|worst)|on condition"
    r"|wenn|falls|angenommen|si(?! (?:\w+[aei]mos|on|nous|ottiene|ha|trova|deduce|ricava|calcola)\b)"
    r"|se(?! (?:obtiene|obtienen|tiene|sigue|deduce|concluye|encuentra|calcula|obtém|tem|conclui)\b)|если"
    r"|如果|假设|假如|若|もし|만약|إذا|لو)\b"
)
_CONCLUDED = any_case(r"\b(?:therefore|thus|hence|so)\b,?")
_CONCESSION = any_case(
    r"^\W*(?:although|though|even though|while|whereas|despite|in spite of|contrary to|unlike|obwohl|auch "
    r"wenn|bien que|malgré|aunque|a pesar de|embora|apesar de|sebbene|nonostante|хотя|несмотря на)\b[^,]*,"
)
# Phrases of understood words that leave the answer open or attribute it to somebody else.
_OPEN = any_case(
    r"\b(?:made (?:it|this|that) up|used to (?:be|equal)|supposed to (?:be|equal)|so far|up to (?:now|here|this point)"
    r"|for now|as of|to date|at this point|at the moment|(?:he|she|they|you|my (?!final|last|own|only|single|real"
    r"|definitive)\w+) (?:get|got|gets|find|finds|found|obtains?|obtained|compute[sd]?|answer(?:s|ed)?|calculate[sd]?"
    r"|wrote|chose|picked|put)(?= [§¤(]|\W*$)|\w+['’]s (?:own )?(?:answer|guess|solution|response|reply|choice|pick"
    r"|result)(?! (?:set|curve))|(?:his|her|their|your) (?:answer|guess|solution|response|reply|choice|pick|result))\b"
    r"|\b(?:he|she|they|you|my \w+) (?:get|got|gets|finds?|found|obtains?|obtained|computed?|answer(?:s|ed)?|wrote"
    r"|put)\W*$"
)
_ONE_OF_SEVERAL = any_case(
    r"\b(?:one|some|an?|another|first|second|third|next|half|other|possible) (?:possible |of the "
    r")?(?:answers?|solutions?|results?|values?)\b(?! of\b)"
)
_NO_NOUNS = UNSAFE | SAFE | {"times", "less", "plus", "minus", "problems", "questions", "exercises", "is", "was"}
_LED_FALSELY = any_case(
    r"\b(?:do not|don['’]?t|never) (?:be (?:fooled|misled|deceived|tricked)|worry|panic)|make no mistake"
    r"|^\W*correction\W*$|\b(?:correct|correcting|fix|fixing) (?:my|the|an|our) (?:\w+ )?(?:mistake|error|slip)\b"
    r"|\b(?:isn['’]t|not) (?:hard|difficult)\b"
)
# Beginnings of sentences that speak of the answer before them.
_REFERS = any_case(
    r"\W*+(?:(?:and|also|still|then|now|well|so|oh|ah|ok|okay|of course|in fact|indeed|clearly|sadly|unfortunately|alas"
    r"|honestly|frankly|to be honest)\b\W*)*"
    r"(?:(?:it|this|that|these|those|which|such|§|the (?:above|previous|former|latter|last|first|second|real|true"
    r"|actual|correct|right|proper)|no|not|nope|never|wait|hold|hmm+|oops|whoops|sorry|but|however|yet|although|though"
    r"|nevertheless|nonetheless|except|unless|actually|alternatively|or|otherwise|else|rather|instead|please|just|psych"
    r"|maybe|perhaps|das|dies|diese[rs]?|es|nein|aber|doch|jedoch|leider|oder|moment|ce|cet|cette|cela|ça|c['’]est|non"
    r"|mais|cependant|pourtant|malheureusement|ou|eso|esto|esta|este|no|pero|sin|desafortunadamente|o|isso|isto|não|mas"
    r"|porém|questo|ciò|quello|ma|però|purtroppo|это|этот|нет|но|однако|или)\b"
    r"|这|那|它|此|该|不|但|可是|然而|或|其实|等|これ|それ|この|その|いや|しかし|ただ|でも|아니|하지만"
    r"|그러나|이것|그것|هذا|هذه|لكن|لا|أو|ذلك)"
)
_NAMES_IT = any_case(
    r"\b(?:halve\w*|halving|counted twice|double-count\w*|over-?count\w*|under-?count\w*|flipped|swapped|forgot\w*"
    r"|overlook\w*|neglect\w*|omit\w*|contradict\w*|violat\w*|still to be|i|i['’]\w+|me|my|mine|myself|answers?"
    r"|results?|solutions?|above|previous(?:ly)?|earlier|boxed|guess\w*|correct\w*|incorrect\w*|wrong\w*|false\w*"
    r"|mistake\w*|error\w*|kidding|joke\w*|trust\w*|ignore\w*|disregard\w*|discard\w*|ich|mein\w*|mir|mich|antwort"
    r"|lösung|ergebnis|je|j['’]\w+|moi|mon|ma|réponse|résultat|yo|mi|me|respuesta|resultado|solución|eu|meu|minha"
    r"|resposta|solução|io|mio|mia|risposta|risultato|soluzione|я|мой|мне|меня|ответ\w*|решени\w*|результат\w*)\b"
    r"|我|答案|结果|結果|上面|以上|答え|正解|解答|私|僕|답|결과|الجواب|الإجابة|النتيجة|أنا"
)
# A sentence about an answer or its writer, where an everyday word may say whose the answer is or when it held.
OF_ANSWERS = any_case(
    r"\b(?:answers?|results?|solutions?|values?|numbers?|guess\w*|i|i['’]\w+|me|my|mine|antwort\w*|ergebnis\w*"
    r"|lösung\w*|zahl|ich|mein\w*|réponse\w*|résultat\w*|solution\w*|nombre|je|j['’]\w+|mon|ma|respuesta\w*"
    r"|resultado\w*|solución|número|yo|mi|resposta\w*|solução|eu|meu|minha|risposta|risultato|soluzione|numero|io|mio"
    r"|mia|ответ\w*|результат\w*|решени\w*|число|я|мой)\b|答|الجواب|الإجابة|उत्तर|정답|답[은이]"
)
_OF_FORMS = any_case(r"\b(?:examples?|formats?|templates?|samples?|instructions?|placeholders?|syntax|style)\b")
_ANSWERS_WITH = any_case(
    r"^\W*(?:so |therefore |thus )?(?:the |my )?(?:final |correct )?(?:answer|die (?:richtige )?antwort|die lösung"
    r"|la réponse(?: finale)?|la respuesta(?: final)?|a resposta(?: final)?|la risposta(?: finale)?|ответ)\W"
)
_RAISED = lazy_pattern("[²³¹⁰-₟]")
DIGITS = lazy_pattern(r"\d[\d,]{0,40}(?:\.\d{1,40})?")
_THERE = any_case(r"\W*+(?:there (?:are|is) [§¤]|(?:step|part|case) [§¤])")
_EXCLAIMS = any_case(r"\W*+(?:ha+h?|who|what|how|why|when|where|huh|meh|lol|bah)\b")
_SHORT = 5  # words: a sentence this short is an exclamation, not an explanation
_VERBS = any_case(
    r"\b(?:this|it)(?:['’]s| (?:is|was|can|could|does|did|has|had|must|should|will|would|may|might|[a-z]{3,}s))\b"
)
_DENIALS = UNSAFE - {"if", "when", "would", "could", "can", "should", "or", "but", "however", "si", "se"}
_POINTS = any_case(r"\b(?:it|this|that)\b")
_POINTS_AT = any_case(r"\b(?:it|this|that|answers?|numbers?|values?|results?|above|something|anything)\b")
_LATIN = lazy_pattern(r"[A-Za-zÀ-ÿА-я]")
_OBJECTS = any_case(
    r"\W*+(?:(?:and|well|so|oh|ah)\b\W*)?(?:but(?! (?:i|we) (?:double-?)?check)|however|yet|although|though"
    r"|nevertheless|nonetheless|except|unless|actually|alternatively|or|otherwise|else|rather|instead|unfortunately"
    r"|alas|sadly|no|not|nope|never|wait|hold|hmm+|oops|whoops|sorry|of course|then again|on (?:second|reflection"
    r"|closer)|maybe|perhaps|psych|lol|please|just|honestly|frankly|edit|correction|update|grade|score|§|¤|aber|doch"
    r"|jedoch|leider|oder|nein|moment|mais|cependant|pourtant|malheureusement|ou|non|pero|sin|no|o|mas|porém|não|ma"
    r"|però|purtroppo|но|однако|или|нет|لكن|لا|أو)\b"
)
_SPEAKS = any_case(r"\b(?:i|i['’]\w+|ich|je|j['’]\w+|yo|eu|io|я)\b")
# What the writer did to find the answer, or says to the reader: no judgement of the answer.
_DID = any_case(
    r"\b(?:i|i['’]ve|i have|i['’]m|i am) (?:\w+ly |just |also |then |first |have )?(?:used?|solved?|factored|applied"
    r"|noticed|computed|calculated|worked|checked|double-checked|rechecked|verified|counted|added|subtracted|multiplied"
    r"|divided|simplified|substituted|started|began|wrote (?!this|it|that|something)|expanded|rearranged|converted|hope"
    r"|can|will|would be (?:happy|glad)|confident|sure|certain|happy|glad)\b"
)
_JUDGEMENT = 8  # words: "This was a stab in the dark." is a judgement; longer sentences explain
_IS = any_case(
    r"\W*+(?:and |so |still |then |well )?(?:(?:it|this|that|which|these|those|das|dies|es|ce|c['’]|cela|ça|eso|esto"
    r"|isso|isto|questo|ciò|это)(?: (?:answer|value|result|number|solution|one))?"
    r"|the (?:above|answer|value|result|boxed \w+|number|solution))"
    r"(?:['’]s|\s*['’]?(?:is|was|are|were|seems?|looks?|sounds?|feels?|smells?|appears?|ist|war|est|était|es|era|é"
    r"|è))?\b"
)
# In a sentence about the answer, words that speak against it, in addition to UNSAFE.
_AGAINST = any_case(
    r"\b(?:ignor(?:e|es|ed|ing)|disregard\w*|discard\w*|forg[eo]t\w*|redo\w*|retract\w*|scratch|doubt\w*|bogus|careless"
    r"|na[iï]ve(?:ly)?|slips?|(?:over|under|double|mis)-?(?:count|calculat|read|cop)\w*|contradict\w*|violat\w*"
    r"|fail(?:s|ed)?|suspicious|fishy|approximat\w+|rough(?:ly)?|estimate[ds]?|bounds?|placeholder|unverified|untested"
    r"|tentative\w*|provisional\w*|incomplete|partial(?:ly)?(?! (?:sum|fraction|derivative|quotient|product))|decoy"
    r"|bait|kidding|joking|jok(?:e|es)|differs?|reconsider\w*|second thoughts?|reflection|real (?:answer|value|number)"
    r"|true (?:answer|value|number)|actual (?:answer|value|number)|something else|instead|halv(?:e|ed|ing)|double it"
    r"|to (?:divide|multiply|subtract|square)|made up|invented|random\w*|thin air|arbitrar\w+(?! (?:\w+ )?(?:constants?"
    r"|integers?|numbers?|reals?))|hunch|stab|coin|unsure|uncertain|confus\w+|inconsistent|off by|close to|or so"
    r"|too (?:big|small|large|low|high|easy|much|many|good)|geraten|erfunden|deviné|inventé|inventado|inventei"
    r"|adivin\w+|inventato|indovinato|equivo\w+|выдум\w+|угада\w+|ошиб\w+)\b"
)
_PREDICATE = any_case(
    r"\W*+(?:is|was|are|were|would|could|might|may|can|cannot|should|must|turn\w*|look\w*|seem\w*|sound\w*|feel\w*"
    r"|appear\w*|belong\w*|prov\w+|need\w*|ha[sd]|have|do|does|did|comes?|came|got|gets?|goes|plus|minus|times|or|to"
    r"|ist|war|wäre|est|était|serait|es|era|sería|é|seria|è|sarebbe)\b"
    r"|\s*[,;—–-]{1,3}\s*(?:(?:al)?though|but|however|or|unless|if|except|at (?:least|most)|i|which i|which he"
    r"|which she|yet)\b"
)
_CALCULATION = any_case(r"[\d)%}]\s*[a-z.]{0,12}\s*=|=\s*[$(]*-?\d|§\s*[+*/×÷-]\s*§|[a-z]\s*=\s*[$]?\d|[+*/×÷=-]\s*\d")
CALCULATED = lazy_pattern(r"\d[\s$)]*[-+*/×x÷−–][\s$(]*\d[\d.,]*[\s$)%]*=[\s$]*$")  # "3 * 7 ="
_POINT_NAMES = lazy_pattern(r"\b(?!NOT?\b|OR\b)[A-Z]{2,3}\b")  # "the length of AB"
_ROMAN = lazy_pattern(r"\b(?:quadrants?|types?|cases?) I(?: (?:and|or) I[IV])?\b")
_ENGLISH = any_case(r"\b(?:the|is|has|that|therefore|so|of|in|we)\b")
_NAME = lazy_pattern(r"(?<=[a-z,] )[A-Z][a-z]+(?:'s)?\b(?! (?:answers?|guess|result|solution|opinion|key)\b)")
_GERMAN = any_case(r"\b(?:der|die|das|ist|sind|ein|eine|einen|also|somit|daher|damit|hat|es|insgesamt)\b")
_NAME_ELSE = lazy_pattern(r"(?<=[a-zà-ÿа-яё,] )[A-ZÀ-ÖА-Я][a-zà-ÿа-яё]+\b")
_OR = lazy_pattern(r"§(?:,?\s+or\s+(?:about\s+)?|或)(?:[A-Za-z]\s*=\s*)?§")  # already compared with each other
_PLURAL = lazy_pattern(r"§[\s$})*]{0,3}([^\W\d_]+)")
CONDITIONAL = Gated(
    r"\b(?:serait|seraient|pourrait|devrait|vaudrait|donnerait|ferait|aurait|sería|serían|podría|debería|daría|valdría"
    r"|seria|seriam|poderia|deveria|daria|sarebbe|sarebbero|potrebbe|dovrebbe|darebbe|wäre|wären|würde|würden|könnte"
    r"|müsste|dürfte|sollte|sei|seien|gdyby|\w{2,}ł[aoy]?by|skulle|zou(?:den)?|seandainya|(?-i:[a-zéí]+erait"
    r"|[a-zéí]+rían?|[a-z]+erebbe))\b|\bбы\b"
)
# Denials in what leads to a box by a colon, of what is not the answer: "Product rule, no surprises:".
_EXPLAINED_NOT = any_case(
    r"(?<![^\W\d_])(?:no|kein\w*|sans|sin|sem|senza|без|bez|zonder|utan)\s(?!(?:such|real|solutions?|answers?|values?)\b)"
    r"(?=[^\W\d_]{4,})"
    r"|(?:(?<=,\s)|^\W*)(?:and |und |et |y |e |а |en |i |och )?(?:not|nicht|pas|non|no|não|не|nie|niet|inte)\s"
    r"(?=(?:just |only |nur |seulement |solo |только )?(?:one|two|three|eine?r?|zwei|une?|deux|un[oa]?|dos|uma?|dois"
    r"|due|один|два|jeden|dwa|één|twee|ett|två|\d{1,3})(?![^\W_]))"
    r"|\b(?:don['’]t|do not|won['’]t|needn['’]t|didn['’]t) (?:bother|need|have to|want to)\b"
)
_OF_WRITER = any_case(
    r"\b(?:sure|certain|know|guess\w*|think|believe|likely|right|correct|wrong|this|that|it|sicher|weiß|richtig|das|dies|es"
    r"|sûr|sais|juste|ce|cela|ça|segur[oa]|sé|correct[oa]|esto|eso|isso|isto|sei|cert[oa]|so|sicur[oa]|questo|ciò|seker"
    r"|zeker|weet|dat|wiem|pewny|to|säker|det)\b|(?<!\w)(?:знаю|уверен\w*|это|точно|верно|впевнен\w*|це)(?!\w)"
)


def stem_of(word: str) -> str:
    for suffix in ("'s", "’s", "ing", "ed", "es", "s", "en", "e", "n", "ات", "ين", "ون", "ان", "ة"):
        if word.endswith(suffix) and len(word) - len(suffix) > 2:
            return word[: -len(suffix)]
    return word


def plain_words(part: str, own: float | None = None) -> str:
    """Returns the prose of `part`, with "¤" for each number that equals `own` and "§" for other maths."""
    if "\\" in part:
        part = _TEXT.sub(r" \1 ", part)
    part = _RAISED.sub("", part)
    return _MATHS.sub(lambda match: "¤" if own is not None and only_number(match[0]) == own else "§", part)


def only_number(text: str) -> float | None:
    """Returns the number in a text as a float, or None unless there is exactly one."""
    found = DIGITS.findall(text)
    return float(found[0].replace(",", "")) if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class Judge:
    """Finds the first word that speaks against an answer. A closed judge also rejects words that it does not know."""

    known: frozenset[str]
    prompt: str
    own: float | None  # the answer's number
    closed: bool

    def unknown(self, part: str, everyday: bool = False) -> str:
        """Returns the first word of a prose clause (see `plain_words`) that is not understood, or "".

        `everyday`: the clause is about things and not about answers, so everyday words are understood too.
        """
        if not self.closed:
            *reasons, part = JOINS.split(part)
            doubt = next((word for reason in reasons if (word := _doubt(reason))), "")
            if doubt or not (_of_answers(part) or _UNSPACED.search(part)):
                return doubt or _doubt(part)
        part = MAY.sub(" ", part.replace("’", "'"))
        first = _first_unknown(part, self.known, self.prompt, everyday)
        return first and _first_unknown(HARMLESS.sub(" ", part), self.known, self.prompt, everyday)

    def before(self, before: str, everyday: bool, boxed: bool) -> str:
        if not before.strip(" \t*_`$>#-([{\\"):
            return ""
        plain = plain_words(before)
        stated = _CONCLUDED.split(plain)[-1]
        named = _NAMED.match(plain) or _NAMED_ELSE.match(plain)
        plain = plain[named.end() :] if named else plain
        intro = _INTRO.match(plain)
        if intro and not _MINE.search(intro[0]) and not _CONDITION.match(plain):
            plain = plain[intro.end() :]
        clause = _BREAK.split(_CONCESSION.sub("", plain))[-1]
        if _CONDITION.match(stated) or CONDITIONAL.search(clause):
            return (stated.split() or [clause.strip()])[0]
        lead, colon, clause = clause.rpartition(":") if ":" in clause.rstrip(" :") else ("", "", clause)
        if colon and not _LED_FALSELY.search(lead):
            bare = _EXPLAINED_NOT.sub(" ", lead) if boxed and _explains(lead) else lead
            objection = next((word for word in WORD.findall(HARMLESS.sub(" ", bare)) if word.lower() in UNSAFE), "")
            if boxed and not objection and (_ANSWERS_WITH.search(clause) or not _of_answers(lead)):
                objection = _objection(bare)  # the text before the clause that states the answer explains
            elif objection or len(WORD.findall(lead)) < 4:
                objection = objection or self.unknown(lead)
            if objection:
                return objection
        one = _ONE_OF_SEVERAL.search(clause) and _ONE_OF_SEVERAL.search(HARMLESS.sub(" ", clause))
        if one:
            return str(one[0])
        turn = _OPEN.search(clause)
        if turn and stem_of(turn[0].split()[-1].lower()) not in self.known:
            return str(turn[0])
        clause = _POINT_NAMES.sub(" ", clause)
        if _ENGLISH.search(clause):
            clause = _NAME.sub(" ", clause)
        if everyday and not _GERMAN.search(clause):  # German nouns begin with capitals too
            clause = _NAME_ELSE.sub(" ", clause)
        bounded = _BOUNDED.search(plain) if boxed and not _ASKS_EXTREME.search(self.prompt) else None
        if bounded is not None:
            return bounded[0].strip()
        if CALCULATED.search(before):  # the calculation shows the value, whatever it counts
            return _objection(clause)
        clause = _ROMAN.sub(" ", clause)
        # A box states the answer by itself: the words before it only matter if they call its content something else.
        if boxed and not (_OF_FORMS.search(clause) or REPORTS.search(clause) or _CALLED.match(clause)):
            if before.rstrip(" $\n").endswith(":") and _explains(clause):
                clause = _EXPLAINED_NOT.sub(" ", clause)
            return _objection(_HALVING.sub(" ", clause))
        return self.unknown(clause, everyday)

    def inside(self, part: str, counted: bool, everyday: bool) -> str:
        plain = _CONCEDED.sub(" ", _OR.sub("§", plain_words(part)))
        if "?" in plain or "？" in plain:
            return "?"
        if not counted and not _PREDICATE.match(plain.lstrip("§ ")) and _LATIN.search(plain):
            plain = _SAYING.sub(lambda said: " " if stem_of(said[0].lower()) in self.known else said[0], plain)
            return _objection(plain)  # after a box or a calculation: a unit, a reason, an aside
        noun = _PLURAL.search(plain) if counted else None
        if noun and (noun[1].lower().endswith("s") or noun[1][0].isupper()) and noun[1].lower() not in _NO_NOUNS:
            plain = plain[: noun.start(1)] + plain[noun.end(1) :]  # "7 gizmos"
        judge = self if everyday else replace(self, closed=True)
        return judge.unknown(plain, everyday)

    def later(self, sentence: str) -> str:
        """Returns the first word of a later sentence that is not understood if it is about the answer, else ""."""
        if not sentence.strip():
            return ""
        plain = plain_words(sentence, self.own)
        words = len(WORD.findall(plain))
        if not words:
            return ""
        if _HEADING.fullmatch(sentence):
            return _objection(plain)
        if _NEW_VALUE.match(plain):
            return plain.strip()
        asked = [
            word for word in map(str.lower, WORD.findall(plain)) if stem_of(word) in self.known and word not in SAFE
        ]
        points = _POINTS.search(plain) and (_VERBS.search(plain) or _denies(plain))
        if not _NAMES_IT.search(plain) and (len(asked) > 1 or not points):
            refers = _REFERS.match(plain)
            if (words > _SHORT and not refers) or _THERE.match(plain) or _CALCULATION.search(sentence):
                return ""
        if words <= _SHORT and _EXCLAIMS.match(plain) and WORD.search(HARMLESS.sub(" ", plain)):
            return plain.strip()
        if plain.rstrip().endswith(("?", "？")) and WORD.search(HARMLESS.sub(" ", plain)):
            return "?"
        judge = replace(self, closed=True)
        return judge.unknown(plain) if _judges(plain, words) else _objection(plain)


def _first_unknown(part: str, known: frozenset[str], prompt: str, everyday: bool) -> str:
    for found in WORD.finditer(part):
        word = str(found[0])
        if len(word) == 1 and not _UNSPACED.match(word):
            continue
        lower = word.lower()
        if lower in UNSAFE:
            if f"={lower}" in known:
                continue
            return word
        if lower in SAFE or stem_of(lower) in known or (everyday and lower in EVERYDAY):
            continue
        if _UNSPACED.search(word):
            left = _UNSPACED.search(SAFE_UNSPACED.sub(" ", word))
            if left and left[0] not in prompt:
                return str(left[0])
            continue
        if _UNJUDGED.search(word):
            continue
        if all(piece in SAFE or len(piece) == 1 or stem_of(piece) in known for piece in re.split(r"['-]", lower)):
            continue
        return word
    return ""


def _judges(plain: str, words: int) -> bool:
    """Returns whether a later sentence judges the answer, so that each of its words must be understood."""
    if words < 3 or not _LATIN.search(plain) or _OBJECTS.match(plain):
        return True
    if _SPEAKS.search(plain):  # the writer speaks of the answer, and not of how it was found
        return _DID.search(plain) is None and _POINTS_AT.search(plain) is not None
    return words <= _JUDGEMENT and _IS.match(plain) is not None


def _objection(plain: str) -> str:
    """Returns the first word of a sentence or an aside that speaks against the answer, or ""."""
    plain = HARMLESS.sub(" ", MAY.sub(" ", plain.replace("’", "'")))
    against = _AGAINST.search(plain)
    denial = next((word for word in WORD.findall(plain) if word.lower() in _DENIALS), "")
    return against[0] if against else denial


def _explains(lead: str) -> bool:
    """Returns whether a clause that leads to a box is about the matter, not about the answer or the writer's doubts."""
    return len(WORD.findall(lead)) > 2 and not (_of_answers(lead) or _OF_WRITER.search(lead))


def _of_answers(clause: str) -> bool:
    """Returns whether a clause is about answers, about how they are written or about what somebody says."""
    return any(pattern.search(clause) for pattern in (OF_ANSWERS, _OF_FORMS, REPORTS))


def _doubt(clause: str) -> str:
    """Returns the first word of a clause about things that speaks against its statement, or ""."""
    found = next((match for pattern in (OPPOSED, UNREAL, REPORTS, GOT) if (match := pattern.search(clause))), None)
    return _objection(clause) or (found[0] if found else "")


def _denies(plain: str) -> bool:
    return not _DENIALS.isdisjoint(word.lower() for word in WORD.findall(HARMLESS.sub(" ", plain)))
