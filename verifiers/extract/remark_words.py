"""Patterns of remarks that may follow an answer and say nothing about it, by language."""

from __future__ import annotations

import re

from verifiers.extract.gates import Gated
from verifiers.lazy_pattern import any_case, lazy_pattern

OFFER = any_case(
    r"[\s¿*_(-]*+(?:would you like|do you (?:want|have|need)|shall i|should i (?:also )?(?:show|explain|solve)"
    r"|want me to|can i help"
    r"|(?:does|did) (?:that|this|it) (?:make sense|help)|is (?:that|this|it|everything) clear|(?:any|more"
    r"|other) (?:other )?questions"
    r"|need (?:more|any) help|let me know|feel free|(?:if|in case) you(?:['’]d| would)? (?:have|need|want|like|wish"
    r"|prefer)"
    r"|möchtest du|möchten sie|soll ich|willst du|(?:wenn|falls) (?:du|sie|ihr) (?:noch )?(?:weitere )?(?:fragen|hilfe"
    r"|mag|möchte|will|woll)|brauchst du|hast du noch|auf wunsch|gern(?:e)? (?:zeige|erkläre|rechne)"
    r"|ist (?:das|alles) klar|frag (?:gern|einfach)|veux-tu|voulez-vous|souhaite[sz]|dois-je|puis-je"
    r"|si (?:tu (?:as|veux|préf)|vous (?:avez|voulez|préf)|besoin)"
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
    r"|(?:よければ|必要なら|ご希望)|더 궁금|다른 질문|질문이 있|원하(?:시?면|신다면)|هل (?:تريد|ترغب|لديك)"
    r"|(?:إذا|إن) (?:كان لديك|أرد|شئت|رغبت)"
    r"|אם תרצ|اگر (?:بخواه|مایل|سوال)|क्या आप|(?:अगर|यदि) (?:आपको|आप|तुम)|(?:अगर|यदि) चाहें)"
)
# An offer to show something may contain numbers: "If you like, I can draw it with 5 posts."
SHOWING = any_case(
    r"\b(?:draw|show|explain|work out|say the word|let me know"
    r"|walk (?:you )?through|sketch|zeichne|zeige|erkläre|rechne|montre|explique|dessine|muestro"
    r"|explico|dibujo|mostro|desenho|spiego|disegno|laten zien|leg uit|teken|visar|ritar|pokażę|narysuję|wyjaśnię)\b"
    r"|покажу|объясню|нарисую|画|解释|演示|説明|描き|보여|그려"
)
# If an offer contains one of these words, it doubts the answer and is kept.
DOUBTS = any_case(
    r"answer|instead|correct|right|wrong|\bsure\b|change|rather|really|actually|true|trust|\bcheck|mistake|slip|error"
    r"|typo|rounding|fehler|erreur|faute|\berror\b|\berro\b|errore|ошибк|错误|間違|different|antwort|richtig|falsch"
    r"|réponse|juste|respuesta|resposta|risposta|ответ|верн|правильн|答案|答え|正し|正确|错|정답|맞|الجواب|الإجابة"
    r"|cevap|doğru|đáp|jawab|benar|उत्तर|सही|svar|rätt|odpowied"
)
CONFUSED = (
    r"(?:attention à |veillez à |veille à )?ne pas (?:répondre|écrire|donner|dire|mettre)|cuidado con (?:responder"
    r"|decir|poner)|(?:be careful |take care )?not to (?:answer|write|say|give)|don['’]t (?:answer|write|say|put)"
    r"|no (?:respondas|digas|pongas)|não (?:responda|diga)|non (?:rispondere|dire)|注意不要(?:写|答|算)|"
    r"(?:do not|don['’]t|not to be|be careful not to|never)\s+confuse\w*|not to be confused"
    r"|nicht (?:mit [^.!]{3,40} )?(?:zu )?verwechseln|verwechsle"
    r"|ne pas confondre|ne confond\w*|à ne pas confondre|no (?:lo )?confund\w*|não confund\w*|non confond\w*"
    r"|da non confondere|не путать|не путай\w*|不要(?:和|与|跟)?[^,，。]{0,12}混淆|混同し"
)
CONTRAST = (
    r"(?:and |but |und |et |y |e |а )?(?:not|nicht|non(?: pas)?|pas|no|não|не|niet|inte|nie|bukan|değil"
    r"|instead of|rather than)(?!\w)|不是|而不是|而非|न कि"
)
WOULD = (
    r"(?:\b(?:would|could|wäre[nt]?|würden?|hätten?|käme[nt]?|gäbe|[^\W\d_]+raient|[^\W\d_]+rait|(?:ser|habr|dar|tendr"
    r"|saldr|quedar|costar)ían?|(?:ser|dar|ter|ficar|haver)iam?|(?:sar|avr|dar|verr)ebber?o?|byłoby|byłaby|byłyby|byłby"
    r"|wyszłoby|zou(?:den)?|skulle|olurdu|olacaktı)\b|['’]d\b|(?<!\w)бы(?!\w))"
)
UNREAL = (
    rf"(?:if|for|with|had|wenn|bei|mit|hätte|si|se|con|pour|avec|если|при|gdyby|dla|als|met|om|med"
    rf"|eğer)\b[^()]{{0,160}}"
    rf"{WOULD}|(?![^()]*(?:\?|\b(?:i|we|ich|wir|je|nous|yo|eu|io|я)\b))[^()]{{0,80}}{WOULD}|如果[^()（）]{{0,80}}就"
    rf"|[^()（）]{{1,40}}(?:なら|だったら|であれば|れば)[^()（）]{{1,60}}"
)
CHECKED = (
    r"(?:i(?:['’]ve| have)? )?(?:just )?(?:double-?|re-?)?(?:checked|verified)(?: (?:it|this|that|twice|again))*"
    r"|typo (?:fixed|corrected)|(?:zweimal )?(?:geprüft|nachgerechnet)|vérifié|comprobado|verificado|conferido"
    r"|verificato|проверено|sprawdzone|gecontroleerd|kontrollerat|验算过|検算済み"
)
BOTH = (
    r"(?:both|all)(?: (?:of them|values|numbers|of these))? (?:are (?:valid |real )?solutions|work|check(?: out)?"
    r"|are valid|fit)|(?:beide|alle) (?:sind lösungen|passen|stimmen)|(?:les deux|toutes) (?:conviennent"
    r"|sont solutions)"
    r"|(?:ambas|ambos|las dos|los dos) (?:son (?:soluciones|válidas)|sirven|cumplen)|ambas (?:são soluções|servem)"
    r"|(?:entrambe|tutte e due) (?:sono soluzioni|vanno bene)|оба (?:подходят|корня подходят)"
    r"|(?:两个|二者|两者)都(?:是解|满足|成立)|どちらも(?:解|適する)"
)
CONFIRMING = any_case(rf"\s*[(（]\s*(?:{CHECKED}|{BOTH})[^\d()（）]{{0,40}}[)）][.。!]?\s*")
# "(which is 33 1/3 m/s)"
AGAIN = (
    r"(?:which|das|ce qui|lo que|o que|il che)(?:, [^(),]{1,40},)? (?:is|are|ist|sind|fait|es|é|è)\b(?=[^()]*\d)"
    r"(?![^()]*\b(?:too|off|more|less|fewer|above|below|short|high|low|zu|mehr|weniger|trop|plus|moins|demasiado|más"
    r"|menos|mais|troppo|più|meno)\b)"
)
ASIDE = any_case(rf"\s*[(（]\s*(?:{CONFUSED}|{CONTRAST}|{UNREAL}|{AGAIN})[^()（）]*[)）][.。!]?\s*")
# "Not bad at all!": a closing exclamation that praises and denies nothing.
EXCLAIMS = any_case(
    r"[\s¡*_(]*+(?:(?:and |so |well,? |see,? )?(?:(?:that['’]?s|that was|that wasn['’]t|it['’]s|it wasn['’]t|this was"
    r"|what) )?"
    r"(?:(?:not|so|too|pretty|quite|really|very|rather|a|an|all|that|half) ){0,3}"
    r"(?:bad|hard|difficult|easy|simple|nice|neat|fun|shabby|tricky|cool|great|lovely|a lot|lot|few|bit|sum|saving"
    r"|bargain|deal)"
    r"(?: (?:at all|one|little|number|question|problem|result|right|done|amount|lot|of \w+|for a \w+)){0,2}"
    r"|(?:gar |eigentlich |das war |war )*(?:nicht|gar nicht|ganz|ziemlich|doch) (?:so |ganz |wahr |zu )?(?:schlecht"
    r"|übel|schwer|schwierig|einfach|leicht|viel|schön)|(?:c['’](?:est|était) )?(?:pas (?:si |trop )?(?:mal|difficile"
    r"|compliqué)(?: du tout)?|facile|(?:plutôt|assez) (?:facile|simple|bien))"
    r"|(?:no (?:est[áa]|es|era|fue) )?(?:nada |tan |muy )*(?:mal|difícil|fácil|sencillo)|(?:até que )?(?:não (?:é|está"
    r"|foi) )?(?:nada |tão |nem )*"
    r"(?:mal|mau|difícil|fácil|simples)|(?:niente|mica) male|non (?:è|era) (?:così |poi )*(?:male|difficile)"
    r"|(?:davvero )?(?:facile|semplice)"
    r"|(?:helemaal )?niet (?:slecht|gek|verkeerd|moeilijk|zo moeilijk)|(?:inte (?:alls )?(?:så )?(?:illa|dåligt|svårt))"
    r"|(?:całkiem |wcale )?(?:nieźle|nie tak (?:źle|mało)|proste)|(?:совсем |очень )?(?:неплохо|несложно|просто|легко)"
    r"|(?:зовсім )?непогано|(?:hiç )?fena değil|(?:cukup |lumayan )?(?:mudah|lumayan|bagus)|không tệ(?: chút nào)?"
    r"|(?:还|還|真|很|挺)?(?:不错|不難|不难|简单|简单吧)"
    r"|(?:なかなか|とても)?(?:悪くない|簡単)(?:です)?ね?|나쁘지 않(?:네요|죠|아요)|쉽(?:죠|네요)|(?:ليس سيئ|غير سيئ"
    r"|سهل)\w*(?: على الإطلاق)?|बुरा नहीं)"
    r"[\s*_)]*[!！][\s*_)]*"
)
# "¡Listo!", "Danke.", "谢谢！": a sentence that only ends the text.
_THE_ANSWER = r"(?:the |my )?(?:final )?(?:answer|result|solution)"
STATED = any_case(  # "The answer is boxed above.", "I stand by this."
    rf"[\s*_(]*+(?:(?:see|{_THE_ANSWER}(?: is| has been| was)?) (?:(?:boxed|given|stated|shown) )?(?:above|in the box"
    rf"|boxed)"
    rf"|i(?:['’]ve| have)? boxed {_THE_ANSWER}(?: as (?:requested|required|asked|instructed))?"
    rf"|(?:as (?:requested|required|asked),? )?the (?:final )?answer is boxed(?: as (?:requested|required))?"
    rf"|the (?:boxed (?:number|value|expression) is|box (?:contains|holds|has|shows)) {_THE_ANSWER}"
    r"|(?:(?:i|i['’]m|i am) )?(?:stand(?:ing)? by|stick(?:ing)? with|going with|submit(?:ting)?) (?:this|it|that)"
    r"(?: answer| result)?|i['’]ll go with (?:this|it|that)|(?:i )?submit(?:ting)?|locked in|(?:that settles it|case"
    r" closed)"
    r"|period|full stop|final|trust me|moving on|next (?:question|problem)(?:,? please)?|phew|yay+|woo-?hoo+|hooray"
    r"|boom"
    r"|easy(?: peasy)?|not bad|no tricks? here|(?:please )?(?:mark|grade|score|accept) (?:this|it)(?: as)?(?: correct"
    r"| right)?"
    r"|(?:double-?|re-?)?(?:checked|verified)(?: twice| again| by \w+)?|no need to change anything|nothing to (?:add"
    r"|change)"
    r"|no (?:further|more|other) (?:simplification|steps?|work|changes?)(?: (?:is|are))?(?: (?:possible|needed"
    r"|required))?"
    r"|edit: (?:formatting(?: only)?|fixed (?:a )?typos?(?: in [^.!?\d]{1,30})?|[^.!?\d]{0,40}answer unchanged)"
    r"|dimensionless"
    r"|(?:token|word)s?(?: count)?: \d+|difficulty: (?:easy|medium|hard)"
    r"|(?:die )?antwort steht (?:in der box|im kasten|oben)|(?:dabei bleibe ich|ich bleibe dabei)|punkt"
    r"|(?:nach)?geprüft"
    r"|(?:la )?réponse est (?:encadrée|ci-dessus|dans le cadre)|je maintiens(?: ma réponse)?|point final|vérifié"
    r"|(?:la )?respuesta está (?:en el recuadro|arriba|en la caja)|punto final|comprobado|(?:a )?resposta está (?:na"
    r" caixa"
    r"|acima)|ponto final|mantenho(?: a resposta)?|(?:la )?risposta è (?:nel riquadro|sopra)|confermo|проверено|точка"
    r"|ответ (?:в рамке|выше|окончательный(?:, пересматривать не буду)?)|答案(?:在框内|已框出"
    r"|如上)|(?:这就是)?最终答案|下一题"
    r"|(?:答え|解答)は(?:上記|枠内)の(?:通り|とおり)(?:です)?|次の問題)[.!。！\s*_)]*"
)
ENDS = any_case(
    r"[\s¡*_(]*+(?:(?:and|und|et|y|e|и)\s)?(?:"
    r"thank(?:s| you)(?: (?:so|very) much| a lot)?(?: for (?:reading|asking))?|you['’]re welcome|(?:good)?bye|cheers"
    r"|good luck"
    r"|(?:all )?done|the end|end|finished|(?:best|kind) regards|have a (?:nice|great|good) (?:day|one)"
    r"|see you(?: soon)?"
    r"|(?:et )?voilà(?: tout)?|merci(?: beaucoup| à vous)?|de rien|bonne (?:journée|chance|soirée|continuation)"
    r"|bon courage"
    r"|à bientôt|fini|terminé|c['’]est (?:tout|fini)|(?:vielen )?dank(?:e|e schön|e sehr)?|bitte(?: schön| sehr)?"
    r"|gern geschehen|viel (?:erfolg|glück|spaß)|viele grüße|tschüss|bis bald|fertig|ende|geschafft|das war['’]?s"
    r"|(?:muchas )?gracias|de nada|(?:mucha |buena )?suerte|saludos|hasta (?:luego|pronto)|adiós|listo|ya está|fin"
    r"|hecho"
    r"|eso es todo|(?:muito )?obrigad[oa]|boa sorte|até (?:logo|mais|breve)|tchau|pronto|é isso(?: aí)?|feito|fim"
    r"|abraços?"
    r"|(?:mille )?grazie(?: mille)?|prego|buona (?:giornata|fortuna|serata)|ciao|(?:ecco )?fatto|finito|ecco|a presto"
    r"|спасибо(?: за внимание)?|пожалуйста|удачи|всего доброго|до свидания|готово|конец|вот и вс[её]|дякую|готовий"
    r"|dank (?:je|u)(?: wel)?|bedankt|graag gedaan|succes|klaar|tot ziens|groetjes|tack|lycka till|klart|hej då"
    r"|dziękuję"
    r"|powodzenia|gotowe|koniec|teşekkürler|kolay gelsin|bitti|cảm ơn(?: bạn)?|xong|terima kasih|selesai"
    r"|(?:谢谢|感谢)(?:大家|你|您|阅读)?|(?:回答|解答)?(?:完毕|完成|结束|终了)|搞定|再见|加油"
    r"|(?:どうも)?ありがとう(?:ございま(?:す|した))?|以上(?:です)?|(?:解答)?(?:終わり|終了)(?:です)?|완료|끝|감사합니다"
    r"|고맙습니다"
    r"|이상입니다|شكر[اً]*|انتهى|بالتوفيق|धन्यवाद)[.!。！\s*_)]*"
)
# "The intercept isn't asked for.", "The change depends on the banknote.": something that the sentence before lacks.
NOT_ASKED = Gated(
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
    r"|नहीं पूछ|ज़रूरत नहीं|निर्भर)"
)
POINTS = any_case(  # such a remark must name its thing
    r"[\s*_(]*+(?:and |but )?(?:(?:it|this|that|these|those|which|what|everything|all|here|there|he|she|they|das"
    r"|dies\w*|es|alles|er|sie|ça|cela|ceci|c|ce|cette|tout|eso|esto|todo|isso|isto|tudo|ciò|questo|tutto|dat|dit|alles"
    r"|det|allt|to|это|всё|це|bu)(?![^\W\d_])|这|那|它|これ|それ|그|이것|هذا|ذلك|यह)"
)
SPEAKS = any_case(
    r"\b(?:i|we|ich|wir|je|on|yo|eu|io|ik|jag|я|мы|error|slip|oops|no)\b|我|私|僕|저|not |\bpero\b|\bbut\b|\baber\b"
    r"|\bmais\b|\bmas\b|\bma\b|\bно\b"
)
FITTING = (
    r"(?:(?:it|that|this|everything|all|the (?:check|numbers?|sum))(?: all| both)?(?: (?:checks? out|fits?"
    r"|works?(?: out)?|adds? up|match(?:es)?|agrees?|(?:is|are) (?:consistent|as required|as it should be|correct|right"
    r"|fine|well|good|in order))|['’]s (?:right|correct|consistent|fine))"
    r"|(?:checks? out|fits?|works?(?: out)?|adds? up|matches)"
    r"|(?:which|whose \w+) is (?:indeed|exactly|again)? ?what we (?:found|had|got)"
    r"|(?:as|just as|exactly as) (?:required|it should(?: be)?|expected|stated|given|wanted)|(?:genau )?(?:wie"
    r"|was) (?:gefordert|verlangt|es sein soll)"
    r"|(?:es|das|alles|passt|stimmt)(?: es| das| alles| auch)? ?(?:passt|stimmt)?(?: alles| genau)?|(?:tout|ça|cela"
    r"|c['’]est|le compte) ?"
    r"(?:colle|marche|correspond|est bon|bon|est juste|y est)|(?:todo |eso )?(?:cuadra|encaja|coincide|está bien"
    r"|es correcto)(?: todo)?"
    r"|(?:tudo |isso )?(?:bate|confere|está certo|fecha)(?: certo)?|(?:tutto |il conto )?(?:torna|quadra)"
    r"|(?:dat |alles |het )?klopt(?: het| dat| alles)?"
    r"|(?:allt |det )?stämmer(?: det| allt)?|(?:wszystko )?(?:się zgadza|zgadza się|pasuje)"
    r"|(?:вс[её] )?(?:сходится|верно|правильно)|(?:正好)?(?:符合|吻合|没错|正确)"
    r"|(?:合って|一致して)います|맞습니다|맞아요)"
)
# "They add to 12, so it checks out."
FITS = any_case(
    r"[,;:—–，、،]\s*(?:(?:so|and|which|und|also|denn|das|donc|ce qui|et|así que|y|por lo que|e|o que|então|logo|quindi"
    r"|dus|så|więc|czyli|а значит|так что|значит|и)(?![^\W\d_])\s*|(?:所以|因此|よって)[，、]?)*+"
    rf"{FITTING}[.!。！\s)*]*"
)
# "¡Coincide!", "Yes, it checks out.": a sentence that only confirms.
AGREES = any_case(rf"[\s¡*_(]*+(?:(?:yes|ja|oui|sí|sim|sì|да|tak|and|und|et|y|e|и)\W+)?{FITTING}[.!。！\s)*_]*")
# "It isn't 41, which is the sum of the legs.", "If you got 12, you counted the pieces.": one other value is given up.
GIVEN_UP = any_case(
    r"[\s*_-]*+(?:(?:it|that|this)(?:['’]s not| is not| isn['’]t)|(?:es|das) (?:ist|sind) nicht|ce n['’]est pas"
    r"|no (?:es|son)|não (?:é|são)|non (?:è|sono)|это не|(?:if|when) you (?:answered|got|get|wrote|put|said"
    r"|have)(?=[^,]{1,30}, (?:then )?you(?:['’]ve| have)? (?:\w+ )?"
    r"(?:count|forg[eo]t|add|includ|doubl|miss|us|mix|subtract|divid|multipli|stopp|overlook|omit|left)\w*\b))"
    r"\s+(?=[$*€£]*\d[\d.,]*[^\d]*$)"
)
TURNS = any_case(r"\b(?:but|rather|it is|it['’]s|that['’]s|sondern|mais|sino|mas|bensì|ma)\b|(?<!\w)а(?!\w)")
# "And if the larger one had been asked for, it would be 14."
OTHERWISE = any_case(
    r"[\s*_-]*+(?:(?:and|but|und|aber|et|mais|y|pero|e|mas|ma|а|но|a|ale|en|maar|och|men|ama)\s)?"
    r"(?:(?=(?:had|were|hätten?|wären?|würden?|gdyby)\b|(?:if|wenn|si|se|если|als|om|eğer)\b[^,.!?=]{0,120}?\b(?:had"
    r"|were|weren['’]t|asked|wanted|instead|hätten?|wären?|würden?|gefragt|était|étaient|avait|avaient|voulait|fueran?"
    r"|fuese|hubiera|preguntaran?|quisiera|fossem?|fosse|houvesse|avesse|chiedesse|gdyby|zou|zouden|vore|hade|бы"
    r"|olsaydı|sorsaydı)\b|(?:without|ohne|sans|sin|sem|senza|без|bez|zonder|utan)\s)[^.!?=]{0,200}"
    + WOULD
    + r"|如果[^。！？=]{0,80}就)[^=]*"
)
# "By the way, the mean is 5.1.": the sentence names something beside the answer.
BY_THE_WAY = any_case(
    r"[\s*_(-]*+(?:(?:and|und|et|y|e|а)\s)?(?:(?:by the way|incidentally|(?:for|in|by) comparison|as an aside|fun fact"
    r"|side ?note|(?:just )?for (?:reference|fun)|übrigens|nebenbei(?: bemerkt)?|zum vergleich|au passage"
    r"|à titre (?:de comparaison|indicatif|d['’]information)|pour (?:info|information|comparaison|comparer)"
    r"|por cierto|como curiosidad|a modo de (?:comparación|curiosidad)|para (?:que te hagas una idea|comparar)"
    r"|a propósito|por curiosidade|a título de (?:comparação|curiosidade)|per inciso|tra parentesi"
    r"|per (?:curiosità|confronto)|a proposito|кстати|между прочим|для сравнения|trouwens|ter vergelijking"
    r"|förresten|som jämförelse|nawiasem mówiąc|dla porównania)(?![^\W\d_])|顺便(?:说|提)?(?:一下|一句|一提)?|作为对比"
    r"|なお|ちなみに|参考まで[にで]|참고로)[\s,:，、：]*"
)
IS_TO = any_case(  # "A common mistake is to subtract"
    r"\s(?:(?:here|hier|ici|aquí|aqui|qui)\s)?(?:is|would be|ist|wäre|est|serait|es|sería|é|seria|è|sarebbe)\b"
    r"(?![^.!?]*(?:answer|antwort|réponse|respuesta|resposta|risposta))"
)
# "The 9 would only be right for a proportion."
ONLY_THEN = any_case(
    r"[\s*_-]*+(?:(?:the|an?|die|der|das|ein|eine|le|la|les|une?|el|los|una|os?|um|uma|il|lo"
    r"|un)\s)?[$€£]?\d[\d.,/:]*+[^.!?]{0,80}?"
    + WOULD
    + r"[^.!?]{0,20}\b(?:only|nur|seulement|uniquement|que|sólo|solo|solamente|só|apenas|soltanto|только|alleen|bara"
    r"|tylko)\b"
)
WARNING = any_case(
    rf"[\s*_-]*(?:(?:also|and|but|note|please|careful|achtung|auch|und|attention|et|aussi|ojo|y|também|e"
    rf"|anche)[,:!]?\s)?"
    rf"(?:{CONFUSED})"
)
WHO = (
    r"someone|somebody|some|others|other|many|people|students|student|a (?:friend|student)|i|my \w+|jemand|manche|viele"
    r"|ich|quelqu['’]un|certains|alguien|algunos|muchos|alguém|alguns|muitos|qualcuno|alcuni|molti|кто-то|некоторые"
    r"|многие|я|ktoś|niektórzy|iemand|sommigen|någon|vissa|jag|cineva|unii"
)
SAYS = (
    r"claim(?:s|ed)?|say|says|said|thinks?|thought|writes?|wrote|gets?|got|had|answer(?:s|ed)?|behaupte[tn]?"
    r"|sag(?:t|en)|schr[ie]+b(?:en)?|mein(?:t|en)|hatte|dit|disent|prétend|écrit|écrivent|dicen?|escrib\w+|diz(?:em)?"
    r"|escrev\w+|dicono|dice|scriv\w+|говор\w+|пишут|(?:на)?писал\w*|mówi\w*|(?:na)?pisał\w*|zeg(?:t|gen)|schreef|säger"
    r"|skrev|spun|scris"
)
NOT = (
    r"(?:it|this|that|the answer)(?: (?:is|was) not|['’]s not| isn['’]t| wasn['’]t)|(?:das|es|die antwort) ist nicht"
    r"|la réponse n['’]est pas|la respuesta no es|a resposta não é|la risposta non è|ответ не|ce n['’]est pas|no es"
    r"|não é|non è|это не|to nie(?: jest)?|het is niet|det är inte|nu este|not|nicht|nu|nie|не|inte|niet|ikke"
)
OTHER = (
    r"(?P<value>(?:\$[^$\n]{1,40}\$|[$€£]?[-−]?\d[\d.,/:]*(?<![.,/:])%?)(?: hours? \d+ minutes?"
    r"|(?:時間| ?小?时)\d+分)?)"
    r"(?![\w.]*\d)"
)
# A sentence or an aside that denies a value, and one that reports a value, which is called wrong after it.
DENIES = any_case(rf"\s*+[(（]?\s*+(?:(?:{NOT})\s|不是|并非){OTHER}")
DENIES_AFTER = lazy_pattern(
    rf"\s*+{OTHER}[^\W\d_]{{0,8}}?(?:では(?:ありません|ない(?:です)?)|じゃ(?:ない(?:です)?|ありません)"
    r"|[이가] (?:아닙니다|아니에요))[。.!！\s]*"
)
REPORTS_VALUE = any_case(
    rf"\s*+[(（]?\s*+(?:(?:{WHO})\s(?:[^\W\d_]+,?\s){{0,3}}?(?:{SAYS})\s"
    r"|(?:my|the) (?:first|earlier|previous|initial) (?:\w+ )?(?:(?:of|was) )?"
    r"|(?:我|有人|有的?同学)?(?:先前|之前|一开始|起初|刚才|最初)?[^，。,\d]{0,4}[写寫算说說]的?(?:是|成|了)?\s?"
    rf"|(?:最初|はじめ|先ほど)[^、。\d]{{0,8}}\s?){OTHER}"
)
CALLED_WRONG = any_case(
    r"[^\d.。!?]{0,24}(?<![^\W\d_])(?:but|wrong|incorrect|mistaken|forg[eo]t|miss|ignor|which counts|aber|doch|falsch"
    r"|mais|faux|pero|mal|mas|errad|ma|sbagliat|но|неверно|ошиб|ale|błęd|maar|fout|men|fel|dar|greșit)"
    r"|[^\d。]{0,8}(?:错|錯|漏|但|間違|誤)"
)
# Words that call a reported value right, or perhaps right.
CALLED_RIGHT = any_case(
    r"\b(?:right|correct|true|recht|richtig|raison|juste|razón|correcto|certo|correto|ragione|giust\w+|прав\w*|верн\w+"
    r"|racja|gelijk|rätt|dreptate|ask\w*|question|want\w*|need\w*|probabl\w*|maybe|perhaps|possibl\w*|agree\w*|frage"
    r"|vielleicht|peut-être|quizás|talvez|forse)\b|(?<!\w)(?:может|вопрос\w*)|对的|正确|正しい|可能"
)
STATES = any_case(
    r"(?:\b(?:but|rather|sondern|mais|sino|sim|ma|bensì|а|is|are|be|was|equals|ist|sind|est|sont|es|son|é|são|è|sono"
    r"|este|jest|to|är|really|actually|makes?|becomes|это|равно)|[=≈→是为はが:])[\s$*]*$"
)
CHECKS = any_case(
    r"(?:let me|let['’]s|i['’]ll) (?:just |quickly )?(?:re-?|double-?)?(?:check|verify|confirm|make sure)\b|ich prüfe"
    r"|je vérifie|\b(?:compruebo|vou conferir|controllo)\b|проверю|(?:检查|验证|再算)"
)
CONFIRMED = any_case(
    r"\s*(?:yes\W+)?(?:confirmed|verified|(?:it|that|this) (?:checks out|matches|agrees|holds)|bestätigt"
    r"|(?:das )?stimmt|passt|confirmé|vérifié|confirmado|verificado|confermato|verificato|подтверждено"
    r"|(?:вс[её] )?верно|确认无误|没有问题)[.!。！\s]*"
)
OBJECTION = any_case(
    r"\b(?:not|wrong|mistake|error|instead|should|actually|but|however|oops|forgot|except|rather|nicht|falsch|doch|aber"
    r"|pas|faux|mais|pero|mal|mas|não|ma|non|не|но)\b|n['’]t\b|不|错|漏|但"
)
NUMBERS = lazy_pattern(r"\$[^$\n]{1,80}\$|\\[dt]?frac\{[^{}]{1,20}\}\{[^{}]{1,20}\}|\d+(?:[.,/:]\d+)*")
# "1/11 (≈ 0.0909)", "21π cubic units, or roughly 65.97": an exact value and its decimal approximation.
_ABOUT = (
    r"(?:≈|~|\\approx|numerically|(?:which is |that is,? |or |i\.e\.,? )?(?:approx\w*\.?|about|roughly|around)"
    r"|(?:also |das sind |oder |d\.\s?h\. )?(?:rund|etwa|ungefähr|ca\.)"
    r"|(?:soit |ou |c['’]est-à-dire )?(?:environ|à peu près)|(?:o sea,? |es decir,? |o )?(?:aproximadamente|unos|unas)"
    r"|(?:ou seja,? |ou |o )?cerca de|(?:cioè |ossia |o )?(?:circa|all['’]incirca)"
    r"|(?:то есть |или )?(?:около|примерно|приблизительно)|czyli około|około|ongeveer)"
)
ROUNDED = any_case(
    r"(?P<exact>\d+\s?/\s?\d{1,9}|\\[dt]?frac\{\d{1,9}\}\{\d{1,9}\}"
    r"|(?:\\(?:[dt]?frac|sqrt)\{[^()]{1,60}\}|\d{0,9}(?:\\pi|π)|√\d{1,9}|\\sqrt\d"
    r"|(?:\d{1,9}\*)?sqrt\(\d{1,9}\))|\$[^$\n]{0,60}[\\^√π][^$\n]{0,60}\$)"
    r"\s?(?:\$|\\\)|\\\])?(?:\s[^\W\d_]{2,}[²³]?){0,3}"
    rf"(?P<rounded>\s*\((?:{_ABOUT})\s*(?:\$|\\\()?(?P<in_brackets>\d{{1,9}}(?:[.,]|\{{,\}})\d{{1,12}})(?:\.\.\.|…)?"
    r"(?:\$|\\\))?(?:\s[^\W\d_]{2,}){0,3}\)"
    rf"|(?:,|\s?[—–-])?\s(?:{_ABOUT})\s*(?:\$|\\\()?(?P<number>\d{{1,9}}(?:[.,]|\{{,\}})\d{{1,12}})(?:\$|\\\))?"
    r"(?:\s[^\W\d_]{2,}){0,3})[.*\s]*$"
)
# "，而不是12分钟", ", nicht 8", ", ni 24 ni 23", ", 10 değil": values that a sentence denies behind its own.
DENIED = r"(?P<value>[$€£]?[-−]?\d[\d.,/:]*(?<![.,:])\$?)[^\W\d_]{0,3}(?:\s?[€%°]|\s[^\W\d_]+){0,3}"
INSTEAD = lazy_pattern(
    r"[，,、]?\s*(?:而不是|而非|并不是|并非|不是)\s?(?P<value>[$\d][\d.,/:$]*)[^，。、\d]{0,12}[.。!！]?"
)
NOT_THIS = any_case(
    r"(?:\s*[,;(—–]\s*(?:(?:and|but|so|und|also|et|mais|donc|y|pero|e|mas|ma|quindi|и|а|en|dus|och|i|a|ve)\s)?|\s(?:and|und|et|y|e|и|en|och"
    r"|i)\s)(?:(?:вовсе|совсем|отнюдь|gar|certainly|definitely|surtout)\s)?"
    r"(?:not|nicht|keine?|non(?: pas)?|pas|no|não|niet|geen|inte|nie|ani|ni|nem|né|noch|не|ни|bukan"
    r"|neither)\s+(?:etwa\s|just\s)?"
    rf"{DENIED}(?:,?\s(?:ni|nor|or|noch|oder|ou|o|nem|né|ani|ни"
    rf"|или)\s[^\d.!?]{{0,12}}\d[\d.,]*(?<![.,])(?:\s[^\W\d_]+){{0,2}})?"
    r"[\s.!*_)]*"
)
NEGATIONS = (  # one of these is in every match of the patterns, and a substring search is far quicker
    " not ", " nicht ", " kein", " non ", " pas ", " no ", " não ", " niet ", " geen ", " inte ", " nie ", " ani ",
    " ni ", " nem ", " né ", " noch ", " не ", " ни ", " bukan ", " neither ", " değil", "(not ", "(nicht ", "(no ",
    "(non ", "(pas ", "(não ", "(не ", "(niet ", "(nie ",
)  # fmt: skip
NOT_THIS_AFTER = any_case(rf",?\s(?:ve\s|ama\s)?{DENIED.replace('{0,3}(?:', '{0,3}?(?:')}\s(?:değil(?:dir)?)[\s.!*_]*")
WORD = lazy_pattern(r"[^\W\d_]+")
FIRST = frozenset(re.findall(r"[^\W\d_]+", f"{WHO}|{NOT}|my the"))  # words that such a remark may begin with
