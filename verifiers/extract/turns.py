"""Words between two answers that show how the later one relates: as a correction, a conclusion or an alternative."""

from __future__ import annotations

import re

from verifiers.lazy_pattern import lazy_pattern

CORRECTION = lazy_pattern(
    r"\b(?:wait|actually|correction|corrected|correcting|mistake|mistaken|error|sorry|oops|recheck|rechecking"
    r"|re-check"
    r"|recalculat\w+|re-?evaluat\w+|re-?examin\w+|revis\w+|reconsider\w*|let me (?:re|fix|check|try)"
    r"|on second thought"
    r"|scratch that|i misread|i meant?|that's wrong|that is wrong|is incorrect|is wrong|was wrong|hmm"
    r"|(?:no|nein|non|não|nee|nej|nie)[,:;.!]|instead"
    r"|should be|should have been|rather)(?![a-z])|(?<!\w)нет[,.]|修正|更正|不对|不對|错了|錯了|等等|ошиб|исправ|точнее"
    r"|(?<![^\W\d_])(?:ops|opa|epa|ups|uy|oups|hoppla|ой|упс|стоп|постой)(?![^\W\d_])|待って|잠깐"
    r"|perdón|corrijo|me equivo|erreur|fehler"
    r"|ich meine|je veux dire|quiero decir|quero dizer|voglio dire|訂正|間違|(?<![^。、\s])(?:いや|いえ|いいえ)[、,]"
    r"|正しい答え|正しくは|아니|정정|잘못|أقصد|تصحيح|गलत",
    re.IGNORECASE,
)
CONCLUSION = lazy_pattern(
    r"\b(?:therefore|thus|hence|final(?:ly)?|in conclusion|in total|overall|so|step|part|then|next|adding"
    r"|substitut\w+"
    r"|now|this gives|answer is|finally)\b|∴|因此|所以|最后|итог|поэтому|\b(?:daher|donc|por lo tanto"
    r"|portanto|quindi)\b"
    r"|よって|したがって|따라서|لذا|لذلك|وبالتالي|إذن|अतः|इसलिए",
    re.IGNORECASE,
)
ALTERNATIVE = lazy_pattern(
    r"\b(?:or|either|alternatively|also|another|possibly|maybe|perhaps|could also|might also|else|otherwise"
    r"|oder|ou|oppure|veya|lub|vielleicht|peut-être|tal vez|talvez|forse)\b|或|または|あるいは|또는|혹은|или"
    r"|либо|может|أو|ربما|या",
    re.IGNORECASE,
)
