"""Everyday things and actions of word problems: words that neither doubt an answer nor take it back.

The lists leave out possible sources of an answer (friend, teacher, screen), tools for guessing (dice, hat, dart), words
for failing, breaking or losing, comparisons (higher, fewer), words that also mean nonsense (nuts, trash), and words
that `verifiers.extract.vocabulary` has anyway.
"""

from __future__ import annotations

_NOUNS = """
acre adult airplane album animal ant apartment aquarium arm athlete baby backpack badge bagel bakery balloon banana band
barn barrel baseball basket basketball batch battery bead bean bear bed bedroom bee beetle belt bench bicycle bike bill
bird biscuit blanket block blossom blueberry board boat bolt bone bookcase boot boundary bouquet bowl bracelet branch
bread breakfast brick bridge bucket building bulb bunch bundle bush butterfly button cabinet cake calf calorie camp
camper candle canoe carpet carrot carton cat caterpillar cattle cell cereal chapter chess chick chicken chip chocolate
chore church cinema city class classroom clock cloth coat coconut coffee collection colony color colour concert cooler
corn corner couch country couple court cow crate crayon cream crew crop crow cupcake curtain customer cyclist dance deck
deer delivery desk dinner dish dog doll dolphin donation donut door doughnut dove drawer dress drink driver drum duck
ear earring eel elephant employee engine envelope exam eye fabric factory family farm farmer feather fence ferry
festival field finger fireman flag flat flight flock flour fly folder food football footage forest fork fox frog fruit
fuel game garage garden gas gasoline gate gem gift glove goat goose grain grape grapefruit grass grocery ground group
guest guitar gym hair hamburger hamster handful hen herd highway hike hiker hill hive holiday homework honey horse
hospital hotel household ice insect instrument island jacket jar jeans jersey jewel job jug juice kettle key kitchen
kitten kiwi knife lace ladder lake lamb lamp land lap lawn leaf lemonade lesson lettuce library lightbulb lily lion
litter lizard loaf lobby lunch machine magnet mango mat meadow meal meat medal melon member merchant metal microwave
milk minivan monkey morning mosquito motorbike motorcycle mountain mouse mouth muffin mug museum mushroom musician nail
napkin necklace needle neighborhood nest net night notebook oat ocean oil onion orchard orchid oven owl package packet
paint painter painting palm pan pancake panel pants paper park parking parrot passenger pasta patient pea peach peanut
pear pebble pedestrian penguin penny pepper performance pet pie pig pigeon pile pillow pilot pine pipe pitcher pizza
planet plank plant plate platform player plot plum pole pond pool popcorn population poster pot potato pretzel puddle
pump pumpkin pupil puppy purchase purse quilt rabbit race rack radish rain raisin ranch recipe region resident
restaurant ribbon rice ring river road rock roof room rope rose route ruler runner rug sack sailor salad sale sand
sandwich sauce school scissors scoop scout seashell season section seed serving shape sheep sheet shelf shell ship
shipment shirt shoe shop shopper shore shovel shower singer sink site sled snack snail soap sock soda sofa soldier song
soup spider sponge spoon sport squirrel stack stadium stair stall stamp stand station stem sticker stone stool store
strawberry street stripe sugar suitcase supper supply swan sweater sweet swimmer tablespoon tank tape taxi tea teaspoon
teller tent theater theatre tie tiger tile tire toad tomato tool tooth toothbrush tourist towel tower town tractor
traffic trail trailer tray treat trip truck trunk tulip turtle tyre umbrella van vase vegetable vehicle vest village
violin visitor vitamin voter vote wagon waiter waitress wall wallet warehouse water watermelon wave weekend wheat wheel
whale window winter wire wolf wood worker workshop worm yogurt zebra zoo tournament summer autumn spring birthday
ceremony party picnic meeting exhibition marathon voyage journey vacation century decade fortnight lifetime semester
workday noon midnight afternoon evening
"""
_VERBS = """
assemble attend bake bloom boil bounce camp carry carve climb collect commute compete construct consume crawl cycle
dance decorate deliver deposit descend donate drain earn empty enroll enter exercise fill finish flow gather graduate
harvest hatch hike hire install invite jog jump knock knit launch load march melt mix mow order own pack paint park
participate peel perform plant play plough plow pour practice prepare produce pump purchase race recycle register rent
repair ride row sail serve sew share ship shop sleep slice spend stack stay stitch swim swing tour train transport trim
type unload visit walk wash water wear weave weigh wrap
"""
_ELSE = """
baked bees children's climbing cooking eaten driven ridden rode slept swam swum taught wore worn wove woven dug dig
digging fed feed feeds feeding flew flown flies flying grew grow grows growing grown cut cuts cutting planting fries
geese mice teeth calves knives shelves loaves wolves fishes sheep shrimp shrimps attended boarded passed pass passes
passing swept sang sung sing sings singing threw throws throw won winner winners built build builds building caught
catch catches lent stood stand stands standing sat sit sits sitting put puts met lay lays laid hen's lasts lasted lived
live lives living move moves moved moving stop stops stopped stopping wake wakes woke remained reach reaches reached
reaching traveling travelling covering produce swimming jogging running biking cycling driving writing fit afford
affords require requires accommodate daily weekly monthly yearly annually annual hourly equally evenly red blue green
yellow purple pink brown black white golden silver wooden plastic metal paper fresh frozen ripe colorful tall long wide
deep new heavy light fast slow warm cold hot empty dry wet young sweet spare available inside across through along
everyone everybody equivalent corresponding respective counts tasty delicious healthy safe clean busy quiet free apiece
leftover
"""
_GERMAN = """
heft zeigt gekauft verkauft gegessen gefahren gelaufen ausgegeben zug noch mehr kind schüler schülerin schülerinnen
mädchen jungen junge frau frauen mann männer birnen birne bananen orangen kuchen brot brote eier ei kekse bonbons blumen
blume rosen bäume baum bücher buch hefte stifte stift bleistifte murmeln kugeln karten karte münzen münze autos auto
fahrräder fahrrad busse züge häuser haus zimmer stühle tische tisch kühe kuh schafe schweine hühner hunde hund katzen
katze vögel fische gäste mitarbeiter arbeiter flaschen flasche kisten kiste pakete paket tüten reihen seiten seite
wochen woche monate monat bezahlt kauft isst trinkt läuft fährt geht brauchen spart verdient schenkt pflanzt backt liest
milliliter quadratmeter quadratzentimeter kubikmeter quadrat würfel seitenlänge
"""
_ROMANCE = """
parcourt dépense dépensé acheté vendu mangé payé tren recorre recorrió gasta gastó ahorró compró vendió comió pagó trem
percorre gastou comprou vendeu comeu pagou treno spende speso comprato venduto mangiato pagato garçons garçon filles
fille élève pomme poires gâteaux gâteau pain œufs oeufs fleurs fleur arbres arbre livres livre crayons stylos billes
cartes pièces voitures voiture vélos maisons maison chaises tables vaches moutons poules chiens chats oiseaux poissons
invités bouteilles boîtes paquets semaines semaine mois encore côté achète vend paie mange boit court roule marche gagne
économise plante chicos chicas niño niña alumnos alumnas manzana peras naranjas pasteles pan huevos flores árboles
libros libro lápices canicas cartas monedas coches coche casas casa sillas mesas vacas ovejas gallinas perros gatos
pájaros peces invitados botellas cajas paquetes páginas semanas semana meses más lado cubo compra vende paga bebe corre
camina gana ahorra planta trabajadores galletas caramelos globos meninos meninas aluno maçã laranjas bolos pão ovos
árvores livros lápis moedas carros carro ovelhas galinhas cachorros pássaros peixes convidados garrafas caixas pacotes
mais quadrado anda ganha economiza trabalhadores balas balões biscoitos ragazzi ragazze alunni mela pere arance torte
pane uova fiori alberi libri matite carte monete macchine sedie tavoli mucche pecore galline cani gatti uccelli pesci
ospiti bottiglie scatole pacchi pagine settimane mesi più lato mangia beve cammina guadagna risparmia pianta caramelle
palloncini biscotti operai
"""
_RUSSIAN = """
поезд проехал проехала прошёл прошла потратил потратила купил купила съел съела заплатил заплатила автомобиль машина
велосипедист пешеход продали собрали ещё еще больше ребёнка ребят мальчиков девочек учеников учениц яблоко груш
апельсинов конфет пирогов хлеба яиц цветов деревьев книг книги тетрадей карандашей ручек шаров шариков карточек монет
машин велосипедов домов стульев столов коров овец кур собак кошек птиц рыб гостей бутылок ящиков коробок пакетов страниц
недель месяцев рабочих километров сантиметров килограммов граммов литров секунд квадрата круга прямоугольника сторона
стороны куба задача решена решено
"""


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh", "to")) else "s")


def _forms(verb: str) -> tuple[str, ...]:
    """Returns the forms of a regular verb. Verbs that double their last letter are listed among the other words."""
    if verb.endswith("e"):
        return verb, verb + "s", verb + "d", verb[:-1] + "ing"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb, verb[:-1] + "ies", verb[:-1] + "ied", verb + "ing"
    return verb, _plural(verb), verb + "ed", verb + "ing"


EVERYDAY = frozenset(
    (
        *(form for noun in _NOUNS.split() for form in (noun, _plural(noun))),
        *(form for verb in _VERBS.split() for form in _forms(verb)),
        *f"{_ELSE}{_GERMAN}{_ROMANCE}{_RUSSIAN}".split(),
    )
)
