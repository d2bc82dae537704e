"""Answers in words, in many languages: no solution, all real numbers, yes and no.

Answers are compared in lower case, without accents and apostrophes, and most are written in that form here.
"""

from __future__ import annotations

from verifiers.lazy_pattern import any_case, lazy_pattern

NO_SOLUTION = (
    r"there (?:(?:is|are) no|(?:is|are)nt any) (?:such )?(?:real |integer |rational )?(?:solutions?|roots?|pairs?"
    r"|numbers?|values?|triples?|functions?|integers?|points?)(?: \$?[a-z]\$?)?(?: at all| (?:that"
    r"|which) (?:satisfy|solve) (?:it|this|the"
    r" (?:equation|condition|inequality|system)|this (?:equation|condition|inequality|system)))?"
    r"|there is no (?:real )?\$?[a-z]\$?"
    r" (?:with this property|that (?:satisfies|solves) (?:it|this|this equation|the equation))|no"
    r" (?:real |integer )?solutions? exists?"
    r"|(?:(?:the|this) (?:equation|system|inequality)|it) has no (?:real |integer |rational )?"
    r"(?:solutions?|roots?)(?: at all| over the reals| in the real numbers)?"
    r"|ليس للمعادلة (?:أي )?(?:حل|حلول)"
    r"|(?:es gibt |(?:sie|die gleichung) hat )?(?:uberhaupt |also |daher |somit )*keine (?:reelle |ganzzahlige )?"
    r"losung(?:en)?|nicht losbar"
    r"|(?:il n(?:y a|existe) |(?:elle|lequation) na )?(?:donc )?(?:pas de|aucune|pas la moindre) solutions?"
    r"|no (?:hay|tiene|existe) (?:ninguna )?solucion(?:es)?(?: alguna)?|sin solucion|ninguna solucion"
    r"|(?:(?:a equacao|ela) )?(?:nao (?:ha|existe|tem) )?nenhuma solucao"
    r"|(?:sem|(?:(?:a equacao|ela) )?nao (?:ha|existe|tem)) solucao(?: alguma)?"
    r"|(?:non (?:ha|ce|esiste) )?(?:nessuna|alcuna) soluzione|non (?:ha|ci sono) soluzioni"
    r"|(?:решений|корней)(?: у (?:него|нее|уравнения))? (?:вообще|совсем) нет"
    r"|(?:(?:уравнение )?не имеет |нет )(?:действительных |вещественных )?(?:решений|решения|корней)"
    r"|(?:действительных |вещественных )?(?:решений|корней)(?: у (?:уравнения|системы|неравенства|него|неё))? нет"
    r"|(?:er (?:is|zijn) )?(?:helemaal |dus )*geen (?:enkele )?oplossing(?:en)?"
    r"|brak rozwiazan|(?:(?:to )?rownanie )?nie ma (?:ono |ona )?(?:zadnych )?rozwiazan(?:ia)?"
    r"|(?:hicbir|hiçbir) (?:c|ç)ozumu yok(?:tur)?|(?:rovnice |soustava )?nem[aá] (?:zadn[eé] )?[rř]esen[ií]"
    r"|(?:рівняння )?не має (?:дійсних )?(?:розв.?язків|коренів)|çozum yok|cozum yok(?:tur)?|vo nghiem|tidak ada solusi"
    r"|(?:方程|该方程|原方程|此方程|这个方程|它)?(?:无|無|没有|沒有)(?:实数|實數)?(?:解|根)|(?:実数|整数)?解(?:なし"
    r"|は?ない|はありません|は?存在しません|は?存在しない)|해(?:가|는)? ?(?:전혀 )?없(?:다|음|습니다)|해 ?없음"
    r"|لا (?:يوجد|توجد) (?:حل|حلول)|ليس (?:لها|له) حل"
)
# A clause that says within a sentence that there is no solution. Its "no" does not deny an answer.
NO_SOLUTION_SAID = any_case(
    r"\b(?:(?:has|have|having) no (?:real |integer |such )?solutions?|no (?:real |such )?(?:numbers?|values?|solutions?"
    r"|\$?[a-z]\$?)(?: of \w)?(?: whatsoever)?(?: (?:that|which))?"
    r" (?:satisf\w+|works?|exists?|fits?)(?: (?:the|this) \w+)?|hat(?: also| daher| somit"
    r"| überhaupt)* keine (?:reelle )?lösung(?:en)?|n['’]a (?:donc )?(?:pas de|aucune|pas la moindre) solution"
    r"|no tiene(?:n)? (?:ninguna )?soluci(?:ón|ones)(?: alguna)?|não tem (?:nenhuma )?soluç(?:ão|ões)(?: alguma)?"
    r"|er (?:is|zijn) (?:dus |helemaal )*geen (?:enkele )?oplossing(?:en)?|non ha (?:quindi )?(?:alcuna )?soluzion[ei]"
    r"|(?:can(?:not|['’]t)|can never|is never) (?:be )?(?:negative|zero|true|equal)|nie(?:mals)? negativ)\b"
    r"|нет (?:решений|корней)|не имеет (?:решений|корней)|无解|無解|没有(?:实数)?(?:解|根)|解なし|해가 없"
)
ALL_REALS = (
    r"alle reellen zahlen|(?:tous )?les (?:nombres )?reels|tous les (?:nombres )?reels|todos los (?:numeros )?reales"
    r"|todos os (?:numeros )?reais|tutti i (?:numeri )?reali|все действительные числа|любое действительное число"
    r"|(?:全体|所有|一切)(?:实数|實數)|(?:すべて|全て)の実数|모든 실수|جميع الأعداد الحقيقية"
)
# A conjunction that concedes something, unless its clause holds the writer's doubt or another possible answer.
CONCEDING = (
    r"(?:even though|even if|although|though|obwohl|auch wenn|bien que|même si|aunque|embora|ainda que|anche se|sebbene"
    r"|хотя|hoewel|mimo że|chociaż)\s(?![^,.;!?]*(?:\b(?:i|i['’]m|we|sure|certain|might|may|could|should|not|wrong|also"
    r"|too|either|possible|correct|answers?|ich|wir|nicht|auch|möglich|falsch|nein|je|nous|pas|aussi|yo|no|también"
    r"|posible|eu|não|também|possível|io|non|anche|ik|ook|nee|nie)\b|(?<!\w)(?:я|мы|не|нет|тоже)(?!\w)))"
)
_YES = (
    "ja oui si sí sì sim tak ya हाँ हां да 是 是的 はい 예 네 نعم evet tak wahr wahre vrai vraie verdadera verdadeira"
    " vera sant sann waar prawda prawdziwe dogru doğru doğrudur dogrudur đúng dung benar 참 правда 真 verdadero"
    " verdadeiro vero верно истина 对 正确 正しい yep yeah yup כן بله igen kyllä"
)
_NO = (
    "nein non nao não nee nej tidak नहीं нет 否 いいえ 아니요 아니오 لا hayir hayır nie falsch falsche faux fausse falsa"
    " falsk falskt onwaar fałsz falsz fałszywe yanlış yanlis yanlıştır khong không 거짓 неправда 假 falso неверно ложь"
    " 错 错误 誤り לא خیر nei"
)
TRUTHS: dict[str, str] = {**dict.fromkeys(_YES.split(), "yes"), **dict.fromkeys(_NO.split(), "no")}
_NO_SOLUTION = lazy_pattern(NO_SOLUTION)
# "Every real number is a solution."
_ALL_REALS = any_case(
    r"\W*+(?:(?:so|hence|thus|therefore|any|that) )?(?:every|any|each|all) real (?:numbers?|values? of x|x)"
    r" (?:(?:is|are) (?:a )?solutions?|works?|satisf(?:y|ies) (?:it|the equation|the inequality))"
    r"|(?:(?!\b(?:nem|not|nicht|pas|no|non|ne|не|nie)\b)[^.])*\b(?:jede reelle zahl"
    r" ist (?:eine )?lösung|tout (?:nombre )?réel est solution|todo número real es solución|todo número real é solução"
    r"|ogni numero reale è soluzione|vyhovuje každé reálné číslo)\b|(?:(?!\b(?:nem|not|nicht|pas|no|non|ne|не"
    r"|nie)\b)[^.])*(?:любое|каждое) действительное число"
)
_PLAIN = str.maketrans("äöüáàâãéèêíìóòôõúùçñ", "aouaaaaeeeiioooouucn", "'’*")


def all_reals(text: str) -> bool:
    """Returns whether a clause says that every real number is a solution, and nothing else."""
    found = _ALL_REALS.match(text)
    return found is not None and not text[found.end() :].strip(" .!*_\n")


def says_no_solution(text: str) -> bool:
    """Returns whether the whole text, with its negation, says that there is no solution ("keine Lösung")."""
    return len(text) < 80 and _NO_SOLUTION.fullmatch(_folded(text)) is not None


def _folded(text: str) -> str:
    return " ".join(text.casefold().translate(_PLAIN).split()).strip(" .。_!$")
