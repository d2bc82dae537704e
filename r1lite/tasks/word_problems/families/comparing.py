"""More than, fewer than, times as many, half as many; ages."""
# ruff: noqa: E501  (a wording is easier to judge on one line)

from r1lite.tasks.word_problems.story import Story, family
from r1lite.tasks.word_problems.vocabulary import COLORS, CONTAINERS, FRUIT, HELPERS, PLACES, SUPPLIES, TREASURES

THINGS = (*TREASURES, *SUPPLIES)
SMALL = (*THINGS, *FRUIT)
TIMES = {2: "twice", 3: "3 times", 4: "4 times", 5: "5 times"}
VERBS = ("collects", "gets", "finds", "buys")


@family
def more_than_total(story: Story) -> None:
    (first, second), thing, verb, place = story.people(2), story.pick(SMALL), story.pick(VERBS), story.pick(PLACES)
    count, extra = story.number(5, 80), story.number(3, 60)
    story.say(
        f"{first} and {second} [go|walk|travel] to the {place}. {first} {verb} {count} {thing} there.",
        f"At the {place} {first} {verb} {count} {thing}.",
    )
    story.say(
        f"{second} {verb} {extra} more {thing} than {first}.",
        f"{second} {verb} {extra} more [of them|] than {first}.",
    )
    story.say(
        f"How many {thing} do they have [together|in all|in total]?",
        f"How many {thing} do the two [children|friends] have [together|in all|in total]?",
    )
    other = story.plus(count, extra, f"{second} has @ {thing}.")
    story.plus(count, other, f"Together they have @ {thing}.")


@family
def times_as_many_left(story: Story) -> None:
    (first, second), thing = story.people(2), story.pick(SMALL)
    count, factor, given = story.number(3, 40), story.pick(tuple(TIMES)), story.number(3, 40)
    story.say(
        f"{first} [has|owns|collects] {count} {thing}, and {second} has {TIMES[factor]} as many.",
        f"{first} has {count} {thing}. {second} [has|owns|collects] {TIMES[factor]} as many {thing} as {first}.",
    )
    story.say(
        f"[Then|Later|Today] {second} [gives|sells|sends] {given} {thing} to a [friend|cousin|neighbor|classmate].",
        f"{second} [loses|gives away|sells] {given} of {second.their} {thing} [at school|on the way home|in the park|].",
    )
    story.say(f"How many {thing} does {second} [still have|have left|have now]?")
    many = story.times(count, factor, f"{second} has @ {thing}.")
    story.minus(many, given, f"Then {second} has @ {thing}.")


@family
def three_people_fewer(story: Story) -> None:
    (first, second, third), thing = story.people(3), story.pick(SMALL)
    count, fewer, more = story.number(15, 70), story.number(2, 30), story.number(2, 30)
    place = story.pick(PLACES)
    story.say(
        f"{first} [finds|collects|gets] {count} {thing} at the {place}.",
        f"At the {place} {first} [finds|collects|gets] {count} {thing}.",
    )
    story.say(
        f"{second} gets {fewer} fewer than {first}, and {third} gets {more} more than {second}.",
        f"{second} has {fewer} fewer {thing} than {first}. {third} has {more} more than {second}.",
    )
    story.say(f"How many {thing} do all [3|three] [children|friends|of them] have [together|in all|in total]?")
    b = story.minus(count, fewer, f"{second} has @ {thing}.")
    c = story.plus(b, more, f"{third} has @ {thing}.")
    two = story.plus(count, b, f"{first} and {second} have @ {thing}.")
    story.plus(two, c, f"All 3 have @ {thing}.")


@family
def half_as_many_difference(story: Story) -> None:
    (first, second), thing = story.people(2), story.pick(SMALL)
    count, found = story.number(12, 140, by=2), story.number(3, 40)
    story.say(
        f"{first} [has|owns|keeps] {count} {thing}. {second} has half as many.",
        f"{first} [has|owns|keeps] {count} {thing} and {second} has half as many as {first}.",
    )
    story.say(
        f"[Then|Later|Today] {second} [loses|gives away|sells] {found} [{thing}|of them].",
        f"{second} [loses|gives away|sells] {found} [{thing}|of them] [on the way home|at school|in the park].",
    )
    story.say(
        f"How many more {thing} than {second} does {first} have [now|then|in the end]?",
        f"How many fewer {thing} than {first} does {second} have [now|then|in the end]?",
    )
    half = story.over(count, 2, f"{second} has @ {thing}.")
    rest = story.minus(half, found, f"Then {second} has @ {thing}.")
    story.minus(count, rest, f"The difference is @ {thing}.")


@family
def age_in_years(story: Story) -> None:
    (child, adult), factor, years = story.people(2), story.pick((3, 4, 5, 6)), story.number(2, 15)
    age = story.number(5, 12)
    relation, place = story.pick(("teacher", "neighbor", "coach", "doctor", "friend")), story.pick(PLACES)
    story.say(
        f"At the {place} {child} [meets|sees|visits] {child.their} {relation} {adult}.",
        f"{child} [goes|walks|rides] to the {place} with {child.their} {relation} {adult}.",
    )
    story.say(
        f"{child} is {age} years old, and {adult} is {factor} times as old.",
        f"{child} is {age} [years old|], and {adult} is {factor} times as old as {child}.",
    )
    story.say(
        f"How old will {adult} be [in {years} years|{years} years from now|when {years} years have passed]?",
        f"[In|After] {years} years, how old will {adult} be?",
        f"What will be the age of {adult} [in {years} years|{years} years from now]?",
    )
    now = story.times(age, factor, f"{adult} is @ years old now.")
    story.plus(now, years, f"Then {adult} will be @ years old.")


@family
def ages_added(story: Story) -> None:
    first, second, third = story.people(3)
    age, older, younger = story.number(5, 20), story.number(2, 15), story.number(2, 10)
    story.require(older != younger)
    helper = story.pick(HELPERS)
    story.say(
        f"{first}, {second} and {third} are {helper} [from school|from a club|from a choir|]. {first} is {age} years old.",
        f"{first} is {age} [years old|] and has 2 {helper}, {second} and {third}.",
        f"{first} is {age} [years old|] and [plays|sings|dances|works|swims|runs|cooks] [at school|in a club|in the park|] with {second} and {third}.",
    )
    story.say(
        f"{second} is {older} years older than {first}, and {third} is {younger} years younger than {second}.",
        f"{second} is {older} years older than {first}. {third} is {younger} years younger than {second}.",
    )
    story.say(
        "What is the sum of [their ages|the ages of all 3|the 3 ages]?",
        "How many years do you get if you add [their ages|the ages of all 3|the 3 ages]?",
        "What do you get if you add [their ages|the ages of all 3|the 3 ages]?",
    )
    b = story.plus(age, older, f"{second} is @ years old.")
    c = story.minus(b, younger, f"{third} is @ years old.")
    two = story.plus(age, b, f"The ages of {first} and {second} add up to @ years.")
    story.plus(two, c, "All 3 ages add up to @ years.")


@family
def colors_in_a_bag(story: Story) -> None:
    (first, second, third), thing, box = story.pick_several(COLORS, 3), story.pick(THINGS), story.pick(CONTAINERS)
    total, count, factor = story.number(30, 150), story.number(4, 30), story.pick((2, 3))
    story.say(
        f"A {box.one} [holds|contains] {total} {thing} that are {first}, {second} or {third}.",
        f"There are {total} {thing} in a {box.one}. They are {first}, {second} or {third}.",
    )
    story.say(
        f"[There are|It has] {count} {first} ones and {TIMES[factor]} as many {second} ones.",
        f"{count} of them are {first}, and {TIMES[factor]} as many are {second}.",
    )
    story.say(f"How many [of the|] {thing} are {third}?", f"How many {third} {thing} are [there|in the {box.one}]?")
    many = story.times(count, factor, f"There are @ {second} {thing}.")
    both = story.plus(count, many, f"There are @ {first} or {second} {thing}.")
    story.minus(total, both, f"So @ {thing} are {third}.")
