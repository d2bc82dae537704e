"""Words that show whether a closing sentence concludes, doubts, reports or supposes its value, in 18 languages."""

from __future__ import annotations

from verifiers.extract.gates import Gated
from verifiers.lazy_pattern import any_case, lazy_pattern

# Begins with a single character class, so that the search skips to it.
STOP = lazy_pattern(
    r"[.!?。！？؟।\n](?:(?<=[.!?])(?:(?<![.!?\s][A-Za-z].)|(?<=\d [a-z].))(?<!\bMr.)(?<!\bMrs.)(?<!\bDr.)(?<!\bSt.)"
    r"(?!(?<=\d kr\.|\d zł\.)\s[a-zà-žа-я])(?!(?<=\d Std\.)\s[a-zà-ž])"
    r"(?!(?<=\d\.) (?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z]*\b)[.!?]*"
    r"(?=[*_`)\]\"”»']*(?:\s|$))[*_`)\]\"”»']*|(?<=[。！？؟।])[。！？؟।]*[」）)]*|(?<=\n))"
)
ORNAMENT = " \t\r\n*_`>#-–—•|"
PLAIN_WORD = lazy_pattern(r"[^\W\d_]+")
WORD = lazy_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
JOINS = lazy_pattern(  # joins two statements of a sentence
    r"[,;]\s+|[，；、]|,(?=[\u3040-\u9fff])|\s(?:and|but|while|whereas|und|aber|während|et|mais|tandis que|y|pero"
    r"|mientras|e|mas|ma|mentre"
    r"|и|а|но|oraz|zaś|ve|ise|och|men|en|maar)\s"
)
MAY = lazy_pattern(r"(?<=[\w,] )May\b(?! (?:be|have|not)\b)")  # the month
UNSPACED = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff]")

# A person or thing that the question is not about, unless the question names it too.
_SOMEBODY = (
    r"(?<!for )(?<!for the )(?<!for his )(?<!for her )(?<!of )(?<!to )\b(?:brother|sister|sibling|friend"
    r"|neighbou?r\w*|cousin|father|mother|uncle|aunt|teacher|classmate|colleague|someone|somebody"
    r"|anyone|anybody|bruder|schwester|freund\w*|nachbar\w*|vater|mutter|jemand|frère|sœur|soeur|amie?s?"
    r"|voisine?|père|mère|quelqu['’]un"
    r"|hermano|hermana|amig[oa]s?|vecin[oa]|padre|madre|alguien|irmão|irmã|vizinh[oa]|pai|mãe|alguém"
    r"|fratello|sorella|amic[oa]|vicin[oa]"
    r"|qualcuno)\b|(?<!\w)(?:брат\w*|сестр\w*|сосед\w*|кто-то)|哥哥|弟弟|姐姐|妹妹|朋友|别人|有人|兄が|姉が|弟が"
    r"|妹が|友達|誰か|친구|동생|누나"
    r"|누군가|(?<!\w)(?:أخته|أخوه|صديق\w*)"
)
SOMEBODY = Gated(_SOMEBODY)
SOMEBODY_ELSE = Gated(
    _SOMEBODY
    + r"|\b(?:others?|another|elsewhere|rest|remaining|andere[nrsm]?|übrigen|autres?|otr[oa]s?|outr[oa]s?|altr[oaie])\b"
    r"|(?<!\w)(?:друг\w*|остальн\w*)|其他|其余|他の|다른"
)
# Words of a sentence that depends on an unreal condition.
UNREAL = Gated(
    r"\b(?:would|could|might|should|had|were|if only|unless|wouldn['’]t|würde\w*|wäre\w*|hätte\w*|könnte\w*)\b"
)
# "..., although 8 is also possible": the sentence leaves another answer open.
ALSO_POSSIBLE = any_case(
    r"\b(?:also|equally|just as|auch|ebenso|genauso|aussi|également|también|igualmente|também|anche|ook|också|też"
    r"|również)\b"
    r"[^.;]{0,30}?\b(?:possible|right|correct|möglich|denkbar|richtig|juste|posible|correct[oa]|possível|corret[oa]"
    r"|possibile|giust[oa]|mogelijk|möjlig\w*|możliw\w*)\b|\b(?:possible|right|correct) (?:too|as well)\b"
    r"|(?<!\w)(?:тоже|также)\s[^.;]{0,30}?(?:возможн|подход|верн)"
)
CONDITION = any_case(
    r"\W*+(?:(?:so|then|and|but|now|also|therefore|thus) )?(?:if|when|given(?: that)?|wenn|si|se|als|om|если|jeśli"
    r"|如果|若)(?![^\W\d_])"
    r"[^,，]{1,200}(?:[,，]\d{3}[^,，]{0,100})*[,，]\s*"
    r"(?:then |so |dann |alors |entonces |então |allora |то |那么|则)?"
)
# Words of doubt that a question may use itself: "how much should he pay?"
SHARED = frozenset(
    "should would wants wanted plans planned intends try tries tried expect expects expected estimate"
    " estimated predict predicts"
    " predicted hope hopes hoped wish wishes wished guess guessed guesses dream between around hard"
    " difficult pas ohne without"
    " soll sollte möchte devrait voudrait quisiera quería vorrebbe".split()
)
# A preposition that may lead to the asked value: "leaves her with 12 eggs", "they average out at 85".
LEADS = any_case(
    r"(?:\b(?:leav\w+|left|ends?|ended|up|remain\w*|stay\w*|walk\w*|go|goes|went|comes?|came|return\w*|out"
    r"|home|is|are|was|were|be"
    r"|finish\w*|winds?|bleib\w*|endet|steht|reste\w*|retrouve\w*|finit|repart|queda\w*|qued[óo]|acaba\w*"
    r"|fica\w*|ficou|rimane"
    r"|resta|ritrova|finisce|blijft|остаётся|останется|остался|осталась|zostaje)(?: [^\W\d_]+){0,4}\s(?:with|mit"
    r"|avec|con|com|met|med|с|z)"
    r"|(?<!^)\b(?:at|by|to))\s+(?:(?:just|only|exactly|a|an|the|nur|genau|seulement|sólo|solo|só"
    r"|exactamente|exatamente|esattamente|только|ровно)\s+)*\W{0,3}$"
)
# Says that nothing is left over: "9 trays, with none left over".
NONE_LEFT = any_case(
    r",?\s*(?:with|and) (?:none|nothing|no \w+|0) (?:is |are )?(?:left|remain(?:s|ing)|spare|else|more)(?: over)?\b"
    r"|,?\s*ohne Rest\b|,?\s*sans reste\b"
    r"|,?\s*(?:sin (?:que sobre nada|resto)|y no sobran? (?:ning[úu]n[oa]?|nada)|e não sobra(?:m)? (?:nenhum\w*"
    r"|nada))\b"
    r"|,?\s*(?:senza resto|e non (?:ne )?avanza(?:no)? (?:nessun\w*|niente|nulla)|et il n['’]en reste (?:aucun\w*"
    r"|plus))\b"
    r"|,?\s*und (?:es bleibt )?(?:keine[rs]?|nichts) (?:bleibt )?übrig\b"
)
# A question that asks for a difference or a change.
DIFFERS = any_case(
    r"\b(?:more|less|fewer|difference|differ|(?:in|de)creas\w+|chang\w+|rise[ns]?|rose|drop\w*|grow\w*"
    r"|grew|f[ae]ll\w*|reduc\w+|lower\w*|rais\w+|exceeds?|deficit|surplus"
    r"|(?:long|tall|high|wid|old|young|heavi|light|fast|larg|bigg|small|short|warm|cold|deep|low|cheap)er"
    r"|unterschied|mehr|weniger"
    r"|plus|moins|diferencia|diferença|differenza|más|menos|mais|più|meno)\b|(?<!\w)(?:на сколько|разниц\w*)"
)
NO_LEAD = any_case(
    r"\b(?:multipl\w+|divid\w+|add(?:s|ed|ing)?|compar\w+|close|equal|prior|due|next|up|corresponds?"
    r"|begin\w*|start\w*|began"
    r"|buys?|bought|sells?|costs?|together|along|each|empez\w+|comenz\w+|comme[nç]\w+)"
    r"(?: [^\W\d_]+){0,3}\s+(?:with|at|by|to|mit|avec|con|com|met|med|с|z)\W"
)
EQUATION = lazy_pattern(
    r"(?<![\d.,/·*×x+=−-])(?<![·*×x+−-] )(\d{1,9}(?:[.,]\d{1,6})?)\s*([-+−–·*×x/÷:])\s*(\d{1,9}(?:[.,]\d{1,6})?)\s*="
    r"\s*[$€£]?(\d{1,9}(?:[.,]\d{1,6})?)(?![\d/]|[.,]\d)"
)

# -- words that the sentence, or the clause of the value, must not contain
REPORTS = Gated(
    r"\b(?:said|says?|saying|quot(?:e|es|ed|ing)|claim\w*|believe\w*|think|thinks|thought|guess\w*"
    r"|argu(?:e|es|ed)|(?<!all )told"
    r"|(?<!which )(?<!this )(?<!that )(?<!product )(?<!sum )(?<!equation )(?<!formula )tells?"
    r"|heard|hears?|suppos\w+|assum\w+"
    r"|imagin(?:e|es|ed|ing)|pretend\w*|suspect\w*|reckon\w*|according|rumou?r\w*|legend|allegedly|supposedly"
    r"|apparently|seem\w*"
    r"|hop(?:e|es|ed|ing)|wish\w*|dream\w*|expect(?!ation (?:is|works|equals|comes)\b)\w*|predict\w*|estimat\w+"
    r"|should|ought|would|might|may|(?!(?<=we )want (?:is|are|equals|must)\b)wants?"
    r"|wanted|plans|planned|intends?"
    r"|try|tries|tried|if only|unless|whether|let|suppose|prove|show that|were to|had been|so far|up to now|for now"
    r"|at first|first guess|initially|originally|not yet|in a dream|say|mistak\w*|wrong\w*|incorrect\w*|false\w*"
    r"|misread\w*|miscount\w*"
    r"|sagt\w*|meint\w*|behaupt\w+|glaub\w+|dachte|denkt|schätz\w+|laut|angeblich|vermut\w+|hoff\w+|scheint"
    r"|soll(?:te)?"
    r"|möchte|bisher|zuerst|anfangs|falsch\w*|(?<!autrement )dit|disait|prétend\w*|croi[st]|pens(?:e|ait)|selon"
    r"|d['’]après|paraît"
    r"|semble\w*|espère|devrait"
    r"|voudrait|au début|d['’]abord|faux|fausse"
    r"|(?<!the )(?<!two )(?<!fair )(?<!both )(?<!three )(?<!of )(?<!sided )(?<!standard )dice(?! (?:are|is|show"
    r"|and|roll))|dijo|dicen|afirma\w*|cree\w*|piens\w+|según|supon\w+"
    r"|parece\w*|quisiera"
    r"|quería|al principio|disse|diz|acha\w*|segundo [oa]|achou|pensa\w*|secondo (?:il|la|lui|me)|crede\w*"
    r"|sembra\w*|all['’]inizio|vorrebbe"
    r"|zegt|zei|denkt|gelooft|volgens|beweert|lijkt|säger|sade|tror|påstår|enligt|verkar|mówi\w*|twierdzi\w*"
    r"|myśli\w*|według|podobno"
    r"|каже|кажуть|сказа\w+|вважа\w+|дума\w+|стверджу\w+|ніби|здається|спочатку|říká|řek\w+|tvrd\w+|mysl\w+|prý|podle"
    r"|λέει|λένε|είπε|νομίζ\w+|πιστεύ\w+|ισχυρίζ\w+|σύμφωνα|φαίνεται|گفت\w*|فکر|ادعا|ظاهرا"
    r"|diyor|dedi|söylüyor|sanıyor|düşünüyor|nói|cho rằng|nghĩ|katanya|bilang|mengira|menurut"
    r"|говор\w+|сказал\w*|счита\w+|дума\w+|утвержда\w+|якобы|кажется|вроде|по словам|сначала)\b"
    r"|(?<!就是)(?<!话)说(?![明服])|(?<!就是)(?<!話)說(?![明服])|认为|認為|觉得|覺得|据|以为|假设(?!全)|假設(?!全)|如果|言っ|言う|思っ|思う|らしい|そうです|と仮定|もし"
    r"|말했|말하"
    r"|생각|만약|라고"
    r"|قال|يقول|يظن|يعتقد|(?<!\w)لو(?!\w)|कहा|कहता|सोच|मान लो|अगर|यदि"
)
SUPPOSES = any_case(
    r"\W*+(?:so |then |and |but )?\b(?:if(?! (?:we|you|one)\b)|unless|suppose|had|were|let|wenn(?! man\b)|falls"
    r"|angenommen"
    r"|si(?! (?:on|se|nous|\w+[aei]mos)\b)|se(?! (?:si|obt|obtiene|ottiene|divid\w+ (?:por|entre)|\w+amos)\b)|если"
    r"|als je denkt|om\b(?! \w+ (?:dag|timm|minut|veck|år|månad))"
    r"|якщо|якби|jestliže|pokud|kdyby|αν|εάν|اگر|jeśli|gdyby|eğer|nếu|jika|kalau"
    r"|for example|e\.g\.|z\.?\s?b\.|par exemple|por ejemplo|например)(?!\w)"
)
STARTS = any_case(
    r"\W*+(?:(?:so|now|next|then|first|firstly|and),? )?(?:first(?:ly)?|next|step|part|problem|question|exercise"
    r"|example|case|option|choice"
    r"|to (?:find|know|see|solve|answer|work out|figure out|get)\b|given|find|note|recall|remember|consider"
    r"|compute|calculate|determine|guess|hint|attempt|draft|zuerst|zunächst|aufgabe|frage|schritt"
    r"|d['’]abord|question|étape|exercice|primero|problema|pass?o(?=\s*(?:\d+\b|:))|pregunta|ejercicio|primeiro"
    r"|pergunta"
    r"|exercício"
    r"|prima|domanda|esercizio|сначала|задача|вопрос|шаг|ilk önce|soru|bài|câu|soal)\b(?! (?:the )?(?:number|of)\b)"
    r"|\W*(?:第(?![一二三四五六七八九十\d]+[天年次周月])|首先|先|问题|題|题|まず|問|최초|먼저|문제|أولا|السؤال|पहले"
    r"|प्रश्न)"
)
OPPOSED = Gated(
    r"\b(?:(?-i:I)|my|mine|answers?|solutions?|nothing|none|n't|another|elsewhere|a different|(?:habr|tendr|ser"
    r"|quedar|costar|deber|podr)ían?"
    r"|(?:aur|ser|fer|rester|faudr|pourr)ai(?:en)?t|(?:haver|ter|ser|ficar|restar)iam?|(?:avr|sar"
    r"|rester)ebbe(?:ro)?|too (?:few|many|much|little|short|long|big|small)|short of|zu (?:wenig|viele?)|never"
    r"|hardly|barely|scarcely|only if|ungefähr|rund|knapp|unos|unas|alrededor"
    r"|mitnichten|allesbehalve|tutt['’]altro|dista de|tampoco|longe de|nem|ponoć|denkste|von wegen|far from|unequal"
    r"|odpada|descartad[oa]|entfällt|à rejeter|thrown out|extraneous|spurious|misreported|often given as|for all i know"
    r"|if that|at the (?:very )?(?:most|outside)|my foot|absurd|n['’]a que faire|womöglich|magari|varmış|olsaydı"
    r"|à peu près|roughly|approx\w*|about|almost|nearly"
    r"|jamais|aucune?|guère|environ|presque|nunca|ningun[oa]?|aproximadamente|casi|quase|nenhuma?|nessun[oa]?"
    r"|quasi|circa"
    r"|niet|geen|misschien|ongeveer|bijna|inte|ej|kanske|ungefär|nästan|nie|może|około|prawie|chyba"
    r"|değil\w*|yok\w*|belki|yaklaşık|neredeyse|veya|không|có lẽ|khoảng|gần|hoặc|tidak|bukan|mungkin|sekitar"
    r"|майже|приблизно|близько|ні|немає?|чи|або|може|можливо|мабуть|asi|přibližně|zhruba|téměř|nebo|možná|snad"
    r"|není|nejsou|ne(?:m[áěí]|byl|bud|zbý|zůst|sto|plat|zaplat|dost|koup|potřeb|trv|vyjd|ujed)\w*|nelze|nikdy"
    r"|δεν|μη|ούτε|όχι|μήπως|ίσως|περίπου|σχεδόν|αλλά|نه|ن(?:دار|می|یست|بود|شد|ماند|کرد|خر)\w*|حدود|تقریبا|شاید|یا"
    r"|اما|ولی"
    r"|hampir|atau|eller|lub|albo|maar|men|ale|tetapi|tapi|ama|fakat|nhưng|yoksa)\b"
    r"|(?<![^\W\d_])(?:не|нет|почти|примерно|около|ли|بل|ليس|ليست|لم|لن|لا|حوالي|تقريبا|ربما|أو|नहीं|शायद|लगभग|या"
    r"|करीब)(?![^\W\d_])"
    r"|(?<!\w)مرفوض|بعيد عن|绝非|才怪|怎么会|そうだ(?=[。.])|たら(?=[。.])|欲しい|고 한다|고 싶"
    r"|[~≈∼≠?？؟]|\\(?:approx|sim|ne|neq|not|cancel|sout)\b|~~|[不没沒未](?!同)|大约|大約|约|約|也许|可能|或|ない"
    r"|ません|ほど|くらい|ぐらい|たぶん|おそらく"
    r"|아닙|아닌|아녔|않|못|안 |없|약 |아마|정도|쯤|또는|혹은"
)
# The languages of UNSAFE. Each has the words of UNSAFE that belong to other languages and are harmless in it.
HARMFUL_IN = {
    "en": {"fast", "tal", "ob", "non", "ma", "mas", "si", "falls"}, "de": set(), "fr": {"ne", "ma", "si"}, "es": {"si"},
    "pt": {"no", "se", "ne", "mais"}, "it": {"ne"}, "ru": set(), "ar": set(), "zh": set(), "ja": set(),
    "ko": set(), "hi": set(),
}  # fmt: skip
# An earlier sentence that makes all later ones wrong, hypothetical or uncertain.
FRAMES = Gated(
    r"\b(?:wrong|incorrect|false|mistaken|flawed|bad|naive) (?:solution|answer|approach|way(?! (?:a?round|up)\b)"
    r"|reasoning|attempt|argument|calculation|method)"
    r"|\b(?:no (?:clue|idea)|give up|(?:can['’]?t|cannot|could ?n[o'’]t|unable to"
    r"|don['’]t know how to) (?:\w+ )?(?:solve|answer|tell|know|find|say|work))"
    r"|(?:^|[.!?\n]\s*)\W*(?:suppose|imagine(?! (?!having|being|getting|buying)[a-z]+ing\b)|assume|pretend"
    r"|let['’]s say|let us say|what if|angenommen"
    r"|nehmen wir an|supposons|imaginons"
    r"|supongamos|imaginemos|suponhamos|supponiamo|immaginiamo|stel|anta att|załóżmy|предположим|допустим"
    r"|假设(?!全)|假如|仮に)\b"
    r"|falsche (?:lösung|rechnung|antwort)|mauvaise (?:solution|réponse)|(?:solución|respuesta) (?:falsa"
    r"|incorrecta|equivocada)"
    r"|weiß (?:ich )?nicht|keine ahnung|je ne sais pas|no sé|não sei|non (?:lo )?so\b|не знаю|不知道|分かりません"
    r"|わかりません|모르겠"
)
CALLED_BAD = any_case(r"\b(?:naive|wrong|incorrect|false|mistaken|flawed|bad)\b")
# A sentence that objects to what such a word describes.
OBJECTS = lazy_pattern(r"[.!?\n]\s+(?:But|However|In fact|Actually|In reality)\b")
MORE = any_case(
    r"\b(?:more|less|fewer|extra|mehr|weniger|de plus|de moins|más|menos|a mais|a menos|in più|in meno|больше"
    r"|меньше|meer|minder"
    r"|mer|mindre|więcej|mniej)\W*$"
    # after the value and its unit: "3 grams per litre less than that"
    r"|\A(?:\s?(?!(?:and|or|which|that|so|but|is|are|was|has|as|und|oder|was|das|ist|et|ou|qui|y|o|que|e|и"
    r"|что)\b)[^\s,;:(]{1,16}){0,4}?"
    r"\s(?:more|less|fewer|higher"
    r"|lower|greater|smaller|longer|shorter|mehr|weniger|höher|niedriger|größer|kleiner|länger|kürzer|de plus|de moins"
    r"|más|menos|mais|più|meno|больше|меньше|meer|minder|mer|mindre|więcej|mniej)\s(?:than|als|que|do que|di|чем|dan|än"
    r"|niż|od)(?![^\W\d_])"
)
LABELLED = any_case(r"(?!(?:so|then|thus|hence|therefore|and|is|are|now|finally)\b)\b[A-Za-z]+ $")
DOES = any_case(r"\s+(?:is|has|was|had|holds?|contains?|goes|comes|went|came|leaves|starts)\b")
QUOTED = lazy_pattern(r"[\"“”„«»]")
GOT = any_case(
    r"\b(?!(?:we|i|you|one|it|that|this|which|wir|man|on|nous)\b)\w+ (?:get|gets|got|finds?|found|obtain\w*"
    r"|computed?|answer\w*|wrote|put|puts|chose"
    r"|chooses|picks?|picked|calculate[sd]?)\s*$"
)

# -- words that tell the stated value from the other numbers of a sentence
SO = Gated(
    r"(?:[,;:—–]|^|\s)\s*(?:and )?\b(?:so|therefore|thus|hence|altogether|all told|namely"
    r"|whence|daher|also|somit|folglich|deshalb|nämlich|woraus"
    r"|donc|d['’]où|si bien que|por lo que"
    r"|ainsi|alors|así que|de donde|a saber|da cui"
    r"|de (?:modo|manera) que|por eso|por isso|de sorte que|per cui|di conseguenza|por lo tanto|por tanto"
    r"|entonces|luego|portanto|logo|então|assim|quindi|dunque|perciò|pertanto|dus|daarom|zodat|sodass|so dass"
    r"|alltså|så|därför|więc"
    r"|отже|таким чином|tedy|proto|takže|άρα|επομένως|οπότε|پس|بنابراین"
    r"|zatem|czyli|dlatego|dolayısıyla|böylece|öyleyse|bu yüzden|bu nedenle|vậy|do đó|nên|vì thế|oleh karena "
    r"itu|jadi|maka|sehingga|поэтому|значит|следовательно"
    r"|откуда|отсюда|итого"
    r"|итак)\b"
    r"|(?<![^\W\d_])(?:إذن|لذلك|وبذلك|لذا|فإن|इसलिए|अतः|तो)(?![^\W\d_])"
    r"|\b(?:in other words|that is|that means|i\.e\.|o que dá|lo que da|ce qui (?:fait|donne)|il che dà"
    r"|which (?:is(?! the (?:number|amount|total|result|price"
    r"|cost|length|age|area)\b)|(?:means|shows|implies)(?: that)?|gives|makes)|d\.\s?h\.|das heißt"
    r"|c['’]est-à-dire|es decir|o sea|ou seja"
    r"|isto é|cioè|vale a dire|to jest|oftewel|dat wil zeggen|det vill säga|yani|tức là|yaitu|artinya|то есть"
    r"|т\.\s?е\.)(?!\w)"
    r"|أي (?=\d)|यानी|即|也就是|すなわち|つまり|즉|因此|所以|因而|故|于是|那么|共|よって|したがって|ゆえに|だから"
    r"|(?<=\$)\s?より|ので[、，]|から[、，]|따라서|그러므로|그래서|그러면|므로|니까|[⇒→∴]|=>"
)
REASON = Gated(
    r"[,(]?\s*\b(?:because|since|as (?=\d)|weil|denn|car|puisque|parce que|porque|ya que|pues(?!,)|pois(?!,)"
    r"|perché|poiché|siccome|omdat|want|eftersom|ty"
    r"|ponieważ|bo|çünkü|vì|karena|потому что|так как)\b"
)
# "So she had 45: a third of these is 15, and 45 - 15 = 30."
EXPLAINED = lazy_pattern(r":\s+(?=[^:\n]{0,200}\d\s*=\s*[$€]?\d)")
# ", which is a little more than four hours": an approximation of the value, often in another unit.
NEARLY = Gated(
    r",\s*(?:soit|that is|i\.e\.|which is|das sind|o sea|es decir|cioè|ossia|ou seja|то есть)\s+"
    r"(?:just |a (?:little|bit) |slightly |"
    r"un peu |légèrement |etwas |gut |knapp |rund |poco |un poco |algo |чуть )?(?:about|roughly|over|under"
    r"|almost|nearly|(?:more|less) than|(?:plus|moins) (?:de|d['’])|environ|presque|mehr als|weniger als|etwa|fast"
    r"|más de|menos de|casi|più di|meno di|quasi|mais de|quase|больше|меньше|почти|около)\b"
)
# "If we divide 81 by 3, we get 27", "Wenn man ... teilt, ...", "Since ..., ..."
BY_DOING = any_case(
    r"\W*+(?:(?:if|when|once) (?:we|you|one)|wenn (?:man|wir)|si (?:on|nous|se)|se (?:si|\w+amos)|als (?:je|we|men)"
    r"|om (?:man|vi)|если|since|because|as|given that|weil|da|puisque|comme|como|siccome|poiché|так как|поскольку"
    r"|by|after|using|from|with|[a-z]{3,12}ing|[^\W\d_]{2,12}(?:ando|endo|indo)|en [^\W\d_]{2,12}ant|разделив"
    r"|умножив|сложив|вычтя"
    r"|(?:teilt|dividiert|multipliziert|addiert|rechnet|zieht) man)\b"
    r"[^,]{1,200},"
)
# "If she is x years old", "Если разделить 18 на 4": the condition names an unknown or performs a calculation.
NAMES_UNKNOWN = any_case(
    r"\W*+(?:if|wenn|si|se|als|om|jeśli)\b[^,]{0,60}\b[nxzt]\b[^,]{0,60},|\W*если [^,]{0,60}\b[а-я]+ть\b[^,]{0,60},"
)
AT_FIRST = Gated(
    r"\b(?:initially|originally|original|initial|at first|at the (?:start|beginning)"
    r"|to (?:start|begin) with|start(?:ed)? with"
    r"|zuerst|anfangs|au début|al principio|all['’]inizio|сначала)\b"
)
# A denial and the word that it denies.
DENIAL = any_case(
    r"((?<!\w)(?:not|nicht|keine?|pas|no|non|não|не|niet|inte|nie|không|tidak)(?!\w)(?:\s+(?:l[ao]s?|les?"
    r"|se|es|sie|ihn|them|it)(?=\s))?|ない|没有?|未|不)\s*([^\W\d_]{1,5})"
)
ASKS_TIME = Gated(
    r"how long|how many (?:second|minute|hour|day|week|month|year)s|after (?:how|what)|when\b|wie lange|wann|nach wie"
    r"|combien de (?:temps|minutes|jours|heures|secondes)|quand|cuánto (?:tiempo|tarda)"
    r"|cuánt[oa]s (?:minutos|horas|días)"
    r"|quanto tempo|quant[aei] (?:minut\w+|ore|horas|giorni|dias)|сколько (?:времени|минут|часов|дней)|через сколько"
    r"|what time|quelle heure|qué hora|que horas|che ora|wie spät|hoe laat|o której|во сколько|когда|saat kaç|mấy giờ"
    r"|jam berapa|几点|何時|何分|몇 ?시|몇 ?분|多久|多长时间"
)
ASKED_WITH = Gated(
    r"\b(by|at|to|in|from|for|with|on|after|um|auf|mit|nach|in|de|à|en|avec|dans|con|per|di|com|em|por|na"
    r"|w|o|z|med|met|op|на|в|за|с)"
    r"\s+(?:what|which|how|wie|welch\w*|combien|quel\w*|cuánt\w+|qué|quant[oiae]s?|qual[ei]?|che|ile"
    r"|jak\w+|hoeveel|welk\w*|hur|vilk\w+"
    r"|сколько|как\w+)\b"
)
AFTER_TIME = any_case(
    r"\b(?:after|in|for|within|nach|in|après|en|pendant|después de|tras|depois de|após|em|dopo|за|через|после)\s*$"
)
# A separate clause that says what is left: ", 还剩下", "; there remain".
LEFT_OVER = any_case(
    r"[,;，；、][^,;，；、]{0,40}(?:剩下?|余下|残りは|남은|\b(?:left|leaves?|leaving|remains?|remaining|bleiben"
    r"|bleibt|reste(?:nt)?"
    r"|queda[n]?|resta[n]?|rimangono|restano)\b|(?<!\w)оста[лён]\w+)[^\d,;]{0,20}$"
)
# Conjunctions that begin a clause about something other than the answer.
BESIDES = any_case(
    r"(?<![^\W\d_])(?:after|when|once|if|since|because|before|while|nachdem|wenn|weil|bevor|après que|quand|parce que"
    r"|cuando|después de que|porque|depois que|quando|dopo che|perché|nadat|als|omdat|когда|после того|так как)"
    r"(?![^\W\d_])"
)
NAMED = lazy_pattern(r"\$?\s*([A-Za-z](?:_\{?\w\}?)?)\s*=")
BESIDE_TIME = any_case(
    r"(?:\b(?:than|als|before|after|until|till|by|past|since|vor|nach|bis|seit|avant|après|antes|después"
    r"|depois|prima|dopo|voor|na"
    r"|före|przed|trước|sebelum)|(?<!\w)(?:до|после|раньше|позже|قبل|بعد))(?: de| delle| d['’])?\s*$"
)  # a time after these words is not the stated time
ANNOUNCES = any_case(
    r"^\W*(?:(?:the|our|die|das|la|el|il|a|o|le) )?(?:(?:right|correct|final|richtige|bonne) )?(?:answers?|solutions?"
    r"|lösung|antwort|solution|réponse|respuesta|solución|resposta|solução|risposta|soluzione)"
    r" (?:is|are|ist|est|es|é|è)\b"
)
# A question that asks "true or false?", and the words that answer it.
TRUE_OR_FALSE = Gated(
    r"\b(?:true or (?:is it )?false|(?:wahr|richtig) oder falsch|vrai ou faux|verdadero o falso"
    r"|verdadeiro ou falso|vero o falso"
    r"|sant eller falskt|waar of (?:onwaar|niet)|prawda (?:czy|lub|albo) fałsz|doğru mu,? yanlış mı|đúng hay sai"
    r"|benar atau salah"
    r"|правда или (?:ложь|неправда)|верно или (?:нет|неверно))|对还是错|正しいか|真か偽|참.{0,4}거짓|صح أم خطأ"
)
SAID_TRUE_OR_FALSE = Gated(
    r"(?<![^\W\d_])(?:true|false|wahre?|falsch|vraie?|fausse|faux|verdader[oa]|fals[oa]|verdadeir[oa]|vero"
    r"|vera|sant|falskt?|waar"
    r"|onwaar|prawd\w+|fałsz\w*|doğru(?:dur)?|yanlış(?:tır)?|đúng|benar|salah|верно|неверно|правда|ложь"
    r"|ложно|истинно)(?![^\W\d_])"
)
BUT = any_case(
    r"(?<![^\W\d_])(?:but|however|aber|doch|mais|pero|mas|porém|ma|però|но|однако|maar|men|ale|ama)(?![^\W\d_]),?\s"
    r"|但是?|しかし|하지만"
)
ANOTHER = any_case(
    r"\b(?:another|otr[oa]s|outr[oa]s|autres|altr[ie])\s+(?:[$€£]\s?)?(?:§|\d|(?:two|three|four|five|six"
    r"|seven|eight|nine|ten|\w+teen|\w+ty)\b)"
)
# A time beside the present of a question.
AT_ANOTHER_TIME = Gated(
    r"\b(?:yesterday|the day before yesterday|ago|gestern|vorgestern|vor \w+ (?:jahren|tagen|wochen"
    r"|stunden)|avant-hier"
    r"|il y a \w+ (?:ans|jours|heures)|ayer|anteayer|hace \w+ (?:años|días|horas)|ontem|anteontem|ieri"
    r"|\w+ (?:anni|giorni|ore) fa|gisteren"
    r"|eergisteren|geleden|igår|wczoraj|przedwczoraj|temu|вчера|позавчера|назад|dün|hôm qua|kemarin)\b|昨日"
    r"|一昨日|昨天|前天|어제|그저께|أمس"
)
INFINITELY_MANY = Gated(
    r"\b(?:infinitely many|an infinite number|unendlich viele|une infinité|infinit[oa]s|infinite(?= soluzion)"
    r"|oneindig veel"
    r"|oändligt många)\b"
    r"|бесконечно много|无数(?:个|多)?|无穷多(?:个)?|無数|무수히 많"
)
NOT = any_case(
    r"(?<![^\W\d_])(?:not|n['’]t|isn['’]t|never|neither|nor|nicht|kein\w*|pas|non|no|não|не|niet|inte|nie"
    r"|değil|không|bukan|tidak|if|seems?"
    r"|scheint|semble|parece|sembra|кажется|only|whether|ob|si|se|или|or|oder|ou|o|half)(?![^\W\d_])"
)
# "So no, it is not prime."
TRUTH = any_case(
    r"\W*+(?:so|therefore|thus|hence|also|daher|donc|así que|por tanto|portanto|quindi|dunque|значит),? "
    r"(yes|no|ja|nein|oui|non|sí|sim|não|sì|да|нет)(?=[,.!])"
)
LED_BY = lazy_pattern(r"(?<!\w)([^\W\d_]{3,20})\s+([^\W\d_]{1,6})\s*$")  # "started with"
_BY_SIGN = (
    r"(?:[-+−–·*×x/÷^]|\b(?:minus|plus|times|divided by|multiplied by|moins|fois|divisé par|mal"
    r"|geteilt durch|menos|más"
    r"|por|entre|mais|vezes|più|meno|per|diviso|минус|плюс)\b)"
)
_THINGS = r"(?:\s?[a-z]{1,12}(?:\s[a-z]{1,12})?)?"  # "12 red apples + 5 pears = 17"
OPERATED = any_case(rf"\s*{_BY_SIGN}\s*[$€£]?\d|\(\d|{_THINGS}\s+[-+*×x/]\s+[$€£]?\d")
OPERATES = any_case(rf"\d[\s%]*(?:{_BY_SIGN}|:)\s*[$€£]?$|\d{_THINGS}\s+[-+*×x/]\s+[$€£]?$")
# Phrases whose final preposition leads to the stated value, not to an argument: "comes out at", "a share of".
PLACED = Gated(
    r"\b(?:liegt|liegen|lag|landet|landen|bleibt) (?:also |somit |damit |daher |demnach )?(?:genau )?bei\s*$|"
    r"\b(?:averages?|works?|comes?|tops?|totals?)(?: (?:out|in|up))? at\s*$"
    r"|\b(?:puts?|sets?|brings?|keeps?|stands?|stays?|lands?|remains?)\b[^,.;]{0,60} at\s*$"
    r"|\b(?:br(?:ings?|ought)|t(?:akes?|ook)|raise[sd]?|lower(?:s|ed)?|reduce[sd]?|cuts?|drop(?:s|ped)?"
    r"|f(?:alls?|ell)|rises?|rose|gr(?:ows?|ew)"
    r"|goes|went|got|gets?|works? out|rounds?|converts?|lead(?:s|ing)?|led|collaps(?:es?|ed)|c(?:omes?|ame)"
    r"|amounts?|adds? up|sums? up|boils? down|shr[ia]nks?"
    r"|carr(?:y|ies|ied)|climb(?:s|ed)?|jump(?:s|ed)?|mov(?:es?|ed)|push(?:es|ed)?|lifts?|multipl(?:y|ies) out"
    r"|turns? out)"
    r"(?: [^\W\d_]+){0,4}(?: from \S{1,12}(?: [^\W\d_]+)?)? to\s*$"
    r"|\b(?:proportion|share|fraction|rate|ratio|mean|width|size|depth|age|loss|gain|salary|fee|bill|discount"
    r"|capacity|quotient"
    r"|difference|product|remainder|circumference|perimeter|radius|diameter|mass|balance|change|tip|tax|interest"
    r"|duration) of\s*$"
    r"|\b(?:total|distance|distancia|distância|longueur|longitud|comprimento|aire|área|area|superficie|volume"
    r"|volumen|prix|precio"
    r"|preço|somme|suma|soma|durée|duración|duração|hauteur|altura|vitesse|velocidad|velocidade|poids|peso"
    r"|probabilité|probabilidad"
    r"|probabilidade|montant|importe|périmètre|perímetro|âge|edad|idade|largeur|anchura|largura|reste|reparto"
    r"|bénéfice|beneficio|lucro|coût"
    r"|coste|costo|custo|proportion|part) (?:est )?de\s*$"
    r"|\b(?:totale|distanza|lunghezza|area|volume|prezzo|somma|durata|altezza|velocità|peso|probabilità|importo"
    r"|perimetro|età"
    r"|larghezza|costo|guadagno|resto) (?:è )?di\s*$"
    r"|\b(?:Gesamtsumme|Summe|Länge|Höhe|Breite|Fläche|Flächeninhalt|Volumen|Preis|Betrag|Strecke"
    r"|Wahrscheinlichkeit|Gewicht|Rest"
    r"|Gewinn|Anteil|Alter|Geschwindigkeit|Umfang) von\s*$"
)
ADJUNCT = any_case(
    r"\W*+(?:so |thus |therefore |hence |also |donc |dus |alltså |quindi |portanto |logo |así que )?(?:in|for|over"
    r"|across|during|after|per|with|within|of|at|on|from|out of|each|every|all|nach|für|mit|bei|von|pro"
    r"|während|en|dans"
    r"|pour|avec|après|pendant|sur|por|durante|con|tras|de|em|com|para|após|dos|das|di|dei|delle|dopo|på|under"
    r"|efter|med|av|na|voor|met|uit|w|za|po|z|за|в|на"
    r"|из|через|после|с|trong|với|sau|dalam|dari|في|من|بعد|خلال)\s+(?:(?:the|all|these|those|den|die|der|les|des"
    r"|ces|los|las|os|as|gli"
    r"|i|le|de|het|każdy\w*)\s+)?"
)
# "It isn't:" after a sentence that reports what somebody thinks or asks.
_DENIES = any_case(
    r"\W*+(?:it|they|that|this|he|she|i|we)\b (?:\w+n['’]t|(?:is|are|was|do|does|did|will) not)"
    r"(?! (?:true|so|right|correct|the))(?: \w+){0,2}:\s"
)
_CLAIMED = any_case(
    r"\b(?:told|says?|said|thinks?|thought|claims?|expect\w*|suggest\w*|wonder\w*|whether|asks?|guess\w*)\b|[?\"”]"
)
_EARLIER = 200  # characters


def behind_denial(text: str, start: int, end: int) -> int:
    """Returns the end of an opening such as "It isn't:" that denies a reported or asked claim, or else the start."""
    denied = _DENIES.match(text, start, end)
    return denied.end() if denied and _CLAIMED.search(text, max(0, start - _EARLIER), start) else start
