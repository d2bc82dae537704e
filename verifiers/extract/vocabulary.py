"""Harmless words that may surround an answer in its sentence without changing it, by language and class.

A word that is neither in these tables nor in the question or the gold is not understood, and an answer beside it isn't
accepted (`verifiers.extract.understood`). So a missing word costs a correct answer but never accepts a wrong one. The
tables leave out words that doubt, deny, bound, report or suppose, even if they do so in only one of the languages
(German "fast", Portuguese "se"). All words are in lower case with straight apostrophes.
"""

from __future__ import annotations

import re

from verifiers.extract.gates import Gated
from verifiers.lazy_pattern import lazy_pattern

_ENGLISH = """
cancelling canceling centre center
dy dx a an the this that these those it its there here we us our you your of in to for with by from at on into per as
each every all both any another such same own and so then thus hence therefore consequently accordingly thereby finally
lastly overall altogether together now also too indeed exactly precisely simply just clearly obviously evidently
certainly definitely surely indisputably undoubtedly exclusively directly easily readily is are was were be been being
am has have had having will shall must do does did let's let it's that's there's we've equal equals equaled equalled
give gives giving gave get gets getting got make makes making made leave leaves leaving left yield yields yielding
remain remains remaining come comes out up amount amounts total totals totaling obtain obtains obtained find finds found
conclude concludes concluded see sees deduce know knows need needs needed mean means meaning imply implies implying
follow follows following result results resulting become becomes simplifies reduces evaluates represents show shows
showing shown compute computes computed calculate calculates calculated determine determined solve solves solving solved
add adds added adding subtract subtracting subtracted multiply multiplying divide dividing divided combine combining
combined sum sums product difference quotient remainder average median mode answer answers solution solutions value
values number numbers quantity integer integers digit digits fraction decimal percent percentage percentages probability
chance odds ratio rate area volume perimeter circumference length width height depth radius diameter distance speed time
weight mass age price cost costs profit revenue income salary wage fee fare bill tip tax discount change money count
size score scores angle angles degree degrees slope intercept coefficient coefficients root roots zero zeros term terms
sequence series expression equation equations function functions polynomial variable variables unknown unknowns point
points coordinate coordinates line lines segment side sides edge edges vertex vertices face faces triangle triangles
square rectangle circle circles sphere cube cone cylinder pyramid prism hexagon pentagon polygon quadrilateral trapezoid
parallelogram diagonal hypotenuse base leg chord arc sector graph set sets subset subsets element elements pair pairs
triple way ways arrangement arrangements permutation permutations combination combinations case cases outcome outcomes
possibility possibilities choice option team teams committee committees matrix determinant vector limit derivative
integral factor factors multiple divisor divisors prime primes power powers exponent logarithm domain range maximum
minimum largest smallest greatest least common even odd positive nonnegative real natural whole complex rational unique
distinct final correct right true actual required requested desired sought wanted asked only sole single numerical exact
complete full entire correctly one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred ones man men woman
women child children boy boys girl girls kid kids people person persons student students day days hour hours minute
minutes second seconds week weeks month months year years meter meters metre metres centimeter centimeters centimetre
centimetres millimeter millimeters kilometer kilometers kilometre kilometres inch inches foot feet yard yards mile miles
gram grams kilogram kilograms pound pounds ounce ounces liter liters litre litres gallon gallons cup cups cent cents
dollar dollars euro euros usd rupees km cm mm kg mph kmh lb lbs oz ft sq squared cubed unit units radian radians item
items piece pieces thing things part parts box boxes bag bags ball balls book books pen pens pencil pencils marble
marbles apple apples orange oranges egg eggs cookie cookies candy candies card cards coin coins ticket tickets toy toys
car cars tree trees flower flowers page pages row rows seat seats step stair bus train trip house room table chair
bottle bottles glass which who whose whom where because since after using used use apply applying applied substitute
substituting plugging theorem formula method rule law definition sold sell sells bought buy buys spent spend spends paid
pay pays earn earns earned save saves saved eat eats ate take takes took receive receives received read reads walk walks
walked run runs ran travel travels traveled travelled drive drives drove work works worked weigh weighs contain contains
contained hold holds cover covers covered keep keeps kept start starts started end ends ended uses want wants bring
brings brought his her their he she they him them check checks checked checking verify verifies verified verification
double-check double-checked confirm confirms confirmed confirming satisfies satisfy satisfying agrees match matches
matching fits condition conditions constraint constraints requirement requirements question problem stated expected
proved proven qed done hope helps help clear clarifies thank thanks good luck happy great nice easy simple explanation
summary conclusion sure confident certain first third fourth next steps we're counted counting asks polar cartesian
program operation operations simplify simplified simplification shaded longest shortest rhombus kite ellipse parabola
hyperbola octagon farmers market farmers' divisible plausible further polynomials factoring factored factorization
expanding figure figures cheers helpful methods approach diagram picture reason reasoning process calculation
calculations computation arithmetic algebra geometry symmetry induction inspection inclusion-exclusion pigeonhole
completing everything remainders recomputing rechecking redoing recalculating i i'm me my actually really other missing
meets meet identity substitution back remark note recall confidence source key idea principle wins win winning fruit
measures measure pick choose chose chosen select alternative letter statement completes worth can increases increased
increase decreases decreased decrease rises rose falls fell drops dropped went goes go came more still already away once
gain gains extra additional celsius fahrenheit kelvin columns column putting write written arrive reading quarter
express expressed arrives yes half halves thirds quarters fourths fifths sixths top bottom agree taking halving sevenths
eighths ninths tenths hundredths thousandths dozen million billion thousand perfect reasonable fun neat system systems
inequality inequalities mixed bigger beautiful elegant interesting pretty cool morning afternoon evening consistent
sense surprising obvious grand fact proof stays exponentiate exponentiating
"""

_GERMAN = """
gemischte gemischter gemischten gemischtes gemischtem geschrieben passt reelle reellen reeller aussage behauptung
rechenweg gekürzt die der das den dem des ein eine einen einem einer eines es dies diese dieser dieses diesen da hier
wir uns unser unsere man ist sind war waren sein wird werden hat haben beträgt betragen lautet lauten ergibt ergeben
sich erhält erhalten bleibt bleiben übrig gleich entspricht beläuft gibt macht kostet kosten braucht folgt gilt und also
daher somit deshalb folglich damit demnach dann nun insgesamt zusammen schließlich genau exakt eben auch schon natürlich
offensichtlich klar sicher wie gewünscht verlangt gefordert gezeigt gesucht gesuchte gesuchten gesuchter gesuchtes von
zu zur zum in im an am auf aus mit bei für nach pro je als weil denn antwort antworten lösung lösungen ergebnis resultat
endergebnis wert werte zahl zahlen anzahl summe differenz produkt quotient rest mittelwert durchschnitt
wahrscheinlichkeit fläche flächeninhalt volumen umfang länge breite höhe radius durchmesser abstand strecke
geschwindigkeit zeit dauer preis gewinn betrag winkel nullstelle nullstellen lösungsmenge gleichung variable unbekannte
verhältnis anteil prozent möglichkeit möglichkeiten weg wege arten alter gewicht gesamt gesamtzahl gesamtpreis
gesamtkosten ganze richtige korrekte endgültige einzige eindeutige richtig korrekt endgültig eindeutig gesamte eins zwei
drei vier fünf sechs sieben acht neun zehn elf zwölf meter zentimeter kilometer kilogramm gramm liter euro cent stunden
stunde minuten minute sekunden tage tag jahre jahr äpfel apfel stück grad uhr kinder personen probe bestätigt daraus
plausibel stimmt überprüft geprüft nachgerechnet bestätigen erfüllt bedingung bedingungen alle beide leicht lässt prüfen
überprüfen sehen nachprüfen einsetzen zeigen hoffe hilft frage unserer was vermutung option buchstabe wahl drittel
viertel fünftel sechstel achtel zehntel schließen folgern folgere schlussfolgern sieht erkennt erkennen wissen finden
findet gefunden berechnen berechnet berechnung rechnen rechnung errechnet ermitteln ermittelt bestimmen bestimmt ablesen
kommt kommen gelangen bekommen bekommt liefert liefern führt vereinfachen vereinfacht vereinfachung umformen umformung
kürzen faktorisieren faktorisiert zerlegung ausklammern ausmultiplizieren quadratisch quadratische linear lineare
gleichungssystem ungleichung funktion funktionen ableitung stammfunktion integral grenzwert matrix determinante vektor
vektoren punkt punkte gerade parabel kreis dreieck viereck rechteck zylinder kegel kugel prisma primzahl primfaktoren
ziffern quersumme bruch brüche dezimalzahl term terme ausdruck formel satz regel beweis definition definitionsbereich
wertebereich intervall menge mengen element elemente reihe folge glied glieder reihenfolge schritt schritte rechnerisch
positiv positive negativ negative ungerade ganzzahlig größte größter kleinste kleinster kurz zusammengefasst
"""

_FRENCH = """
réel réelle réels réelles affirmation énoncé carrés carré cubes le la les l un une des du de d ce cet cette ces c' c
ceci cela ça il elle on nous notre nos y en est sont était vaut valent donne donnent fait font obtient obtenons obtenue
obtenu trouve trouvons trouvé reste restent égal égale égaux a ont avons coûte faut et donc ainsi alors enfin finalement
conséquent par suite c'est-à-dire soit total tout tous toutes exactement précisément bien aussi clairement évidemment
comme voulu demandé attendu cherché cherchée recherché recherchée à au aux dans sur pour avec chez car puisque parce que
qu qui où dont réponse réponses résultat résultats solution solutions valeur valeurs nombre nombres somme différence
produit quotient moyenne probabilité aire surface volume périmètre longueur largeur hauteur rayon diamètre distance
vitesse temps durée prix coût montant angle racine racines équation ensemble rapport pourcentage façons manières
possibilités âge poids finale correcte bonne exacte unique seule juste final correct bon exact définitive définitif deux
trois quatre cinq six sept huit neuf dix mètres mètre centimètres kilomètres km cm kg litres euros heures heure minutes
jours ans pommes personnes enfants élèves vérification vérifie vérifié vérifiée confirme confirmé satisfait satisfont
condition conditions facilement prévu prévue attendue entier achève termine démonstration preuve signifie déduit
conclusion mille cent remplit option lettre choix j'espère clair représente représentent constitue constituent équivaut
correspond correspondent tiers quart quarts cinquièmes demi moitié conclure concluons conclut déduisons voyons voit
constate remarque sait savons calcule calculons calculer calcul trouver obtenir égales lit vient arrive arrivons mène
fournit simplifie simplifier simplification factoriser factorisation développer système inéquation fonction fonctions
dérivée primitive intégrale limite matrice déterminant vecteur vecteurs point points droite parabole cercle triangle
rectangle cylindre cône sphère premier premiers chiffres chiffre fraction fractions décimal décimale variable terme
termes expression formule théorème règle définition domaine intervalle élément éléments série étape étapes ordre positif
positive positifs négatif négative pair impair entiers grand petit grande petite résumé bref
"""

_SPANISH = """
real reales afirmación enunciado sistema cuadrados cuadrado cúbicos el la los las lo un una unos unas este esta esto ese
esa eso del de al en con para por a es son era fue está hay tiene tienen vale valen da dan resulta resultan queda quedan
obtiene obtienen obtenemos obtenido encontramos igual iguales equivale cuesta necesita se sigue y e así luego entonces
pues tanto finalmente total totalmente todo todos todas exactamente precisamente también claramente evidentemente como
quería pedía buscado buscada pedido buscamos porque ya que cual cuyo donde nos nuestra nuestro respuesta respuestas
resultado resultados solución soluciones valor valores número números cantidad suma diferencia producto cociente resto
promedio media probabilidad área superficie volumen perímetro longitud anchura altura radio diámetro distancia velocidad
tiempo duración precio costo coste importe ángulo raíz raíces ecuación conjunto razón porcentaje formas maneras
posibilidades edad peso conclusión definitiva resumen final correcta correcto exacta exacto única único definitivo uno
dos tres cuatro cinco seis siete ocho nueve diez metros centímetros kilómetros km cm kg litros euros dólares horas hora
minutos días años manzanas personas niños estudiantes comprobación comprobado verifica verificado comprueba cumple
cumplen condición condiciones ambas fácilmente mil completa demostración prueba entero satisface opción alternativa
letra espero sea tercios cuartos mitad medio ella él ellos concluimos concluir concluye deducimos deduce vemos ve
observamos sabemos calculamos calcular cálculo hallamos hallar encontrar llegamos llega tenemos obtener lleva
simplificamos simplificar simplificando simplificación factorizar factorizando inecuación función funciones derivada
primitiva integral límite matriz determinante vector vectores punto puntos recta parábola círculo circunferencia
triángulo rectángulo cilindro cono esfera primo primos cifras dígitos fracción fracciones decimal variable término
términos expresión fórmula teorema regla definición dominio intervalo elemento elementos sucesión serie paso pasos orden
positivo positiva negativo negativa par impar enteros resumir breve
"""

_PORTUGUESE = """
real reais afirmação enunciado sistema quadrados cúbicos o os as um uma uns umas este esta isto esse essa isso do da dos
das no na nos nas ao à de em com para por é são era foi há tem têm vale valem dá dão resulta resultam fica ficam resta
restam sobram obtém obtemos obtido encontramos igual iguais equivale custa precisa e assim logo então portanto pois
finalmente total tudo todos todas exatamente precisamente também claramente como queria pedido procurado procurada
porque que cujo onde nosso nossa resposta respostas resultado resultados solução soluções valor valores número números
quantidade soma diferença produto quociente resto média probabilidade área superfície volume perímetro comprimento
largura altura raio diâmetro distância velocidade tempo duração preço custo ângulo raiz raízes equação conjunto razão
porcentagem formas maneiras possibilidades idade peso gabarito final correta correto exata exato única único certa
definitiva definitivo dois duas três quatro cinco seis sete oito nove dez metros centímetros quilômetros litros euros
horas hora minutos dias anos maçãs pessoas crianças alunos verificação verificado confere satisfaz condição condições
ambas opção alternativa letra sim temos ela ele eles confirma espero seja terços quartos concluímos concluir conclui
deduzimos deduz vemos observamos sabemos calculamos calcular cálculo achamos encontrar chegamos chega obter segue leva
simplificamos simplificar simplificando simplificação fatorar fatorando inequação função funções derivada primitiva
integral limite matriz determinante vetor vetores ponto pontos reta parábola círculo circunferência triângulo retângulo
cilindro cone esfera primo primos algarismos dígitos fração frações decimal variável termo termos expressão fórmula
teorema regra definição domínio intervalo elemento elementos sequência série passo passos ordem positivo positiva
negativo negativa par ímpar inteiros resumir
"""

_ITALIAN = """
reale reali affermazione sistema quadrati quadrato cubi il lo la i gli le l un uno una questo questa ciò del della dei
delle di al alla in con per da nel è sono era vale valgono dà danno risulta rimane rimangono restano ottiene otteniamo
ottenuto troviamo uguale costa serve e quindi dunque pertanto perciò allora infine così totale tutto tutti tutte
esattamente precisamente anche chiaramente come richiesto cercato cercata perché poiché che cui dove si ha abbiamo ci
risposta risposte risultato risultati soluzione soluzioni valore valori numero numeri quantità somma differenza prodotto
quoziente resto media probabilità area superficie volume perimetro lunghezza larghezza altezza raggio diametro distanza
velocità tempo durata prezzo costo angolo radice radici equazione insieme rapporto percentuale modi possibilità età peso
finale corretta corretto giusta giusto esatta esatto unica unico definitiva due tre quattro cinque sei sette otto nove
dieci metri centimetri chilometri litri euro ore ora minuti giorni anni mele persone bambini studenti verifica
verificato mila mille milanesi soddisfa condizione condizioni entrambe opzione lettera dell nell all sull d spero sia
terzi quarti concludiamo concludere conclude deduciamo deduce vediamo vede osserviamo sappiamo calcoliamo calcolare
calcolo trovare arriviamo ricaviamo ricava segue ne ottenere porta semplifichiamo semplificare semplificando
semplificazione scomporre scomposizione disequazione funzione funzioni derivata primitiva integrale limite matrice
determinante vettore vettori punto punti retta parabola cerchio circonferenza triangolo rettangolo cilindro cono sfera
primo primi cifre frazione frazioni decimale variabile termine termini espressione formula teorema regola definizione
dominio intervallo elemento elementi successione serie passo passi ordine positivo positiva negativo negativa pari
dispari interi riassumendo
"""

_RUSSIAN = """
действительный действительное действительные действительных это этот эта эти тот та то все всего мы нас наш вот и а итак
значит следовательно поэтому таким образом отсюда тогда наконец также ровно точно ясно очевидно в во на из с со к по для
от у за при как так потому что который которая есть равен равна равно равны равняется составляет будет является являются
получаем получим получили получается получилось находим нашли остаётся остается осталось даёт дает стоит имеет имеем
нужно требовалось искомое искомый искомая искомой ответ ответы решение решения результат значение значения число числа
количество сумма разность произведение частное остаток среднее вероятность площадь объём объем периметр длина ширина
высота радиус диаметр расстояние скорость время цена стоимость угол корень корни корнями уравнение уравнения множество
отношение процент процентов способов способа способами вариантов возраст вес общее общая общий окончательный правильный
верный точный единственный единственное единственная итоговый задачи задачу один два три четыре пять шесть семь восемь
девять десять метров метра см км кг часов часа минут дней лет рублей яблок человек детей штук вариант верен готово
решений яблока третьих четвертых пятых десятых сотых половина означает итого тысяч тысячи тыс млн миллион миллионов
проверка проверено проверяем подходит удовлетворяет условию условиям всем заключаем делаем вывод видим вычисляем
вычислим вычисления находит знаем приходим следует упрощаем упростим разложим разложение систему система неравенство
функция функции производная первообразная интеграл предел матрица матрицы определитель вектор точка точки прямая прямой
парабола окружность треугольник треугольника прямоугольник цилиндр конус шар простое простых цифр цифры дробь дроби
десятичная переменная член члены выражение формула формуле теорема теореме правило определение область промежуток
множества элемент элементов последовательность ряд шаг порядок положительное положительный отрицательное чётное нечётное
целое целых наибольшее наименьшее
"""

_ARABIC = """
هو هي هذا هذه ذلك إذن إذا لذا لذلك ومنه وبالتالي بالتالي إذاً فإن وهو وهي يساوي تساوي يكون تكون كان نحصل على من في إلى عن
مع أي و أن الذي التي كل جميع تماما بالضبط فقط هناك لدينا بقي يبقى الجواب جواب الإجابة الاجابة إجابة النهائي النهائية
الصحيح الصحيحة الناتج ناتج النتيجة الحل حل الحلول حلول القيمة قيمة العدد عدد المجموع مجموع الفرق حاصل الضرب القسمة
الباقي المتوسط الاحتمال احتمال المساحة مساحة الحجم حجم المحيط محيط الطول طول العرض الارتفاع المسافة السرعة الزمن الوقت
السعر التكلفة الزاوية المعادلة معادلة المطلوب المطلوبة المسألة السؤال جذور الجذور مجموعة هما واحد اثنان ثلاثة أربعة خمسة
ستة سبعة ثمانية تسعة عشرة تفاحات تفاحة كتب أشخاص ساعات ساعة دقيقة متر سم كم طريقة طرق آلاف ألف مليون الخيار خيار وهذا
صحيح صحيحة
"""

# Words that announce an answer, and copulas, in languages that are read but whose prose is not judged further.
_OTHERS = """
het de een is zijn antwoord uitkomst oplossing oplossingen resultaat dus totaal en samen odpowiedź odpowiedz to jest
wynosi wynik więc zatem rozwiązanie odpověď je výsledek cevap sonuç yanıt çözüm çözümler çözümleri kökler kökleri dir
dır dur dür tir tır ve doğru nihai jawaban jawabannya hasil hasilnya adalah ialah solusi jadi maka dan akhir đáp án số
kết quả câu trả lời là nghiệm của phương trình vậy do đó và răspuns răspunsul rezultatul este si válasz eredmény vastaus
tulos on ja svar svaret är er og och απάντηση είναι η το αποτέλεσμα відповідь jibu ni la mwisho sahihi repeat repeating
restate restating reiterate recap wiederhole wiederholt nochmals nochmal répète rappel redisons repito repetimos resumen
resumiendo repetindo resumindo ripeto ripetiamo riassumendo herhaal повторяю повторю tekrar powtarzam yineliyorum
denklemin olur olarak seçenek şıkkıdır persamaan yang benar đúng juiste prawidłowa poprawna juist correcte
"""

SAFE = frozenset(f"{_ENGLISH}{_GERMAN}{_FRENCH}{_SPANISH}{_PORTUGUESE}{_ITALIAN}{_RUSSIAN}{_ARABIC}{_OTHERS}".split())

# Words that deny, doubt, bound, suppose or report. Beside an answer they are unsafe even if the question has them.
UNSAFE = frozenset(
    """
not no never none nor neither without except but however although though unless if whether otherwise else suppose
supposing assume assuming imagine pretend say says said saying claim claims claimed think thinks thought believe
believes believed guess guesses guessed guessing argue argues tell tells told reckon reckons suspect suspects suggest
suggests maybe perhaps possibly probably likely unlikely apparently supposedly allegedly presumably hopefully might may
cannot can't won't isn't wasn't aren't don't doesn't didn't wouldn't couldn't shouldn't ain't weren't hasn't haven't
hadn't mustn't needn't shan't mightn't wrong incorrect false mistaken mistake mistakes error errors pitfall pitfalls
invalid fake untrue nonsense impossible half-baked or
nicht kein keine nie niemals falsch vielleicht wenn falls ob oder etwa fast wäre würde könnte sagt sagen
meint behauptet glaubt aber jedoch doch ohne außer
ne pas non jamais faux fausse peut-être ou serait pourrait dit prétend croit mais cependant sans sauf
no nunca falso falsa quizá quizás tal vez casi sería podría dice cree pero sin salvo aunque
não nunca talvez seria poderia diz acha mas porém sem
forse sarebbe potrebbe dice ma però senza
не нет если или бы говорит считает но однако без кроме может возможно неверно
ليس لا ربما لو أو حوالي تقريبا يقول لكن ولكن غير خطأ
""".split()
)

# Phrases that contain words of UNSAFE or unknown words but neither deny nor doubt. They are removed before the words
# are looked up.
_VALUE = r"(?:the )?§+(?: §)?"
_AS_THOUGHT = (
    r"(?:,? as (?:one|you|we|many|some|people|i|it)(?: \w+ly)? (?:might|may|would|could|had|have|first|initially"
    r"|originally)* ?(?:be tempted to )?(?:have )?(?:think|thought|guess|guessed|guesses|believe|believed|expect"
    r"|expected|suspect|assume|assumed|claim|say|seem|seems)(?: at first| initially)?)?"
)
HARMLESS = Gated(
    r"(?<!\w)(?:"
    r"(?:does|do|did|will|would)(?: not|n't) change (?:anything|that|the (?:value|result|number|sign|sum|total))\b|"
    r"must(?:n't| not) be (?:negative|zero)|(?:make|be) sure (?:that )?(?:i|we) have(?:n't| not) \w+|"
    r"without (?:any )?bound|(?:which|this|that|product|sum|equation|formula) tells (?:us|you)|"
    r"(?:there (?:is|can be) |of that there is )?(?:no|without(?: any| a)?|beyond(?: any| a| all)?) (?:reasonable )?"
    r"(?:doubts?|question)(?: about (?:it|that|this)| whatsoever| at all)?(?=\W*(?:$|[,;.§¤])|(?: that)? "
    r"(?:the|our|my|it)\b)"
    r"|(?:which |this |it )?(?:is|was) (?:not |n't )(?:hard|difficult) to (?:see|check|verify|show|prove)"
    rf"|(?:and |but )?(?:not|rather than|instead of|as opposed to) {_VALUE}{_AS_THOUGHT}"
    r"|(?:and )?(?:nothing else|nothing more|no other(?: \w+)?|no more,? (?:and )?no less)(?=\W*$)"
    r"|(?:and )?(?:it|this|that|which|§) is (?:also |indeed |therefore )?the (?:only|sole|unique) "
    r"(?:one|answer|solution|value|possibility|possible (?:value|answer|solution)|option|choice)"
    r"|(?:what an?|isn't (?:it|this|that)(?: an?)?|such an?) (?:\w+ly )?(?:beautiful|nice|neat|fun|lovely|elegant"
    r"|interesting|great|cool|pretty|clever)"
    r"(?: (?:problem|question|exercise|puzzle|result|solution|formula|identity))?(?=\W*$)"
    r"|there (?:is|are) no (?:other|further|more) (?:solutions?|answers?|possibilit(?:y|ies)|values?|options?)"
    r"|(?:is|are) (?:the )?only (?:one |)(?:possible|remaining|valid|correct)? ?(?:value|answer|solution|choice|option"
    r"|possibility)"
    r"|(?:if|when|once|as) (?:we|you|one) (?:add|subtract|multiply|divide|combine|sum|solve|simplify|compute|calculate"
    r"|substitute|plug|evaluate|count|use|take|put|work|look)|(?:the )?(?:only )?possible(?= \w+s\b)"
    r"|any other (?:value|answer|choice|number) (?:would be|is) (?:wrong|incorrect|impossible)"
    r"|the other (?:options?|choices?|candidates?|answers?|values?) (?:are|is|were|fail|fails) ?(?:wrong|incorrect"
    r"|false|impossible)?"
    r"|§ (?:would (?:be|have been)|is|was|are|cannot be|can't be) (?:wrong|incorrect|false|impossible|too "
    r"(?:big|small|large|low|high|much))|(?:it|this|that|the answer) (?:isn't|is not|can't be|cannot be|wasn't) §"
    r"|(?:the|any) (?:claim|statement|idea|assertion) that (?:it|the answer) is § is (?:false|wrong|incorrect"
    r"|a mistake)"
    r"|an? (?:common|frequent|typical|usual|popular|classic|widespread) (?:mistake|error|pitfall|slip|trap) (?:is"
    r"|would be) (?=[^¤]*$)[^¤.!?\n]*|it (?:isn't|is not) (?:hard|difficult)|does (?:that|this) make sense"
    r"|whatever (?:others|people|you) (?:may )?say|as claimed|one could also write(?: it as)?"
    r"|(?:which )?we (?:may|can) (?:also |then )?(?:re)?write|(?:may|can) (?:also )?be (?:re)?written"
    r"|in (?:standard|general|slope-intercept|mixed|expanded|factored|simplified|lowest) form"
    r"|in (?:any|either) order|in beliebiger reihenfolge|dans n'importe quel ordre|en cualquier orden|em qualquer ordem"
    r"|in qualunque ordine|в любом порядке|顺序不限"
    r"|(?:but )?(?:please )?feel free to (?:double-?)?check(?: (?:it|this))?"
    r"|(?:it |this |that |which )?(?:diverges|tends|goes) to (?:plus |positive )?infinity"
    r"|differs? from § (?:only |just )?by (?:only )?an? (?:additive )?constant"
    r"|number of \w{4,}ings(?= (?:is|was|equals)\b)"
    r"|what (?:we|the (?:question|problem)) (?:wanted|asked|asks|needed)(?: for| to (?:show|find|prove))?"
    r"|should(?= be\b)|i would (?:choose|pick|select|go with)|(?:we|you|one|he|she|they) (?:would|could|should)"
    r"|(?:the|our) only possible \w+|(?<=[, ])as (?:expected|required|desired|claimed|wanted|needed|asked|stated|shown"
    r"|given)(?=\W*$)|(?:matches|agrees with|confirms) (?:our|the|my) (?:estimate|expectation|intuition|guess)"
    r"|(?:completes|finishes|concludes|ends) (?:the|our|this) \w+"
    r"|(?:by|from|using|with|to|of) (?:the )?(?:\w+ )?[\w'-]+ (?:theorem|formula|identity|rule|principle|lemma"
    r"|criterion|inequality|law|algorithm)"
    r"|[§¤] (?:mal|fois|veces|vezes|volte|per|times|раз) [§¤]|(?:and|but) not [§¤]|[§¤] third graders"
    r"|minimum error in the measurement"
    r"|given (?:these|this|that)|the given(?= (?:problem|question|conditions?|information|equations?|numbers?|data)\b)"
    r"|for [§¤] \w+,? (?:the answer|it|this|that) would be §|left (?:in|on) the \w+|wins the game"
    r"|(?:negative|minus|moins|meno|menos|минус|负|マイナス|마이너스|سالب)(?= ?[§¤])"
    r"|(?:and |but )?(?:not|non|nicht|pas|no|不是|而不是) ?\(?[A-J]\)?(?!\w)|it (?:can't be|cannot be"
    r"|doesn't make sense for it to be|can not be) [A-J](?:,? (?:or|nor|and) [A-J])*"
    r"|,? ?i (?:think|believe)(?=\W*$)|i (?:would )?(?:think|believe|say|conclude)(?: that)?(?= (?:it|the "
    r"answer)\b)|that (?:could|can|may) be \w+"
    r"|(?:doubling|halving|squaring|tripling) (?:this|it|that)|regardless of (?:the )?\w+|last (?:digits?|term|number"
    r"|row|step)|(?:selon|d'après) (?:la|le) (?:formule|théorème)(?: ci-dessus)?|según (?:la|el) (?:fórmula|teorema)"
    r"|nach dem satz (?:von|des) \w+"
    r"|ошиб(?:ки|ок) нет|没有漏掉任何情况|注意不要漏掉|見落としはありません|no (?:errors?|mistakes?) "
    r"(?:was|were) found|(?:common|typical|frequent|usual) (?:mistakes?|errors?|pitfalls?): (?=[^¤]*$)[^¤]*"
    r"|(?:whereas |while |but |and |note that )?§ (?:does|do)(?:n't| not)(?: (?:work|hold|fit|satisfy \w+(?: \w+)?))?"
    r"|§ (?:is|are|was|were) (?:excluded|discarded|dropped|rejected|dismissed|eliminated|ruled out|too \w+|even|odd"
    r"|negative)"
    r"|(?:^|(?<=is ))minus(?= (?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty)\b)"
    r"|§ \w+ times §"
    r"|(?!(?:it|this|that|answer|result|value|which|we)\b)\w+ (?:is|was) (?:mistaken|wrong|incorrect|off)(?=,? (?:and"
    r"|so)\b)|(?:(?:the|my) )?corrected (?:final )?(?:answer|value|result|solution|number|total)(?= is|:)"
    r"|equally (?:likely|probable)|the most (?:likely|probable)(?= [^\W\d_])|ou seja|in (?:mixed|decimal|simplest"
    r"|lowest|exact|reduced|standard|interval|percentage) "
    r"(?:form|terms|notation)"
    r"|when (?:checking|checked)|(?:and )?i(?:'m| am) (?:sure|certain) of (?:it|this|that)|neither more "
    r"nor less|(?:is there )?anything else i can help (?:you )?with"
    r"|putting (?:it all|everything|all of this) together|(?:the |our )?(?:maximum|minimum|largest|smallest|greatest"
    r"|least|only) possible"
    r"|no (?:\w+ ){1,2}(?:(?:is|are) )?(?:needed|required|necessary)|obtained by|in short|for this reason"
    r"|to (?:summarize|sum up|conclude)|(?:as )?seen \w+ally|(?:the )?best(?= (?:option|choice|answer)\b)"
    r"|(?:we (?:are|were)|we're) looking for|the key (?:step|idea|point|insight|observation)|ou encore(?= §)"
    r"|(?:does not|doesn't|can(?:not|'t) be) (?:factor(?:ed)?|simplif(?:y|ied)|reduced?|decomposed?) (?:any )?further"
    r"|(?:that['’]s|that is|which is|i\.? ?e|or)\W{0,2} (?:about|roughly|approximately|around|nearly) §(?: (?:cubic"
    r"|square) \w+)?"
    r"|(?<!¤ and )(?<!¤, )(?<!¤ )§(?:,? (?:and )?§)* (?:are|were) (?:all |both )?(?:wrong|incorrect|mistakes|errors"
    r"|traps)|if (?:we|you|one) (?:had )?(?:forgot|forgotten|ignored|omitted|overlooked)[^¤.]*"
    r"|ich hoffe,? (?:das|es|dies) \w+(?: (?:klar|richtig|verständlich|weiter))?"
    r"|any questions|as a result|(?:also )?(?:be )?seen \w+ally"
    r"|no,? other (?:values?|solutions?|numbers?) (?:works?|satisf\w+|is possible|are possible)|minimum "
    r"error|third graders?"
    r"|as the other candidate § is \w+|wait, let me (?:verify|check|double-check)|mas sim(?= ¤)|remark\W+[^¤]*"
    r"|(?:source|reference|time taken|key idea|confidence): [^¤.!?\n]*|no[,:] the answer is|least common"
    r"|lowest common|next to|after all|all told|at all|in between"
    r"|(?:so|and|therefore|thus|hence|then),? (?:we|he|she|they) (?:would|could|can)|and would get"
    r"|can (?:easily |also |then |now |therefore )?(?:be (?:easily |also )?(?:written|expressed|seen|shown|checked"
    r"|verified|computed|calculated|found|obtained|simplified|rewritten|arranged|formed|made|chosen|placed|selected"
    r"|seated)|see|conclude|check|verify|find|deduce|write|compute|calculate)"
    r"|(?:but|and) (?:i|we) (?:have )?(?:double-?)?checked(?: (?:it|that|this|everything|twice|again|by \w+))*"
    r"|i (?:have )?(?:double-?|re-?)checked(?: (?:it|that|this|everything|twice|again|the calculations?|my work|and))*"
    r"|i hope (?:it|this|that|the answer|my answer|the solution|the explanation) (?:is (?:correct|right|clear|helpful)"
    r"|helps|makes sense)"
    r"|(?:please )?let me know if (?:you|there|anything|something|any)[^.!?\n]{0,60}|(?:please )?feel "
    r"free to ask[^.!?\n]{0,40}|if you (?:have|need) (?:any|more|further|other|additional)? ?[^.!?\n]{0,40}"
    r"|i am (?:sure|certain|confident|positive)(?: (?:of|about) (?:it|this|that))?|i['’]m (?:sure|certain|confident"
    r"|positive)"
    r"|(?:for|to be) (?:sure|certain|exact|precise|concrete)|as (?:we|you|one) can (?:see|check|verify|easily see)"
    r"|(?:more|most) (?:precisely|exactly|formally)|in other words|or,? equivalently|that is(?: to say)?|i\.e\.?|ie\.?"
    r"|q\.e\.?d\.?|qe\.?d\.?|(?:not )?counting"
    r"|(?:seems|looks|sounds) (?:reasonable|plausible|right|fine|correct|good|sensible|consistent)"
    r"|not (?:obvious|surprising|a coincidence|necessary|needed|only|easy|immediate|to (?:forget|worry))"
    r"|(?:it|this|that|§|\w) (?:can't|cannot|could not|couldn't) be (?:any )?(?:smaller|larger|greater|less|more|bigger"
    r"|lower|higher|(?:anything|something) other than)"
    r"|if you(?:'d| would)? (?:like|want|prefer|wish)[^.!?\n]{0,60}|(?:don't|do not) hesitate[^.!?\n]{0,60}"
    r"|(?:to )?double[- ]?check\w*|(?:may|might) (?:look|seem|be|sound) (?:surprising|odd|strange|counterintuitive)"
    r"|no (?:smaller|larger|greater|other|better|further|remainder|more|calculator)(?: \w+)?|nothing (?:else|more"
    r"|is left)\b|(?:lead|leads|led) to (?:a )?contradictions?|by contradiction|we did not need|did not have to"
    r"|which (?:matches|agrees with|is) what (?:we|was) \w+|would (?:have gotten|get) a different"
    r"|das (?:lässt|läßt) sich (?:leicht|schnell|einfach) \w+|ohne (?:jeden )?zweifel|kein zweifel|nicht §|und nicht §"
    r"|sans (?:aucun )?doute possible|et non (?:pas )?§|(?:et )?pas §|sin (?:ninguna )?duda|y no §|e non §"
    r"|e não §|sem dúvida|senza dubbio|а не §|без сомнения|без сомнений"
    r"|常见的错误是[^。¤]*|错误选项分析[^。¤]*|[A-J](?:是错的|错误)|不是 ?§|而不是 ?§|(?:не|nicht|pas|no "
    r"es|não é|non è) §|pero es fácil equivocarse|no(?= (?:total|fim|final))"
    r")(?!\w)"
)

# Chinese and Japanese have no spaces between words, so these are phrases, the longest first.
_CHINESE = """
这组 这组数据 该组数据 这些数据 这列 所以 因此 故 于是 從而 从而 综上所述 综上 由此可得 由此可知 由此 可得 可知 得到
得出 求得 算出 解得 得 即 则 那么 也就是 最后 最终 最終 最后的 一共 总共 總共 共有 共 合计 这个 该 此 其 本题 此题 问题
題目 题目 这道题 的 是 为 為 等于 等於 有 就是 应该是 应是 必须是 只能是 了 还剩 还有 剩下 剩余 需要 花费 花了 我们 我們
在 和 与 及 以及 正确 正確 唯一 最终的 准确 精确 答案 答 结果 結果 解 根 值 数值 總數 总数 数量 个数 总和 差 积 乘积 商
余数 平均数 平均值 概率 面积 體積 体积 周长 长度 宽度 高度 半径 直径 距离 速度 时间 价格 总价 费用 金额 利润 角度 方程
方程的 函数 函数值 集合 比例 百分比 方法 方式 种 种方法 个 個 只 本 人 元 美元 块 块钱 米 厘米 千米 公里 公斤 千克 克 升
小时 分钟 秒 天 年 岁 次 条 件 支 张 页 名 位 倍数 苹果 学生 选 选项 選 故选 選擇 选择 正确答案 正确选项 满足 符合 所有
全部 条件 要求 题意 经检验 检验 验证 验算 验证正确 正确无误 经过 计算 恰好 正好 刚好 求 所求 每 平方 应选 应 选择题
总的来说 换句话说 也就是说 我们认为 同学们 老师 每份 份 吨 总 总费用 小明 小红 小华 她 他 颗 弹珠 单位 希望对你有帮助
希望这对你有帮助 希望这能帮到你 希望 证毕 集 解集 常见的错误是 选项分析 略 零 〇 一 二 三 四 五 六 七 八 九 十 百 千 万
分之 半 两 俩 对 亿 以上 无误 第 步 令 设 代入 因为 所得 可以 得知 根据 火车 汽车 行驶 学校 商店 铅笔 橘子 糖果 饼干
水果 花 树 棵 鱼 鸡 鸭
"""
_JAPANESE = """
同様に確からしい 同様に 繰り返します 繰り返し よって したがって 従って ゆえに だから つまり すなわち 以上より 以上から
これより ここから 最終的に 最終的な 最後に 結局 合計 全部で 全体で 求める 求めた 求められた 正しい 唯一の ちょうど 必ず
答え 答えは 解答 正解 解 結果 値 数 個数 総数 和 差 積 商 余り 平均 確率 面積 体積 周の長さ 長さ 幅 高さ 半径 直径 距離
速さ 速度 時間 値段 代金 金額 利益 角度 方程式 関数 集合 割合 通り 方法 は が を に の で と も から より まで である
です だ となる となります になる になります なので であり であるから ます した して します いる いる。 あります ある
とき のとき 最大値 最小値 等しい 得る 得られる 得られます 求まる 残る 残ります 残り わかる わかります 分かります 個 人
円 本 枚 匹 台 冊 回 日 年 歳 分 秒 メートル センチ りんご 生徒 選択肢 択肢 分の パーセント 万 億 換算 言い換えると 検算
確認 確かめ 条件 満たす 満たします すべて 全て この その これ それ 問題 れる られる います 電車 学生 花 本数 解くと
"""
_KOREAN = """
따라서 그러므로 결국 즉 그래서 답 답은 답이 정답 정답은 해답 결과 결과는 값 값은 해 해는 근은 의 은 는 이 가 을 를
입니다 이다 이에요 예요 이고 합니다 됩니다 있습니다 남습니다 모두 총 합계 합 차 곱 몫 나머지 평균 확률 넓이 부피 둘레
길이 높이 반지름 지름 거리 속력 시간 가격 개 명 원 권 마리 번 일 년 살 분 초 가지 최종 구하는 방정식 같다 같습니다 만 억
정수이므로 검산하면 비용 선택지 선택지는 올바른 맞습니다 것은 이것은 합계는 와 과 남은 그 수 수는 사과 사과는 학생
학생은 기차 기차는 책 책은 꽃
"""
SAFE_UNSPACED = lazy_pattern(
    "|".join(map(re.escape, sorted({*_CHINESE.split(), *_JAPANESE.split(), *_KOREAN.split()}, key=len, reverse=True)))
)
