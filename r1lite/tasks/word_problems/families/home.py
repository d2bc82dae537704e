"""Kitchen, garden, measuring and building: recipes, rows, perimeter, area, lengths and weights."""
# ruff: noqa: E501  (a wording is easier to judge on one line)

from r1lite.tasks.word_problems.story import Story, family
from r1lite.tasks.word_problems.vocabulary import (
    BAKED,
    COLORS,
    CONTAINERS,
    DAYS,
    FLOWERS,
    FRACTIONS,
    FRUIT,
    PERCENT_DIVISORS,
    SUPPLIES,
    TOYS,
    VEGETABLES,
)

DISHES = ("soup", "salad", "stew", "pudding", "pasta", "sauce", "dinner", "lunch")
INGREDIENTS = ("flour", "milk", "sugar", "rice", "water", "beans", "corn", "cheese")


@family
def recipe_scaled(story: Story) -> None:
    who, dish, stuff = story.person(), story.pick(DISHES), story.pick(INGREDIENTS)
    serves, cups, factor, has = story.number(2, 10), story.number(2, 12), story.number(2, 9), story.number(2, 30)
    people = serves * factor
    story.say(
        f"A recipe for {dish} [needs|uses|takes] {cups} cups of {stuff} for {serves} people.",
        f"To make {dish} for {serves} people, {who} needs {cups} cups of {stuff}.",
    )
    story.say(
        f"{who} [cooks|makes it|wants to cook] for {people} people and [already has|has] {has} cups of {stuff}.",
        f"{who} has {has} cups of {stuff} at home and [cooks|wants to cook] for {people} people.",
    )
    story.say(
        f"How many more cups of {stuff} does {who.they} need?",
        f"How many cups of {stuff} must {who.they} still [buy|get]?",
    )
    batches = story.over(people, serves, "The recipe is made @ times.")
    total = story.times(batches, cups, "That takes @ cups.")
    story.minus(total, has, f"{who} needs @ more cups.")


@family
def garden_rows_fraction(story: Story) -> None:
    who, plant = story.person(), story.pick((*FLOWERS, *VEGETABLES))
    rows, size, (fraction, divisor) = story.number(3, 12), story.number(3, 12), story.pick(tuple(FRACTIONS.items()))
    event = story.pick(("die", "are eaten by birds", "are sold", "are given away", "are lost in a storm"))
    story.say(
        f"{who} [plants|has] {rows} rows of {plant} [in the garden|behind the house] with {size} in each row.",
        f"[In the garden|Behind the house] {who} [plants|has] {rows} rows with {size} {plant} each.",
    )
    story.say(
        f"{fraction} of [them|the {plant}] {event} [in spring|in summer|in fall|].",
        f"[In spring|In summer|In fall|After a month], {fraction} of the {plant} {event}.",
    )
    story.say(f"How many {plant} [are left|does {who} have left|does {who} still have|remain]?")
    total = story.times(rows, size, f"There are @ {plant}.")
    lost = story.over(total, divisor, "Of these @ are gone.")
    story.minus(total, lost, f"Then @ {plant} are left.")


@family
def fence_around(story: Story) -> None:
    who, area = story.person(), story.pick(("garden", "yard", "field", "playground", "pool", "farm"))
    length, width, done = story.number(6, 40), story.number(4, 30), story.number(5, 60)
    story.require(length > width)
    story.say(
        f"{who} has a {area} [in the shape of a rectangle|that is a rectangle], {length} feet long and {width} feet wide.",
        f"{who}'s {area} is a rectangle. It is {length} feet long and {width} feet wide.",
    )
    story.say(
        f"{who.they} wants a [fence|wall] all around it and [already has|has built] {done} feet [of it|].",
        f"{who.they} [builds|plans|needs] a [fence|wall] all around it, and {done} feet are [ready|done] already.",
    )
    story.say(
        "How many feet are [missing|still missing]?", f"How many feet does {who.they} still have to [build|make]?"
    )
    half = story.plus(length, width, "A long and a short side are @ feet.")
    around = story.times(half, 2, "All sides are @ feet.")
    story.minus(around, done, "Then @ feet are missing.")


@family
def tiles_for_floor(story: Story) -> None:
    who, room = story.person(), story.pick(("kitchen", "bathroom", "hall", "bedroom", "cafe", "classroom", "shop"))
    length, width, per_box, price = story.number(3, 12), story.number(3, 12), story.number(2, 12), story.number(2, 12)
    color = story.pick(COLORS)
    story.say(
        f"{who} covers the floor of a {room} with {color} tiles, {length} rows of {width} tiles.",
        f"The floor of {who}'s {room} needs {length} rows of {width} {color} tiles.",
    )
    story.say(
        f"[There are {per_box} tiles in a box|A box holds {per_box} tiles] and [a|one|each] box costs ${price}.",
        f"The tiles come in boxes of {per_box}, and [a|one|each] box costs {price} dollars.",
    )
    story.say(
        f"How [much|many dollars] does {who} pay for [the|all the] tiles?",
        "How [much|many dollars] do [the|all the] tiles cost?",
    )
    tiles = story.times(length, width, "The floor needs @ tiles.")
    boxes = story.over(tiles, per_box, "That is @ boxes.")
    story.times(boxes, price, "They cost @ dollars.")


@family
def ribbon_cut(story: Story) -> None:
    who, color = story.person(), story.pick(COLORS)
    stuff = story.pick(("ribbon", "rope", "string", "wire", "paper"))
    length, used, piece = story.number(30, 200), story.number(5, 90), story.number(2, 12)
    what = story.pick(("a kite", "a gift", "a box", "a tent", "a picture", "a doll", "a window"))
    story.say(
        f"{who} [has|buys|finds] {length} inches of {color} {stuff} and uses {used} inches for {what}.",
        f"From {length} inches of {color} {stuff}, {who} uses {used} inches for {what}.",
    )
    story.say(
        f"{who.they} cuts the rest into pieces that are {piece} inches long.",
        f"The rest is cut into pieces of {piece} inches each.",
    )
    story.say(f"How many pieces [are there|does {who.they} get|can {who.they} cut]?")
    rest = story.minus(length, used, "There are @ inches left.")
    story.over(rest, piece, "That gives @ pieces.")


@family
def boards_in_feet(story: Story) -> None:
    who, color = story.person(), story.pick(COLORS)
    feet, sawn, build = (
        story.number(2, 12),
        story.number(5, 60),
        story.pick(("a shelf", "a table", "a box", "a door", "a bench")),
    )
    pieces, board = story.number(2, 9), story.pick(("board", "pole", "beam", "plank"))
    story.say(
        f"{who} has a [{color}|] {board} that is {feet} feet long to build {build}.",
        f"To build {build}, {who} buys a [{color}|] {board} of {feet} feet.",
    )
    story.say(
        f"{who.they} [cuts|saws] off {sawn} inches and [cuts|saws] the rest into {pieces} equal pieces.",
        f"First {who.they} [cuts|saws] off {sawn} inches. The rest becomes {pieces} equal pieces.",
    )
    story.say(
        "One foot is 12 inches. How many inches long is [each|every|one] piece?",
        "What is the length of [each|one] piece in inches? One foot is 12 inches.",
    )
    inches = story.times(feet, 12, "The board is @ inches long.")
    rest = story.minus(inches, sawn, "There are @ inches left.")
    story.over(rest, pieces, "Each piece is @ inches long.")


@family
def loaded_weight(story: Story) -> None:
    who, thing, box = story.person(), story.pick((*FRUIT, *VEGETABLES)), story.pick(CONTAINERS)
    boxes, weight, cart, taken = story.number(2, 12), story.number(3, 12), story.number(10, 80), story.number(2, 30)
    vehicle = story.pick(("cart", "boat", "sled", "bike"))
    story.say(
        f"{who} [loads|puts] {boxes} {box} of {thing} onto a {vehicle}. Each {box.one} weighs {weight} pounds.",
        f"A {vehicle} [carries|holds] {boxes} {box} of {thing} for {who}, and each {box.one} weighs {weight} pounds.",
    )
    story.say(
        f"The empty {vehicle} weighs {cart} pounds. On the way {who} [sells|loses] {taken} pounds of {thing}.",
        f"Without them the {vehicle} weighs {cart} pounds. {who} then [takes out|sells] {taken} pounds of the {thing}.",
    )
    story.say(
        f"What is the weight of the {vehicle} with its load then?",
        f"How many pounds does the loaded {vehicle} weigh [then|now]?",
    )
    load = story.times(boxes, weight, f"The {thing} weigh @ pounds.")
    story.require(taken < load)
    full = story.plus(load, cart, f"With the {vehicle} it is @ pounds.")
    story.minus(full, taken, "Then it is @ pounds.")


@family
def percent_of_batch(story: Story) -> None:
    who, food = story.person(), story.pick((*BAKED, *TOYS, *SUPPLIES))
    trays, size, percent = story.number(2, 12), story.number(4, 20), story.pick(tuple(PERCENT_DIVISORS))
    other, box = story.number(2, 30), story.pick(CONTAINERS)
    story.say(
        f"{who} [has|packs|fills] {trays} {box} with {size} {food} each.",
        f"There are {trays} {box} with {size} {food} in each, and all belong to {who}.",
    )
    story.say(
        f"{percent} percent of [all|] the {food} are [sold|given away] on {story.pick(DAYS)}, "
        f"and {other} more the next day.",
        f"{who.they} [sells|gives away] {percent} percent of [all|] the {food} and [later|then] {other} more.",
    )
    story.say(f"How many {food} [are left|does {who.they} still have|does {who.they} have left]?")
    total = story.times(trays, size, f"There are @ {food}.")
    part = story.over(total, PERCENT_DIVISORS[percent], f"{percent} percent of them are @ {food}.")
    left = story.minus(total, part, f"That leaves @ {food}.")
    story.minus(left, other, f"In the end @ {food} are left.")
