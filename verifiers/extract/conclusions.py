"""Finds out whether a number in prose is what its sentence concludes: "Problem 7. I can't solve it." concludes nothing.

The number follows a conclusion, a copula or an equals sign, no label, preposition or premise precedes it, and no doubt
follows it.
"""

from __future__ import annotations

import re

from verifiers.extract.denials import denied_after, hangs_on
from verifiers.extract.gates import Gated
from verifiers.extract.hedges import COMPARES
from verifiers.extract.scaled import changes_value
from verifiers.extract.sentences import MATHS, NUMBER
from verifiers.extract.spans import Span
from verifiers.lazy_pattern import any_case, lazy_pattern
from verifiers.units.words import PERCENT

_WORD_OR_HASH = lazy_pattern(r"\w+|#")
_MOST_LEADING = 6  # words: "divided by the number"
_ARGUMENTS = 48  # characters before a value in which a word can make it an argument
UNSURE = Gated(
    r"\b(?:or|either|maybe|perhaps|possibly|(?<!that )(?<!which )(?:could|might|may) be"
    # "points that could be in the domain" names what is counted and expresses no doubt
    r"|(?:could|might|may) be(?! (?:in|on|at|made|drawn|chosen|written|won|built|cut|[a-z]+ed)\b)|not|isn['’]t|guess\w*"
    r"|between|about|around|wrong|unsure|uncertain|unknown|don['’]t know|no idea|cannot|can['’]t|couldn['’]t|could not"
    r"|unable|give up|gave up|giving up|stuck|sorry|skip|hard|difficult|impossible|lucky|favou?rite|rul(?:e|ed|ing) out"
    r"|exclud\w+|reject\w*|eliminat\w+|contradict\w*|first (?:thought|idea|instinct|impression)|but (?:it|that"
    r"|this) (?:fails|breaks|violates)|falsch|faux|fausse|incorrect\w*|fals[oa]|errad[oa]|sbagliat[oa]|equivoqué"
    r"|equivocad[oa]|erreur|no (?:cumple|satisface|funciona)|wären?|serai(?:en)?t|ser[íi]an?|sarebbe(?:ro)?"
    r"|erste[rn]? (?:gedanke|idee)|première idée|primera idea|nicht|kein\w*|vielleicht|oder|pas|ne|peut-être|ou|désolé"
    r"|quiz[áa]s?|tal vez|lo siento|não|talvez|desculp\w+|non|forse|niet|misschien|nie|może|değil|belki|không|tidak"
    r"|bukan)\b"
    r"|\b(?:tai|joko|ehkä|ei ole|en (?:ole varma|tiedä)|vagy|talán|sau(?! (?:khi|đó|này)\b)|poate|eller|måske|kanskje"
    r"|kanske|nebo|buď|možná|lub|albo|ili|možda|arba|veya|ya da|hoặc|atau)\b|(?<!\w)(?:ή|ίσως|או|אולי|אינ[הו]|или"
    r"|може би)(?!\w)|หรือ|ไม่ใช่"
    r"|(?<![^\W\d_])(?:не|нет|или|возможно|может|ليس|لا|لست|ربما|أو)(?![^\W\d_])|[?？؟]|(?<![^\W\d_])no (?:es|puedo|sé"
    r"|se|lo|son)(?![^\W\d_])"
    r"|不(?:会|會|知|能|是|对|對|确|確|行|满足|滿足|符合|成立)|満たさ|没(?:有?办法|法|有答案)|沒(?:有?辦法|法)"
    r"|无法|無法|或|也许|可能|猜|吗|嗎|ません|ない|たぶん|かも|分から|わから|모르|못|없|아니|아마|또는|नहीं|शायद"
    r"|(?<![\u0900-\u097f])या(?![\u0900-\u097f])"
)
ANNOUNCING = any_case(
    r"\b(?:answer|solution to|antwort|lösung|réponse|respuesta|resposta|risposta|antwoord|cevap|jawaban)"
    r"|ответ|答案|答え|정답|الجواب|الإجابة|उत्तर"
)
SETUP = any_case(
    r"\s*+[-*>#\d.)]*+\s*+(?:(?:so|now|first|then|next|and|but)\s+"
    r"|(?:so|now|first|then|next),\s+(?=(?:note|recall|remember|given|suppose|assum\w+|consider|let)\b))?"
    r"(?:\b(?:let|suppose|assum\w+|consider\w*|(?:the|this|our) (?:problem|question|exercise|task|statement|prompt"
    r"|text) (?:says?|said|states?|stated|tells?|told|gives?|gave|mentions?|asks?|asked|reads?)|we know|given"
    r"|we are given|say|try|guess\w*|find|determine|compute|calculate|evaluate|show|prove|recall|remember|note|hint"
    r"|check|test|where|when|if|for|i(?!(?: (?:get|got|find|found|obtain)|(?: am|['’]m) (?:\w+ )?(?:certain|sure"
    r"|confident|positive))\b)|in(?! (?:totale?|tutto|all|conclusion|summary|short|interval|set|simplest|exact)\b)|at"
    r"|after(?! \w+ing\b)|before|by|see|what|why|how|who|is|which(?! (?:\w+ )?(?:gives?|means|implies|is|are|equals?"
    r"|simplifies|yields|leaves|leads|can be|evaluates)\b)|are|does|do(?! đó)|can|could|would|let['’]s|solve|simplify"
    r"|expand|factor|plug|substitute|verify|use|using|problem|question|exercise|step|part|page|chapter|section|figure"
    r"|table|example|case|room|class|version|level|round|task|option|choice|line|row|item|no(?=\.?\s*\d)|sei|angenommen"
    r"|gegeben|aufgabe|frage|schritt|ich|soit|supposons|exercice|question|étape|je|sea|supongamos|problema|ejercicio"
    r"|pregunta|paso|yo|seja|suponha|exercício|questão|passo|eu|sia|supponiamo|esercizio|domanda|io|opgave|vraag|soru"
    r"|soal)\b|(?:пусть|предположим|задача|вопрос|шаг|я|дано)(?!\w)"
    r"|第|设|設|假设|假設|已知|若|如果|问题|問題|题目|求|设|仮定|문제|만약|المسألة|السؤال|ليكن|لنفترض|प्रश्न|माना|यदि)"
)
NEED = any_case(
    r"\b(?:need|want|have|try|asked|asks?|supposed|going|remains?) to (?:find|know|show|prove|check|verify|get"
    r"|determine|compute|calculate|solve)\b"
)
CONCLUDES = Gated(
    r"\b(?:so|therefore|thus|hence|then|consequently|finally|altogether|in total|in all|total\w*|overall|left|toplam"
    r"|tổng cộng|remain\w*|gives?|giving|gets?|got|obtain\w*|yields?|equals?|is|are|was|were|be|becomes?|stands at"
    r"|comes? (?:out )?to|amounts? to|adds? up to|simplif\w+ to|reduces? to|evaluates? to|equal to|conclude\w*|follows"
    r"|(?:this|that|which) leaves|(?:has|have|had)(?=\s+(?:(?:exactly|only|just|a total of|about)\s+)?[$(\\*]*$)"
    r"|makes?(?=\s+[$(\\*]*$)|also|daher|somit|folglich|insgesamt|ergibt|lautet|lauten|heißt|am ende|en tout|al final"
    r"|no total|ao todo|alla fine|por tanto|[éè]|bleib\w+|ist|sind|erhalten|beträgt|donc|ainsi|reste\w*|est|sont"
    r"|obtient|vaut|vale|valen|valem|equivale|por lo tanto|así que|entonces|luego|qued\w+|en total|hay|es|son|obtenemos"
    r"|portanto|assim|así|deshalb|allora|pertanto|par conséquent|logo|então|rest\w+|há|são|obtemos|quindi|dunque|perciò"
    r"|sono|totale|otteniamo|dus|blijven|zijn|więc|zatem|jadi|maka|vậy|do đó)\b"
    r"|(?<!\w)(?:значит|следовательно|поэтому|таким образом|итого|итак|получа\w+|остал\w+|остан\w+|равн\w+|равен"
    r"|составля\w+|всего)|∴|\\therefore|\\implies|=|≈|⇒|=>"
    r"|因此|所以|故|从而|得|共|剩|等于|[是为為](?=\s*[$(\\*]*$)|于是|综上|全部で|解くと|計算すると|よって"
    r"|したがって|ゆえに|だから|つまり|合計|残り|따라서"
    r"|그러므로|결국|모두|총|남|هو(?=\s*$)|هناك(?=\s*$)|يساوي|تساوي|إذن|لذا|لذلك|ومنه|ดังนั้น|المجموع|अतः|इसलिए|कुल"
)
# Words that conclude only if they stand directly before the value that ends the sentence.
_LEADS = Gated(
    r"\b(?:(?:we|i) (?:\w+ )?(?:find|found|deduced?|infer|inferred|see) that|(?:this|it) (?:\w+ )?shows that"
    r"|(?:this|that|which|it) (?:\w+ )?(?:means|implies)(?: that)?|meaning|implying|lead(?:s|ing) to|leaving"
    r"|(?:we|i) find"
    r"|(?:leaves|leaving) (?:us|you|me) with|(?:are|['’]re|am|['’]m|is) left with|ends? up with|results? in"
    r"|resulting in"
    r"|yielding|producing|that['’]s|it['’]s|in (?:conclusion|summary|short),?|in (?:interval|set|simplest|exact) \w+:?"
    r"|(?:ce qui|cela|ça) (?:nous )?(?:donne|signifie que|implique que)|on (?:trouve|en déduit)(?: que)?|finalement,?"
    r"|daraus folgt|(?:das|dies) (?:bedeutet|heißt),?(?: dass)?|(?:lo que|esto) (?:nos )?(?:da|significa que"
    r"|implica que)"
    r"|(?:o que|isso) (?:nos )?(?:dá|significa que|implica que)|(?:il che|ciò) (?:ci )?(?:dà|significa che|implica che)"
    r"|yani|(?:это )?(?:означает|значит), что|(?:^|[\s，,])即|합계는|즉,?)\s*$"
)
# Words after which a number is not the value of a sentence: "step 7", "the square of 7", "in 7 minutes".
_IN_PERCENT = any_case(rf"(?:%|{PERCENT})$")
_INCREASED = any_case(
    r"\b(?:(?:increas|decreas|grow|grew|ris|rose|fall|fell|drop|reduc|chang|shr[aiu]nk|improv|declin)\w*"
    r"|(?:goes|gone|go|went|is|was) (?:up|down))\s+by\s*[$(\\]*$"
)  # "the area decreases by 25%"
_IN = any_case(r"\b(?:in|for|during|en|pendant|dans|durante|during|за)\s*$")
_NOT_THE_VALUE = any_case(
    r"\s*(?:(?:times|more|less|fewer|greater|larger|smaller|bigger|squared|cubed|too|tries|attempts|and|or|to"
    r"|plus|minus|divided|multiplied|doubled|halved|mal|fois|veces|vezes|volte|раз|больше|меньше)\b"
    r"|-odd\b|[^\W\d_a-z]{0,2}\s?(?:左右|近く|余り(?![まがは])|弱(?!い)|以下|남짓|가까이)|多[个個的]|kadar\b"
    r"|[a-z]{2,12} (?:less|minus|plus|moins|menos|meno|weniger) (?:one|two|three|un[eoa]?|ein\w*|\d+)\b"
    r"|[a-z]{2,12} (?:times (?:two|three|\d)|and (?:one|two|three) more)\b"
    r"|(?:st|nd|rd|th)\b|[^\W\d_a-z]?\s?(?:より(?!も?前)|보다)|['’]?[td][ae]n (?:daha )?(?:fazla|az|büyük|küçük|çok"
    r"|uzun|kısa)|से (?:ज़्यादा|ज्यादा|अधिक|कम|बड़[ाीे]|छोट[ाीे])|の(?:二乗|平方|倍|三乗|約数|倍数)|的(?:平方|立方|倍|因|约|三"
    r"|两|二)|倍|次方|의|题|題|半|个半|個半|又"
    r"|問|题目|步|号|번째|번|番目|-(?:й|я|е|го|му|ой|ая|ое|ый|er|e|de)(?![^\W\d_])|في المائة من|का वर्ग)"
)
# A number that continues in words: "5 million" is not 5.
_SCALED = any_case(
    r"\s*(?:(?:hundred|thousand|million|billion|trillion|dozen|tausend|million(?:en|s|es)|milliarden?|mille|mil"
    r"|milhões|mila|milioni|тысяч\w*|тыс|млн|promille|percentage)(?![^\W\d_])|[万萬亿億만억천折成]|千(?![克米瓦])"
    r"|百(?:分点)?)"
)
FORMULA = lazy_pattern(MATHS.pattern + r"|\\[dt]?frac\{[^{}\n]{1,40}\}\{[^{}\n]{1,40}\}", re.DOTALL)
_SIGNS = lazy_pattern(r"[+=|<>^\\{}\[\]#~@&]")
_NEXT_WORD = lazy_pattern(r"\s([^\W\d_]+)")
_LATIN_WORD = lazy_pattern(r"[A-Za-z]{2,}")
_CHOSEN = lazy_pattern(r"\W*[A-J](?![A-Za-z])")
# Words that make the value a bound or an intermediate result.
_BOUND = Gated(
    r"\b(?:at (?:least|most)|(?:more|less|fewer|greater|smaller|larger|higher|lower|other) than(?: an?(?: \w+)?)?"
    r"|nearly|almost|close to|(?:never |not )?exceeds?|(?<!add )(?<!adds )(?<!added )(?<!sum )(?<!sums )up to"
    r"|half(?: of)?|twice|mindestens|höchstens|fast|knapp|beinahe|annähernd|(?:mehr|weniger) als(?: die| ein)?"
    r"|meer dan(?: de)?|minder dan(?: de)?|mer än|mindre än|(?:plus|moins) "
    r"(?:de|que|d['’]un)(?: la)?|(?:más|menos) (?:de|que)(?: la)?|(?:mais|menos) (?:de|da|do que|que)(?: a)?"
    r"|(?:più|meno) (?:di|della|che)(?: la)?|au (?:moins|plus)|presque|al menos|como (?:máximo|mínimo)|casi"
    r"|(?:pelo|ao) menos|no (?:máximo|mínimo)|quase|almeno|al massimo|(?:half|twice|double|triple"
    r"|a (?:third|quarter)) (?:of )?(?:an?|the|this|that)(?: \w+){1,2} of|(?:half|third|quarter|fifth|none|neither"
    r"|twice|double) (?:of )?(?:those|these|that|the)|quasi|gut|kaum|um die|bis zu|allenfalls|womöglich|über|unter"
    r"|à peine|près de|quelque|apenas|hasta|a lo (?:sumo|más)|(?:tem|há|são|ficam|restam)(?: agora)? uns|até|fino a"
    r"|co najwyżej|jakieś|amper|hoogstens|minstens|upwards of|as good as|scarcely|barely|capped at|climbs? past|environ"
    r"|zweimal|doppelt so viele? wie|deux fois|(?:el )?doble de|(?:il )?doppio di|(?:o )?dobro de)\s*[$(\\*]*$"
    r"|(?:свыше|порядка|от силы|менее|более|чуть (?:больше|меньше)|вдвое (?:больше|меньше)|дважды|نحو|ما يقارب"
    r"|не (?:менее|более|меньше|больше)|почти|至少|至多|最多|最少|接近|将近|不到|超过|不超过|少なくとも|多くとも|ほぼ"
    r"|적어도|많아야|거의|على الأقل|على الأكثر|تقريبا)\s*[$(\\*]*$"
)
_ON_THE_WAY = any_case(
    r"\b(?:so far|before rounding|before \w+ing\b|intermediate|partial|preliminary|provisional|of the (?:answer"
    r"|result|solution))\b"
    r"|\b(?:bisher|bislang|zwischen\w+|jusqu['’]ici|hasta ahora|até agora|finora)\b|(?:пока|промежуточн\w+)|目前"
    r"|到目前|中间|これまで|途中|지금까지|중간"
)
_CLAUSE = lazy_pattern(r",\s+(?:so|and so|therefore|hence|thus|daher|also|donc|por lo tanto|quindi)\b|所以|因此")
_TO_DO = any_case(
    r"\bremains to\b|\bto (?:consider|check|examine|distinguish|go through|verify|look at)\b|\bin (?:this|the"
    r"|my) (?:solution|proof|argument|derivation)\b"
)
_OF_THE_QUESTION = any_case(
    r"\bin (?:the|this) (?:question|problem|prompt|text|title|statement|exercise)\b"
    r"|\b(?:divisor|factor|multiple|digit|part|half) of (?:the|my|our) (?:answer|result|solution)\b"
)
_DECIMALS = lazy_pattern(r",\d{1,4}")
_MONEY = lazy_pattern(r"\s?(?:[€£₽₺]|(?:EUR|Euro|euros?|kr|zł|TL|PLN)\b)")
_WITH = any_case(r"\b(?:with|mit|avec|con|com|met|med|z|ze|s|se)\s+$|(?<!\w)(?:с|со|з|із)\s+$")
_A_PART = any_case(r"\b(?:half|part|thirds?|quarters?|each|one|only|twice|double)\b")
_INFINITIVE = any_case(r"\s?to ([a-z]{3,})\b")
_TOTALLED = lazy_pattern(
    r"\b(?:left|remain\w*|altogether|in (?:total|all)|en (?:tout|total)|au total|in tutto|ao todo|insgesamt)\b"
    r"|übrig|剩|남"
)
# Words that say that a function of the value is given.
_TRANSFORMED = any_case(
    r"^\W*(?:(?:so|therefore|thus|hence|then|and|also|donc|luego|quindi|portanto|somit)\b,?\s+)?"
    r"(?:(?:the|la|le|el|o|a|il|das|die|lo)\s+)?(?:half|twice|double|square|cube|negative|mitad|doble|cuadrado|cubo"
    r"|moitié|carré|metade|dobro|quadrado|metà|doppio|quadrato|hälfte|doppelte|quadrat)\s+"
    r"(?:(?:of|de|di|do|von|da)\s+(?:\$?[a-z]\$?|it|this|that|the (?:number|answer|value|result|total))\s+)?"
    r"(?:is|equals|es|est|vaut|vale|[éè]|ist|ergibt)\b"
    r"|\b(?:it|that|this|which|he|she|[a-z]) (?:squared|cubed|doubled|halved|al cuadrado|au carré|al quadrato"
    r"|ao quadrado|zum quadrat)\s+"
    r"(?:is|equals|es|est|vaut|vale|[éè]|ist|ergibt)\b"
)

_SQUARED = any_case(
    r"(?<!mean )\b(squared|cubed|doubled|halved) (?!(?:is|are|of|was)\b)[^\W\d_]+(?: (?:is|of|equals))?[\s$(*]*$"
)


def _not_after(words: str) -> str:
    return "".join(rf"(?<!\b{word} )" for word in words.split())


_ARGUMENT = Gated(
    r"(?:\b(?<!each )(?<!every )(?:problem|question|exercise|step|part|page|chapter|section|figure|table|example|case"
    r"|equation|theorem|lemma|line|row|column|item|room|class|version|level|round|task|option|choice|prime|digit"
    r"|(?<!\breal )(?<!\bwhole )number|day|week|year|grade|aufgabe|frage|schritt"
    r"|seite|teil|exercice|étape|problema|ejercicio|paso|página|exercício"
    r"|passo|esercizio|soru|soal|bài)\s*(?:no\.?|number|#|nr\.?|n°)?"
    r"|#|№|\bno\.|(?:задача|задачи|задачу|вопрос|шаг|страница|номер|числа|число)|第|問題|问题|题|문제|المسألة"
    r"|السؤال|प्रश्न"
    rf"|{_not_after('total sum value maximum minimum average amount probability area volume length distance speed')}"
    rf"{_not_after('price cost score perimeter profit weight height answer count increase decrease rise drop force')}"
    rf"{_not_after('mass variance gain loss discount remainder change temperature difference angle percentage')}"
    rf"{_not_after('density pressure energy power voltage width depth radius diameter circumference slope tip')}\bof"
    rf"|{_not_after('equal equals comes come amounts out up down simplifies reduces evaluates sums rounds converges')}"
    rf"{_not_after('add equivalent corresponds leads')}\bto"
    r"|(?<!['’])\b(?:than|from|per|mod|modulo|(?<!left )(?<! up )(?<! us )(?<! her )(?<! him )(?<! them )with|after"
    r"|before|until|since|over|under|above|below|between|within|against|near|beyond|plus|minus|times|divided by"
    r"|multiplied by|square|cube|root|twice|double|half|nor|not|no|without|except|but|on|(?<!is )(?<!are )(?<!lies )"
    r"(?<!stands )(?<!travels )(?<!moves )(?<!drives )(?<!flies )at|by|using|where|when|if|let|try|case|von|vom|mit"
    r"|nach|vor|bei|für|als|(?<!est )(?<!es )(?<!\bé )(?<!sont )(?<!son )(?<!donc )de|(?<!\bes )(?<!\bé )del|d['’]|du"
    r"|des|carré|cube|racine|avec|après|par|con|(?<!sai )(?<!fica )(?<!sale )(?<!queda )por|después de|(?<!è )di|da|do"
    r"|van|na|после|через|из|от|до|чем|для|на|с|в|квадрат|без)"
    r"|(?<![存现現所實实])在|见|見|百分之|минус|负|負|マイナス|마이너스|음수|سالب|ناقص|menos|moins|meno|من|بعد"
    r"|(?<!之)比|مربع)\s*(?:(?:the|an?|numbers?|числа)\s+)*+[$(\\]*\s*$"
)


def sole_value(text: str, span: Span) -> Span | None:
    """Returns the only number or formula of a sentence given as the answer, or None if anything speaks against it."""
    part = text[slice(*span)]
    formulas = [match.span() for match in FORMULA.finditer(text, *span)] if "\\" in part or "$" in part else []
    if formulas:
        rest = text[span[0] : formulas[0][0]] + text[formulas[0][1] : span[1]]
        alone = len(formulas) == 1 and not _SIGNS.search(rest) and not any(char.isdigit() for char in rest)
        if alone:
            worded = not rest.isascii() or len(_LATIN_WORD.findall(rest)) > 2
            return formulas[0] if worded and _unopposed(text, span, formulas[0]) else None
    if _SIGNS.search(part) or (part.isascii() and len(_LATIN_WORD.findall(part)) < 3):
        return None  # "December 12" is not a sentence
    numbers = [match.span() for match in NUMBER.finditer(text, *span)]
    if len(numbers) == 2 and _DECIMALS.fullmatch(text, numbers[0][1], numbers[1][1]):
        numbers = [(numbers[0][0], numbers[1][1])]  # "85,00"
    if len(numbers) != 1 or sum(char.isdigit() for char in part) != sum(
        char.isdigit() for char in text[slice(*numbers[0])]
    ):
        return None
    money = _MONEY.match(text, numbers[0][1], span[1])
    found = (numbers[0][0], money.end()) if money else numbers[0]
    return found if _unopposed(text, span, found) else None


def _unopposed(text: str, sentence: Span, value: Span) -> bool:
    return not (
        UNSURE.search(text, *sentence)
        or COMPARES.search(text, *sentence)
        or not stands_as_value(text, sentence, value, evidence=False)
    )


_PLAIN_SIGNS = str.maketrans("−λμ", "-xx", "₀₁₂₃₄₅₆₇₈₉")


def turned(text: str) -> bool:
    """Returns whether words after an answer's number deny or change it, as some languages do: "7的平方"."""
    text = text.translate(_PLAIN_SIGNS)
    if text.isascii():
        return False
    letter = _CHOSEN.match(text)
    if COMPARES.search(text) or (letter and denied_after(text, letter.end(), len(text))):
        return True
    return any(
        _NOT_THE_VALUE.match(text, match.end()) or denied_after(text, match.end(), len(text))
        for match in NUMBER.finditer(text[:400])
    )


def unsure(part: str) -> bool:
    """Returns whether `part` contains a word that doubts, denies, offers or bounds."""
    return UNSURE.search(part) is not None


def concludes(part: str) -> bool:
    """Returns whether `part` contains a word that concludes or says what something is."""
    return CONCLUDES.search(part) is not None


def altered(
    text: str, sentence: Span, span: Span, *, placed: bool = False, named: bool = False, question: str = ""
) -> bool:
    """Returns whether the words next to a value make it a label, an argument or a bound, or deny it.

    `placed`: a preposition before it does not make it an argument, such as "at" before a time, "a share of" before 0.6.
    `named`: the word after it is what the question asks for, such as "times" or "more".
    """
    before, after = text[sentence[0] : span[0]], text[span[1] : sentence[1]]
    by_percent = _IN_PERCENT.search(text, *span) is not None and _INCREASED.search(before[-40:])
    return bool(
        (_leads_on(before[-_ARGUMENTS:]) and not (by_percent or placed or (named and _WITH.search(before))))
        or _BOUND.search(before[-40:])
        or (not (named or _to_do(after, question)) and _makes_another_value(after, question))
        or _is_transformed(before, question)
        or denied_after(text, span[1], sentence[1])
        or hangs_on(text, span[1], sentence[1])
        or _OF_THE_QUESTION.search(after)
    )


def _makes_another_value(after: str, question: str) -> bool:
    if _NOT_THE_VALUE.match(after) or _SCALED.match(after) or after.startswith(("²", "³")):
        return True
    word = _NEXT_WORD.match(after)
    return word is not None and changes_value(word[1], question)


def _to_do(after: str, question: str) -> bool:
    """Returns whether the value is followed by what the question speaks of ("It costs $400 to fence the garden.")."""
    verb = _INFINITIVE.match(after)
    return verb is not None and verb[1].lower() in question.lower() and _A_PART.search(after) is None


def _is_transformed(before: str, question: str) -> bool:
    """Returns whether the value is a square, a half or another function that the question does not ask for."""
    found, squared = _TRANSFORMED.search(before), _SQUARED.search(before[-_ARGUMENTS:])
    asked = question.lower()
    if squared is not None and squared[1].lower() not in asked:
        return True
    return found is not None and not any(word[:5] in asked for word in found[0].lower().split() if len(word) > 3)


def _leads_on(before: str) -> bool:
    """Returns whether a text ends in a word after which a number is not the value of the sentence."""
    if not before.isascii():
        return _ARGUMENT.search(before) is not None
    starts = [word.start() for word in _WORD_OR_HASH.finditer(before)]  # an ASCII match begins with a word or "#"
    return any(_ARGUMENT.match(before, start) for start in starts[-_MOST_LEADING:])


def stands_as_value(text: str, sentence: Span, span: Span, *, evidence: bool) -> bool:
    """Returns whether its sentence states the number or formula at `span`: not as a label, an argument or a premise.

    With `evidence`, the sentence must conclude with it. Without, the sentence must not speak against it.
    """
    if altered(text, sentence, span):
        return False
    before, after = text[sentence[0] : span[0]], text[span[1] : sentence[1]]
    setup = SETUP.match(before)
    if not evidence:
        return setup is None or setup.end() == 0
    if ANNOUNCING.search(before) or NEED.search(before) or _TO_DO.search(after):
        return False
    if _ON_THE_WAY.search(_CLAUSE.split(before)[-1]):
        return False
    rest = before[setup.end() :] if setup else before
    conclusion = CONCLUDES.search(rest)
    if setup:
        # "If x = 3, then y is 7": the premise ends at its comma
        _, comma, rest = rest.partition(",")
        return bool(comma) and CONCLUDES.search(rest) is not None and "=" not in rest[-2:]
    if _IN.search(before) and not re.match(r"\s*(?:so|therefore|thus|hence)\b", before, re.IGNORECASE):
        return False
    emphasised = before.endswith("**") and after.startswith("**")
    if "=" in text[slice(*span)] and before.rstrip().endswith((",", ":", "，", "、")):
        return True
    if _LEADS.search(rest[-60:]) and not after.strip(" .*$"):
        return True
    if conclusion is None and not emphasised and before.strip(" \t*_`>#|-:"):
        return bool(CONCLUDES.match(after.lstrip()) or _TOTALLED.search(after))
    return True
