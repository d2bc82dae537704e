"""Removes remarks after an answer that say nothing about it: offers to the reader, asides that deny other values."""

from __future__ import annotations

import functools
import re

from verifiers.extract.asked import shared_with
from verifiers.extract.gates import Gated
from verifiers.extract.retractions import MISTAKES
from verifiers.extract.spans import ending
from verifiers.extract.statement_words import REPORTS
from verifiers.lazy_pattern import lazy_pattern

_STOPS = frozenset(".!?。！？؟)）")
_BETWEEN = (". ", "! ", "? ", "\n", "。", "！", "？", "؟ ")  # separators of sentences
_INSIDE = frozenset(">}0123456789")  # last characters of texts that end with their answer
_LONGEST = 240  # characters of a remark
_MOST = 3
_OFFER = lazy_pattern(
    r"[\s¿*_(-]*(?:would you like|do you (?:want|have|need)|shall i|should i (?:also )?(?:show|explain|solve)"
    r"|want me to|can i help"
    r"|(?:does|did) (?:that|this|it) (?:make sense|help)|is (?:that|this|it|everything) clear|(?:any|more"
    r"|other) (?:other )?questions"
    r"|need (?:more|any) help|let me know|feel free|(?:if|in case) you(?:['’]d| would)? (?:have|need|want|like|wish"
    r"|prefer)"
    r"|möchtest du|möchten sie|soll ich|willst du|(?:wenn|falls) (?:du|sie|ihr) (?:noch )?(?:weitere )?(?:fragen"
    r"|hilfe|mag|möchte|will|woll)|brauchst du|hast du noch|auf wunsch|gern(?:e)? (?:zeige|erkläre|rechne)"
    r"|ist (?:das|alles) klar|frag (?:gern|einfach)|veux-tu|voulez-vous|souhaite[sz]|dois-je|puis-je|si (?:tu (?:as"
    r"|veux|préf)"
    r"|vous (?:avez|voulez|préf)|besoin)"
    r"|as-tu|avez-vous|n['’]hésite|(?:quieres|quiere|deseas|desea) (?:que|ver|otr)|te gustaría|le gustaría"
    r"|si (?:tienes|necesitas|quieres|quiere|lo deseas?|te apetece|prefieres)"
    r"|tienes (?:alguna|más)|(?:você )?(?:quer|gostaria) (?:que|de|ver)|se (?:você )?(?:tiver|precisar|quiser|preferir)"
    r"|posso ajudar|vuoi (?:che|vedere|un)"
    r"|vorresti|se (?:hai|vuoi|vuole|ti serve|preferisci)|hai (?:altre )?domande|posso aiutar|wil je|zal ik"
    r"|als (?:je|u) (?:nog )?(?:vragen|wil|wilt)|heb je (?:nog )?vragen"
    r"|vill du|om du (?:har|vill)|chcesz|czy chcesz|jeśli (?:masz|chcesz|wolisz)|masz pytania|хочешь|хотите"
    r"|если (?:есть|у вас|у тебя|нужн|хо[чт])|есть ли (?:ещё )?вопрос|якщо (?:хоч|потріб)|pokud (?:chce|máš)"
    r"|αν (?:θέλ|χρει)"
    r"|(?:başka )?sorun(?:uz)? varsa|ister misin|isters|bạn có (?:muốn|cần)|nếu bạn|apakah (?:kamu|anda) (?:ingin|mau)"
    r"|(?:jika|kalau) (?:kamu|anda|mau|ingin)|dacă (?:vrei|dorești)"
    r"|(?:你|您)?(?:想|要|需要)(?:不要|我|看|了解)|如果(?:你|您)?(?:还|有|需要|想|愿意)|还有(?:什么|其他)|他に"
    r"|もし(?:他に|さらに|よ)|質問が"
    r"|(?:よければ|必要なら|ご希望)|더 궁금|다른 질문|질문이 있|원하(?:시?면|신다면)|هل (?:تريد|ترغب|لديك)|(?:إذا"
    r"|إن) (?:كان لديك|أرد|شئت|رغبت)"
    r"|אם תרצ|اگر (?:بخواه|مایل|سوال)|क्या आप|(?:अगर|यदि) (?:आपको|आप|तुम)|(?:अगर|यदि) चाहें)",
    re.IGNORECASE,
)
# An offer to show something may contain numbers: "If you like, I can draw it with 5 posts."
_SHOWING = lazy_pattern(
    r"\b(?:draw|show|explain|walk (?:you )?through|sketch|zeichne|zeige|erkläre|rechne|montre|explique|dessine|muestro"
    r"|explico|dibujo|mostro|desenho|spiego|disegno|laten zien|leg uit|teken|visar|ritar|pokażę|narysuję|wyjaśnię)\b"
    r"|покажу|объясню|нарисую|画|解释|演示|説明|描き|보여|그려",
    re.IGNORECASE,
)
# If an offer contains one of these words, it doubts the answer and is kept.
_DOUBTS = lazy_pattern(
    r"answer|instead|correct|right|wrong|\bsure\b|change|rather|really|actually|true|trust|\bcheck|mistake"
    r"|different|antwort|richtig"
    r"|falsch|réponse|juste|respuesta|resposta|risposta|ответ|верн|правильн|答案|答え|正し|正确|错|정답|맞|الجواب"
    r"|الإجابة|cevap|doğru|đáp"
    r"|jawab|benar|उत्तर|सही|svar|rätt|odpowied",
    re.IGNORECASE,
)
_CONFUSED = (
    r"(?:attention à |veillez à |veille à )?ne pas (?:répondre|écrire|donner|dire|mettre)|cuidado con (?:responder"
    r"|decir"
    r"|poner)|(?:be careful |take care )?not to (?:answer|write|say|give)|don['’]t (?:answer|write|say|put)"
    r"|no (?:respondas"
    r"|digas|pongas)|não (?:responda|diga)|non (?:rispondere|dire)|注意不要(?:写|答|算)|"
    r"(?:do not|don['’]t|not to be|be careful not to|never)\s+confuse\w*|not to be confused"
    r"|nicht (?:mit [^.!]{3,40} )?(?:zu )?verwechseln|verwechsle"
    r"|ne pas confondre|ne confond\w*|à ne pas confondre|no (?:lo )?confund\w*|não confund\w*|non confond\w*"
    r"|da non confondere|не путать"
    r"|не путай\w*|不要(?:和|与|跟)?[^,，。]{0,12}混淆|混同し"
)
_CONTRAST = (
    r"(?:and |but |und |et |y |e |а )?(?:not|nicht|non(?: pas)?|pas|no|não|не|niet|inte|nie|bukan|değil"
    r"|instead of|rather than)(?!\w)"
    r"|不是|而不是|而非|न कि"
)
_WOULD = (
    r"(?:\b(?:would|could|wäre[nt]?|würden?|hätten?|käme[nt]?|gäbe|[^\W\d_]+raient|[^\W\d_]+rait|(?:ser|habr|dar|tendr"
    r"|saldr|quedar|costar)ían?|(?:ser|dar|ter|ficar|haver)iam?|(?:sar|avr|dar|verr)ebber?o?|byłoby|byłaby|byłyby|byłby"
    r"|wyszłoby|zou(?:den)?|skulle|olurdu|olacaktı)\b|['’]d\b|(?<!\w)бы(?!\w))"
)
_UNREAL = (
    rf"(?:if|for|with|had|wenn|bei|mit|hätte|si|se|con|pour|avec|если|при|gdyby|dla|als|met|om|med"
    rf"|eğer)\b[^()]{{0,160}}"
    rf"{_WOULD}|(?![^()]*(?:\?|\b(?:i|we|ich|wir|je|nous|yo|eu|io|я)\b))[^()]{{0,80}}{_WOULD}|如果[^()（）]{{0,80}}就"
    rf"|[^()（）]{{1,40}}(?:なら|だったら|であれば|れば)[^()（）]{{1,60}}"
)
_CHECKED = (
    r"(?:i(?:['’]ve| have)? )?(?:just )?(?:double-?|re-?)?(?:checked|verified)(?: (?:it|this|that|twice|again))*"
    r"|typo (?:fixed|corrected)|(?:zweimal )?(?:geprüft|nachgerechnet)|vérifié|comprobado|verificado|conferido"
    r"|verificato"
    r"|проверено|sprawdzone|gecontroleerd|kontrollerat|验算过|検算済み"
)
_CONFIRMING = lazy_pattern(rf"\s*[(（]\s*(?:{_CHECKED})[^\d()（）]{{0,40}}[)）][.。!]?\s*", re.IGNORECASE)
_ASIDE = lazy_pattern(rf"\s*[(（]\s*(?:{_CONFUSED}|{_CONTRAST}|{_UNREAL})[^()（）]*[)）][.。!]?\s*", re.IGNORECASE)
# "Not bad at all!": a closing exclamation that praises and denies nothing.
_EXCLAIMS = lazy_pattern(
    r"[\s¡*_(]*(?:(?:and |so |well,? |see,? )?(?:(?:that['’]?s|that was|that wasn['’]t|it['’]s|it wasn['’]t"
    r"|this was|what) )?"
    r"(?:(?:not|so|too|pretty|quite|really|very|rather|a|an|all|that|half) ){0,3}"
    r"(?:bad|hard|difficult|easy|simple|nice|neat|fun|shabby|tricky|cool|great|lovely|a lot|lot|few|bit|sum|saving"
    r"|bargain|deal)"
    r"(?: (?:at all|one|little|number|question|problem|result|right|done|amount|lot|of \w+|for a \w+)){0,2}"
    r"|(?:gar |eigentlich |das war |war )*(?:nicht|gar nicht|ganz|ziemlich|doch) (?:so |ganz |wahr "
    r"|zu )?(?:schlecht|übel|schwer|schwierig"
    r"|einfach|leicht|viel|schön)|(?:c['’](?:est|était) )?(?:pas (?:si |trop )?(?:mal|difficile|compliqué)(?: du tout)?"
    r"|facile|(?:plutôt|assez) (?:facile|simple|bien))"
    r"|(?:no (?:est[áa]|es|era|fue) )?(?:nada |tan |muy )*(?:mal|difícil|fácil|sencillo)|(?:até que )?(?:não (?:é"
    r"|está|foi) )?(?:nada |tão |nem )*"
    r"(?:mal|mau|difícil|fácil|simples)|(?:niente|mica) male|non (?:è|era) (?:così |poi )*(?:male|difficile)"
    r"|(?:davvero )?(?:facile|semplice)"
    r"|(?:helemaal )?niet (?:slecht|gek|verkeerd|moeilijk|zo moeilijk)|(?:inte (?:alls )?(?:så )?(?:illa|dåligt|svårt))"
    r"|(?:całkiem |wcale )?(?:nieźle|nie tak (?:źle|mało)|proste)|(?:совсем |очень )?(?:неплохо|несложно|просто"
    r"|легко)|(?:зовсім )?непогано"
    r"|(?:hiç )?fena değil|(?:cukup |lumayan )?(?:mudah|lumayan|bagus)|không tệ(?: chút nào)?|(?:还|還|真|很"
    r"|挺)?(?:不错|不難|不难|简单|简单吧)"
    r"|(?:なかなか|とても)?(?:悪くない|簡単)(?:です)?ね?|나쁘지 않(?:네요|죠|아요)|쉽(?:죠|네요)|(?:ليس سيئ|غير سيئ"
    r"|سهل)\w*(?: على الإطلاق)?|बुरा नहीं)"
    r"[\s*_)]*[!！][\s*_)]*",
    re.IGNORECASE,
)
# "The intercept isn't asked for.", "The change depends on the banknote.": something that the sentence before lacks.
_NOT_ASKED = Gated(
    r"(?:(?:is|are|was|were)(?:n['’]t| not) (?:\w+ )?(?:asked|needed|required|wanted|relevant|of interest"
    r"|part of (?:the|this) question)"
    r"|(?:do|does|did)(?:n['’]t| not) (?:matter|play (?:a|any) (?:role|part)|concern us)|is (?:irrelevant"
    r"|beside the point)"
    r"|(?:nobody|no one) (?:asked|asks)|(?:we|you) (?:were(?:n['’]t| not) asked|(?:do not|don['’]t|didn['’]t) need)"
    r"|depends? on"
    r"|(?:ist|sind|war|wird) (?:hier |dabei |aber )*(?:nicht (?:gefragt|gesucht|gefordert|wichtig|nötig)|egal"
    r"|unwichtig)"
    r"|(?:spiel(?:t|en)|braucht|brauchen) (?:wir |man |hier |dabei )*(?:keine rolle|nicht)|häng(?:t|en) (?:von|davon)"
    r"|n['’](?:est|était|intervient|a) pas (?:demandée?|utile|nécessaire|d['’]importance|ici)|on ne demande pas"
    r"|n['’]importe pas|dépend d"
    r"|no (?:se (?:pide|pregunta|necesita)|importa|hace falta|interesa)|depende d|não (?:foi pedid|é (?:pedid"
    r"|necessári)|se pede|importa|interessa)"
    r"|non (?:è (?:richiest|necessari)|serve|importa|interessa|ci interessa)|dipende d|(?:is|wordt"
    r"|doet) (?:hier )?(?:niet (?:gevraagd|nodig)"
    r"|er niet toe)|hangt af|(?:behövs|efterfrågas) inte|beror på|nie (?:jest|są) (?:potrzebn|ważn)|nie pytaj"
    r"|nie ma znaczenia|zależy od"
    r"|(?:не (?:нужн|требует|спрашива|важн|имеет значения)|завис[ия]т от|не потрібн|не питают|залежить від)"
    r"|sorulmu|(?:gerek(?:li)?|önemli) değil|bağlı|không (?:cần|được hỏi|hỏi)|phụ thuộc|tidak (?:ditanya|perlu"
    r"|diminta)|tergantung"
    r"|(?:没有?问|沒有?問|不(?:需要|重要|影响)|取决于|无关)|(?:聞かれて|問われて|必要(?:では|は)?あり?|関係(?:が"
    r"|は)?)い?ませ?ん|問題ではあり|によります|次第です"
    r"|(?:묻지 않|필요 ?없|상관 ?없|달려 있|따라 다)|(?:غير مطلوب|لا (?:يهم|نحتاج)|ليست? مطلوب|يعتمد|تعتمد)"
    r"|नहीं पूछ|ज़रूरत नहीं|निर्भर)",
    re.IGNORECASE,
)
_LONGEST_ASIDE = 110
_POINTS = lazy_pattern(  # such a remark must name its thing
    r"[\s*_(]*(?:and |but )?(?:(?:it|this|that|these|those|which|what|everything|all|here|there|he|she|they|das"
    r"|dies\w*|es|alles|er|sie|ça|cela"
    r"|ceci|c|ce|cette|tout|eso|esto|todo|isso|isto|tudo|ciò|questo|tutto|dat|dit|alles|det|allt|to|это|всё|це"
    r"|bu)(?![^\W\d_])"
    r"|这|那|它|これ|それ|그|이것|هذا|ذلك|यह)",
    re.IGNORECASE,
)
_FITTING = (
    r"(?:(?:it|that|this|everything|all|the (?:check|numbers?|sum))(?: all| both)?(?: (?:checks? out|fits?"
    r"|works?(?: out)?|adds? up|match(?:es)?|agrees?"
    r"|(?:is|are) (?:consistent|as required|as it should be|correct|right|fine))|['’]s (?:right|correct|consistent"
    r"|fine))"
    r"|(?:as|just as|exactly as) (?:required|it should(?: be)?|expected|stated|given|wanted)|(?:genau )?(?:wie"
    r"|was) (?:gefordert|verlangt|es sein soll)"
    r"|(?:es|das|alles|passt|stimmt)(?: es| das| alles| auch)? ?(?:passt|stimmt)?(?: alles| genau)?|(?:tout|ça|cela"
    r"|c['’]est|le compte) ?"
    r"(?:colle|marche|correspond|est bon|bon|est juste|y est)|(?:todo |eso )?(?:cuadra|encaja|coincide|está bien"
    r"|es correcto)(?: todo)?"
    r"|(?:tudo |isso )?(?:bate|confere|está certo|fecha)(?: certo)?|(?:tutto |il conto )?(?:torna|quadra)|(?:dat "
    r"|alles |het )?klopt(?: het| dat| alles)?"
    r"|(?:allt |det )?stämmer(?: det| allt)?|(?:wszystko )?(?:się zgadza|zgadza się|pasuje)|(?:всё|все) (?:сходится"
    r"|верно|правильно)|(?:正好)?(?:符合|吻合|没错|正确)"
    r"|(?:合って|一致して)います|맞습니다|맞아요)"
)
# "They add to 12, so it checks out."
_FITS = lazy_pattern(
    r"[,;:—–，、،]\s*(?:(?:so|and|which|und|also|denn|das|donc|ce qui|et|así que|y|por lo que|e|o que|então|logo"
    r"|quindi|dus|så|więc|czyli|а значит"
    r"|так что|значит|и)(?![^\W\d_])\s*|(?:所以|因此|よって)[，、]?)*+"
    rf"{_FITTING}[.!。！\s)*]*",
    re.IGNORECASE,
)
# "¡Coincide!", "Yes, it checks out.": a sentence that only confirms.
_AGREES = lazy_pattern(
    rf"[\s¡*_(]*(?:(?:yes|ja|oui|sí|sim|sì|да|tak|and|und|et|y|e|и)\W+)?{_FITTING}[.!。！\s)*_]*", re.IGNORECASE
)
# "It isn't 41, which is the sum of the legs.", "If you got 12, you counted the pieces.": one other value is given up.
_GIVEN_UP = lazy_pattern(
    r"[\s*_-]*(?:(?:it|that|this)(?:['’]s not| is not| isn['’]t)|(?:es|das) (?:ist|sind) nicht|ce n['’]est pas"
    r"|no (?:es|son)"
    r"|não (?:é|são)|non (?:è|sono)|это не"
    r"|(?:if|when) you (?:answered|got|get|wrote|put|said|have)(?=[^,]{1,30}, (?:then )?you(?:['’]ve| have)? (?:\w+ )?"
    r"(?:count|forg[eo]t|add|includ|doubl|miss|us|mix|subtract|divid|multipli|stopp|overlook|omit|left)\w*\b))"
    r"\s+(?=[$*€£]*\d[\d.,]*[^\d]*$)",
    re.IGNORECASE,
)
_TURNS = lazy_pattern(
    r"\b(?:but|rather|it is|it['’]s|that['’]s|sondern|mais|sino|mas|bensì|ma)\b|(?<!\w)а(?!\w)", re.IGNORECASE
)
# "And if the larger one had been asked for, it would be 14."
_OTHERWISE = lazy_pattern(
    r"[\s*_-]*(?:(?:and|but|und|aber|et|mais|y|pero|e|mas|ma|а|но|a|ale|en|maar|och|men|ama)\s)?"
    r"(?:(?:if|had|wenn|hätten?|si|se|если|gdyby|als|om|eğer)\b[^.!?]{0,200}" + _WOULD + r"|如果[^。！？]{0,80}就)",
    re.IGNORECASE,
)
_IS_TO = lazy_pattern(  # "A common mistake is to subtract"
    r"\s(?:(?:here|hier|ici|aquí|aqui|qui)\s)?(?:is|would be|ist|wäre|est|serait|es|sería|é|seria|è|sarebbe)\b"
    r"(?![^.!?]*(?:answer|antwort|réponse|respuesta|resposta|risposta))",
    re.IGNORECASE,
)
# "The 9 would only be right for a proportion."
_ONLY_THEN = lazy_pattern(
    r"[\s*_-]*(?:(?:the|an?|die|der|das|ein|eine|le|la|les|une?|el|los|una|os?|um|uma|il|lo"
    r"|un)\s)?[$€£]?\d[\d.,/:]*[^.!?]{0,80}?"
    + _WOULD
    + r"[^.!?]{0,20}\b(?:only|nur|seulement|uniquement|que|sólo|solo|solamente|só|apenas|soltanto|только|alleen|bara"
    r"|tylko)\b",
    re.IGNORECASE,
)
_WARNING = lazy_pattern(rf"[\s*_-]*(?:{_CONFUSED})", re.IGNORECASE)
_WHO = (
    r"someone|somebody|some|others|other|many|people|students|student|a (?:friend|student)|i|my \w+|jemand|manche"
    r"|viele|ich|quelqu['’]un"
    r"|certains|alguien|algunos|muchos|alguém|alguns|muitos|qualcuno|alcuni|molti|кто-то|некоторые|многие|я|ktoś"
    r"|niektórzy|iemand|sommigen|någon|vissa|jag|cineva|unii"
)
_SAYS = (
    r"claim(?:s|ed)?|say|says|said|thinks?|thought|writes?|wrote|gets?|got|had|answer(?:s|ed)?|behaupte[tn]?"
    r"|sag(?:t|en)"
    r"|schr[ie]+b(?:en)?|mein(?:t|en)|hatte|dit|disent|prétend|écrit|écrivent|dicen?|escrib\w+|diz(?:em)?|escrev\w+"
    r"|dicono"
    r"|dice|scriv\w+|говор\w+|пишут|(?:на)?писал\w*|mówi\w*|(?:na)?pisał\w*|zeg(?:t|gen)|schreef|säger|skrev|spun|scris"
)
_NOT = (
    r"(?:it|this|that|the answer)(?: (?:is|was) not|['’]s not| isn['’]t| wasn['’]t)|(?:das|es|die antwort) ist nicht"
    r"|la réponse n['’]est pas|la respuesta no es|a resposta não é|la risposta non è|ответ не"
    r"|ce n['’]est pas|no es|não é"
    r"|non è|это не|to nie(?: jest)?|het is niet|det är inte|nu este|not|nicht|nu|nie|не|inte|niet|ikke"
)
_OTHER = (
    r"(?P<value>(?:\$[^$\n]{1,40}\$|[$€£]?[-−]?\d[\d.,/:]*(?<![.,/:])%?)(?: hours? \d+ minutes?"
    r"|(?:時間| ?小?时)\d+分)?)"
    r"(?![\w.]*\d)"
)
# A sentence or an aside that denies a value, and one that reports a value, which is called wrong after it.
_DENIES = lazy_pattern(rf"\s*[(（]?\s*(?:(?:{_NOT})\s|不是|并非){_OTHER}", re.IGNORECASE)
_DENIES_AFTER = lazy_pattern(
    rf"\s*{_OTHER}[^\W\d_]{{0,8}}?(?:では(?:ありません|ない(?:です)?)|じゃ(?:ない(?:です)?|ありません)"
    r"|[이가] (?:아닙니다|아니에요))[。.!！\s]*"
)
_REPORTS = lazy_pattern(
    rf"\s*[(（]?\s*(?:(?:{_WHO})\s(?:[^\W\d_]+,?\s){{0,3}}?(?:{_SAYS})\s"
    r"|(?:my|the) (?:first|earlier|previous|initial) (?:\w+ )?(?:(?:of|was) )?"
    r"|(?:我|有人|有的?同学)?(?:先前|之前|一开始|起初|刚才|最初)?[^，。,\d]{0,4}[写寫算说說]的?(?:是|成|了)?\s?"
    rf"|(?:最初|はじめ|先ほど)[^、。\d]{{0,8}}\s?){_OTHER}",
    re.IGNORECASE,
)
_CALLED_WRONG = lazy_pattern(
    r"[^\d.。!?]{0,24}(?<![^\W\d_])(?:but|wrong|incorrect|mistaken|forg[eo]t|miss|ignor|which counts|aber|doch|falsch"
    r"|mais|faux|pero|mal|mas|errad|ma|sbagliat|но|неверно|ошиб|ale|błęd|maar|fout|men|fel|dar|greșit)"
    r"|[^\d。]{0,8}(?:错|錯|漏|但|間違|誤)",
    re.IGNORECASE,
)
# Words that call a reported value right, or perhaps right.
_CALLED_RIGHT = lazy_pattern(
    r"\b(?:right|correct|true|recht|richtig|raison|juste|razón|correcto|certo|correto|ragione|giust\w+|прав\w*|верн\w+"
    r"|racja|gelijk|rätt|dreptate|ask\w*|question|want\w*|need\w*|probabl\w*|maybe|perhaps|possibl\w*|agree\w*|frage"
    r"|vielleicht|peut-être|quizás|talvez|forse)\b|(?<!\w)(?:может|вопрос\w*)|对的|正确|正しい|可能",
    re.IGNORECASE,
)
_STATES = lazy_pattern(
    r"(?:\b(?:but|rather|sondern|mais|sino|sim|ma|bensì|а|is|are|be|was|equals|ist|sind|est|sont|es|son|é|são|è|sono"
    r"|este|jest|to|är|really|actually|makes?|becomes|это|равно)|[=≈→是为はが:])[\s$*]*$",
    re.IGNORECASE,
)
_CHECKS = lazy_pattern(
    r"(?:let me|let['’]s|i['’]ll) (?:just |quickly )?(?:re-?|double-?)?(?:check|verify|confirm|make sure)\b"
    r"|ich prüfe|je vérifie"
    r"|\b(?:compruebo|vou conferir|controllo)\b|проверю|(?:检查|验证|再算)",
    re.IGNORECASE,
)
_CONFIRMED = lazy_pattern(
    r"\s*(?:yes\W+)?(?:confirmed|verified|(?:it|that|this) (?:checks out|matches|agrees|holds)|bestätigt"
    r"|(?:das )?stimmt|passt"
    r"|confirmé|vérifié|confirmado|verificado|confermato|verificato|подтверждено|всё верно"
    r"|确认无误|没有问题)[.!。！\s]*",
    re.IGNORECASE,
)
_OBJECTION = lazy_pattern(
    r"\b(?:not|wrong|mistake|error|instead|should|actually|but|however|oops|forgot|except|rather|nicht|falsch|doch|aber"
    r"|pas|faux|mais|pero|mal|mas|não|ma|non|не|но)\b|n['’]t\b|不|错|漏|但",
    re.IGNORECASE,
)
_NUMBERS = lazy_pattern(r"\$[^$\n]{1,80}\$|\\[dt]?frac\{[^{}]{1,20}\}\{[^{}]{1,20}\}|\d+(?:[.,/:]\d+)*")
# "1/11 (≈ 0.0909)": an exact value and its decimal approximation.
_ROUNDED = lazy_pattern(
    r"(?:\d\s?/\s?\d{1,9}|\\(?:[dt]?frac|sqrt)\{[^()]{1,60}\}|\\pi|π|√\d{1,9}|\\sqrt\d)\s?\$?(\s*\((?:≈|~|\\approx"
    r"|approx\w*\.?|about"
    r"|numerically|roughly|rund|etwa|ca\.|environ|circa|około|около|примерно)\s*\$?\d{1,9}(?:[.,]"
    r"|\{,\})\d{1,12}(?:\.\.\."
    r"|…)?\$?\)[.*\s]*)$"
)
# "，而不是12分钟", ", nicht 8", ", ni 24 ni 23", ", 10 değil": values that a sentence denies behind its own.
_DENIED = r"(?P<value>[$€£]?[-−]?\d[\d.,/:]*(?<![.,:])\$?)[^\W\d_]{0,3}(?:\s?[€%°]|\s[^\W\d_]+){0,3}"
_INSTEAD = lazy_pattern(
    r"[，,、]?\s*(?:而不是|而非|并不是|并非|不是)\s?(?P<value>[$\d][\d.,/:$]*)[^，。、\d]{0,12}[.。!！]?"
)
_NOT_THIS = lazy_pattern(
    r"(?:\s*[,;(—–]\s*(?:(?:and|but|und|et|mais|y|pero|e|mas|ma|и|а|en|och|i|a|ve)\s)?|\s(?:and|und|et|y|e|и|en|och"
    r"|i)\s)(?:(?:вовсе|совсем|отнюдь|gar|certainly|definitely|surtout)\s)?"
    r"(?:not|nicht|keine?|non(?: pas)?|pas|no|não|niet|geen|inte|nie|ani|ni|nem|né|noch|не|ни|bukan"
    r"|neither)\s+(?:etwa\s|just\s)?"
    rf"{_DENIED}(?:,?\s(?:ni|nor|or|noch|oder|ou|o|nem|né|ani|ни"
    rf"|или)\s[^\d.!?]{{0,12}}\d[\d.,]*(?<![.,])(?:\s[^\W\d_]+){{0,2}})?"
    r"[\s.!*_)]*",
    re.IGNORECASE,
)
_NEGATIONS = (  # one of these is in every match of the patterns, and a substring search is far quicker
    " not ", " nicht ", " kein", " non ", " pas ", " no ", " não ", " niet ", " geen ", " inte ", " nie ", " ani ",
    " ni ", " nem ", " né ", " noch ", " не ", " ни ", " bukan ", " neither ", " değil", "(not ", "(nicht ", "(no ",
    "(non ", "(pas ", "(não ", "(не ", "(niet ", "(nie ",
)  # fmt: skip
_NOT_THIS_AFTER = lazy_pattern(
    rf",?\s(?:ve\s|ama\s)?{_DENIED.replace('{0,3}(?:', '{0,3}?(?:')}\s(?:değil(?:dir)?)[\s.!*_]*", re.IGNORECASE
)
_WORD = lazy_pattern(r"[^\W\d_]+")
_FIRST = frozenset(re.findall(r"[^\W\d_]+", f"{_WHO}|{_NOT}|my the"))  # words that such a remark may begin with
_LONGEST_CHECK = 500
_TAIL = 40  # characters
_NEAR = 120  # characters before a remark that contain the answer


@functools.lru_cache(maxsize=4)  # a refused text is read again
def without_remarks(text: str) -> str:
    """Returns the text without the remarks after its answer."""
    if text[-1:] in _INSIDE:
        return text
    for _ in range(_MOST):
        end = len(text[: ending(text)].rstrip("*"))
        cut = _before_remark(text, end) if end and text[end - 1] in _STOPS else None
        if cut is None:
            break
        text = text[:cut]
    return text


def _before_remark(text: str, stop: int) -> int | None:
    low = max(0, stop - _LONGEST)
    rounded = _ROUNDED.search(text, low, stop)
    if rounded is not None:
        return rounded.start(1)
    instead = _INSTEAD.search(text, max(low, stop - _TAIL), stop) if text[stop - 1] in "。！" else None
    if instead is not None and instead.end() == stop:
        stated = text[_after_stop(text, low, instead.start()) : instead.start()]
        if _NUMBERS.search(stated) and not _names(stated, instead["value"]):
            return instead.start()
    begin = _after_stop(text, low, stop - 1)
    sentence = text[begin:stop].lower()
    for pattern in (_NOT_THIS, _NOT_THIS_AFTER) if any(map(sentence.__contains__, _NEGATIONS)) else ():
        denied = next((found for found in pattern.finditer(text, begin, stop) if found.end() == stop), None)
        if denied is not None and _NUMBERS.search(text, begin, denied.start()):
            return None if _names(text[begin : denied.start()], denied["value"]) else denied.start()
    closing = stop - 1 if text[stop - 1] in ")）" else stop - 2
    if text[closing] in ")）":
        opening = max(text.rfind("(", low, stop), text.rfind("（", low, stop))
        offered = len(text[: max(opening, 0)].rstrip())
        offer = _after_stop(text, low, offered - 1) if text[offered - 1 : offered] in ("?", "？") else low
        if offer > low and _OFFER.match(text, offer, stop) and not _DOUBTS.search(text, offer, stop):
            return offer
        if opening > 0 and (
            (_ASIDE.fullmatch(text, opening, stop) and _of_other_values(text, opening, stop))
            or _denies_another(text, opening, stop)
            or (_CONFIRMING.fullmatch(text, opening, stop) and not _OBJECTION.search(text, opening, stop))
        ):
            return opening
    if begin <= low or not text[:begin].strip():
        return None
    if _OFFER.match(text, begin, stop) and not _DOUBTS.search(text, begin, stop):
        shown = text[stop - 1] in "?？؟" or _SHOWING.search(text, begin, stop) or not _NUMBERS.search(text, begin, stop)
        return begin if shown else None
    if (
        _EXCLAIMS.fullmatch(text, begin, stop)
        or _AGREES.fullmatch(text, begin, stop)
        or _is_of_something_else(text, begin, stop)
    ):
        return begin
    if _fits(text, begin, stop):
        return begin
    given_up = _GIVEN_UP.match(text, begin, stop)
    if given_up and not _TURNS.search(text, given_up.end(), stop) and _of_other_values(text, given_up.end(), stop):
        return begin
    mistakes = MISTAKES.match(text, begin, stop)
    if mistakes and _IS_TO.match(text, mistakes.end(), stop) and not _names_value_before(text, begin, stop):
        return begin
    if _ONLY_THEN.match(text, begin, stop) and not _names_value_before(text, begin, stop):
        return begin
    if _OTHERWISE.match(text, begin, stop) and _of_other_values(text, begin, stop):
        return begin
    if _WARNING.match(text, begin, stop) and _of_other_values(text, begin, stop, unnamed=True):
        return begin
    if _denies_another(text, begin, stop):
        return begin
    return _checked_from(text, begin, stop)


def _names_value_before(text: str, begin: int, end: int) -> bool:
    near = text[max(0, begin - _NEAR) : begin]
    return any(_names(near, name) for name in _NUMBERS.findall(text, begin, end))


def _is_of_something_else(text: str, begin: int, end: int) -> bool:
    """Returns whether a remark says that something is not asked for that the sentence before does not name."""
    if end - begin > _LONGEST_ASIDE or _NOT_ASKED.search(text, begin, end) is None:
        return False
    if _POINTS.match(text, begin, end) or _DOUBTS.search(text, begin, end) or _NUMBERS.search(text, begin, end):
        return False
    before = _after_stop(text, max(0, begin - _LONGEST), begin - 2)
    return not shared_with(text[before:begin], text[begin:end])


def _after_stop(text: str, low: int, end: int) -> int:
    """Returns where the sentence begins that the position `end` is in, `low` if that is not known."""
    return max([low, *(at + len(sign) for sign in _BETWEEN if (at := text.rfind(sign, low, end)) >= 0)])


def _fits(text: str, begin: int, stop: int) -> bool:
    """Returns whether a remark calculates with the answer and says that the result is the expected one."""
    fits = _FITS.search(text, begin, stop)
    return (
        fits is not None and fits.end() == stop and _NUMBERS.search(text, begin, fits.start()) is not None
        and not (_OBJECTION.search(text, begin, stop) or _DOUBTS.search(text, begin, fits.start()))
        and not REPORTS.search(text, begin, fits.start())
    )  # fmt: skip


def _of_other_values(text: str, begin: int, end: int, *, unnamed: bool = False) -> bool:
    """Returns whether a remark names values or is in brackets, names no value directly before it and doubts nothing.

    `unnamed`: it need not name values.
    """
    near = text[max(0, begin - _NEAR) : begin]
    named = [name.strip("$ ") for name in _NUMBERS.findall(text, begin, end)]
    return (
        not any(_names(near, name) for name in named)
        and _DOUBTS.search(text, begin, end) is None
        and bool(unnamed or named or "(" in text[begin : begin + 2])
    )


def _denies_another(text: str, begin: int, end: int) -> bool:
    """Returns whether a remark denies a value that is not the answer's and claims no new one."""
    denied = _DENIES_AFTER.fullmatch(text, begin, end)
    if denied is not None:
        return not _names(text[max(0, begin - _NEAR) : begin], denied["value"])
    first = _WORD.search(text, begin, end)
    if first is None or not (first[0].lower() in _FIRST or first[0] > "\u3040"):
        return False
    denied = _DENIES.match(text, begin, end)
    reported = None if denied else _REPORTS.match(text, begin, end)
    found = denied or reported
    if found is None or (reported and not _CALLED_WRONG.match(text, found.end(), end)):
        return False
    near = text[max(0, begin - _NEAR) : begin]
    if all(_names(near, value) for value in _NUMBERS.findall(found["value"])) or _names(
        _boxes(text, begin), found["value"]
    ):
        return False
    if _CALLED_RIGHT.search(text, found.end(), end):
        return False
    for value in _NUMBERS.finditer(text, found.end(), end):
        states = _STATES.search(text, found.end(), value.start())
        if states if not _names(near, value[0]) else not (states and not _WORD.search(text, value.end(), end)):
            return False
    return True


def _boxes(text: str, end: int) -> str:
    """Returns the text from the last box on."""
    low = text.rfind("boxed", 0, end)
    return text[low:end] if low >= 0 else ""


def _names(part: str, value: str) -> bool:
    return re.search(rf"(?<![\d.,/]){re.escape(value.strip('$ '))}(?![\d/]|[.,]\d)", part) is not None


def _checked_from(text: str, begin: int, stop: int) -> int | None:
    """Returns where a check of the answer begins that a text ends with and that finds the answer again, or None."""
    low = max(0, stop - _LONGEST_CHECK)
    check = _CHECKS.search(text, low, begin) if _CONFIRMED.fullmatch(text, begin, stop) else None
    if check is None or _OBJECTION.search(text, check.end(), begin):
        return None
    before, found = _NUMBERS.findall(text, low, check.start()), _NUMBERS.findall(text, check.end(), begin)
    start = _after_stop(text, low, check.start())
    return start if before and found and before[-1] == found[-1] and start > low else None
