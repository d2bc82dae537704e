"""Finds words that deny or doubt an answer, before it ("it is not 7") or directly after it ("7 is wrong").

Every pattern is applied to at most a few hundred characters beside an answer, and none nests repetitions.
"""

from __future__ import annotations

import re

from verifiers.extract.gates import Gated
from verifiers.extract.spans import Span
from verifiers.extract.words import VALUE, any_of, ascii_words, whole_words
from verifiers.lazy_pattern import any_case, lazy_pattern

# -- "not" directly before an answer, and other words that turn an announcement into its opposite
_NOT_EN_RE = any_case(
    r"\b(?:not|never|isn't|is not|wasn't|aren't|cannot|can't|won't|nor|neither|incorrect|wrong|false|unlikely|doubt"
    r"|isn’t|can’t|unknown|impossible|far from|anything but|no way|no chance|hardly|(?:don['’]t|do not|doesn['’]t"
    r"|does not|didn['’]t) (?:think|believe|know|say|agree|claim|see))\b"
)
_NOT_ELSE = any_of(
    whole_words(
        "nicht", "kein", "keine", "keinesfalls", "niemals", "falsch", "unbekannt",
        "n['’]est", "ne", "pas", "jamais", "faux", "fausse", "inconnue?",
        "nunca", "jamás", "incorrect[oa]", "desconocid[oa]", "fals[oa]", "mentira",
        "não", "nunca", "non", "mai", "sbagliat[oa]",
        "niet", "geen", "inte", "ikke", "nie", "není", "değil", "yanlış", "bukan", "tidak",
        "không", "chưa", "nu", "nem", "ei(?: ole)?", "nie je", "nav", "nėra", "δεν", "δε",
        "не", "нет", "неверн\\w*", "неправильн\\w*", "неизвест\\w*", "нельзя", "ні",
        "ليس", "ليست", "لا", "غير", "خطأ", "الخطأ", "الخاطئ", "نیست", "לא", "אינה", "אינו",
    ),
    "(?<![^\\W\\d_])no(?=\\s+(?:es|era|son|puede|est[áa]|sabemos|se)(?![^\\W\\d_]))",
    "不(?!妨|等式|难|難|超过|超過|少于|同|变|變|定)", "并非|並非|错误|錯誤|未知", "ない|ません|間違|誤り|違い|不明",
    "아니|아닙|않|틀린|모르", "नहीं|गलत", "ไม่",
)  # fmt: skip
_NOT_ELSE_RE = any_case(_NOT_ELSE)
_NO_VALUE = any_case(r"(?:not|never|isn['’]t|wasn['’]t|aren['’]t|cannot|can['’]t|won['’]t|nor|neither)\b|" + _NOT_ELSE)
_NO_DENIAL = any_case(
    r"\b(?:(?:no|without|beyond)(?: any| a)? doubt|(?:not|isn['’]t) (?:hard|difficult)(?: to \w+)?)\b"
)


def negated(clause: str) -> bool:
    """Returns whether a clause that announces an answer denies it."""
    clause = _NO_DENIAL.sub(" ", clause)
    return _NOT_EN_RE.search(clause) is not None or (
        not _plain_english(clause) and _NOT_ELSE_RE.search(clause) is not None
    )


# If an ASCII text has none of these words, the patterns can't match it. Looking the words up costs far less.
_NEGATING = frozenset(
    "not never t cannot won nor neither incorrect wrong false unlikely doubt unknown impossible hardly far anything"
    " except don do nicht kein keine keinesfalls niemals falsch unbekannt n ne pas jamais faux fausse nunca no non nie"
    " mai niet geen inte ikke bukan tidak nu nem ei je nav incorrecto incorrecta falso falsa mentira desconocido"
    " desconocida sbagliato sbagliata".split()
)
SAYING = frozenset(
    "say says said think thinks thought believe believes claim claims claimed argue argues guesses guessed".split()
)


def free_of(text: str, words: frozenset[str]) -> bool:
    return text.isascii() and words.isdisjoint(ascii_words(text))


def free_of_negation(text: str) -> bool:
    """Returns True if `negated` can't find a denial in `text`. The test is cheap."""
    return free_of(text, _NEGATING)


def starts_negated(text: str) -> bool:
    """Returns whether an announced text begins with a denial, such as "not 7" after "The answer is"."""
    return not text[:1].isdigit() and _NO_VALUE.match(text) is not None


_FOREIGN_ANCHOR = any_case(
    r"antwort|ergebnis|resultat|r[ée]ponse|r[ée]sultat|respuesta|resultado|soluci|resposta|solu[çc]|risposta|risultat"
    r"|antwoord|uitkomst|svar|odpowied|wynik|odpov|cevap|jawaban|rezultat|vastaus|tulos|\b(?:ist|est|es|é|è)\b"
)


def _plain_english(text: str) -> bool:
    return text.isascii() and _FOREIGN_ANCHOR.search(text) is None


# -- before a box: directly before it, and earlier in its sentence
_NOT_THIS = any_case(
    r"(?:\b(?:not|[a-z]+n['’]t|never|used to be|except|other than|rather than|instead of|opposite of"
    r"|cannot be|nor|neither|anything but|far from|ruled? out|exclude[ds]?|discard(?:ed)?|dismiss(?:ed)?"
    r"|reject(?:ed)?|eliminated?|wrong|incorrect|false|nicht|kein(?:e|esfalls)?|n['’]est pas|pas|no es|no son"
    r"|não é|não são|non è"
    r"|non sono|niet|inte|ikke|nie (?:jest|je)|není|değil|bukan|không phải(?: là)?|nu (?:este|e)|nem|ei ole|δεν είναι"
    r"|אינ[הו]|לא)"
    r"(?:\s+(?:equal to|be|simply|just|exactly|etwa|einfach|égale? à|gleich|igual a|uguale a))?"
    r"|(?<![^\W\d_])(?:не|не является|не равен|не равно|ни)|不是|不等于|不等於|不为|并非|不可能是|不应是|ليس"
    r"|ليست|لا يساوي|नहीं|ไม่ใช่"
    r")$"
)
_UNSURE_OF_THIS = any_case(
    r"(?:\b(?:is|was|would|could|can|might|may|should) it(?: be)?|\b(?:could|might|may) be|\b(?:maybe|perhaps"
    r"|possibly|whether(?: it is)?)|\b(?:what if|if) (?:it|the answer) (?:is|was|were)"
    r"|\b(?:vielleicht|peut-être|quiz[áa]s?|tal vez|talvez|forse|возможно|может быть)|(?:也许|或许|可能)是?)$"
)
_NOT_THIS_WORDS = frozenset(
    "not t never cannot nor neither but from out used except other rather instead opposite exclude excluded discard"
    " discarded dismiss dismissed reject rejected eliminate eliminated wrong incorrect false nicht kein keine"
    " keinesfalls pas no non niet inte ikke nie bukan este e nem ole".split()
)
_UNSURE_WORDS = frozenset(
    "it could might may maybe perhaps possibly whether if vielleicht quizas quiza vez talvez forse".split()
)
_NOT_SAID = any_case(
    r"\b(?:don['’]t|do not|doesn['’]t|does not|didn['’]t|did not|cannot|can['’]t|never|would not"
    r"|wouldn['’]t)\s+(?:\w+\s+)?"
    r"(?:think|believe|say|accept|agree|claim|buy|trust|answer|write|put|pick|choose|give|use|submit)\b[^.;!?\n]{0,80}$"
    r"|\b(?:refuse|decline|hesitate) to\b[^.;!?\n]{0,80}$|\b(?:for example|an example|example of"
    r"|e\.g\.)[^.;!?\n]{0,60}$"
    r"|\b(?:wrong|incorrect|false|mistake\w*|untrue|absurd|silly|foolish)\s+(?:to|that|would be|is|answer|value"
    r"|result)\b[^.;,!?\n]{0,60}$|\b(?:suppose|assume|pretend)(?:\s[^.,;!?\n]{0,40})?$"
    r"|\b(?:one|you|people|students?|many|some(?:one|body)?|beginners?|solvers?)\s+(?:\w+\s+)?(?:might|may|could|would"
    r"|often|usually|typically|sometimes|tend|wrongly|mistakenly)\b[^.,;!?\n]{0,60}$"
    r"|\b(?:na[iï]ve(?:ly)?|tempting|tempted)\b[^.,;!?\n]{0,40}$"
)
_NOT_SAID_WORDS = frozenset(
    "might may could would often usually typically sometimes tend wrongly naive naively tempting tempted t not cannot"
    " never wrong incorrect false mistake mistaken mistakenly untrue absurd silly foolish suppose assume pretend refuse"
    " decline hesitate example g".split()
)
_OTHERS_SAY = any_case(
    r"(?<!\bi )(?<!\bwe )\b(?:says?|said|thinks?|thought|believes?|claims?|claimed|argues?|guess(?:es"
    r"|ed))\b[^.!?,;\n]*$"
)

# -- announced as something other than the final answer
_NOT_FINAL = Gated(
    r"\b(?:rule|ruled|ruling) out\b|\bat first (?:glance|sight)\b|\b(?:thought|believed|said|rumou?red) to be\b"
    r"|\baccording to (?:my|a|some|his|her)\b"
    r"|\b(?:antwort|ergebnis|lösung)\s+(?:wäre|würde)\b|(?:ответ|результат)\s+\w+\s+бы\b"
    r"|\b(?:ziffern?|hälfte|doppelte|teil|quadrat|wurzel)\s+(?:der|des)\s+(?:antwort|ergebnis|lösung)"
    r"|\b(?:intermediate|partial|preliminary|provisional|tentative|na[iï]ve|tempting|plausible|draft|rough|intuitive"
    r"|instinctive|knee-jerk)\s+(?:\w+\s+){0,2}?"
    r"(?:answer|result|solution)|\b(?:quick|obvious|easy)\s+(?:answer|solution) (?:would|might|seems)\b"
    r"|\b(?:digits?|half|double|square|root|part|factor|remainder) of (?:the|my|our) (?:\w+ )?(?:answer|result"
    r"|solution)\b"
    r"|\b(?:zwischen|teil)(?:ergebnis|resultat)|\b(?:vorläufig|naheliegend)\w*\s+(?:antwort|ergebnis|lösung)"
    r"|\b(?:r[ée]sultat|r[ée]ponse|solution|resultado|respuesta|resposta|risultato|risposta)\s+(?:interm[eé]d\w+"
    r"|par[cz]ia\w+|partiel\w*|proviso?[ri]\w+|provvisori\w+|pr[eé]liminai?r\w*)"
    r"|(?:промежуточн|предварительн|частичн)\w+\s+(?:ответ|результат)|(?:中间|中間|初步|部分|途中)の?(?:的)?(?:答案"
    r"|结果|結果|答え)|(?:중간|임시)\s*(?:답|결과)"
)


def not_final(sentence: str) -> bool:
    """Returns whether a sentence announces something other than a final answer, e.g. "The intermediate result is"."""
    return _NOT_FINAL.search(sentence) is not None


# -- a denied value that is replaced at once
_REPLACED = Gated(
    r"(?:\b(?:is|are|was|were|['’]s)\s+not|\b(?:is|are|was|were)n['’]t|\b(?:ist|sind|beträgt|lautet)\s+nicht"
    r"|\bn['’]est\s+pas|\bno\s+(?:es|son)|\bnão\s+(?:é|são)|\bnon\s+(?:è|sono)|(?<!\w)не|不是|并非|ليس)\s*"
    rf"(?:{VALUE}|\(?[A-J]\)?)\s*[,;，]?\s*(?:but(?: rather)?|(?:it|that)(?:['’]s| is)(?: actually)?|rather|sondern"
    rf"|mais(?: plutôt)?|sino|mas(?: sim)?|bensì|ma|а|而是|应该是|应是|应为|是|بل|es(?=\s+\d))\s*(?P<value>{VALUE}"
    rf"|\(?[A-J](?![A-Za-z])\)?)"
    r"(?:\s*(?!(?:that|which|who|times|more|less|fewer|mal|fois|veces|vezes|volte|раз|тысяч\w*|倍|万|亿|千|百)\b)"
    r"(?P<noun>[^\W\d_]+))?[\s.。!*]*$"
)
# The same in languages where the denial follows its value: 8ではなく7です.
_REPLACED_AFTER = lazy_pattern(
    rf"(?:{VALUE})\s*(?:ではなく|じゃなくて|でなく|이 아니라|가 아니라)[、,]?\s*(?P<value>{VALUE})\s*(?:です|だ|である"
    rf"|입니다|이다)?[\s.。*]*$"
)
_BEFORE_REPLACED = Gated(
    r"\b(?:if|whether|suppose|assume|maybe|perhaps|might|could|would|says?|said|claims?|or|not|wenn|si|se|如果)\b|[?？]"
)

_OF_THE_ANSWER = any_case(
    r"answer|result|value|number|total|solution|option|choice|antwort|ergebnis|lösung|r[ée]ponse|r[ée]sultat|respuesta"
    r"|resultado|resposta|risposta|risultato|ответ|результат|答案|结果|答え|정답|الجواب|الإجابة"
)


def replaced(text: str, low: int, end: int) -> tuple[Span, str] | None:
    """Returns the span of the final value that replaces a denied one ("The answer is not 2 but 3.") and its noun."""
    part = text[max(low, end - 200) : end]
    if part.isascii() and not (  # a generator would be slower than these searches
        " not " in part or "n't " in part or " nicht " in part or " pas " in part or " no " in part or " non " in part
    ):
        return None
    found = _REPLACED.search(part) or (None if part.isascii() else _REPLACED_AFTER.search(part))
    sentence = part[: found.start()].rpartition("\n")[2].rpartition(". ")[2] if found else ""
    if found is None or _BEFORE_REPLACED.search(sentence) or not _OF_THE_ANSWER.search(sentence):
        return None
    begin = max(low, end - 200) + found.start("value")
    return (begin, begin + len(found["value"])), found.groupdict().get("noun") or ""


# -- directly after an answer: its predicate
_COPULA = r"(?:is|was|would be|will be|seems|looks|remains|sounds|feels|are|were|proves|turns out to be)"
_DENIED_AFTER = any_case(
    r"[\s(\[,;:—–-]*+(?:(?:which|that|and (?:this|that|it)|but (?:this|that|it|they|he|she)|however,? (?:this"
    r"|that|it))\s*)?"
    + any_of(
        rf"(?:{_COPULA}|['’]s)\s+(?:\w+ly\s+|just\s+|also\s+|a\s+|an\s+|the\s+|quite\s+|still\s+|of course\s+"
        rf"|my\s+){{0,4}}"
        r"(?:not\b|n['’]t\b|wrong|incorrect|false|mistake|mistaken|invalid|impossible|error|unlikely|untrue"
        r"|nonsense|rubbish|absurd|too (?:big|large|small|high|low|many|much)|what (?:a|an|some|they|you"
        r"|i (?:would have|had|first|initially|originally))\b)",
        r"(?:is|was|are|were|ai|does|do|did|has|have|had|must|need|ca|could|wo|would|should)n['’]?t\b"
        r"(?! (?:hard|difficult|surprising))",
        r"(?:can|could|would|does|do|did|will|should)\s*not\b",
        r"(?:wrong|incorrect|false|nope|rejected|no)\b(?=\s*[).!,;]|\s*$)",
        r"(?:ist|war|wäre|kann|stimmt|sind)\s+(?:\w+\s+){0,2}?(?:nicht|falsch|inkorrekt|verkehrt|unmöglich|kein\w*)",
        r"not!", r"(?:نیست|نمی.?باشد)(?!\w)",
        r"(?:seems|looks|sounds|feels) (?:\w+ly )?(?:off|odd|strange|fishy|suspicious)\b|(?:fails|contradicts"
        r"|violates|breaks)\b",
        r"(?:must|should|has to|can|will|ought to) be (?:rejected|discarded|excluded|wrong|ignored|ruled out"
        r"|eliminated)\b",
        r"(?:is|was|gives|makes)\s+(?:only |just |about |exactly )?(?:half|twice|double|triple|part|one part"
        r"|a part|a third|a quarter|one step|a step|the first (?:part|step))\b",
        r"(?:stimmt nicht|falsch\b)",
        r"(?:n['’]est|n['’]était|ne\s+(?:peut|convient|marche)|(?:est|était|serait)\s+(?:\w+\s+){0,2}?(?:faux"
        r"|fausse|incorrecte?|erronée?|impossible|mauvaise?|pas))",
        r"(?:no\s+(?:es|era|puede|est[áa])|(?:es|era|est[áa]|sería)\s+(?:\w+\s+){0,2}?(?:incorrect[oa]"
        r"|fals[oa]|mal\b|err[óo]ne[oa]|equivocad[oa]|imposible|un error))",
        r"(?:não\s+(?:é|era|pode|está)|(?:é|era|está|seria)\s+(?:\w+\s+){0,2}?(?:incorret[oa]|fals[oa]"
        r"|errad[oa]|impossível|um erro))",
        r"(?:non\s+(?:è|era|può)|(?:è|era|sarebbe)\s+(?:\w+\s+){0,2}?(?:sbagliat[oa]|errat[oa]|fals[oa]"
        r"|scorrett[oa]|un errore|impossibile))",
        r"(?:is|klopt|was)\s+(?:\w+\s+)?(?:niet|fout|onjuist|verkeerd)",
        r"(?:är|er)\s+(?:\w+\s+)?(?:inte|ikke|fel|feil|forkert)",
        r"(?:nie jest|jest (?:błędn|zł|niepoprawn)|to (?:błąd|nie))",
        r"(?:это\s+)?(?:—\s*|-\s*)?(?:это\s+)?(?:невер[не]|неправильн|ошибочн|ошибка|не\s+(?:явля|подход|мож"
        r"|верн|правильн|ответ|то\b)|ложн)",
        r"(?:'?(?:dir|dır|dur|dür|tir|tır)?\s*)?(?:yanlış|değil|hatalı)",
        r"(?:là\s+)?(?:sai\b|không đúng|không phải|nhầm)", r"(?:adalah\s+)?(?:salah|bukan|keliru)",
        r"(?:这|這|那)?(?:个|個)?(?:答案|结果|結果)?(?:就|也|都|显然|顯然)?(?:是)?(?:错|錯|不对|不對|不正确"
        r"|不正確|不是|不可能|不成立|有误|有誤|并不|並不|并非)",
        r"(?:という?答え|という?のは)?(?:は|では|じゃ|が|も|で)?(?:間違|誤り|誤って|正しくな|違い|違う"
        r"|ありませ|あり得な|ありえな|ない|なく|不正解)",
        r"(?:은|는|이|가|라는)?\s*(?:답은|답이)?\s*(?:틀|아니|아닙|아님|오답|잘못|불가능)",
        r"(?:هو |هي |هذا |هذه )?(?:جواب |إجابة |الجواب |الإجابة )?(?:خطأ|خاطئ|غير صحيح|ليس|ليست|مستحيل)",
        r"(?:यह )?(?:गलत|ग़लत|नहीं)", r"(?:ไม่|ผิด)", r"(?:si|sio|siyo) (?:sahihi|jibu)", "కాదు", r"[✗✘❌❎✖👎🚫]",
    )
)  # fmt: skip
_ASKED_AFTER = lazy_pattern(r"[^.!?。！\n؟？]{0,80}(?:[?？؟]|吗|嗎|ですか|でしょうか|인가요|입니까|일까)")
_CALLED_FALSE = any_case(
    r"(?:です|だ|である|입니다|이다|है|हैं|ist|sei)?[\s,.;:—–()*।،。、，；!-]*+"
    + any_of(
        r"(?:(?:and|but|though|although|however,?) )?(?:this|that|the (?:previous|above|last|preceding)) (?:\w+ )?"
        r"(?:statement|claim|assertion|sentence|proposition|conclusion|answer|value|result|reasoning|line) "
        r"(?:is|was|seems|must be) (?:\w+ly |just |a )?(?:wrong|false|incorrect|untrue|mistaken|lie|nonsense|invalid"
        r"|not (?:true|right|correct))\b",
        r"(?:(?:this|that) is )?(?:false|wrong|incorrect|untrue)(?=\s*[.!)]|\s*$)",
        r"(?:this|that|it) (?:can|must|should|has to|ought to) (?:therefore |thus |hence )?be (?:ruled out"
        r"|rejected|discarded|excluded|dismissed|eliminated|disregarded)\b",
        r"(?:or |at least,? )?(?:so|(?:that|this)(?:['’]s| is| was) (?:\w+ly )?what) (?:a|an|some|many|most|they"
        r"|he|she|people|others|the careless|the naive)(?: \w+){0,2}? (?:would |might |may |could |will )?(?:says?"
        r"|thinks?|claims?|believes?|write)\b",
        r"(?:pero|aunque|mas|porém|ma|però) (?:es|está|é|è|era) (?:\w+mente )?(?:fals[oa]|incorrect[oa]"
        r"|incorret[oa]|err[óo]ne[oa]|equivocad[oa]|errad[oa]|errat[oa]|sbagliat[oa]|scorrett[oa])\b",
        r"(?:aber|doch|jedoch|mais) (?:ist |est )?(?:leider |malheureusement )?(?:falsch|faux|fausse)\b",
        r"(?:as )?(?:they|he|she|some|people) (?:say|says|said|claim|claims|claimed),? (?:wrongly|falsely"
        r"|incorrectly)\b",
        r"(?:aber |doch |jedoch |und )?(?:was|das|dies|diese[rs]? (?:behauptung|aussage|antwort|lösung|ergebnis|wert"
        r"|annahme)|ist) (?:ist |war |wäre |stimmt )?(?:\w+ )?(?:falsch|unwahr|inkorrekt|gelogen"
        r"|eine? (?:lüge|irrtum|fehler)|unsinn"
        r"|nicht(?: (?:richtig|korrekt|wahr|stimmt|zutrifft|der fall)\b|(?=[.!]|$)))",
        r"(?:mais |or |et )?(?:ce qui|cela|ça|c['’]|cette (?:affirmation|réponse|conclusion|assertion|phrase"
        r"|proposition)"
        r"|ce (?:résultat|raisonnement)) ?(?:(?:est|serait|était) (?:\w+ment )?(?:faux|fausse|incorrect|erron|inexact"
        r"|un mensonge|une erreur)|n['’]est pas (?:\w+ )?(?:vrai|correct|exact|juste|le cas))",
        r"(?:pero |y |aunque )?(?:lo (?:cual|que)|eso|esto|est[ae] (?:afirmación|respuesta|conclusión|proposición"
        r"|resultado|enunciado|valor)) (?:(?:es|era|está|resulta) (?:\w+mente )?(?:fals[oa]|incorrect[oa]|err[óo]ne[oa]"
        r"|mentira|equivocad[oa]|mal\b|un error)|no (?:es|está) (?:ciert[oa]|verdad|correct[oa]|verdader[oa]|así"
        r"|bien))",
        r"(?:mas |e |porém )?(?:o que|isso|isto|es[st][ae] (?:afirmação|resposta|conclusão|resultado"
        r"|valor)) (?:(?:é|era|está) (?:\w+mente )?"
        r"(?:fals[oa]|incorret[oa]|errad[oa]|mentira|um erro)|não (?:é|está) (?:verdade|verdadeir[oa]|corret[oa]"
        r"|cert[oa]))",
        r"(?:ma |e |però )?(?:il che|ciò|quest[oa](?: (?:affermazione|risposta|conclusione|risultato))?) (?:(?:è"
        r"|era) (?:\w+mente )?(?:fals[oa]"
        r"|errat[oa]|sbagliat[oa]|scorrett[oa]|una bugia|un errore)|non è (?:vero|vera|corrett[oa]|giust[oa]))",
        r"(?:но |а |однако )?(?:что|это|эт[оа] (?:утверждение|решение|заявление|высказывание)|этот ответ"
        r"|данное утверждение) ?[—-]? ?(?:является "
        r"|\w+о )?(?:неверн|неправильн|ошибочн|ложн|ложь|неправд|не (?:так|верно|правда)\b|не соответств)",
        r"(?:但是|但|然而|不过|可是|可|而且|而|并且|所以)?(?:这|此|這|该|該|以上|上述)(?:一|个|個|种|種|样|樣)?(?:说法"
        r"|說法|答案|结果|結果|结论|結論|观点|觀點|判断|判斷|命题|命題|陈述|解答|看法|想法)?(?:是|就是|也是|都是|显然"
        r"|顯然|明显|完全|并|並|其实|实际上){0,2}(?:不正确|不正確|不对|不對|错误|錯誤|错的|錯的|错了|有误|有誤|不成立"
        r"|假的|不准确|荒谬|站不住脚|谬误)",
        r"(?:但|但是)?(?:显然|顯然|明显|完全|其实)?(?:是)?(?:不正确|不正確|不对|不對|错误|錯誤|错的"
        r"|錯的)(?:的)?(?=[。！!\s]|$)",
        r"(?:しかし|だが|が)?、?(?:これは|それは|この(?:答え|主張|結論|値|説|記述)は|という(?:主張|のは|説"
        r"|考え)は?)(?:明らかに|実は)?(?:誤り|間違|正しくな|違い|違う|偽|嘘|誤って)",
        r"(?:이라|라)?(?:는|고 하는)?\s*(?:말|주장|것|이 답|이 진술|결론|이것|그것)(?:은|는|이|가)\s*(?:\w+\s)?(?:틀"
        r"|잘못|옳지 않|맞지 않|거짓|사실이 아|오답)",
        r"(?:لكن |ولكن |و|غير أن )?(?:هذا|هذه|ذلك)\s*(?:القول|الادعاء|الجواب|الإجابة|العبارة|النتيجة)?\s*(?:هو "
        r"|هي )?(?:خاطئ|خطأ|غير صحيح|غير دقيق|ليس|كاذب|باطل)",
        r"(?:लेकिन |और )?(?:यह|ये|जो)\s*(?:कथन |उत्तर |दावा |बात )?(?:कि )?(?:गलत|ग़लत|सही नहीं|असत्य|झूठ)",
        r"bu (?:ifade|iddia|cevap|önerme|sonuç|söz)? ?(?:\w+ )?(?:yanlış|doğru değil|hatalı)",
        r"(?:nhưng )?(?:khẳng định|câu|đáp án|điều|kết luận) (?:này|đó) (?:là )?(?:sai|không đúng)",
        r"(?:tetapi )?(?:pernyataan|jawaban|klaim|hal)(?: (?:ini|itu))? (?:adalah )?(?:salah|keliru|tidak benar)",
        r"(?:ale )?(?:to|co) (?:(?:stwierdzenie|zdanie|twierdzenie) )?(?:jest )?(?:fałsz|błędn|nieprawd|błędem)",
        r"(?:maar )?(?:deze|die|dit|dat|wat)(?: (?:bewering|stelling|antwoord|uitspraak))? (?:is"
        r"|klopt) (?:\w+ )?(?:onjuist|fout|onwaar|niet\b)|wat niet klopt",
    )
)  # fmt: skip


def denied_before(text: str, low: int, start: int) -> bool:
    """Returns whether the text before a box denies it, e.g. "The answer is not \\boxed{5}", "some say \\boxed{5}"."""
    before = text[max(low, start - 100) : start].rstrip(" $\\([{*=:，,、")
    if before.endswith("\n") and _calculated(before[:-1].rpartition("\n")[2], text[start : start + 60]):
        return False
    if not before.isascii():
        return bool(_NOT_THIS.search(before[-40:]) or _NOT_SAID.search(before) or _OTHERS_SAY.search(before))
    words = ascii_words(before)
    return (
        (not _NOT_THIS_WORDS.isdisjoint(words[-4:]) and _NOT_THIS.search(before[-40:]) is not None)
        or (not _NOT_SAID_WORDS.isdisjoint(words) and _NOT_SAID.search(before) is not None)
        or (not SAYING.isdisjoint(words) and _OTHERS_SAY.search(before) is not None)
    )


def _calculated(line: str, box: str) -> bool:
    """Returns whether a line calculates the number of the box after it ("... need 180/5 = 36 teachers")."""
    number = _A_NUMBER.search(box)
    return number is not None and re.search(rf"=\s?[$€£]?{re.escape(number[0])}(?![\d/]|[.,]\d)", line) is not None


_A_NUMBER = lazy_pattern(r"\d+(?:[.,/]\d+)*")


def unsure_before(text: str, low: int, start: int) -> bool:
    """Returns whether a box is doubted, e.g. "Maybe \\boxed{5}": no answer by itself, an alternative beside another."""
    before = text[max(low, start - 40) : start].rstrip(" $\\([{*=:，,、")
    if free_of(before, _UNSURE_WORDS):
        return False
    return _UNSURE_OF_THIS.search(before) is not None


def denied_after(text: str, position: int, end: int) -> bool:
    """Returns whether the text at `position` denies or questions the answer: "... is wrong", "..., which can't be"."""
    tail = text[position : min(end, position + 160)].lstrip(" $\\)]}*_`\n")
    return bool(tail) and (
        _DENIED_AFTER.match(tail) is not None
        or _ASKED_AFTER.match(tail) is not None
        or _CALLED_FALSE.match(tail) is not None
    )


# Words that make the answer depend on something: "7, depending on the convention".
_HANGS = any_case(
    r"[\s$\\)\]}*_`,;(—–-]*+(?:depending|give or take|je nach|abhängig von|(?:selon|suivant) (?:que|l['’]interpr"
    r"|la conv|le cas|les cas|comment|la (?:façon|manière))|(?:según|dependiendo|dependendo|conforme) (?:cómo|como"
    r"|d[aeo]|se|el caso|o caso|la interp|a interp|la conv|a conv)|a seconda|в зависимости|смотря|取决于|取決於"
    r"|视.{0,8}而定|에 따라|(?:ب?حسب|وفق) (?:الحالة|التفسير|طريقة))"
)


def hangs_on(text: str, position: int, end: int) -> bool:
    """Returns whether the answer is left open, as in "..., depending on the convention"."""
    return _HANGS.match(text, position, end) is not None
