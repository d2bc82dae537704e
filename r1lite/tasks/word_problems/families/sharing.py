"""Packing, sharing equally, giving away and what is left."""
# ruff: noqa: E501  (a wording is easier to judge on one line)

from r1lite.tasks.word_problems.story import Story, family
from r1lite.tasks.word_problems.vocabulary import (
    BAKED,
    CONTAINERS,
    DAYS,
    FRACTIONS,
    FRUIT,
    HELPERS,
    SUPPLIES,
    TREASURES,
    VEGETABLES,
)

SMALL = (*TREASURES, *SUPPLIES, *BAKED, *FRUIT)


@family
def packs_shared_equally(story: Story) -> None:
    who, thing, pack, helper = story.person(), story.pick(SMALL), story.pick(CONTAINERS), story.pick(HELPERS)
    packs, size, friends = story.number(2, 12), story.number(3, 12), story.number(2, 12)
    story.say(
        f"{who} [has|buys|finds] {packs} {pack} with {size} {thing} in each [{pack.one}|of them].",
        f"There are {packs} {pack} on the [table|shelf]. [Each|Every] {pack.one} [holds|contains] {size} {thing} for {who}.",
    )
    story.say(
        f"{who.they} [shares|divides] all the {thing} equally among {friends} {helper}.",
        f"{who.they} [gives|hands] all the {thing} to {friends} {helper}, and everyone gets the same number.",
    )
    story.say(f"How many {thing} does [each|every] {helper.one} [get|receive|have]?")
    total = story.times(packs, size, f"There are @ {thing}.")
    story.over(total, friends, f"Each {helper.one} gets @ {thing}.")


@family
def rest_into_boxes(story: Story) -> None:
    who, thing, box = story.person(), story.pick(SMALL), story.pick(CONTAINERS)
    total, given, size = story.number(20, 150), story.number(5, 60), story.number(2, 12)
    story.say(
        f"{who} has {total} {thing} and gives {given} [of them|{thing}] to {who.their} [sister|brother|teacher|aunt|uncle].",
        f"From {who.their} {total} {thing}, {who} [sells|gives away|loses] {given}.",
    )
    story.say(
        f"{who.they} [puts|packs|places] the rest into {box}, {size} in each [{box.one}|].",
        f"The [rest|others] [are packed|go] into {box} that hold {size} {thing} each.",
    )
    story.say(f"How many {box} does {who.they} [need|fill|use]?", f"How many {box} are [needed|filled]?")
    rest = story.minus(total, given, f"{who} keeps @ {thing}.")
    story.over(rest, size, f"They fill @ {box}.")


@family
def share_then_eat(story: Story) -> None:
    who, food, helper = story.person(), story.pick((*BAKED, *FRUIT)), story.pick(HELPERS)
    batches, size, people, eaten = story.number(2, 9), story.number(4, 12), story.number(2, 9), story.number(2, 9)
    story.say(
        f"{who} [makes|brings|buys] {batches} trays of {size} {food} each.",
        f"[On the table|In the kitchen] {who} [puts|sees] {batches} trays with {size} {food} on each [tray|].",
    )
    story.say(
        f"{people} {helper} share [them|the {food}] equally, and then each of them eats {eaten}.",
        f"All the {food} are [shared|divided] equally among {people} {helper}. [Every|Each] {helper.one} eats {eaten} of them.",
    )
    story.say(f"How many {food} does each {helper.one} [still have|have left]?")
    total = story.times(batches, size, f"There are @ {food}.")
    share = story.over(total, people, f"Each {helper.one} gets @ {food}.")
    story.minus(share, eaten, f"Each {helper.one} has @ {food} left.")


@family
def pooled_and_shared(story: Story) -> None:
    (first, second, third), thing = story.people(3), story.pick(SMALL)
    a, b, c = story.number(5, 60), story.number(5, 60), story.number(5, 60)
    story.say(
        f"{first} [has|brings] {a} {thing}, {second} [has|brings] {b} and {third} [has|brings] {c}.",
        f"{first} [finds|collects|buys] {a} {thing}. {second} [gets|has] {b} and {third} [gets|has] {c}.",
    )
    story.say(
        f"They put all the {thing} together and [share|divide] them equally [among the 3 of them|among all 3].",
        "The 3 [friends|children] [put|bring] them together and share them equally.",
    )
    story.say(f"How many {thing} does [each one|each child|everyone] [get|have then]?")
    two = story.plus(a, b, f"{first} and {second} have @ {thing}.")
    total = story.plus(two, c, f"All 3 have @ {thing}.")
    story.over(total, 3, f"Each one gets @ {thing}.")


@family
def fraction_given_away(story: Story) -> None:
    (who, other), thing, (fraction, divisor) = story.people(2), story.pick(SMALL), story.pick(tuple(FRACTIONS.items()))
    total, found = story.number(12, 120), story.number(3, 40)
    story.say(
        f"{who} [has|owns|collects] {total} {thing} and [gives|sends] {fraction} of them to {other}.",
        f"{who} [has|keeps] {total} {thing} in a {story.pick(CONTAINERS).one}. {who.they} [gives|hands] {fraction} of them to {other}.",
    )
    story.say(
        f"[Later|The next day|Then] {who} [finds|buys|gets] {found} [more|new] {thing}.",
        f"{who.their} [aunt|uncle|teacher] then gives {who} {found} [more|new] {thing}.",
    )
    story.say(f"How many {thing} does {who} have [now|in the end|then]?")
    given = story.over(total, divisor, f"{who} gives away @ {thing}.")
    left = story.minus(total, given, f"{who} keeps @ {thing}.")
    story.plus(left, found, f"Now {who} has @ {thing}.")


@family
def dozens_with_broken(story: Story) -> None:
    who, dozens, broken, used = story.person(), story.number(2, 12), story.number(2, 15), story.number(3, 40)
    kind = story.pick(("eggs", "cups", "plates", "glasses", "bottles"))
    when = story.pick((*(f"on {day}" for day in DAYS), "the same day", "the next day"))
    story.say(
        f"{who} [buys|carries|gets] {dozens} dozen {kind} [for a party|for a cafe|for the school|at the market].",
        f"[A farm|A shop|The market] sends {dozens} dozen {kind} to {who}.",
    )
    story.say(
        f"[On the way|On the way home|In the kitchen] {broken} [of them|{kind}] break, and {used} of the others are used {when}.",
        f"{broken} of the {kind} are broken. {who.they} uses {used} of the good ones {when}.",
    )
    story.say(f"How many good {kind} [are left|does {who} have left|does {who} still have]?")
    total = story.times(dozens, 12, f"There are @ {kind}.")
    good = story.minus(total, broken, "Of these @ are good.")
    story.minus(good, used, f"Then @ {kind} are left.")


@family
def vegetables_and_price(story: Story) -> None:
    who, plant, box = story.person(), story.pick(VEGETABLES), story.pick(CONTAINERS)
    rows, size, per_box, price = story.number(3, 12), story.number(3, 12), story.number(3, 12), story.number(2, 12)
    story.say(
        f"{who} [picks|harvests] {size} {plant} from each of {rows} rows [in the garden|on the farm].",
        f"There are {rows} rows in {who}'s garden. [Each|Every] row [gives|has] {size} {plant}.",
    )
    story.say(
        f"{who.they} [packs|puts] all of them into {box} of {per_box} and sells each {box.one} for ${price}.",
        f"All of them are sold in {box} of {per_box}. [One|Each|Every] {box.one} costs {price} dollars.",
    )
    story.say(f"How much [money|] does {who.they} [get|earn|make]?")
    total = story.times(rows, size, f"There are @ {plant}.")
    boxes = story.over(total, per_box, f"They fill @ {box}.")
    story.times(boxes, price, f"{who} gets @ dollars.")
