"""Names, things and places. The vocabulary is small because the reading model's tokenizer is tiny."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    they: str
    them: str
    their: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Noun:
    one: str
    many: str

    def __str__(self) -> str:
        return self.many

    @property
    def a(self) -> str:
        """The noun with its article: a pen, an apple."""
        return f"{'an' if self.one[0] in 'aeiou' else 'a'} {self.one}"


def _nouns(text: str) -> tuple[Noun, ...]:
    """The nouns in a text, separated by spaces; `one/many` if the plural isn't formed with -s."""
    return tuple(Noun(*word.split("/")) if "/" in word else Noun(word, word + "s") for word in text.split())


def _people(names: str, they: str, them: str, their: str) -> tuple[Person, ...]:
    return tuple(Person(name, they, them, their) for name in names.split())


# No name may also be an ordinary word, because the split masks names by looking words up.
PEOPLE = (
    *_people("Ada Anna Clara Dana Ella Emma Eva Fatima Gina Hana", "she", "her", "her"),
    *_people("Ines Julia Karen Lena Lucy Maria Maya Nina Olga Sara", "she", "her", "her"),
    *_people("Adam Ali Ben Carlos David Eric Felix George Hugo Ivan", "he", "him", "his"),
    *_people("Jamal Kevin Leo Luis Marco Noah Omar Paul Sam Tom", "he", "him", "his"),
)
NAMES = frozenset(person.name for person in PEOPLE)

SUPPLIES = _nouns("pen pencil notebook eraser ruler marker folder brush/brushes crayon")
FRUIT = _nouns("apple orange pear peach/peaches lemon mango banana plum")
TREASURES = _nouns("marble sticker card shell stamp coin bead button stone")
BAKED = _nouns("cookie muffin cupcake bun roll tart waffle")
FLOWERS = _nouns("rose tulip lily/lilies daisy/daisies")
CLOTHES = _nouns("shirt hat scarf/scarves cap jacket sweater towel")
TOYS = _nouns("ball kite puzzle robot doll yoyo drum")
VEGETABLES = _nouns("carrot onion potato/potatoes tomato/tomatoes pepper pumpkin cabbage")
SNACKS = _nouns("sandwich/sandwiches juice burger taco salad pretzel")
CONTAINERS = _nouns("box/boxes bag basket crate")
HELPERS = _nouns("friend cousin neighbor classmate")
GOALS = ("bike", "tent", "guitar", "camera", "skateboard", "telescope", "watch", "phone")
PLACES = ("market", "school", "park", "library", "farm", "fair", "museum", "beach")
SHOPS = ("shop", "market", "store", "fair")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
COLORS = ("red", "blue", "green", "yellow", "white", "black")
FRACTIONS = {"a third": 3, "a quarter": 4, "a fifth": 5}
PERCENT_DIVISORS = {25: 4, 20: 5, 10: 10}  # 25 percent of a number is the number / 4
