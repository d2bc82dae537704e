"""Finds answers that no phrase announces: a text of maths only, a closing formula, a number that ends a conclusion.

A number in prose is seldom an answer ("Problem 7. I can't solve it."). So it counts only if the last sentence states
it: the number follows a conclusion, a copula or an equals sign, no label, preposition or premise precedes it, and no
doubt follows it.
"""

from __future__ import annotations

import re

from verifiers.extract.denials import denied_after, hangs_on, starts_negated
from verifiers.extract.gates import Gated
from verifiers.extract.hedges import COMPARES, CONTRAST, OR_VALUE, RESTATEMENT
from verifiers.extract.quantities import ROOT
from verifiers.extract.sentences import BEFORE_AND, MATHS, NUMBER, last_sentence, sentence_ends, sentence_start
from verifiers.extract.spans import Extraction, Span
from verifiers.lazy_pattern import lazy_pattern
from verifiers.units.words import PERCENT

_WORD_OR_HASH = lazy_pattern(r"\w+|#")
_MOST_LEADING = 6  # words: "divided by the number"
_ARGUMENTS = 48  # characters before a value in which a word can make it an argument
_LATE = 600  # characters before the end that can be the conclusion
_COURTESY = lazy_pattern(
    r"(?:thanks?|thank you|i hope|hope|let me know|feel free|please let|good luck|cheers|enjoy|best|q\.?e\.?d"
    r"|done|that['’]?s (?:it|all)"
    r"|ich hoffe|danke|j['’]espère|merci|espero|gracias|obrigad[oa]|grazie|spero|надеюсь|спасибо|希望|谢谢"
    r"|ありがとう|감사|شكرا|धन्यवाद)",
    re.IGNORECASE,
)
_UNSURE = Gated(
    r"\b(?:or|either|maybe|perhaps|possibly|(?<!that )(?<!which )(?:could|might|may) be"
    # "points that could be in the domain" names what is counted and expresses no doubt
    r"|(?:could|might|may) be(?! (?:in|on|at|made|drawn|chosen|written|won|built|cut|[a-z]+ed)\b)|not|isn['’]t"
    r"|guess\w*|between|about"
    r"|around|wrong|unsure|uncertain|unknown"
    r"|don['’]t know|no idea|cannot|can['’]t|couldn['’]t|could not|unable|give up|gave up|giving up|stuck"
    r"|sorry|skip|hard|difficult|impossible|lucky|favou?rite"
    r"|rul(?:e|ed|ing) out|exclud\w+|reject\w*|eliminat\w+|contradict\w*"
    r"|first (?:thought|idea|instinct|impression)|but (?:it|that|this) (?:fails|breaks|violates)"
    r"|falsch|faux|fausse|incorrect\w*|fals[oa]|errad[oa]|sbagliat[oa]|equivoqué|equivocad[oa]|erreur"
    r"|no (?:cumple|satisface|funciona)|wären?|serai(?:en)?t|ser[íi]an?"
    r"|sarebbe(?:ro)?|erste[rn]? (?:gedanke|idee)|première idée|primera idea"
    r"|nicht|kein\w*|vielleicht|oder|pas|ne|peut-être|ou|désolé|quiz[áa]s?|tal vez|lo siento|não|talvez"
    r"|desculp\w+|non|forse|niet|misschien|nie|może|değil|belki|không|tidak|bukan)\b"
    r"|\b(?:tai|joko|ehkä|en (?:ole varma|tiedä)|vagy|talán"
    r"|sau(?! (?:khi|đó|này)\b)|poate|eller|måske|kanskje|kanske|nebo|buď|možná|lub"
    r"|albo"
    r"|ili|možda|arba|veya|ya da|hoặc|atau)\b|(?<!\w)(?:ή|ίσως|או|אולי|или|може би)(?!\w)|หรือ"
    r"|(?<![^\W\d_])(?:не|нет|или|возможно|может|ليس|لا|لست|ربما|أو)(?![^\W\d_])|[?？؟]|(?<![^\W\d_])no (?:es"
    r"|puedo|sé|se|lo|son)(?![^\W\d_])"
    r"|不(?:会|會|知|能|是|对|對|确|確|行|满足|滿足|符合|成立)|満たさ|没(?:有?办法|法|有答案)|沒(?:有?辦法|法)"
    r"|无法|無法|或|也许|可能|猜"
    r"|吗|嗎|ません|ない|たぶん|かも|分から|わから|모르|못|없|아니|아마|또는|नहीं|शायद|(?<![\u0900-\u097f])या(?![\u0900-\u097f])",
    re.IGNORECASE,
)
_LONGEST_CHECK = 200  # characters of a check that is cut off
_CHECK = lazy_pattern(
    r"[\s*_`-]*(?:(?:quick |sanity |self-?)?check(?:ing)?\b|verif(?:y|ying|ication)\b|to (?:verify|check)\b"
    r"|let(?:['’]s| us| me) (?:check|verify)\b|(?:zur )?(?:probe|kontrolle)\b|vérifi\w+|comprob\w+|verific\w+"
    r"|провер\w+|検算|検証|验算|驗算|检验|檢驗|검산)",
    re.IGNORECASE,
)
# Words that make a check part of the answer: it reaches another value or takes the first one back.
_AFTER_ALL = lazy_pattern(
    r"\b(?:so|therefore|thus|hence|but|however|answer|instead|should|also(?! )|daher|somit|aber|donc"
    r"|mais|pero|mas|ma|но|поэтому|значит|fail\w*|wrong|falsch|faux|mal|erro\w*)\b|所以|因此|但|よって|しかし"
    r"|따라서|하지만",
    re.IGNORECASE,
)
_ANNOUNCING = lazy_pattern(
    r"\b(?:answer|solution to|antwort|lösung|réponse|respuesta|resposta|risposta|antwoord|cevap|jawaban)"
    r"|ответ|答案|答え|정답|الجواب|الإجابة|उत्तर",
    re.IGNORECASE,
)
_SETUP = lazy_pattern(
    r"\s*+[-*>#\d.)]*+\s*+(?:(?:so|now|first|then|next|and|but)\s+"
    r"|(?:so|now|first|then|next),\s+(?=(?:note|recall|remember|given|suppose|assum\w+|consider|let)\b))?"
    r"(?:\b(?:let|suppose|assum\w+|consider\w*"
    r"|(?:the|this|our) (?:problem|question|exercise|task|statement|prompt|text) (?:says?|said|states?|stated"
    r"|tells?|told|gives?|gave|mentions?|asks?|asked|reads?)"
    r"|we know|given|we are given|say|try|guess\w*|find|determine|compute|calculate|evaluate|show|prove|recall"
    r"|remember|note|hint|check|test|where|when|if|for"
    r"|i(?!(?: (?:get|got|find|found|obtain)|(?: am|['’]m) (?:\w+ )?(?:certain|sure|confident|positive))\b)"
    r"|in(?! (?:totale?|tutto|all|conclusion|summary|short|interval|set|simplest|exact)\b)"
    r"|at|after(?! \w+ing\b)|before|by|see|what|why|how|who|is"
    r"|which(?! (?:\w+ )?(?:gives?|means|implies|is|are|equals?|simplifies|yields|leaves|leads|can be|evaluates)\b)"
    r"|are|does|do(?! đó)|can|could|would|let['’]s"
    r"|solve|simplify|expand|factor|plug|substitute|verify|use|using"
    r"|problem|question|exercise|step|part|page|chapter|section|figure|table|example|case|room|class|version"
    r"|level|round|task|option|choice|line|row|item|no(?=\.?\s*\d)"
    r"|sei|angenommen|gegeben|aufgabe|frage|schritt|ich|soit|supposons|exercice|question|étape|je|sea"
    r"|supongamos|problema|ejercicio|pregunta|paso|yo|seja|suponha|exercício|questão|passo|eu"
    r"|sia|supponiamo|esercizio|domanda|io|opgave|vraag|soru|soal)\b|(?:пусть|предположим|задача|вопрос|шаг|я"
    r"|дано)(?!\w)"
    r"|第|设|設|假设|假設|已知|若|如果|问题|問題|题目|求|设|仮定|문제|만약|المسألة|السؤال|ليكن|لنفترض|प्रश्न"
    r"|माना|यदि)",
    re.IGNORECASE,
)
_NEED = lazy_pattern(
    r"\b(?:need|want|have|try|asked|asks?|supposed|going|remains?) to (?:find|know|show|prove|check|verify|get"
    r"|determine|compute"
    r"|calculate|solve)\b",
    re.IGNORECASE,
)
_CONCLUDES = Gated(
    r"\b(?:so|therefore|thus|hence|then|consequently|finally|altogether|in total|in all|total\w*|overall|left"
    r"|toplam|tổng cộng"
    r"|remain\w*|gives?|giving|gets?|got|obtain\w*|yields?|equals?|is|are|was|were|be|becomes?"
    r"|stands at|comes? (?:out )?to|amounts? to|adds? up to|simplif\w+ to|reduces? to|evaluates? to|equal to"
    r"|conclude\w*|follows|(?:this|that|which) leaves"
    r"|(?:has|have|had)(?=\s+(?:(?:exactly|only|just|a total of|about)\s+)?[$(\\*]*$)|makes?(?=\s+[$(\\*]*$)"
    r"|also|daher|somit|folglich|insgesamt|ergibt|lautet|lauten|heißt|am ende"
    r"|en tout|al final|no total|ao todo|alla fine|por tanto|[éè]"
    r"|bleib\w+|ist|sind|erhalten|beträgt|donc|ainsi"
    r"|reste\w*|est|sont|obtient|vaut|vale|valen|valem|equivale"
    r"|por lo tanto|así que|entonces|luego|qued\w+|en total|hay|es|son|obtenemos"
    r"|portanto|assim|así|deshalb|allora|pertanto|par conséquent|logo|então|rest\w+|há|são|obtemos|quindi|dunque"
    r"|perciò|sono|totale|otteniamo|dus|blijven|zijn|więc"
    r"|zatem|jadi|maka|vậy|do đó)\b"
    r"|(?<!\w)(?:значит|следовательно|поэтому|таким образом|итого|итак|получа\w+|остал\w+|остан\w+|равн\w+|равен"
    r"|составля\w+|всего)|∴|\\therefore|\\implies|=|≈|⇒|=>"
    r"|因此|所以|故|从而|得|共|剩|等于|[是为為](?=\s*[$(\\*]*$)|于是|综上|全部で|解くと|計算すると|よって"
    r"|したがって|ゆえに|だから|つまり|合計|残り|따라서"
    r"|그러므로|결국|모두|총|남|هو(?=\s*$)|هناك(?=\s*$)|يساوي|تساوي"
    r"|إذن|لذا|لذلك|ومنه|ดังนั้น|المجموع|अतः|इसलिए|कुल",
    re.IGNORECASE,
)


# Words that conclude only if they stand directly before the value that ends the sentence.
_LEADS = Gated(
    r"\b(?:(?:we|i) (?:\w+ )?(?:find|found|deduced?|infer|inferred|see) that|(?:this|it) (?:\w+ )?shows that"
    r"|(?:this|that|which|it) (?:\w+ )?(?:means|implies)(?: that)?|meaning|implying|lead(?:s|ing) to|leaving"
    r"|(?:we|i) find"
    r"|(?:leaves|leaving) (?:us|you|me) with|(?:are|['’]re|am|['’]m|is) left with|ends? up with|results? in"
    r"|resulting in"
    r"|yielding|producing|that['’]s|it['’]s|in (?:conclusion|summary|short),?|in (?:interval|set|simplest"
    r"|exact) \w+:?"
    r"|(?:ce qui|cela|ça) (?:nous )?(?:donne|signifie que|implique que)|on (?:trouve|en déduit)(?: que)?|finalement,?"
    r"|daraus folgt|(?:das|dies) (?:bedeutet|heißt),?(?: dass)?|(?:lo que|esto) (?:nos )?(?:da|significa que"
    r"|implica que)"
    r"|(?:o que|isso) (?:nos )?(?:dá|significa que|implica que)|(?:il che|ciò) (?:ci )?(?:dà|significa che"
    r"|implica che)"
    r"|yani|(?:это )?(?:означает|значит), что|(?:^|[\s，,])即|합계는|즉,?)\s*$",
    re.IGNORECASE,
)


def _not_after(words: str) -> str:
    return "".join(rf"(?<!\b{word} )" for word in words.split())


# Words after which a number is not the value of a sentence: "step 7", "the square of 7", "in 7 minutes".
_IN_PERCENT = lazy_pattern(rf"(?:%|{PERCENT})$", re.IGNORECASE)
_ARGUMENT = Gated(
    r"(?:\b(?<!each )(?<!every )(?:problem|question|exercise|step|part|page|chapter|section|figure|table"
    r"|example|case|equation"
    r"|theorem|lemma|line|row|column|item|room|class|version|level|round|task|option|choice|number|prime"
    r"|digit|day|week|year|grade"
    r"|aufgabe|frage|schritt|seite|teil|exercice|étape|problema|ejercicio|paso|página|exercício|passo"
    r"|esercizio|soru|soal|bài)\s*(?:no\.?|number|#|nr\.?|n°)?"
    r"|#|№|\bno\.|(?:задача|задачи|задачу|вопрос|шаг|страница|номер|числа|число)|第|問題|问题|题|문제|المسألة"
    r"|السؤال|प्रश्न"
    rf"|{_not_after('total sum value maximum minimum average amount probability area volume length distance speed')}"
    rf"{_not_after('price cost score perimeter profit weight height answer count')}\bof"
    rf"|{_not_after('equal equals comes come amounts out up down simplifies reduces evaluates sums rounds converges')}"
    rf"{_not_after('add equivalent corresponds leads')}\bto"
    r"|(?<!['’])\b(?:than|from|per|mod|modulo"
    r"|(?<!left )(?<! up )(?<! us )(?<! her )(?<! him )(?<! them )with|after|before"
    r"|until|since|over|under|above"
    r"|below|between|within"
    r"|against|near|beyond|plus|minus|times|divided by|multiplied by|square|cube|root|twice|double|half|nor"
    r"|not|no|without|except|but|on|(?<!is )(?<!are )(?<!lies )"
    r"(?<!stands )(?<!travels )(?<!moves )(?<!drives )(?<!flies )at|by|using|where|when|if|let|try|case"
    r"|von|vom|mit|nach|vor|bei|für|als|(?<!est )(?<!es )(?<!\bé )(?<!sont )(?<!son )(?<!donc )de"
    r"|(?<!\bes )(?<!\bé )del|d['’]|du|des"
    r"|carré|cube|racine|avec|après|par|con|(?<!sai )(?<!fica )(?<!sale )(?<!queda )por|después de|(?<!è )di|da|do"
    r"|van|na|после|через|из|от|до|чем"
    r"|для|на|с|в|квадрат|без)"
    r"|(?<![存现現所實实])在|见|見|百分之|минус|负|負|マイナス|마이너스|음수|سالب|ناقص|menos|moins|meno|من|بعد|(?<!之)比"
    r"|مربع)\s*(?:(?:the|an?|numbers?|числа)\s+)*+[$(\\]*\s*$",
    re.IGNORECASE,
)
_INCREASED = lazy_pattern(
    r"\b(?:(?:increas|decreas|grow|grew|ris|rose|fall|fell|drop|reduc|chang|shr[aiu]nk|improv|declin)\w*"
    r"|(?:goes|gone|go|went|is|was) (?:up|down))\s+by\s*[$(\\]*$",
    re.IGNORECASE,
)  # "the area decreases by 25%"
_IN = lazy_pattern(r"\b(?:in|for|during|en|pendant|dans|durante|during|за)\s*$", re.IGNORECASE)
_NOT_THE_VALUE = lazy_pattern(
    r"\s*(?:(?:times|more|less|fewer|greater|larger|smaller|bigger|squared|cubed|too|tries|attempts|and|or|to"
    r"|plus|minus|divided|multiplied|doubled|halved|mal|fois|veces|vezes|volte|раз|больше|меньше)\b"
    r"|-odd\b|[^\W\d_a-z]{0,2}\s?(?:左右|近く|余り(?![まがは])|弱(?!い)|以下|남짓|가까이)|多[个個的]|kadar\b"
    r"|[a-z]{2,12} (?:less|minus|plus|moins|menos|meno|weniger) (?:one|two|three|un[eoa]?|ein\w*|\d+)\b"
    r"|[a-z]{2,12} (?:times (?:two|three|\d)|and (?:one|two|three) more)\b"
    r"|(?:st|nd|rd|th)\b|[^\W\d_a-z]?\s?(?:より(?!も?前)|보다)|['’]?[td][ae]n (?:daha )?(?:fazla|az|büyük|küçük|çok"
    r"|uzun|kısa)"
    r"|से (?:ज़्यादा|ज्यादा|अधिक|कम|बड़[ाीे]|छोट[ाीे])|の(?:二乗|平方|倍|三乗|約数|倍数)|的(?:平方|立方|倍|因|约|三"
    r"|两|二)|倍|次方|의|题|題|半"
    r"|个半|個半|又"
    r"|問|题目|步|号|번째|번|番目|-(?:й|я|е|го|му|ой|ая|ое|ый|er|e|de)(?![^\W\d_])|في المائة من|का वर्ग)",
    re.IGNORECASE,
)
# A number that continues in words: "5 million" is not 5.
_SCALED = lazy_pattern(
    r"\s*(?:(?:hundred|thousand|million|billion|trillion|dozen|tausend|million(?:en|s|es)|milliarden?|mille|mil"
    r"|milhões|mila|milioni|тысяч\w*|тыс|млн|promille|percentage)(?![^\W\d_])|[万萬亿億만억천折成]|千(?![克米瓦])"
    r"|百(?:分点)?)",
    re.IGNORECASE,
)
_JSON = lazy_pattern(r"""\{\s*["']?(?:final[_ ]?)?answer["']?\s*:\s*["']?([^"',{}:]+)["']?\s*\}""", re.IGNORECASE)
_LAST_KEY = lazy_pattern(r"""[,{]\s*"answer"\s*:\s*"?([^"{}\[\]:]{1,200}?)"?\s*\}$""")
_JSON_BLOCK = lazy_pattern(r"```(?:json)?\s*(\{[^`{}]{1,4000}\})\s*```\Z")
_LEAD_IN = lazy_pattern(
    r"(?:(?:i(?:['’]d| would|['’]ll| will) (?:go with|pick|choose)|(?:so|thus|hence|therefore|yes|clearly|i think"
    r"|i believe),? (?:it['’]s|it is|it must be|it has to be)"
    r"|it['’]s"
    r"|it is|that['’]s|that makes"
    r"|we get"
    r"|so|thus|hence|therefore|clearly|certainly|yes|indeed|finally|altogether|overall|in total"
    r"|also|somit|daher|dann|donc|ainsi|alors|por lo tanto|entonces|así|portanto|então|logo|quindi|allora|итак|значит"
    r"|следовательно)\b[,:]?\s+(?=[$\\\d-]|[A-Za-z]\s*=|(?-i:\(?[A-J]\)?)[.\s]*$)"
    r"|(?:(?:so|thus|hence|therefore|then|donc|ainsi|alors|also|daher|somit|entonces|portanto|quindi|итак),? )?"
    r"(?:we (?:find|obtain)|on (?:trouve|obtient)|wir (?:erhalten|finden)|obtenemos|hallamos|encontramos|obtemos"
    r"|otteniamo|troviamo|получаем|находим)\s+(?=[A-Za-z]\s*=)"
    r"|(?:所以|因此|故|综上(?:所述)?|由此(?:可得)?|解得|求得|可得|于是|即|よって|したがって|ゆえに|따라서"
    r"|∴)[，,、:：]?\s*(?=[$\\\d-]|[A-Za-z]\s*=))",
    re.IGNORECASE,
)
_FORMULA = lazy_pattern(MATHS.pattern + r"|\\[dt]?frac\{[^{}\n]{1,40}\}\{[^{}\n]{1,40}\}", re.DOTALL)
_SIGNS = lazy_pattern(r"[+=|<>^\\{}\[\]#~@&]")
_LATIN_WORD = lazy_pattern(r"[A-Za-z]{2,}")
_CHOSEN = lazy_pattern(r"\W*[A-J](?![A-Za-z])")
_REVERSED = Gated(
    r"(?:^|[\s(*])(?:(?:option|choice)\s+)?(?P<value>\$[^$\n]{1,100}\$|[-−]?[\d][\d,]*(?:\.\d+)?(?:/\d+)?%?"
    r"|\(?[A-J]\)?)[*]*\s+"
    r"(?:is|are)\s+(?:(?:the|our|my|your|therefore|thus|then)\s+)*(?:(?:final|correct|right|required|desired"
    r"|best)\s+)*"
    r"(?:answer|result|solution|option|choice|(?<=\bcorrect )|(?<=\bright ))\W*$"
    r"|\b(?:i|we)(?:['’]d| would|['’]ll| will)?\s+(?:choose|pick|select|go with|went with"
    r"|chose)\s+(?:(?:option|choice|answer)\s+)?(?P<pick>\(?[A-J]\)?)\W*$"
    r"|\b(?P<so>so|therefore|thus|hence),?\s+(?:i (?:think|believe|conclude|am sure)\s+(?:that\s+)?)?"
    r"it(?:['’]s| is| must be| has to be)\s+(?P<left>(?-i:\(?[A-J]\)?))\W*$",
    re.IGNORECASE,
)
_ASIDE = lazy_pattern(
    r"\W*+(?:confidence|certainty|difficulty|rating|(?:my |a )?(?:\w+ )?guess|step|note|problem|question|exercise"
    r"|example|recall|remember|hint|find|let|suppose|assume|consider"
    r"|claim|draft|attempt|prove|show)\b",
    re.IGNORECASE,
)
# Words that make the value a bound or an intermediate result.
_BOUND = Gated(
    r"\b(?:at (?:least|most)|(?:more|less|fewer|greater|smaller|larger|higher|lower"
    r"|other) than(?: an?(?: \w+)?)?|nearly|almost"
    r"|close to"
    r"|(?:never |not )?exceeds?|(?<!add )(?<!adds )(?<!added )(?<!sum )(?<!sums )up to|half(?: of)?|twice"
    r"|mindestens|höchstens|fast|knapp|beinahe|annähernd"
    r"|(?:mehr|weniger) als(?: die| ein)?|meer dan(?: de)?|minder dan(?: de)?|mer än|mindre än|(?:plus|moins) "
    r"(?:de|que|d['’]un)(?: la)?"
    r"|(?:más|menos) (?:de|que)(?: la)?|(?:mais|menos) (?:de|da|do que|que)(?: a)?|(?:più|meno) (?:di|della"
    r"|che)(?: la)?"
    r"|au (?:moins|plus)|presque"
    r"|al menos|como (?:máximo|mínimo)|casi|(?:pelo|ao) menos|no (?:máximo|mínimo)|quase|almeno|al massimo"
    r"|(?:half|third|quarter|fifth|none|neither|twice|double) (?:of )?(?:those|these|that|the)"
    r"|quasi|gut|kaum|um die|bis zu|allenfalls|womöglich|über|unter|à peine|près de|quelque|apenas|hasta"
    r"|a lo (?:sumo|más)"
    r"|(?:tem|há|são|ficam|restam)(?: agora)? uns|até|fino a|co najwyżej|jakieś|amper|hoogstens|minstens|upwards of"
    r"|as good as|scarcely|barely|capped at|climbs? past|environ|zweimal|doppelt so viele? wie|deux fois"
    r"|(?:el )?doble de"
    r"|(?:il )?doppio di|(?:o )?dobro de)\s*[$(\\*]*$"
    r"|(?:свыше|порядка|от силы|менее|более|чуть (?:больше|меньше)|вдвое (?:больше|меньше)|дважды|نحو|ما يقارب"
    r"|не (?:менее|более|меньше|больше)|почти|至少|至多|最多|最少|接近|将近|不到|超过|不超过|少なくとも"
    r"|多くとも|ほぼ"
    r"|적어도|많아야|거의|على الأقل|على الأكثر|تقريبا)\s*[$(\\*]*$",
    re.IGNORECASE,
)
_ON_THE_WAY = lazy_pattern(
    r"\b(?:so far|before rounding|before \w+ing\b|intermediate|partial|preliminary|provisional|of the (?:answer"
    r"|result|solution))\b"
    r"|\b(?:bisher|bislang|zwischen\w+|jusqu['’]ici|hasta ahora|até agora|finora)\b|(?:пока|промежуточн\w+)|目前"
    r"|到目前|中间|これまで|途中"
    r"|지금까지|중간",
    re.IGNORECASE,
)
_CLAUSE = lazy_pattern(r",\s+(?:so|and so|therefore|hence|thus|daher|also|donc|por lo tanto|quindi)\b|所以|因此")
_TO_DO = lazy_pattern(
    r"\bremains to\b|\bto (?:consider|check|examine|distinguish|go through|verify|look at)\b|\bin (?:this|the"
    r"|my) (?:solution|proof"
    r"|argument|derivation)\b",
    re.IGNORECASE,
)
_UNFINISHED = lazy_pattern(
    r"\b(?:next|then|still|now|need|needs|remains to|continue|continuing"
    r"|we (?:want|seek|(?:are|were) (?:looking for|asked)))\b",
    re.IGNORECASE,
)
_TOO_LITTLE = lazy_pattern(
    r"\b(?:not enough|insufficient|too little) (?:information|data|context)\b|\bi have no (?:clue|idea)\b"
    r"|\b(?:i|we) (?:can['’]?t|cannot|could(?: not|n['’]t)|am unable to|was unable to) (?:\w+ )?(?:solve|answer"
    r"|figure)\b",
    re.IGNORECASE,
)
_OF_THE_QUESTION = lazy_pattern(
    r"\bin (?:the|this) (?:question|problem|prompt|text|title|statement|exercise)\b"
    r"|\b(?:divisor|factor|multiple|digit|part|half) of (?:the|my|our) (?:answer|result|solution)\b",
    re.IGNORECASE,
)
OPTION_LABEL = lazy_pattern(r"(?:^|\s|(?<![A-Za-z])[(\[])[A-J][).\]:]\s*\S")  # but not P(A)
_EQUALS = lazy_pattern(r"\s*=\s*\S")


def unannounced(text: str, start: int, end: int) -> Extraction:
    """Returns the whole text if it is one expression, else the closing formula or the number that the end states."""
    part = text[start:end]
    begin, end = start + len(part) - len(part.lstrip()), start + len(part.rstrip())
    if begin >= end:
        return Extraction(None, "empty")
    begin, end = _fenced(text, begin, end)
    block = _JSON_BLOCK.search(text, max(begin, end - _LATE), end) if text.endswith("```", begin, end) else None
    begin, end = block.span(1) if block else (begin, end)
    keyed = _JSON.fullmatch(text, begin, end) if text[begin] == "{" and end - begin < 400 else None
    if keyed is None and text[begin] == "{" and end - begin < 4000 and text[begin:end].count('"answer"') == 1:
        keyed = _LAST_KEY.search(text, begin, end)
    if keyed:
        return Extraction(keyed.span(1), "anchor")
    low = max(begin, end - _LATE)
    end = _without_check(text, low, _without_courtesy(text, low, end))
    reverse = _reversed(text, low, end)
    if reverse is not None:
        return reverse
    lead = _LEAD_IN.match(text, begin, end)
    begin = lead.end() if lead else begin
    whole = text[begin:end]
    if len(whole) < 400 and not _ASIDE.match(whole) and (MATHS.fullmatch(whole) or _no_prose(whole)):
        return Extraction((begin, end), "whole")
    displayed = _displayed(text, low, end)
    if displayed is not None:
        return displayed
    sentence = last_sentence(text, low, end)
    end = _before_stop(text, sentence[0], end)
    stated = text[sentence[0] : end]
    if _UNSURE.may_match(stated) and _UNSURE.search(OR_VALUE.sub(" ", RESTATEMENT.sub(" ", CONTRAST.sub("", stated)))):
        return Extraction(None, "unsure")
    if _TOO_LITTLE.search(text, low, end):
        return Extraction(None, "unsure")
    if text.count("```", 0, sentence[0]) % 2:
        return Extraction(None, "code")
    if len(OPTION_LABEL.findall(text[sentence[0] : sentence[1]])) > 1 or len(OPTION_LABEL.findall(text[low:end])) > 2:
        return Extraction(None, "options")
    if _UNFINISHED.search(text, sentence[1], end):
        return Extraction(None, "unfinished")
    contrast = CONTRAST.search(text, sentence[0], _before_stop(text, *sentence))
    sentence = (sentence[0], contrast.start()) if contrast else sentence
    formulas = [match.span() for match in _FORMULA.finditer(text, *sentence)]
    formulas += [match.span() for match in ROOT.finditer(text, *sentence)] if "π" in text or "√" in text else []
    numbers = [match.span() for match in NUMBER.finditer(text, *sentence)]
    if formulas:
        numbers = [span for span in numbers if not any(low <= span[0] < high for low, high in formulas)]
    spans = sorted((*formulas, *numbers))
    if not spans:
        return Extraction(None, "nothing")
    span = (spans[_list_start(text, spans)][0], spans[-1][1])
    # If an equals sign follows, the result after it was not read as a number: "60 * 1.2 = 72Mb".
    if _EQUALS.match(text, span[1], end) or not stands_as_value(text, sentence, span, evidence=True):
        return Extraction(None, "prose")
    return Extraction(span, "number" if spans[-1] in numbers else "maths")


def closing_expression(text: str, start: int, end: int) -> Span | None:
    """Returns the expression in a variable that is the last line ("f'(x) = 6x² − 2", "Thus **x = 1, 5**"), or None."""
    end = start + len(text[start:end].rstrip(" \t\n*_`.。"))
    low = max(text.rfind("\n", start, end) + 1, start)
    if end - low > _LONGEST_LINE:
        return None
    lead = _LEADS_TO_LINE.match(text, low, end)
    begin = lead.end() if lead else low
    algebra = _ALGEBRA.fullmatch(text, begin, end)
    if algebra is None or not (algebra["list"] or _IN_A_LETTER.search(text[begin:end].rpartition("=")[2])):
        return None
    before = text[start:low].rstrip()
    led = [text[low:begin], before[before.rfind("\n") + 1 :] if before[-1:] in (":", "：") else ""]
    if any(_SETUP.match(part) or _UNSURE.search(part) or _ANNOUNCING.search(part) for part in led):
        return None
    return begin, end


_LONGEST_LINE = 160
_LEADS_TO_LINE = lazy_pattern(
    r"[\s*_>#-]*(?:[^\d=\n:：]{1,60}[:：]|(?:so|thus|hence|therefore|also|daher|somit|donc|ainsi|por tanto|así"
    r"|luego|portanto|logo|quindi|dunque"
    r"|dus|alltså|więc|zatem|значит|итак|следовательно|所以|因此|故|よって|したがって|따라서)[,，、]?)?[\s*_]*",
    re.IGNORECASE,
)
_ALGEBRA = lazy_pattern(
    r"(?P<list>[A-Za-z]\s?=\s?[-−]?\d[\d./]*(?:,\s[-−]?\d[\d./]*)+)"
    r"|(?:(?:sin|cos|tan|ln|log|exp|sqrt)(?![A-Za-z])|(?<![A-Za-z])[A-Za-z](?![A-Za-z])['’′]{0,2}"
    r"|[\d²³¹⁰⁴-⁹ⁿ√π+−–*·×⋅/^()=.| -])+"
)
_IN_A_LETTER = lazy_pattern(r"[A-Za-z][^=]*[-+−–*·×⋅/^²³(]|[-+−–*·×⋅/^√\d][^=]*[A-Za-z]")


def _before_stop(text: str, low: int, end: int) -> int:
    return low + len(text[low:end].rstrip(" \t\n.*"))


def _reversed(text: str, low: int, end: int) -> Extraction | None:
    """Returns the answer of a last sentence such as "7 is the answer", "Option B is correct" or "I would choose B"."""
    begin = sentence_start(text, end - 1, low)
    match = _REVERSED.search(text, begin, end)
    if (
        match is None
        or _UNSURE.search(text, match.start() if match["so"] else begin, end)
        or _SETUP.match(text, begin, match.start())
    ):
        return None
    return Extraction(match.span(next(name for name in ("value", "pick", "left") if match[name])), "anchor")


def sole_value(text: str, span: Span) -> Span | None:
    """Returns the only number or formula of a sentence given as the answer, or None if anything speaks against it."""
    part = text[slice(*span)]
    formulas = [match.span() for match in _FORMULA.finditer(text, *span)] if "\\" in part or "$" in part else []
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


_DECIMALS = lazy_pattern(r",\d{1,4}")
_MONEY = lazy_pattern(r"\s?(?:[€£₽₺]|(?:EUR|Euro|euros?|kr|zł|TL|PLN)\b)")


def _unopposed(text: str, sentence: Span, value: Span) -> bool:
    return not (
        _UNSURE.search(text, *sentence)
        or COMPARES.search(text, *sentence)
        or not stands_as_value(text, sentence, value, evidence=False)
    )


def turned(text: str) -> bool:
    """Returns whether words after an answer's number deny or change it, as some languages do: "7的平方"."""
    text = text.replace("−", "-")
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
    return _UNSURE.search(part) is not None


def concludes(part: str) -> bool:
    """Returns whether `part` contains a word that concludes or says what something is."""
    return _CONCLUDES.search(part) is not None


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
        (_leads_on(before[-_ARGUMENTS:]) and not by_percent and not placed)
        or _BOUND.search(before[-40:])
        or (not named and (_NOT_THE_VALUE.match(after) or _SCALED.match(after)))
        or _is_transformed(before, question)
        or denied_after(text, span[1], sentence[1])
        or hangs_on(text, span[1], sentence[1])
        or _OF_THE_QUESTION.search(after)
    )


def _is_transformed(before: str, question: str) -> bool:
    """Returns whether the value is a square, a half or another function that the question does not ask for."""
    found = _TRANSFORMED.search(before)
    asked = question.lower()
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
    setup = _SETUP.match(before)
    if not evidence:
        return setup is None or setup.end() == 0
    if (
        _ANNOUNCING.search(before)
        or _NEED.search(before)
        or _ON_THE_WAY.search(_CLAUSE.split(before)[-1])
        or _TO_DO.search(after)
    ):
        return False
    rest = before[setup.end() :] if setup else before
    conclusion = _CONCLUDES.search(rest)
    if setup:
        # "If x = 3, then y is 7": the premise ends at its comma
        _, comma, rest = rest.partition(",")
        return bool(comma) and _CONCLUDES.search(rest) is not None and "=" not in rest[-2:]
    if _IN.search(before) and not re.match(r"\s*(?:so|therefore|thus|hence)\b", before, re.IGNORECASE):
        return False
    emphasised = before.endswith("**") and after.startswith("**")
    if "=" in text[slice(*span)] and before.rstrip().endswith((",", ":", "，", "、")):
        return True
    if _LEADS.search(rest[-60:]) and not after.strip(" .*$"):
        return True
    if conclusion is None and not emphasised and before.strip(" \t*_`>#|-:"):
        return (
            _CONCLUDES.match(after.lstrip()) is not None
            or re.search(
                r"\b(?:left|remain\w*|altogether|in (?:total|all)|en (?:tout|total)"
                r"|au total|in tutto|ao todo|insgesamt)\b|übrig|剩|남",
                after,
            )
            is not None
        )
    return True


def _list_start(text: str, spans: list[Span]) -> int:
    """Returns the index of the first value in the last list of values that commas, "and" or "or" join."""
    index = len(spans) - 1
    while index and (
        BEFORE_AND.fullmatch(text, spans[index - 1][1], spans[index][0])
        or RESTATEMENT.fullmatch(text, spans[index - 1][1], spans[index][0])
    ):
        index -= 1
    return index


def _fenced(text: str, begin: int, end: int) -> Span:
    """Returns the span inside the code fence if the text is one code fence, else the span unchanged."""
    if text.startswith("```", begin) and text.endswith("```", begin, end) and end - begin < 400:
        inner = re.fullmatch(r"```(?:text|latex|tex|math|plaintext)?[ \t]*\n?([^\n`]+)\n?```", text[begin:end])
        if inner:
            return begin + inner.start(1), begin + inner.end(1)
    return begin, end


def _without_courtesy(text: str, low: int, end: int) -> int:
    """Returns the end of the text before closing words such as "I hope it is correct."."""
    for _ in range(3):
        stop = end
        while stop > low and text[stop - 1] in " \t\n.!*_`-":
            stop -= 1
        starts = [match.end() for match in sentence_ends(text).finditer(text, low, stop)]
        if not starts or not _COURTESY.match(text[starts[-1] : stop].lstrip(" \t\n*_`-")):
            return end
        end = starts[-1]
    return end


def _without_check(text: str, low: int, end: int) -> int:
    """Returns the end before a check such as "Probe: 9 - 4 = 5, passt."; one that finds a fault or concludes stays."""
    starts = [low, *(match.end() for match in sentence_ends(text).finditer(text, low, end))]
    checks = [start for start in starts[1:] if _CHECK.match(text, start, end)]
    if not checks or not any(char.isdigit() for char in text[low : checks[0]]):
        return end
    check = text[checks[0] : end]
    if (
        len(check) > _LONGEST_CHECK
        or "≠" in check
        or "\\ne" in check
        or _UNSURE.search(check)
        or _AFTER_ALL.search(check)
    ):
        return end
    return checks[0]


def _displayed(text: str, low: int, end: int) -> Extraction | None:
    """Returns the displayed formula that ends the text, or None."""
    stop = end
    while stop > low and text[stop - 1] in " \t\n.*":
        stop -= 1
    closing = next((sign for sign in ("\\]", "$$", "*}", "}") if text.endswith(sign, low, stop)), "")
    opening = {"\\]": text.rfind("\\[", low, stop - 2), "$$": text.rfind("$$", low, stop - 2)}.get(
        closing, text.rfind("\\begin{", low, stop) if closing else -1
    )
    match = MATHS.match(text, opening, stop) if opening >= 0 else None
    if match is None or match.end() != stop or (match[0][0] == "$" and not match[0].startswith("$$")):
        return None
    lead = text[max(low, opening - 200) : opening].rstrip(" \t\n:*")
    sentences = sentence_ends(lead).split(lead)
    if _SETUP.match(sentences[-1]) and not _CONCLUDES.search(sentences[-1].partition(",")[2]):
        return Extraction(None, "premise")
    if _UNSURE.search(sentences[-1]) or _NEED.search(sentences[-1]) or starts_negated(sentences[-1][-4:]):
        return Extraction(None, "unsure")
    return Extraction(match.span(), "maths")


_UNSPACED = lazy_pattern(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f\u0900-\u0dff]"
)  # Chinese, Japanese, Korean, Thai


_SAID_EQUAL = lazy_pattern(
    r"[^\W\d_²³][^\W\d_²³' ]*(?: [^\W\d_²³' ]+)*?"
    r"(?:\s(?:equals|is|ist|est|es|égale?|igual a|uguale a|gleich|vaut|vale|[éè]|рав[ен]\w*|هو|هي|تساوي|يساوي))"
    r"\s+[$\\(]*[-+]?\d[\d,./]*(?:\s+[A-Za-z°²³]{1,4})?\W*",
    re.IGNORECASE,
)  # "x equals 42"
# Words that say that a function of the value is given.
_TRANSFORMED = lazy_pattern(
    r"^\W*(?:(?:so|therefore|thus|hence|then|and|also|donc|luego|quindi|portanto|somit)\b,?\s+)?"
    r"(?:(?:the|la|le|el|o|a|il|das|die|lo)\s+)?(?:half|twice|double|square|cube|negative|mitad|doble|cuadrado"
    r"|cubo|moitié"
    r"|carré|metade|dobro|quadrado|metà|doppio|quadrato|hälfte|doppelte|quadrat)\s+"
    r"(?:(?:of|de|di|do|von|da)\s+(?:\$?[a-z]\$?|it|this|that|the (?:number|answer|value|result|total))\s+)?"
    r"(?:is|equals|es|est|vaut|vale|[éè]|ist|ergibt)\b"
    r"|\b(?:it|that|this|which|he|she|[a-z]) (?:squared|cubed|doubled|halved|al cuadrado|au carré|al quadrato"
    r"|ao quadrado|zum quadrat)\s+"
    r"(?:is|equals|es|est|vaut|vale|[éè]|ist|ergibt)\b",
    re.IGNORECASE,
)


# A second sentence, a formula that follows from another one, or an emphasised value in a sentence.
_IN_SENTENCES = lazy_pattern(
    r"[\w$)%][.!?]\s+[^\W\d_]{3}|\$\s?(?:より|から|ゆえに)\s?\$|[^\W\d_]{2}\s+[^\W\d_]{2,20}\s+\*\*"
)


def _no_prose(text: str) -> bool:
    plain = re.sub(r"\\text\w*\{[^{}]*\}|\\[A-Za-z]+", " ", text)
    words = re.findall(r"(?<![\\\w])[^\W\d_]{3,}", plain)
    if re.match(r"(?:since|because|as|if|when|let|suppose)\b", text, re.IGNORECASE):
        return False
    if _SAID_EQUAL.fullmatch(text) or _IN_SENTENCES.search(text):
        return False
    spoken = len(re.findall(r"(?<![\\\w])[^\W\d_]{2,}", plain))
    if spoken > 2 + (not text[:2].isalpha()) and any(char.isdigit() for char in text):
        return False
    if words and ("$" in text or "\\(" in text):
        return False
    if len(_UNSPACED.findall(plain)) > 3:
        return False
    most = 1 if text[0].isalpha() and text[1:2].isalpha() else 3  # sentences begin with a word, expressions seldom do
    if most == 1 and len(words) == 2 and len(text) < 30:
        most = 2 if re.fullmatch(r"[A-Za-z ]+\.?", text) else 1  # "no solution"
    return len(words) <= most and "\n" not in text
