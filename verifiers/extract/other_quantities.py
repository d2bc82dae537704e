"""Finds out whether a sentence gives another quantity of mathematics than the question asks for.

"The product is 7." does not answer "Find the sum.", nor "The focus is (2, -3)." the question for a vertex, even where
the value happens to be the gold's.
"""

from __future__ import annotations

import functools

from verifiers.extract.gates import Gated
from verifiers.extract.other_subjects import MEAN, MEASURES, MEDIAN, PERIMETER, group_pattern
from verifiers.extract.spans import Span
from verifiers.lazy_pattern import any_case, lazy_pattern

# Members of a group are different quantities of one thing. A member's words mean the same.
_GROUPS = (
    MEASURES,
    (  # result of an operation
        r"sums?|totals?|summen?|somme|suma|soma|sommă|сумм\w*|和|합",
        r"product|(?-i:Produkts?)|produit|producto|produto|prodotto|iloczyn|произведени\w*|积|積|곱",
        r"difference|differenz|différence|diferencia|diferença|differenza|różnica|разност\w*|差|차이",
        r"quotient|cociente|quociente|quoziente|iloraz|частное|商|몫",
        r"remainder|(?-i:Rest)|residuo|reszta|остаток|остатк\w*|余数|餘數|余り|나머지",
    ),
    (  # power or multiple
        r"square root|quadratwurzel|racine carrée|raíz cuadrada|raiz quadrada|radice quadrata|平方根|제곱근",
        r"cube root|kubikwurzel|dritte wurzel|racine cubique|raíz cúbica|立方根",
        r"square|quadrat|carré|cuadrado|quadrado|quadrato|квадрат\w*|平方|제곱",
        r"cube|kubik|cubo|куб\w*|立方|세제곱",
        r"double|twice|doppelte|doble|dobro|doppio",
        r"half|hälfte|moitié|mitad|metade|metà|половин\w*|一半|半分|절반",
    ),
    (  # part of a fraction
        r"numerator|zähler|numérateur|numerador|numeratore|licznik|числител\w*|分子|분자",
        r"denominator|nenner|dénominateur|denominador|denominatore|mianownik|знаменател\w*|分母|분모",
    ),
    (  # line
        r"slope|gradient|steigung|pente|pendiente|inclinação|pendenza|nachylenie|斜率|傾き|기울기",
        r"(?:[xy]-?)?intercept|[xy]-achsenabschnitt|ordonnée à l['’]origine|截距|切片|절편",
    ),
    (  # analysis
        r"derivative|ableitung|dérivée|derivada|derivata|pochodna|производн\w*|导数|導関数|微分係数|도함수|미분계수",
        r"anti-?derivative|integral[es]?|stammfunktion|intégrale|primitiva?|całka|интеграл\w*|积分|積分|적분",
        r"limit|grenzwert|limite|límite|granica|предел\w*|极限|極限|극한",
    ),
    (  # random variable
        r"probability|wahrscheinlichkeit|probabilité|probabilidad|probabilidade|probabilità|prawdopodobieństwo"
        r"|вероятност\w*|概率|確率|확률",
        rf"{MEAN}|expected value|expectation|erwartungswert|espérance|esperanza|valor esperado|valore atteso"
        r"|期望值?|期待値|기댓값",
        r"variance|varianz|varianza|variância|wariancja|дисперси\w*|方差|分散|분산",
        r"standard deviation|standardabweichung|écart[- ]type|desviación (?:estándar|típica)|desvio padrão"
        r"|deviazione standard|标准差|標準偏差|표준편차",
        MEDIAN,
        r"range|spannweite|étendue|极差|範囲|범위",
    ),
    (  # matrix
        r"determinante?|déterminant|wyznacznik|определител\w*|行列式|행렬식",
        r"trace|traza|traço|traccia|ślad|(?-i:Spur)|след|迹|跡|대각합",
        r"rank|rang|rango|posto|ранг\w*|秩|階数|계수",
        r"nullity|defekt|零化度|退化次数",
    ),
    (  # figure
        r"length|länge|longueur|longitud|comprimento|lunghezza|długość|длин\w*|长度?|長さ|길이",
        r"width|breadth|breite|largeur|anchura|ancho|largura|larghezza|szerokość|ширин\w*|宽度?|幅|너비",
    ),
    (  # triangle
        r"height|altitude|höhe|hauteur|altura|altezza|wysokość|высот\w*|高度?|高さ|높이",
        r"base|basis|grundseite|podstawa|основани\w*|底边?|底辺|밑변",
        r"hypotenuse|hypoténuse|hipotenusa|ipotenusa|przeciwprostokątna|гипотенуз\w*|斜边|斜辺|빗변",
        PERIMETER,
        r"inradius|inkreisradius",
        r"circumradius|umkreisradius",
    ),
    (  # oscillation
        r"amplitude|amplitud|ampiezza|амплитуд\w*|振幅|진폭",
        r"period|periode|période|período|periodo|okres|период\w*|周期|주기",
        r"frequency|frequenz|fréquence|frecuencia|frequência|frequenza|частот\w*|频率|周波数|진동수",
        r"phase shift|phasenverschiebung|déphasage",
    ),
    (  # polynomial
        r"degree|grad|degré|grado|grau|stopień|степень|次数|차수",
        r"leading coefficient|leitkoeffizient|coefficient dominant|最高次係数|首项系数|최고차항의 계수",
        r"constant term|konstantes glied|absolutglied|terme constant|常数项|定数項|상수항",
        r"discriminante?|diskriminante|discriminant|дискриминант\w*|判别式|判別式|판별식",
    ),
    (  # trade
        r"costs?|price|kosten|preis|coût|prix|costo|precio|preço|custo|prezzo|koszt|cena|цена|стоимость|价格|成本|値段|가격",
        r"profit|gewinn|bénéfice|ganancia|beneficio|lucro|profitto|guadagno|zysk|прибыль|利润|利益|이익",
        r"discount|rabatt|remise|réduction|descuento|desconto|sconto|rabat|скидк\w*|折扣|割引|할인",
        r"revenue|umsatz|recettes?|ingresos?|receita|ricavo|przychód|выручк\w*|收入|売上|매출",
    ),
    (  # motion
        r"distance|entfernung|strecke|distancia|distância|distanza|odległość|расстояни\w*|距离|距離|거리",
        r"displacement|verschiebung|déplacement|desplazamiento|deslocamento|spostamento|перемещени\w*|位移|変位|변위",
        r"speed|velocity|geschwindigkeit|vitesse|velocidad|velocidade|velocità|prędkość|скорост\w*|速度|速率|속력|속도",
        r"acceleration|beschleunigung|accélération|aceleración|aceleração|accelerazione|ускорени\w*|加速度|가속도",
        r"time|(?-i:Zeit)|temps|tiempo|tempo|czas|время|时间|時間|시간",
    ),
    (  # conic
        r"eccentricity|exzentrizität|excentricité|excentricidad|离心率|離心率|이심률",
        r"focal length|brennweite|distance focale|焦距|焦点距離|초점 거리",
    ),
    (  # number theory
        r"(?:greatest|highest) common (?:divisor|factor)|gcd|gcf|hcf|ggt|pgcd|mcd|mdc|нод"
        r"|最大公约数|最大公約数|최대공약수",
        r"(?:least|lowest) common multiple|lcm|kgv|ppcm|mcm|mmc|нок|最小公倍数|최소공배수",
    ),
    (  # point
        r"vertex|vertices|turning point|(?:minimum|maximum|lowest|highest) point|extremum"
        r"|scheitel\w*|(?:hoch|tief)punkt|sommet|vértice|vertice|wierzchoł\w*|вершин\w*|顶点|頂点|꼭짓점",
        r"focus|foci|brennpunkte?|foyers?|focos?|fuoc(?:o|hi)|ognisk\w*|фокус\w*|焦点|초점",
        r"centroid|schwerpunkt|centre de gravité|baricentr\w*|baryzentrum|重心|무게중심",
        r"cent(?:er|re)|midpoint|mittelpunkt|milieu|centro|punto medio|ponto médio|środek|центр\w*|середин\w*"
        r"|圆心|圓心|中心|中点|중점|중심",
        r"[xy]-?intercept|achsenabschnitt|截距|절편",
        r"orthocent(?:er|re)|höhenschnittpunkt|垂心|수심",
        r"circumcent(?:er|re)|umkreismittelpunkt|外心|외심",
        r"incent(?:er|re)|inkreismittelpunkt|内心|내심",
        r"origin|ursprung|origine|origen|origem|原点|원점",
    ),
)
_MEMBERS = [group_pattern(members) for members in _GROUPS]
_ASKS = any_case(
    r"\b(?:find|what(?:['’]s| is| are| was| were| will be| would be)|determine|calculate|compute|evaluate|give|state"
    r"|bestimme\w*|berechne\w*|finden?|ermittle|wie (?:lautet|groß ist|hoch ist|lang ist)|was ist|welche[rs]? ist"
    r"|trouve[rz]?|calcule[rz]?|détermine[rz]?|quel(?:le)?s? (?:est|sont)|halla[rd]?|calcula[rd]?|determina[rd]?"
    r"|encuentra|cuál(?:es)? (?:es|son)|qual(?:i|es)? (?:é|è|são|sono)|trova\w*|calcol\w+|ache|encontre|znajdź"
    r"|oblicz|wyznacz"
    r"|bepaal|bereken|wat is)\b"
    r"(?:\s(?:the|die|les|las|le|as)\s(?:coordinates?|koordinaten|coordonnées|coordenadas|coordinate)"
    r"\s(?:of|des|der|du|de la|del|della|do|da))?"
    r"|(?<!\w)(?:найдите|найти|найди|вычислите|определите|чему рав\w+|как(?:ов|ова|ово))(?!\w)",
)
_OF_IT = r"(?:的?坐标|的值|の座標|の値|의 좌표|의 값)?"
_ASKED_BEHIND = any_case(
    rf"{_OF_IT}\s?(?:是多少|是什么|为多少|是几|を求め|は(?:いくつ|何|どこ|いくら)|[을를] 구하"
    r"|[은는이가] (?:얼마|무엇|몇))"
)
_BETWEEN = any_case(  # what may stand between the verb that asks and what it asks for
    r"(?:[\s\"“$*]|\b(?!(?:after|before|under|without|per|than|to|nach|vor|ohne|après|avant|sans|después|antes|sin|após"
    r"|depois|sem|dopo|prima|senza|после|до|без|of|with|whose|if|when|that|for|in|from|on|at|by|and|von|der|mit|wenn|aus|et|avec|de|du|des"
    r"|si|con|y|da|do|del|di|se|e|z|van|met|с|по|из|если|и)\b)[\w-]++){0,12}+",
)
_IS = any_case(
    r"(?:['’]s)?(?:\s(?:of|for|von|der|des|de|du|del|do|da|di|van|на|от)\s[^.,;:=?]{1,50}?)?[\s*]+"
    r"(?:(?:then|also|thus|therefore|now)\s)?"
    r"(?:is|are|was|equals?|becomes|comes (?:out )?to|turns out to be|works out to|must be|has to be|ist|beträgt|lautet"
    r"|liegt (?:bei|in)|lies at|est|vaut|es|vale|está en|é|è|fica|wordt|jest|wynosi|равен|равна|равно|составляет"
    r"|[—–-] это|:|=)[\s*$]"
    rf"|{_OF_IT}\s?(?:是|为|為|等于|=|は|が|은|는|이|가)",
)
_UNTIL = lazy_pattern(r"[^,;\d]*")  # a verb and the value
_IS_BEFORE = any_case(r"\b(?:ist|lautet|beträgt|is) (?:der|die|das|de|het) $")
_BESIDE = lazy_pattern(r"[\s$*(]*")


def of_another_quantity(text: str, start: int, value: Span, asked: str) -> bool:
    """Returns whether the sentence from `start` on gives the value to another member of a group than is asked for."""
    said = text[start : value[1]]
    return any(
        (last := _last_subject(members, said, value[0] - start)) is not None and last != wanted
        for members, wanted in _wanted(asked)
    )


@functools.lru_cache(maxsize=256)
def _wanted(asked: str) -> tuple[tuple[Gated, str], ...]:
    """Returns the groups of which the question asks for a member, and that member."""
    *_, verb = None, *_ASKS.finditer(asked)
    reach = _BETWEEN.match(asked, verb.end()) if verb else None
    found = []
    for members in _MEMBERS:
        if reach is not None:
            named = [*members.finditer(asked, reach.start(), reach.end())]
        else:
            named = [match for match in members.finditer(asked) if _ASKED_BEHIND.match(asked, match.end())]
        if named:
            found.append((members, str(named[-1].lastgroup)))  # "the discount price"
    return tuple(found)


def is_said(text: str, noun: int, value: int) -> bool:
    """Returns whether a noun that ends at `noun` is the subject of which a sentence gives the value at `value`."""
    verb = _IS.match(text, noun)
    return verb is not None and _UNTIL.fullmatch(text, min(verb.end(), value), value) is not None


def _last_subject(members: Gated, said: str, end: int) -> str | None:
    """Returns the member of which the sentence says last, without another number between, what it is, or None."""
    for found in reversed([*members.finditer(said)]):
        before = _IS_BEFORE.search(said, 0, found.start())  # "Damit ist der Brennpunkt (2, -3)."
        beside = _BESIDE.fullmatch(said, min(found.end(), end), end)  # "surface area 27 and volume 36"
        if beside or is_said(said, found.end(), end) or (before and _UNTIL.fullmatch(said, found.end(), end)):
            return str(found.lastgroup)
    return None
