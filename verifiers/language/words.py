"""Common words of the languages in Latin script: function words, and words used in reasoning about problems.

A word in several lists is evidence for each of them and against the rest; single letters are not listed.
"""

from __future__ import annotations

LATIN = ("en", "es", "fr", "de", "it", "pt", "vi", "tr")  # order of the columns in trigrams.txt

_LISTS = {
    "en": """the of and to in is that it for was on are as with they be at this have from by not but what all were we
when your can said there use each which she do how their if will up other about out many then them these so some her
would make like him into time has look two more write go see number no way could people my than first been call who
its now find long down day did get come made may part you he an or had me our us one three four five six seven eight
nine ten need needs let lets since because therefore thus hence first next finally total answer each every both left
right sum divide multiply add subtract equals equal given problem solve step steps think thinking know means times
half twice per remaining here check wait okay just only also any must should where while after before between same
value get gives gave plus minus hours minutes days week money cost costs price much half does doesn't don't it's that's
i'm let's we're isn't can't won't didn't i'll you're they're
dollars cents simplify compute evaluate calculate determine express evaluating factor expand divided multiplied
added has have gets spends spent sold bought makes made earns earned ate eats gave raises raise pays paid uses used
takes took feet miles pounds inches years old trees books boys girls children students school water car food people
person family apples marbles cookies eggs cups boxes pages games points friends shirts male female red blue green
white black big small rest full less fewer least most longer shorter higher faster wants needed together altogether
still back again over under row rows triangle square circle rectangle angle area side length width height line
point points integer integers positive negative prime function equation expression polynomial root roots vertex
graph sequence series probability possible""",
    "es": """el la los las un una unos unas de del al y o u que en con por para sin sobre entre hasta desde es son era
fue ser está están estar este esta estos estas ese esa eso esto como pero más menos si sí no ya muy también porque
cuando donde quién qué cuál cuánto cuántos cuántas cuanto cada todo todos toda todas otro otra hay tiene tienen tenemos
tener hacer hace puede podemos vamos entonces luego así ahora primero después finalmente dos tres cuatro cinco seis
siete ocho nueve diez respuesta pregunta número números suma restar sumar multiplicar dividir igual resultado problema
lo le les se su sus mi me nos yo ella ellos usted necesitamos debemos sabemos mitad doble por eso por tanto dado según
días horas precio cuesta mismo aquí paso quedan total""",
    "fr": """le la les un une des de du au aux et ou où que qui quoi dont en dans avec pour par sans sur sous entre est
sont était être été ce cet cette ces il elle ils elles on nous vous je tu me te se son sa ses leur leurs mon ma mes
notre nos ne pas plus moins mais si oui non comme quand donc alors ainsi car parce puis ensuite enfin d'abord
maintenant aussi très bien tout tous toute toutes chaque autre même faire fait avoir ont avons doit faut peut peuvent
peux deux trois quatre cinq six sept huit neuf dix réponse question nombre nombres somme multiplier diviser ajouter
soustraire égal égale résultat problème combien reste moitié double c'est d'un d'une l'on qu'il qu'elle qu'on n'est
j'ai l'équation étape jours heures prix coûte trouver calculer calculons voici voilà afin""",
    "de": """der die das den dem des ein eine einen einem einer eines und oder aber nicht ist sind war waren sein wird
werden wurde wir ich du er sie es man ihr ihre ihren sein seine mein mit von zu zum zur bei nach aus auf an am im in
für durch über unter vor zwischen als wie wenn dass daß weil da dann also so auch noch nur schon sehr mehr weniger hier
dort jetzt nun zuerst danach schließlich insgesamt jeder jede jedes alle alles kein keine haben hat hatte kann können
muss müssen soll sollen zwei drei vier fünf sechs sieben acht neun zehn antwort frage zahl zahlen summe addieren
subtrahieren multiplizieren dividieren gleich ergebnis aufgabe lösung viele viel wieviel hälfte doppelt daher deshalb
somit schritt tage stunden minuten preis kostet bleiben übrig berechnen wissen ergibt gibt um bis sich diese dieser
dieses diesen""",
    "it": """il lo la i gli le un uno una di del dello della dei degli delle a al allo alla ai agli alle da dal dalla
in nel nella nei con su sul sulla per tra fra e ed o che chi cui non è sono era erano essere stato ha hanno abbiamo
avere ho questo questa questi queste quello quella come ma se sì più meno molto anche perché quando dove quanto quanti
quante quale ogni tutto tutti tutta tutte altro altra stesso ci si mi ti vi lui lei loro noi io suo sua suoi fare fa
può possiamo dobbiamo deve quindi allora poi dopo prima infine ora adesso così due tre quattro cinque sei sette otto
nove dieci risposta domanda numero numeri somma sommare sottrarre moltiplicare dividere uguale risultato problema
metà doppio rimangono totale dato giorni ore prezzo costa qui passo sappiamo troviamo calcoliamo c'è dell'equazione
l'altro un'altra""",
    "pt": """o a os as um uma uns umas de do da dos das em no na nos nas ao aos à às com por pelo pela para sem sobre
entre até desde e ou que quem não é são era foi ser está estão estar este esta estes estas esse essa isso isto aquele
como mas mais menos se sim já muito também porque quando onde quanto quantos quantas qual cada tudo todo todos toda
todas outro outra mesmo há tem têm temos ter fazer faz pode podemos vamos então depois assim agora primeiro finalmente
dois duas três quatro cinco seis sete oito nove dez resposta pergunta número números soma somar subtrair multiplicar
dividir igual resultado problema lhe seu sua seus suas meu eu ele ela eles elas nós você vocês precisamos devemos
sabemos metade dobro portanto logo dado dias horas preço custa aqui passo restam total""",
    "vi": """và là của có không các một những được cho với trong người này đó khi đã sẽ đang thì mà ở từ ra vào lên
xuống đến đi về như nếu vì nên do bởi tại hay hoặc nhưng cũng rất nhiều ít hơn nhất tất cả mỗi mọi ta tôi chúng bạn
anh chị em ông bà họ nó cô hai ba bốn năm sáu bảy tám chín mười số tổng cộng trừ nhân chia bằng kết quả đáp án bài
toán giải bước đầu tiên tiếp theo cuối cùng vậy do đó cần phải biết tìm tính còn lại giá tiền ngày giờ phút bao nhiêu
lần nửa gấp đôi mua bán sau trước""",
    "tr": """ve bir bu şu o da de ki için ile ama fakat veya ya değil mi mı mu mü var yok olan olarak oldu olur olduğu
olduğunu gibi kadar daha çok az en her hepsi bütün tüm ne nasıl neden niçin kim hangi kaç nerede zaman sonra önce şimdi
ise eğer çünkü bu yüzden böylece yani sadece ayrıca iki üç dört beş altı yedi sekiz dokuz on cevap soru sayı sayısı
toplam toplamı çıkar çarp böl eşit eşittir sonuç sonucu problem çözüm adım ilk önce son olarak bulmak bulalım
hesaplayalım gerekir gerekiyor biz ben sen onlar bunu onu bunun onun kalan yarısı iki katı katı gün saat dakika fiyat
tane tanesi vardır yapalım düşünelim""",
}

WORDS: dict[str, tuple[str, ...]] = {}  # word -> the languages it belongs to
for _language, _text in _LISTS.items():
    for _word in _text.split():
        if len(_word) > 1 and _language not in WORDS.get(_word, ()):
            WORDS[_word] = (*WORDS.get(_word, ()), _language)

# Words of formulas and code that belong to no language.
FUNCTIONS = frozenset(
    """sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan asin acos atan log ln lg exp sqrt cbrt abs sgn sign
    max min sup inf lim gcd lcm hcf mod det tr rank dim ker deg arg argmax argmin floor ceil round sum prod int diff
    frac dfrac cdot div pi phi theta alpha beta gamma delta epsilon lambda mu sigma omega tau rho eta zeta psi chi
    cm mm km kg mg ml kb mb gb hz khz mhz kw kwh rad mol len print range str float bool list dict set tuple def elif
    const var func true false none null nan eof http https www json html xml csv utf ascii api cpu gpu url id""".split()
)
