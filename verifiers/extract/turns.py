"""Words between two answers that show how the later one relates: as a correction, a conclusion or an alternative."""

from __future__ import annotations

from verifiers.extract.gates import Gated

CORRECTION = Gated(
    r"\b(?:wait|actually|correction|corrected|correcting|mistake|mistaken|error|sorry|oops|recheck|rechecking|re-check"
    r"|recalculat\w+|re-?evaluat\w+|re-?examin\w+|revis\w+|reconsider\w*|let me (?:re|fix|check|try)"
    r"|on second thought"
    r"|(?:scratch|scrap|strike|forget) (?:that|it)|never ?mind|i misread|i meant?|that's wrong|that is wrong"
    r"|is incorrect|is wrong|was wrong|hmm|(?:no|nein|non"
    r"|não|nee|nej|nie)[,:;.!]|instead|should be|should have been|rather)(?![a-z])|(?<!\w)нет[,.]|修正|更正|不对|不對"
    r"|错了|錯了|等等|ошиб|исправ|точнее"
    r"|(?<![^\W\d_])(?:ops|opa|epa|ups|uy|oups|hoppla|ой|упс|стоп|постой)(?![^\W\d_])|待って|잠깐"
    r"|perdón|perdona|disculpa|desculp[ae]|desolé|désolée?|entschuldig\w*|lo he puesto al revés|corrijo"
    r"|me (?:he )?equivo|erreur|je me suis tromp|je rectifie|fehler|verrechnet|geirrt"
    r"|moment(?: mal)?[,:!]|warte[,:!]|stopp?[,:!]|halt[,:!]|noch ?(?:ein)?mal(?: von vorn)?[:!]"
    r"|espera[,:!]|espere[,:!]|errei|me enganei|me confundi|na verdade|aspetta|mi sono sbagliat|ho sbagliato"
    r"|mi correggo|scusa"
    r"|attend(?:s|ez)[,:!]|pardon[,:!]|vergis(?:t|sing)|wacht[,:!]|foutje|vänta[,:!]|räknade fel|pomyli|pomył|błąd"
    r"|przepraszam|chwileczk"
    r"|počkat|počkej|chyb[aun]|omlouvám|помил|вибач|стривай|извин|прости(?:те)?[,.!]|подожди|bekle[,:!]|yanlış"
    r"|hata (?:yap|et)|özür"
    r"|khoan|nhầm|xin lỗi|tunggu[,:!]|maaf|keliru|koreksi|συγγνώμη|λάθος|διόρθωση|greșit|scuze|fejl[,:.]|rettelse"
    r"|عذر|آسف|أخطأت|لحظة|انتظر|ببخشید|اشتباه|סליחה|טעיתי|טעות|माफ|रुक|ग़लती|抱歉|弄错|弄錯|算错|算錯|糊涂"
    r"|すみません|失礼し|죄송|실수|틀렸"
    r"|ich meine|je veux dire|quiero decir|quero dizer|voglio dire|訂正|間違|(?<![^。、\s])(?:いや|いえ|いいえ)[、,]"
    r"|正しい答え|正しくは|아니|정정|잘못|أقصد|تصحيح|गलत"
    r"|korrektur|korrigier\w*|richtigstell\w*|vertan|irrtum|doch nicht|vielmehr|stattdessen|nachgerechnet"
    r"|je (?:me )?corrige|corrigeons|je me reprends|rectifi\w+|plutôt|en fait[,:]|reprenons|recalcul\w+"
    r"|corrección|corrijamos|mejor dicho|en realidad|correção|corrigindo|melhor dizendo|na realidade|refazendo"
    r"|correggo|correzione|correggiamo|ripensandoci|anzi[,:]|in realtà|ricalcol\w+|correctie|corrigeer|herstel[,:.]"
    r"|eigenlijk|opnieuw|rättelse|rättar|fel[,:.!]|egentligen|räknar om|poprawiam|poprawka|poprawn[yaei]\w*"
    r"|sprostowanie|właściwie|jednak|поправ\w+|вернее|на самом деле|неверно|неправильно|пересч\w+|düzelt\w*|aslında"
    r"|hatalı|daha doğrusu|sửa lại|đính chính|thực ra|ralat|sebenarnya|salah[,:.!]|纠正|糾正|改正|订正|訂正|其实|其實"
    r"|失误|誤り|やり直|見直|計算ミス|正確には|実は|오류|착각|사실은|다시 (?:계산|생각|보니)|خطأ|الصواب|في الواقع|सुधार"
)
CONCLUSION = Gated(
    r"\b(?:therefore|thus|hence|final(?:ly)?|in conclusion|in total|overall|so|step|part|then|next|adding|substitut\w+"
    r"|now|this gives|answer is|finally)\b|∴"
    r"|\b(?:daher|also|somit|folglich|demnach|insgesamt|schließlich|schritt|teil|dann|nun|einsetzen|donc|ainsi|d['’]où"
    r"|par conséquent|finalement|enfin|au total|étape|partie|ensuite|puis|maintenant|por (?:lo )?tanto|entonces|así que"
    r"|luego|finalmente|en total|paso|parte|después|ahora|portanto|então|assim|logo|no total|ao todo|passo|etapa|depois"
    r"|agora|quindi|dunque|perciò|pertanto|infine|in totale|poi|ora|dus|daarom|vervolgens|stap|in totaal|uiteindelijk"
    r"|alltså|därför|steg|slutligen|więc|zatem|stąd|łącznie|krok|następnie|dolayısıyla|böylece|sonuç|adım)\b"
    r"|(?<!\w)(?:итог|поэтому|значит|следовательно|таким образом|наконец|шаг|затем|теперь)"
    r"|因此|所以|最后|最後|于是|從而|从而|步骤|步驟|第[一二三四五]步|接着|よって|したがって|ゆえに|ステップ|次に"
    r"|따라서|그러므로|결국|단계|이제|لذا|لذلك|وبالتالي|إذن|अतः|इसलिए"
)
ALTERNATIVE = Gated(
    r"\b(?:or|either|alternatively|also|another|possibly|maybe|perhaps|could also|might also|else|otherwise"
    r"|oder|ou|oppure|veya|ya da|lub|vielleicht|peut-être|tal vez|talvez|forse"
    r"|auch|ebenso|sonst|alternativ|aussi|sinon|ou bien|también|quizás?|si no|também|senão|anche|altrimenti|oppure"
    r"|ook|misschien|ofwel|också|kanske|eller|też|także|może|albo|ayrıca|belki)\b|或|还是|還是|もしくは|かも|아마|также|または|あるいは|또는|혹은|или"
    r"|либо|может|أو|ربما|(?<![\u0900-\u097f])या(?![\u0900-\u097f])"
)
