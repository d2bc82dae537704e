"""Words of the sentences that may follow the one that states the answer: thanks, checks, reasons, other values."""

from __future__ import annotations

from verifiers.lazy_pattern import any_case, lazy_pattern

COURTESY = any_case(
    r"(?:many |so |and |just )?(?:thanks?|thank you|i(?:['’]m| am| would be|['’]d be) (?:always )?happy to"
    r"|i (?:really )?hope|hope|hoping|let me know|feel free|please (?:let"
    r"|feel)"
    r"|good luck|cheers|enjoy|best (?:of luck|wishes|regards)|have (?:a|fun)|happy to|glad|you['’]re welcome"
    r"|any (?:other|more"
    r"|further)? ?questions|q\.?e\.?d|done|that['’]?s (?:it|all)|(?:a |what a |such a )?(?:very |quite )?(?:nice"
    r"|fun|neat|lovely|great|cute"
    r"|easy|simple|pleasant)\b|(?:that|this|it) was (?:\w+ )?(?:fun|nice|easy|a pleasure|simple)"
    r"|ich hoffe|hoffentlich|danke|vielen dank|viel (?:erfolg|spaß|glück)|gern|fertig"
    r"|j['’]espère|merci|bonne|bon courage|voilà|espero|gracias|muchas gracias|suerte|mucha suerte|listo|un saludo"
    r"|saludos|obrigad[oa]|boa sorte|pronto|abraços?|grazie|spero|in bocca al lupo|buona|ecco|hopelijk|bedankt|dank"
    r"|succes|veel (?:succes|plezier)|graag gedaan|tack|hoppas|jag hoppas|lycka till|mam nadzieję|dziękuję"
    r"|powodzenia|umarım|teşekkür|iyi"
    r"|kolay gelsin|hy vọng|cảm ơn|chúc|semoga|terima kasih|selamat"
    r"|надеюсь|спасибо|удачи|готово|希望|谢谢|谢|祝|加油|ありがとう|お役|ご参考|以上です|頑張|감사|도움이|고맙"
    r"|수고|شكرا|آمل|أتمنى"
    r"|بالتوفيق|أرجو|धन्यवाद|आशा|शुभ)"
)
CHECK = any_case(
    r"(?:as a |for a |by way of |a |the |on |nous |wir |we |man |si |quick |sanity |to |we can |one can |let['’]s "
    r"|let us |let me |just to "
    r"|self-|zur |als |en |per |come |para |pour "
    r"|ter |för |na |dla |经过?|經過?)*"
    r"(?:(?:double-|re)?check\w*|verif\w+|proof|probe|kontroll\w*|controle\w*|controll\w*|gegenprobe|überprüf\w+"
    r"|vérif\w+|preuve|comprob\w+"
    r"|prueba|prova|confer\w+|sprawdz\w+|провер\w+|kontrol\w*|sağlama\w*|thử lại|kiểm tra\w*|periksa|pemeriksaan|cek"
    r"|जाँच|जांच|التحقق|للتحقق|検算|検証|確認|確かめ|验算|驗算|检验|檢驗|代入する|代入して|代入检|代入檢|검산|확인)"
    r"|(?:it|this|that|which|the result) (?:also )?(?:matches|agrees with|fits|is consistent with|coincides with)"
    r"(?=[^.]*(?<![^\W\d_])[a-z](?![^\W\d_]))"  # a formula in letters
    r"|(?=[^.]*(?:both sides|same|equals?\b|indeed|works|holds|true|satisf|efectivamente|effectivement"
    r"|tatsächlich|infatti"
    r"|de fato|действительно|一致|成り立|満た))(?:(?:plugging|putting|substituting)(?: \w+){0,3} back\b"
    r"|si (?:lo|la|los|las) (?:sustitu|reemplaz)\w+|si (?:on|l['’]on) (?:le |la |les )?rem(?:et|place)\w*"
    r"|setzt man (?:das|dies|es|ihn|sie|x)\b[^.]{0,40}? ein\b|se (?:o|a) substituirmos|se (?:lo|la) sostituiamo"
    r"|если подставить|このとき)"
)
# "Indeed, 12 + 12 + 6 is 30": the sentence only confirms an equation.
INDEED = any_case(
    r"\W*+(?:and |und |et |y |e )?(?:indeed|in fact|after all|sure enough|efectivamente|en efecto|en effet"
    r"|effectivement"
    r"|tatsächlich|in der tat|infatti|in effetti|de fato|com efeito|inderdaad|rzeczywiście|действительно"
    r"|確かに|実際|确实|的确|실제로)(?![^\W\d_])"
)
CHAIN = lazy_pattern(
    r"(\d{1,9}(?:\.\d{1,6})?(?:\s?[-+−–·*×x/÷]\s?\d{1,9}(?:\.\d{1,6})?){1,8})"
    r"\s*(?:=|is|makes?|equals|gives?|ist|sind|macht|ergibt|font|fait|es|son|da|é|são|dá|è|fa|dà|равно|это)\s*"
    r"(\d{1,9}(?:\.\d{1,6})?)(?![\d/]|[.,]\d)"
)
# A sentence that gives a reason and concludes nothing: "99 = 9 × 11 だからです。"
GIVES_REASON = any_case(
    r"\W*+(?:(?:this|that|it) is |that['’]s )?(?:because|denn|c['’]est que|parce que|потому что|なぜなら)(?![^\W\d_])"
    r"(?![^.]*[,，][^.]*\d)|.*(?:から|ため)(?:です|である|だ)\W*$|.*때문(?:입니다|이다)\W*$"
)
# Begins an explanation of the text before it, or a remark that it is plausible. All later sentences belong to it.
EXPLAINS = any_case(
    r"\W*+(?:(?:you|we|one) can (?:also )?see (?:this|it|that|why) (?:from|by|in|because|since|if|when)"
    r"|(?:this|that|it) (?:follows|can be seen|is (?:easily )?seen) (?:from|by|because|since)"
    r"|(?:man sieht (?:das|es)|das (?:sieht man|folgt|ergibt sich)) (?:an|aus|daran|daraus|weil|wenn)"
    r"|(?:on le voit|cela (?:se voit|découle)) (?:à|de|avec|en|car)"
    r"|(?:esto|se) (?:puede ver|se ve|se deduce) (?:a partir|de|en|por)"
    r"|to see (?:why|this)(?: (?:is|holds|works)[^,:]{0,30})?[,:]|here['’]?i?s (?:why|how)|the reason(?: "
    r"for (?:this|that))? is|(?:short |brief )?(?:explanation|reason(?:ing)?|justification)\s*:"
    r"|(?:this|that|it|which) (?:makes sense|is (?:plausible|reasonable|sensible|logical|to be expected|as "
    r"expected)),? (?:because|since|as|for)"
    r"|(?:begründung|erklärung)\s*:|(?:das|dies) (?:ist (?:plausibel|logisch|sinnvoll)|ergibt sinn|passt),? "
    r"(?:denn|weil|da)"
    r"|(?:explication|justification)\s*:|c['’]est (?:logique|plausible|cohérent),? (?:car|puisque|parce que)"
    r"|(?:explicación|justificación)\s*:|(?:esto )?(?:es lógico|tiene sentido|es plausible),? (?:porque|ya que|pues)"
    r"|(?:explicação|justificativa)\s*:|(?:isso )?(?:é lógico|faz sentido|é plausível),? (?:porque|pois|já que)"
    r"|(?:spiegazione|motivo)\s*:|(?:è logico|è plausibile|ha senso),? (?:perché|poiché)|(?:uitleg|toelichting"
    r"|förklaring|wyjaśnienie|uzasadnienie"
    r"|объяснение|açıklama|giải thích|penjelasan)\s*:"
    r"|(?:check|verification|double-check|probe|überprüfung|vérification|comprobación|verificação|verifica|controle"
    r"|sprawdzenie|проверка|验证|检验|验算|検算|確認|검산|확인)[\s*_:]*\Z"
    r"|(?:это логично|это правдоподобно),? (?:потому что|так "
    r"как|ведь))(?:(?<=[,:])|(?![^\W\d_]))"
)
# "The one right before it is 19": a neighbour of the value that the sentence before gives.
NEIGHBOUR = any_case(
    r"\W*+(?:and )?(?:(?:the|its) (?:(?:one|number|term|value|day|page|prime|square|multiple)s? )?(?:(?:right"
    r"|just|directly|immediately) )?"
    r"(?:before|after|following|preceding|previous|next|prior)\b|its (?:successor|predecessor|neighbou?r)"
    r"|(?:der|die|das) (?:davor|danach|nächste|vorige)"
    r"|(?:le|la) (?:suivante?|précédente?)|(?:el|la) (?:siguiente|anterior)|(?:o|a) (?:seguinte|anterior)"
    r"|(?:il|la) (?:successiv[oa]|precedente))"
)
# "The 11 I started with was wrong", "12 would be wrong": the sentence rejects another value.
CALLS_WRONG = any_case(
    r"\b(?:(?:is|was|were|would be|would have been) (?:wrong|incorrect|a mistake|an error|not right|not "
    r"correct)|(?:ist|war|wäre) falsch|(?:est|était|serait) faux"
    r"|(?:es|era|sería) (?:incorrecto|un error|falso)|(?:é|era|seria|estava) (?:errado|incorreto|um erro)|(?:è"
    r"|era|sarebbe) (?:sbagliato|un errore)"
    r"|(?:was|is|zou) fout)\W*$"
)
APPROXIMATE = any_case(
    r"\b(?:about|around|almost|nearly|roughly|approximately|just|not quite|environ|presque|fast|etwa|rund|casi"
    r"|quase|quasi|circa)\b|почти|около|примерно"
    r"|大约|約|约|几乎|거의|약 "
)
