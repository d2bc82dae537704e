"""Finds text that takes an answer back, replaces it or offers another one, in the languages that models write."""

from __future__ import annotations

import re

from verifiers.extract.denials import hangs_on
from verifiers.extract.gates import Gated
from verifiers.extract.sentences import sentence_ends
from verifiers.extract.spans import Span
from verifiers.extract.words import VALUE, WORD, any_of
from verifiers.lazy_pattern import any_case, lazy_pattern

_LOOK = 2500  # characters after an answer in which it may be taken back
_CLOSERS = " \t\r\n$\\)]}*_`.。．,"

# -- anywhere after an answer: a retraction
_SUBJECT = r"(?:that|this|it|which|the above|my answer|they|he|she)"
_SELF = Gated(
    any_of(
        r"\blet me (?:start|begin|try) (?:over|again)\b|\berratum\b|\boff by (?:one|two|three|\d+|a factor)\b"
        r"|\b(?:that|this|it)(?:['’]s| is) (?:one|two|three|a few|\d+) too (?:many|few)\b|\bi(?:['’]ve"
        r"| have) mixed up\b"
        r"|\b(?:scratch|strike) that\b|\bnever ?mind\b|\b(?:disregard|forget|ignore|discard) (?:that|this|it"
        r"|the (?:above|previous|last)|my)\b"
        r"|\bi take (?:it|that|this) back\b|\bjust kidding\b|\bi lied\b|\bi(?: was|['’]m| am) (?:wrong|mistaken)\b"
        r"|\bi mean[t]?\b|\bi mis(?:read|calculated|counted|took|spoke|typed|wrote)\b|\b(?:i"
        r"|i['’]ve) (?:just )?(?:made|make|see) (?:a|an|my|the) (?:\w+ )?(?:mistake|error|typo)\b"
        r"|\bmy (?:mistake|bad|error)\b|\b(?:oops|whoops)\b|\bcorrection\s*[:,-]|\bi retract\b"
        r"|\bcross (?:that|this|it) out\b|\bi no longer (?:believe|trust|think)\b"
        r"|\bi (?:hereby )?(?:withdraw|revoke|recant|disavow) (?:this|that|it|my|the)\b"
        r"|\bnot the (?:final )?answer\b|\bchanged my mind\b"
        r"|\bi (?:don['’]t|do not|can['’]t|cannot) (?:know|solve|answer|determine|find|figure)\b"
        r"|\bthat['’]s (?:a lie|not true|nonsense)\b|\bdon['’]t (?:believe|trust) (?:it|that|this|me)\b"
        r"|\bthe opposite is true\b|\b(?:none|nothing) of (?:this|that|the above) is (?:true|correct|right)\b"
        r"|\bi (?:just |simply )?(?:made|make) (?:that|this|it|everything)(?: \w+)? up\b"
        r"|\b(?:that|this|it) (?:is|was) (?:just )?a (?:joke|lie|trick)\b|\bi was (?:joking|lying|kidding)\b"
        r"|\bi give up\b|\bi stand corrected\b"
        r"|\b(?:i|we)(?:['’]ve| have| had)? (?:just )?(?:forgot(?:ten)?|missed|overlooked|neglected|omitted|left out"
        r"|(?:over|double|under)-?counted)\b|\bthis (?:over|double|under)-?counts\b",
        # the writer mixed things up
        r"\bi(?:['’]ve| have| had)? (?:swapped|mixed (?:up|them|it)|reversed|mixed|(?:had|got) (?:it|them"
        r"|that) (?:backwards?|the wrong way))|\bich habe (?:\w+ ){0,4}(?:vertauscht|verwechselt)"
        r"|\bje me suis (?:trompée?|emmêlée?)|\bj['’]ai "
        r"(?:tout )?(?:inversé|confondu)\b|\b(?:lo|las|los) he puesto al revés|\bme he (?:liado|confundido|equivocado)"
        r"|\bme equivoqué|\bmi sono (?:sbagliat|confus)|\bho (?:invertito|confuso|scambiato)\b|\bme enganei"
        r"|\b(?:eu )?(?:troquei|inverti)\b|(?<!\w)я? ?(?:перепутал|ошибся|ошиблась)|\b(?:pomyliłem|pomyliłam"
        r"|zamieniłem)\b|我(?:搞|弄|算|看|写)(?:错|反)"
        r"|(?:逆|勘違い)(?:でした|していました)|\bkarıştırdım\b|\bik heb (?:\w+ ){0,3}(?:verwisseld|omgedraaid)",
        # the writer takes it back
        r"\b(?:lo (?:retiro|ritiro)|retiro (?:isso|o que disse)|je (?:le|la|les|l['’])retire|trek (?:dat|het) terug"
        r"|cofam (?:to|się)|beru (?:to )?zpět|tar tillbaka (?:det|svaret)|tager det tilbage|geri alıyorum|rút lại"
        r"|tarik kembali|retrag (?:asta|răspunsul)|ritratto)\b"
        r"|(?<!\w)(?:беру (?:свои )?слова назад|беру назад|скасовую|беру (?:свої )?слова назад|Хоча ні|वापस लेत[ाी]"
        r"|पس می‌گیرم|پس می.گیرم|חוזר(?:ת)? בי)",
        # "Wait", "Stop" at the beginning of a sentence
        r"(?<=[.!?…]\s)(?:Espera|Espere|Aspetta|Aspettate|Wacht|Стоп|Стій|Зачекай\w*|Stop|Počkat|Počkej|Vänta|Dur|Durun"
        r"|Khoan|Tunggu|Vent|Stai|Moment|Attendez|Attends|Czekaj|Περίμενε|रुकिए|रुको|רגע|صبر کن\w*|لحظة)(?![^\W\d_])\s?"
        r"[,!.…:–—-]",
        r"(?<!\w)(?:تصحیح|תיקון|सुधार)\s?:|(?<!\w)(?:असल में|نه،? بلکه|در واقع)(?!\w)",
        # the value needs more work
        r"\b(?:this|it|that) (?:must|has to|needs to|should|still has to) (?:then |now |still )?be (?:multiplied"
        r"|doubled|halved|divided|squared|subtracted|increased|reduced)\b|\b(?:doubling|halving|squaring|multiplying"
        r"|negating) (?:this|it)\b"
        r"|\bbut (?:we|i|you|the (?:question|problem)) (?:need|want|asks?|(?:are|were) asked|seek)\b"
        r"|\bzwischen(?:summe|ergebnis)\b|\bi (?:still )?need to (?:add|subtract|multiply|divide|double)\b",
        # "this result is wrong" in other languages
        r"\b(?:ce|cet|cette|este|esta|esse|essa|questo|questa|dieses|diese) (?:résultat|réponse|valeur|solution"
        r"|resultado|respuesta|valor|solución|solução|resposta|risultato|risposta|valore|soluzione|ergebnis|antwort"
        r"|lösung) (?:n['’]|no |não |non )?"
        r"(?:est|es|está|é|è|ist) (?:pas |nicht )?(?:\w+ )?(?:err[oó]n|faux|fausse|in?corr|inexact|equivocad|mal\b"
        r"|errad|sbagliat|errat|scorrett|falsch|richtig\b(?<=nicht richtig)|impossible)"
        r"|(?:эт[оа]т?|данн\w+) (?:ответ|решение|результат|значение) (?:не\b|не|ошиб)|(?:答案|结果|結果|结论|结论|解法"
        r"|以上|上面)[^。\n]{0,6}"
        r"(?:错误|錯誤|不正确|不正確|不成立)|(?:هذه|هذا) (?:\w+ )?(?:خاطئ|خطأ|غير)"
        r"|\bhabe ich mich (?:geirrt|verrechnet|vertan)|\b(?:je rectifie|rectifico|corrigindo|correggo"
        r"|ich korrigiere)\b",
        # an error is found in the text above
        r"\bthere(?:['’]s| is| was| must be) (?:a|an|my) (?:\w+ )?(?:mistake|error|slip)\b",
        r"\b(?:previous|above|earlier|boxed) (?:answer |value |result |calculation |one |line |box )?(?:is|was|contains"
        r"|has) (?:\w+ly |a |an )?(?:\w+ )?(?:wrong|incorrect|mistaken|invalid|false|mistake|error|slip)\b",
        rf"\b(?:{_SUBJECT}|the answer|this (?:value|answer|result)) (?:fails|does(?:n['’]t| not) (?:satisfy"
        rf"|check out|fit|survive|hold up|work))\b",
        r"\b(?:il y a|hay|há|c['’]è|da ist|es gibt|есть|здесь) (?:\w+ )?(?:une? |un['’]|um |einen? )?(?:erreur|error"
        r"|erro|errore|fehler|ошибка)|(?:有误|有誤|有错|有錯)|(?:ich habe|habe ich"
        r"|wir haben)[^.!?\n]{0,40} (?:vergessen|übersehen)\b"
        r"|\b(?:j['’]ai|nous avons|on a) (?:oublié|omis)|\b(?:olvidé|olvidamos|se me olvidó|esqueci|esquecemos)\b"
        r"|\b(?:ho|abbiamo) dimenticato\b|(?<![^\W\d_])(?:забыл|забыла|забыли|упустил[аи]?|пропустил[аи]?)(?![^\W\d_])"
        r"|(?<![不别別没沒])(?<!不要)(?<!没有)(?<!沒有)(?<!不能)(?:忘了|忘记了|忘記了|漏了|漏掉了|漏算了)"
        r"|(?:忘れてい?まし|見落として)|(?:빠뜨렸|놓쳤|잊었)|(?:نسيت|نسينا)(?!\w)",
        rf"\b{_SUBJECT}(?:['’]s| is| was| are| were| must be| has to be| seems| looks) (?:\w+ly |also |all |just |a "
        rf"|an |the |my )?"
        r"(?:not (?:right|correct|true|it|the (?:right|correct|real|final)? ?answer|what|valid|possible)|wrong\b"
        r"|incorrect\b|mistaken\b|a mistake\b|mistake\b|an error\b|error\b|false\b|impossible\b|nonsense\b|rubbish\b)",
        rf"\b{_SUBJECT} (?:isn['’]t|wasn['’]t|ain['’]t|can['’]?t|can ?not|couldn['’]t|could not|doesn['’]t"
        rf"|does not) (?:be )?(?:right|correct|true|it\b|the (?:right|correct|real)? ?answer|work|possible"
        rf"|hold|make sense)",
        r"\b(?:real|actual|true|right|correct|proper|better|corrected|revised|updated) (?:final )?(?:answer"
        r"|value|result|solution|one)\s*(?:is|was|should|would|must|:|=|-|comes)",
        r"\bthere (?:is|are) no (?:solutions?|answers?)\b",
        r"\b(?:das|dies|es)\s+(?:ist|war|stimmt|kann)\s+(?:\w+\s+)?(?:nicht|falsch|verkehrt|unmöglich)|\bich (?:meine"
        r"|meinte)\b|\bkorrektur\b|\bvergiss\b|\bhabe mich (?:geirrt|verrechnet|vertan)|\bfalsch gerechnet"
        r"|\brichtig (?:ist|wäre)\b|\b(?<!ist die )(?:richtige|tatsächliche|wahre|eigentliche) (?:antwort|lösung)"
        r"|\bbesser gesagt\b|\bich nehme das zurück|\b(?:ziehe|nehme)\b[^.\n]{0,40}\bzurück\b",
        r"\b(?:c['’]est|cela est|ce n['’]est|ça) (?:\w+ )?(?:faux|incorrect|une erreur|pas (?:ça|correct"
        r"|juste|bon|possible))|\bje (?:veux|voulais) dire\b|\bcorrection\b"
        r"|\bje me suis tromp|\boubliez|\boublie (?:ça|cela)|(?<!est la )\b(?:vraie|véritable|bonne) réponse\b"
        r"|\bou plutôt\b|\bje retire",
        r"\b(?:eso|esto) (?:es|está|no es|no puede|no está)\b[^.\n]{0,20}?(?:mal|incorrecto|falso|correcto"
        r"|posible|error)|\bquier[oe] decir\b|\bquise decir\b|\bcorrijo\b|\bcorrección\b"
        r"|\bme (?:he )?equivo|\bolvid[ae]\b|\bmejor dicho\b|\bmás bien\b|(?<!es la )\b(?:verdadera respuesta"
        r"|respuesta (?:real|verdadera|correcta))\b|\ben realidad\b",
        r"\b(?:isso|isto) (?:está|é|não)\b[^.\n]{0,20}?(?:errado|incorreto|falso|correto|possível|erro)"
        r"|\bquero dizer\b|\bquis dizer\b|\bcorreção\b|\bme enganei\b|\berrei\b|\besqueça\b"
        r"|\bou melhor\b|\bna verdade\b|(?<!é a )\bresposta (?:real|verdadeira|correta|certa)\b",
        r"\b(?:questo|ciò|quello) (?:è|non è|non può)\b[^.\n]{0,20}?(?:sbagliato|errato|falso|corretto|giusto"
        r"|possibile|errore)|\b(?:voglio|volevo) dire\b|\bcorrezione\b|\bmi sono sbagliat"
        r"|\bho sbagliato\b|\banzi\b|\bin realtà\b|\bo meglio\b|\bvera risposta\b|(?<!è la )\brisposta (?:corretta"
        r"|giusta|vera)\b",
        r"\bik bedoel\b|\bdat is (?:fout|niet|onjuist)|\bcorrectie\b|\bvergissing\b|\bjag menar\b|\bmam na myśli\b"
        r"|\bpomyłka\b|\bto błąd\b|\bmaksud saya\b|\bralat\b|\bdemek istedi|\byanlış\b|\bdüzeltme\b|\bnhầm\b"
        r"|\bđính chính\b|\bthực ra\b",
        r"(?<!\w)(?:(?:это|ответ) (?:неверн|неправильн|не\s+(?:так|то|верно|правильно)|ошибк)|я ошиб|ошибся"
        r"|ошиблась|имею в виду|имел[аи]? в виду|забудь|на самом деле|исправл|поправка|беру (?:это"
        r"|свои слова) (?:назад|обратно)|точнее|вернее|(?:правильный|верный|настоящий) ответ)",
        "不对|不對|[算说說弄写寫搞看]错|[算說弄寫搞看]錯|错了|錯了|是错的|是錯的|我的?意思是|更正|修正|纠正"
        "|口误|作废|收回|真正的答案|正确(?:的)?答案|正確(?:的)?答案",
        "間違え|間違い|訂正|違いました|違います|ではなくて|失礼しました|撤回|取り消し|本当の答え|正しい答え|正しくは",
        "틀렸|틀린|잘못|정정|실수|취소|사실은|진짜 답|올바른 답",
        r"أخطأت|خطأ|تصحيح|أقصد|أعني|عفوا|غير صحيح|الجواب الصحيح|الإجابة الصحيحة|في الحقيقة",
        "गलत|ग़लत|मेरा मतलब|सुधार|असली उत्तर|सही उत्तर",
    )
)  # fmt: skip
_OTHERS_MISTAKE = any_case(
    r"\b(?:common\w*|students?|people|some(?:one)?|one (?:might|may|could)|you (?:might|may|could)|tempt\w*"
    r"|if|would|häufig\w*|souvent|común|comum|comune)\b|часто|常见|常見|よくある|흔한"
)
# A weak correction and a value: the value must agree with the answer.
_INSTEAD = Gated(
    any_of(
        r"\b(?:no|nope|nein|non|não|nee|nej|nie|hayır|không)\b[,.:;!—–-]*\s*(?:wait|actually|sorry|rather"
        r"|moment|attends|attendez|espera|espere|aspetta|aspetti|warte|pardon|désolé|perdón|desculpe|scusa"
        r"|scusate)?[,.:;!—–-]*\s*"
        r"(?:it['’]s|it is|it was|that['’]s|the answer is|make (?:it|that)|i think(?: it['’]s)?|es ist"
        r"|es sind|c['’]est|es|son|é|è|sono|to|il y en a|y'a)?\s*",
        r"(?<![^\W\d_])(?:нет|ні|не,)[,.:;!—–-]*\s*(?:это)?\s*(?:—|-)?\s*",
        r"\b(?:actually|sorry|wait|rather(?! than)|instead(?! of)|hmm+|make that|well|apologies|or"
        r"|alternatively|perhaps"
        r"|maybe|possibly|otherwise|eigentlich|oder|vielleicht|vielmehr|moment|entschuldigung|sondern"
        r"|en fait|plutôt|pardon|désolé|peut-être|ou|perdón|espera|quiz[áa]s?|tal vez|talvez|o|oppure|forse"
        r"|veya|belki|lub|może|atau|mungkin|hoặc|có lẽ)\b[,:;.!—–-]*\s*"
        r"(?:no\b[,.]?\s*)?(?:it(?:['’]s| is| was| should be| could be| might be| may be)|the (?:answer"
        r"|result) (?:is|was)|that(?:['’]s| is)|i (?:get|got)|we get|should be|make (?:it|that)|even|also"
        r"|maybe|perhaps|possibly|vielleicht|peut-être|talvez|tal vez|quiz[áa]s?|forse|es ist|c['’]est|es|é|è)?\s*",
        r"\b(?:it|that)(?:['’]s| is) (?:really|actually|in (?:fact|truth|reality)|truly),?\s*",
        rf"\bit(?:['’]s| is)\s*(?={VALUE}[\s.!*]*$)",
        r"\b(?:it|that|this|the (?:answer|result|value)) (?:should|must|has to|ought to|needs to|could|might"
        r"|may|can) (?:actually |really |instead |also |equally |just as well |even |have )?be(?:en)?\s*",
        r"\b(?:second|other|backup|next|fallback) (?:choice|guess|option|candidate) (?:is|would be|was|:)\s*"
        r"|\n\s*\**final\**\s*[:：]\s*",
        r"\b(?:else|failing that|if not|if (?:that|this|it)\b[^.;()\n]{0,40}?(?=,|\bthen\b))[,:]?\s*(?:then\s*)?",
        r"\bso,?\s*(?=[^\n]{1,24}?[.!]?\s*$)", r"\b(?:es|das) (?:könnte|müsste|sollte) (?:auch )?\s*",
        r"\b(?:ça|cela) (?:pourrait|devrait) (?:aussi )?être\s*",
        r"\b(?:podría|debería|poderia|deveria|potrebbe|dovrebbe) (?:también |também |anche )?"
        r"(?:ser|essere)\s*",
        r"(?<![^\W\d_])(?:или|либо|может быть|возможно|простите|извините|стоп|подождите|а нет"
        r"|верн\w+)[,.:;—–-]*\s*(?:это|может быть)?\s*",
        r"(?:不(?:是|对|對)?(?=[，,、。：:])|等等|其实|其實|应该是|應該是|应为|應為|而是|抱歉|或者?|也许|或许|可能"
        r"|也可能)[，,、。：:]?(?:是|为|為|也许|可能)*\s*",
        r"(?:いや|いえ|いいえ|待って|実は|やはり|すみません|または|あるいは|もしくは|たぶん|おそらく)[、,。：:]?\s*",
        r"(?:아니|아니요|아뇨|사실|죄송|잠깐|또는|혹은|아마)[,.:]?\s*",
        r"(?<![^\W\d_])(?:لا|بل|أو|ربما|عذرا)[،,.:]?\s*(?:بل|هو)?\s*",
        r"(?:नहीं|बल्कि|या|शायद)[,.:]?\s*",
    )
    + rf"\**(?P<value>{VALUE})"
)  # fmt: skip
# A value that the words after it offer or make conditional: "8 works too", "* 8 if the ends count".
_OFFERED = Gated(
    rf"(?:[.;,(*†‡:\n]|\b(?:but|though|although|and|while|whereas|that|reflection|reconsideration"
    rf"|so)\b)\s*(?P<value>{VALUE})\s+(?:"
    r"(?:if|when|unless|provided|assuming|in case|otherwise)\b(?!\s*(?:and only|\$|x|n)\b)"
    r"|(?:is|are|was|works?|fits?|would|could|might|may|can|seems?|remains?)\b(?:\s+\w+){0,4}?\s*\b(?:valid|acceptable"
    r"|possible|possibility|plausible|right|correct|too|also|fine|as well|alternative|option|defensible|likely"
    r"|answer)\b)"
)
_FAILS = any_case(
    rf"(?P<value>{VALUE})\s+(?:does(?:n['’]t| not) (?:work|hold|satisfy|fit|check)|fails\b|can(?:not|['’]t) be\b"
    r"|is (?:not (?:right|correct|valid|possible|a solution|the answer)|wrong|incorrect|impossible|invalid)\b)"
)
_RESTATES = any_case(
    r"\b(?:approximately|approx|about|around|roughly|nearly|equivalently|ungefähr|etwa|circa|ca|environ"
    r"|aproximadamente|cerca|около|примерно)\b|≈|\\approx|约|約"
)
MISTAKES = any_case(
    r"\W*+(?:an? |the |ein(?:e)? |der |die |(?:some |other )?)?(?:common|typical|frequent|usual|häufige?r?|typische?r?"
    r"|beliebte?r?) (?:mistakes?|errors?|pitfalls?|slips?|traps?|fehler|patzer|irrtum|falle)\b|\W*(?:(?:une |l['’]|el "
    r"|la |un |uno |o |um |lo )?(?:erreurs? (?:fréquente|courante|classique)s?|error(?:es)? (?:común|comunes"
    r"|frecuentes?|típicos?)|erros? comu(?:m|ns)|error[ei] (?:comun[ei]|frequent[ei])))\b"
)
_OR = any_case(r"(?:or|oder|ou|o)\b")
_OTHER_VALUE = lazy_pattern(VALUE)
_EXEMPT = any_case(
    r"\brather than\b|\binstead of\b|不要|不是|并非|而非|(?<!\w)не\s|检验|验算|=|≠|\\ne|<|>|[+×*]|\\cdot|\\times"
    r"|\b(?:not|no|would|problem|page|more|because|since|line|step|source)\b|n['’]t\b"
    r"|(?<!edit)(?<!update)(?<!correction)(?<!corrected)(?<!answer)(?<!result)(?<!better)(?<!rather)(?<!sorry)(?<!oops)\s*[:：]"
)  # a calculation, a denial of another value, "Confidence: 90%"
_LAST = any_case(r"(?:\s*(?:is|are) (?:also )?(?:possible|right|correct|better|it)|でした|です|입니다)?[\s.!?。)*]*$")
_STATES = any_case(
    r"(?:\b(?:is|are|was|were|equals?|comes to|makes|ist|sind|beträgt|lautet|est|sont|vaut|es|son|é|è|são|sono|fa"
    r"|равно|равен|это)|[是为為]|は)\s*[*$]*$"
)  # the words before a value that ends its sentence
_CALCULATES = any_case(
    r"[=≠<>+×*]|\\ne|\\cdot|\\times|\b(?:not|no|problem|page|step|line|source|confidence|remainder|check"
    r"|verif\w*|nicht|pas|non?|não|не)\b|n['’]t\b|不|ない|ません"
)


def plain_tail(text: str, position: int, end: int) -> bool:
    """Returns whether only closing signs follow `position`."""
    return not text[position : min(end, position + 64)].strip(_CLOSERS)


def retracted(text: str, position: int, end: int) -> int | None:
    """Returns where the text takes back the answer that ends at `position`, or None."""
    if hangs_on(text, position, end):
        return position
    given = text[max(0, position - 40) : position].rstrip("$ .*)}\\")
    for match in _FAILS.finditer(text, position, min(end, position + _LOOK)):
        value = match["value"].strip("$ ")
        if given.endswith(value) and not given[: -len(value)][-1:].isdigit():
            return match.start()
    for match in _SELF.finditer(text, position, min(end, position + _LOOK)):
        low = max(position, match.start() - 120)
        sentence = re.split(r"[.!?。\n]", text[low : match.start()])[-1]
        if not _OTHERS_MISTAKE.search(sentence):
            return match.start()
    return None


def instead(text: str, position: int, end: int) -> list[Span]:
    """Returns the values that the text states instead of the answer or beside it: "no, 8", "or maybe 8"."""
    found = []
    for match in _INSTEAD.finditer(text, position, min(end, position + _LOOK)):
        if not _RESTATES.search(match[0]) and not _of_mistakes(text, position, match):
            found.append(match.span("value"))
        if len(found) == 4:
            break
    if not found:
        offered = (match for match in _OFFERED.finditer(text, position, min(end, position + _LOOK)))
        found = [match.span("value") for match in offered if " not " not in match[0]][:4]
    return found or offers(text, position, end)


def _of_mistakes(text: str, position: int, offered: re.Match[str]) -> bool:
    """Returns whether the sentence only names mistakes ("Common mistake: reporting 9 or 324") and offers no value."""
    sentence = re.split(r"[.!?。\n]", text[max(position, offered.start() - 120) : offered.start()])[-1]
    return MISTAKES.match(sentence) is not None and _OR.match(offered[0]) is not None


def offers(text: str, position: int, end: int) -> list[Span]:
    """Returns the values of sentences after the answer, which must agree with it: "It's 8.", "So the total is 8."."""
    found: list[Span] = []
    low = position
    for stop in (
        *(match.end() for match in sentence_ends(text).finditer(text, position, min(end, position + 400))),
        end,
    ):
        sentence = text[low:stop]
        if len(sentence) < 48 and any(char.isdigit() for char in sentence) and not _EXEMPT.search(sentence):
            values = [match.span() for match in _OTHER_VALUE.finditer(text, low, stop)]
            words = WORD.findall(sentence)
            listed = len(values) == 1 and not words and text[:low].endswith("\n")  # "1." in a list
            if len(values) == 1 and not listed and len(words) <= 6 and _LAST.match(text, values[0][1], stop):
                found.append(values[0])
        elif len(sentence) < 200 and any(char.isdigit() for char in sentence) and not _CALCULATES.search(sentence):
            values = [match.span() for match in _OTHER_VALUE.finditer(text, low, stop)]
            if values and _LAST.match(text, values[-1][1], stop) and _STATES.search(text, low, values[-1][0]):
                found.append(values[-1])
        low = stop
        if stop >= position + 400 or len(found) == 4:
            break
    return found
