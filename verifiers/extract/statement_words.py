"""Words that show whether a closing sentence concludes, doubts, reports or supposes its value, in 18 languages."""

from __future__ import annotations

from verifiers.extract.gates import Gated
from verifiers.lazy_pattern import any_case, lazy_pattern

# Begins with a single character class, so that the search skips to it. The signs of a run are counted, as the search
# begins at each of them.
STOP = lazy_pattern(
    r"[.!?。！？؟।\n](?:(?<=[.!?])(?:(?<![.!?\s][A-Za-z].)|(?<=\d [a-z].))(?<!\bMr.)(?<!\bMrs.)(?<!\bDr.)(?<!\bSt.)"
    r"(?!(?<=\d kr\.|\d zł\.)\s[a-zà-žа-я])(?!(?<=\d Std\.)\s[a-zà-ž])"
    r"(?!(?<=\d\.) (?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z]*\b)[.!?]{0,40}+"
    r"(?=[*_`)\]\"”»']*(?:\s|$))[*_`)\]\"”»']*|(?<=[。！？؟।])[。！？؟।]*[」）)]*|(?<=\n))"
)
ORNAMENT = " \t\r\n*_`>#-–—•|"
PLAIN_WORD = lazy_pattern(r"[^\W\d_]+")
WORD = lazy_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
JOINS = lazy_pattern(  # joins two statements of a sentence
    r"[,;]\s+|[，；、]|,(?=[\u3040-\u9fff])|\s(?:and|but|while|whereas|und|aber|während|et|mais|tandis que|y|pero"
    r"|mientras|e|mas|ma|mentre|и|а|но|oraz|zaś|ve|ise|och|men|en|maar)\s"
)
MAY = lazy_pattern(r"(?<=[\w,] )May\b(?! (?:be|have|not)\b)")  # the month
UNSPACED = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff]")

# A person or thing that the question is not about, unless the question names it too.
_SOMEBODY = (
    r"(?<!for )(?<!for the )(?<!for his )(?<!for her )(?<!of )(?<!to )\b(?:brother|sister|sibling|friend|neighbou?r\w*"
    r"|cousin|father|mother|uncle|aunt|teacher|classmate|colleague|someone|somebody|anyone|anybody|bruder|schwester"
    r"|freund\w*|nachbar\w*|vater|mutter|jemand|frère|sœur|soeur|amie?s?|voisine?|père|mère|quelqu['’]un|hermano"
    r"|hermana|amig[oa]s?|vecin[oa]|padre|madre|alguien|irmão|irmã|vizinh[oa]|pai|mãe|alguém|fratello|sorella|amic[oa]"
    r"|vicin[oa]|qualcuno)\b|(?<!\w)(?:брат\w*|сестр\w*|сосед\w*|кто-то)|哥哥|弟弟|姐姐|妹妹|朋友|别人|有人|兄が|姉が"
    r"|弟が|妹が|友達|誰か|친구|동생|누나|누군가|(?<!\w)(?:أخته|أخوه|صديق\w*)"
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
CONDITION = any_case(
    r"\W*+(?:(?:so|then|and|but|now|also|therefore|thus) )?(?:if|when|given(?: that)?|wenn|si|se|als|om|если|jeśli"
    r"|如果|若)(?![^\W\d_])"
    r"[^,，]{1,200}(?:[,，]\d{3}[^,，]{0,100})*[,，]\s*"
    r"(?:then |so |dann |alors |entonces |então |allora |то |那么|则)?"
)
# A question that asks for a difference or a change.
DIFFERS = any_case(
    r"\b(?:more|less|fewer|difference|differ|(?:in|de)creas\w+|chang\w+|rise[ns]?|rose|drop\w*|grow\w*|grew|f[ae]ll\w*"
    r"|reduc\w+|lower\w*|rais\w+|exceeds?|deficit|surplus|(?:long|tall|high|wid|old|young|heavi|light|fast|larg|bigg"
    r"|small|short|warm|cold|deep|low|cheap)er|unterschied|mehr|weniger|plus|moins|diferencia|diferença|differenza|más"
    r"|menos|mais|più|meno)\b|(?<!\w)(?:на сколько|разниц\w*)"
)

# -- words that the sentence, or the clause of the value, must not contain
REPORTS = Gated(
    r"\b(?:said|says?|saying|quot(?:e|es|ed|ing)|claim\w*|believe\w*|think|thinks|thought|guess\w*|argu(?:e|es|ed)"
    r"|(?<!all )told|(?<!which )(?<!this )(?<!that )(?<!product )(?<!sum )(?<!equation )(?<!formula )tells?|heard"
    r"|hears?|suppos\w+|assum\w+|imagin(?:e|es|ed|ing)|pretend\w*|suspect\w*|reckon\w*|according|rumou?r\w*|legend"
    r"|allegedly|supposedly|apparently|seem\w*|hop(?:e|es|ed|ing)|wish\w*|dream\w*|expect(?!ation (?:is|works|equals"
    r"|comes)\b)\w*|predict\w*|estimat\w+|should|ought|would|might|may|(?!(?<=we )want (?:is|are|equals|must)\b)wants?"
    r"|wanted|plans|planned|intends?|try|tries|tried|if only|unless|whether|let|suppose|prove|show that|were to"
    r"|had been|so far|up to now|for now|at first|first guess|initially|originally|not yet|in a dream|say|mistak\w*"
    r"|wrong\w*|incorrect\w*|false\w*|misread\w*|miscount\w*|sagt\w*|meint\w*|behaupt\w+|glaub\w+|dachte|denkt"
    r"|schätz\w+|laut|angeblich|vermut\w+|hoff\w+|scheint|soll(?:te)?|möchte|bisher|zuerst|anfangs|falsch\w*"
    r"|(?<!autrement )dit|disait|prétend\w*|croi[st]|pens(?:e|ait)|selon|d['’]après|paraît|semble\w*|espère|devrait"
    r"|voudrait|au début|d['’]abord|faux|fausse"
    r"|(?<!the )(?<!two )(?<!fair )(?<!both )(?<!three )(?<!of )(?<!sided )(?<!standard )dice(?! (?:are|is|show|and"
    r"|roll))|dijo|dicen|afirma\w*|cree\w*|piens\w+|según|supon\w+|parece\w*|quisiera|quería|al principio|disse|diz"
    r"|acha\w*|segundo [oa]|achou|pensa\w*|secondo (?:il|la|lui|me)|crede\w*|sembra\w*|all['’]inizio|vorrebbe|zegt|zei"
    r"|denkt|gelooft|volgens|beweert|lijkt|säger|sade|tror|påstår|enligt|verkar|mówi\w*|twierdzi\w*|myśli\w*|według"
    r"|podobno|каже|кажуть|сказа\w+|вважа\w+|дума\w+|стверджу\w+|ніби|здається|спочатку|říká|řek\w+|tvrd\w+|mysl\w+|prý"
    r"|podle|λέει|λένε|είπε|νομίζ\w+|πιστεύ\w+|ισχυρίζ\w+|σύμφωνα|φαίνεται|گفت\w*|فکر|ادعا|ظاهرا|diyor|dedi|söylüyor"
    r"|sanıyor|düşünüyor|nói|cho rằng|nghĩ|katanya|bilang|mengira|menurut|говор\w+|сказал\w*|счита\w+|дума\w+"
    r"|утвержда\w+|якобы|кажется|вроде|по словам|сначала)\b"
    r"|(?<!就是)(?<!话)说(?![明服])|(?<!就是)(?<!話)說(?![明服])|认为|認為|觉得|覺得|据|以为|假设(?!全)|假設(?!全)|如果"
    r"|言っ|言う|思っ|思う|らしい|そうです|と仮定|もし|말했|말하|생각|만약|라고"
    r"|قال|يقول|يظن|يعتقد|(?<!\w)لو(?!\w)|कहा|कहता|सोच|मान लो|अगर|यदि"
)
SUPPOSES = any_case(
    r"\W*+(?:so |then |and |but )?\b(?:if(?! (?:we|you|one)\b)|unless|suppose|had|were|let|wenn(?! man\b)|falls"
    r"|angenommen|si(?! (?:on|se|nous|\w+[aei]mos)\b)|se(?! (?:si|obt|obtiene|ottiene|divid\w+ (?:por|entre)"
    r"|\w+amos)\b)|если|als je denkt|om\b(?! \w+ (?:dag|timm|minut|veck|år|månad))|якщо|якби|jestliže|pokud|kdyby|αν"
    r"|εάν|اگر|jeśli|gdyby|eğer|nếu|jika|kalau|for example|e\.g\.|z\.?\s?b\.|par exemple|por ejemplo|например)(?!\w)"
)
OPPOSED = Gated(
    r"\b(?:(?-i:I)|my|mine|answers?|solutions?|nothing|none|another|elsewhere|a different|(?:habr|tendr|ser|quedar"
    r"|costar|deber|podr)ían?|(?:aur|ser|fer|rester|faudr|pourr)ai(?:en)?t|(?:haver|ter|ser|ficar|restar)iam?"
    r"|(?:avr|sar|rester)ebbe(?:ro)?|too (?:few|many|much|little|short|long|big|small)|short of|zu (?:wenig|viele?)"
    r"|never|hardly|barely|scarcely|only if|ungefähr|rund|knapp|unos|unas|alrededor|mitnichten|allesbehalve"
    r"|tutt['’]altro|dista de|tampoco|longe de|nem|ponoć|denkste|von wegen|far from|unequal|odpada|descartad[oa]"
    r"|entfällt|à rejeter|thrown out|extraneous|spurious|misreported|often given as|for all i know|if that"
    r"|at the (?:very )?(?:most|outside)|my foot|absurd|n['’]a que faire|womöglich|magari|varmış|olsaydı|à peu près"
    r"|roughly|approx\w*|about|almost|nearly|jamais|aucune?|guère|environ|presque|nunca|ningun[oa]?|aproximadamente"
    r"|casi|quase|nenhuma?|nessun[oa]?|quasi|circa|niet|geen|misschien|ongeveer|bijna|inte|ej|kanske|ungefär|nästan|nie"
    r"|może|około|prawie|chyba|değil\w*|yok\w*|belki|yaklaşık|neredeyse|veya|không|có lẽ|khoảng|gần|hoặc|tidak|bukan"
    r"|mungkin|sekitar|майже|приблизно|близько|ні|немає?|чи|або|може|можливо|мабуть|asi|přibližně|zhruba|téměř|nebo"
    r"|možná|snad|není|nejsou|ne(?:m[áěí]|byl|bud|zbý|zůst|sto|plat|zaplat|dost|koup|potřeb|trv|vyjd|ujed)\w*|nelze"
    r"|nikdy|δεν|μη|ούτε|όχι|μήπως|ίσως|περίπου|σχεδόν|αλλά|نه|ن(?:دار|می|یست|بود|شد|ماند|کرد|خر)\w*|حدود|تقریبا|شاید"
    r"|یا|اما|ولی|hampir|atau|eller|lub|albo|maar|men|ale|tetapi|tapi|ama|fakat|nhưng|yoksa)\b"
    r"|(?<![^\W\d_])(?:не|нет|почти|примерно|около|ли|بل|ليس|ليست|لم|لن|لا|حوالي|تقريبا|ربما|أو|नहीं|शायद|लगभग|या"
    r"|करीब)(?![^\W\d_])|(?<!\w)مرفوض|بعيد عن|绝非|才怪|怎么会|そうだ(?=[。.])|たら(?=[。.])|欲しい|고 한다|고 싶"
    r"|[~≈∼≠?？؟]|\\(?:approx|sim|ne|neq|not|cancel|sout)\b|~~|[不没沒未](?!同)|大约|大約|约|約|也许|可能|或|ない"
    r"|ません|ほど|くらい|ぐらい|たぶん|おそらく|아닙|아닌|아녔|않|못|안 |없|약 |아마|정도|쯤|또는|혹은"
)
# "Forgetting to square is the usual slip": what follows in the sentence is the result of a mistake.
MISTAKE = any_case(
    r"\b(?:usual|common|typical|classic(?:al)?|frequent|popular|tempting|häufige[rn]?|typische[rn]?|beliebte[rn]?)\s"
    r"(?:slip|mistake|error|trap|pitfall|blunder|fallacy|fehler|falle|irrtum)\b"
    r"|\b(?:erreur|piège|error|trampa|erro|errore|trappola)\s(?:fréquente?|courante?|classique|común|frecuente|típico"
    r"|comum|frequente|comune|tipico)\b|(?<!\w)(?:частая|типичная|распространённая) ошибка|常见(?:的)?错误"
    r"|よくある(?:間違い|ミス)|흔한 실수"
)
# An earlier sentence that makes all later ones wrong, hypothetical or uncertain.
FRAMES = Gated(
    r"\b(?:wrong|incorrect|false|mistaken|flawed|bad|naive) (?:solution|answer|approach|way(?! (?:a?round|up)\b)"
    r"|reasoning|attempt|argument|calculation|method)"
    r"|\b(?:no (?:clue|idea)|give up|(?:can['’]?t|cannot|could ?n[o'’]t|unable to"
    r"|don['’]t know how to) (?:\w+ )?(?:solve|answer|tell|know|find|say|work))"
    r"|(?:^|[.!?\n]\s*)\W*(?:suppose|imagine(?! (?!having|being|getting|buying)[a-z]+ing\b)|assume|pretend|let['’]s say"
    r"|let us say|what if|angenommen|nehmen wir an|supposons|imaginons|supongamos|imaginemos|suponhamos|supponiamo"
    r"|immaginiamo|stel|anta att|załóżmy|предположим|допустим|假设(?!全)|假如|仮に)\b"
    r"|falsche (?:lösung|rechnung|antwort)|mauvaise (?:solution|réponse)|(?:solución|respuesta) (?:falsa|incorrecta"
    r"|equivocada)"
    r"|weiß (?:ich )?nicht|keine ahnung|je ne sais pas|no sé|não sei|non (?:lo )?so\b|не знаю|不知道|分かりません"
    r"|わかりません|모르겠"
)
QUOTED = lazy_pattern(r"[\"“”„«»]")
GOT = any_case(
    r"\b(?!(?:we|i|you|one|it|that|this|which|wir|man|on|nous)\b)\w+ (?:get|gets|got|finds?|found|obtain\w*|computed?"
    r"|answer\w*|wrote|put|puts|chose|chooses|picks?|picked|calculate[sd]?)\s*$"
)

# -- words that tell the stated value from the other numbers of a sentence
SO = Gated(
    r"(?:[,;:—–]|^|\s)\s*(?:and )?\b(?:so|therefore|thus|hence|consequently|altogether|all told|namely|whence|daher"
    r"|also|somit|folglich|deshalb|nämlich|woraus|donc|d['’]où|si bien que|por lo que|ainsi|alors|así que|de donde"
    r"|a saber|da cui|de (?:modo|manera) que|por eso|por isso|de sorte que|per cui|di conseguenza|por lo tanto"
    r"|por tanto|entonces"
    r"|luego|portanto|logo|então|assim|quindi|dunque|perciò|pertanto|dus|daarom|zodat|sodass|so dass|alltså|så|därför"
    r"|więc|отже|таким чином|tedy|proto|takže|άρα|επομένως|οπότε|پس|بنابراین|zatem|czyli|dlatego|dolayısıyla|böylece"
    r"|öyleyse|bu yüzden|bu nedenle|vậy|do đó|nên|vì thế|oleh karena "
    r"itu|jadi|maka|sehingga|поэтому|значит|следовательно|откуда|отсюда|итого|итак)\b"
    r"|(?<![^\W\d_])(?:إذن|لذلك|وبذلك|لذا|فإن|इसलिए|अतः|तो)(?![^\W\d_])"
    r"|\b(?:in other words|that is|that means|i\.e\.|o que dá|lo que da|ce qui (?:fait|donne)|il che dà"
    r"|which (?:is(?! the (?:number|amount|total|result|price|cost|length|age|area)\b)|(?:means|shows"
    r"|implies)(?: that)?|gives|makes)|d\.\s?h\.|das heißt|c['’]est-à-dire|es decir|o sea|ou seja|isto é|cioè"
    r"|vale a dire|to jest|oftewel|dat wil zeggen|det vill säga|yani|tức là|yaitu|artinya|то есть|т\.\s?е\.)(?!\w)"
    r"|أي (?=\d)|यानी|即|也就是|すなわち|つまり|즉|因此|所以|因而|故|于是|那么|共|よって|したがって|ゆえに|だから"
    r"|(?<=\$)\s?より|ので[、，]|から[、，]|따라서|그러므로|그래서|그러면|므로|니까|[⇒→∴]|=>"
)
# "If we divide 81 by 3, we get 27", "Wenn man ... teilt, ...", "Since ..., ..."
BY_DOING = any_case(
    r"\W*+(?:(?:if|when|once) (?:we|you|one)|wenn (?:man|wir)|si (?:on|nous|se)|se (?:si|\w+amos)|als (?:je|we|men)"
    r"|om (?:man|vi)|если|since|because|as|given that|weil|da|puisque|comme|como|siccome|poiché|так как|поскольку|by"
    r"|after|using|from|with|[a-z]{3,12}ing|[^\W\d_]{2,12}(?:ando|endo|indo)|en [^\W\d_]{2,12}ant|разделив|умножив"
    r"|сложив|вычтя|(?:teilt|dividiert|multipliziert|addiert|rechnet|zieht) man)\b"
    r"[^,]{1,200},"
)
AT_FIRST = Gated(
    r"\b(?:initially|originally|original|initial|at first|at the (?:start|beginning)|to (?:start|begin) with"
    r"|start(?:ed)? with|zuerst|anfangs|au début|al principio|all['’]inizio|сначала)\b"
)
ASKS_TIME = Gated(
    r"how long|how many (?:second|minute|hour|day|week|month|year)s|after (?:how|what)|when\b|wie lange|wann|nach wie"
    r"|combien de (?:temps|minutes|jours|heures|secondes)|quand|cuánto (?:tiempo|tarda)|cuánt[oa]s (?:minutos|horas"
    r"|días)|quanto tempo|quant[aei] (?:minut\w+|ore|horas|giorni|dias)|сколько (?:времени|минут|часов|дней)"
    r"|через сколько|what time|quelle heure|qué hora|que horas|che ora|wie spät|hoe laat|o której|во сколько|когда"
    r"|saat kaç|mấy giờ|jam berapa|几点|何時|何分|몇 ?시|몇 ?분|多久|多长时间"
)
# A separate clause that says what is left: ", 还剩下", "; there remain".
LEFT_OVER = any_case(
    r"[,;，；、][^,;，；、]{0,40}(?:剩下?|余下|残りは|남은|\b(?:left|leaves?|leaving|remains?|remaining|bleiben|bleibt"
    r"|reste(?:nt)?|queda[n]?|resta[n]?|rimangono|restano)\b|(?<!\w)оста[лён]\w+)[^\d,;]{0,20}$"
)
ANOTHER = any_case(
    r"\b(?:another|otr[oa]s|outr[oa]s|autres|altr[ie])\s+(?:[$€£]\s?)?(?:§|\d|(?:two|three|four|five|six"
    r"|seven|eight|nine|ten|\w+teen|\w+ty)\b)"
)
NOT = any_case(
    r"n['’]t(?![^\W\d_])|(?<![^\W\d_])(?:not|never|neither|nor|nicht|kein\w*|pas|non|no|não|не|niet|inte|nie"
    r"|değil|không|bukan|tidak|if|seems?"
    r"|scheint|semble|parece|sembra|кажется|only|whether|ob|si|se|или|or|oder|ou|o|half)(?![^\W\d_])"
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
