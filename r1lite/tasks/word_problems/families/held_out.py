"""Families only for `test_hard`: their structures occur in no other family."""
# ruff: noqa: E501  (a wording is easier to judge on one line)

from r1lite.tasks.word_problems.story import Story, held_out_family
from r1lite.tasks.word_problems.vocabulary import COLORS, CONTAINERS, GOALS, HELPERS, PLACES, SUPPLIES, TREASURES

SMALL = (*TREASURES, *SUPPLIES)


@held_out_family
def sum_and_difference(story: Story) -> None:
    (less, more), thing = story.people(2), story.pick(SMALL)
    total, difference, place = story.number(12, 120), story.number(2, 30), story.pick(PLACES)
    story.say(
        f"{less} and {more} have {total} {thing} [together|in all|in total].",
        f"At the {place} {less} and {more} [buy|collect|find] {total} {thing} [together|in all|in total].",
    )
    story.say(
        f"{more} has {difference} [more|more {thing}] than {less}.",
        f"{less} has {difference} fewer [{thing}|] than {more}.",
    )
    story.say(f"How many of the {thing} [belong to|are from] {less}?", f"How many {thing} does {less} have?")
    twice = story.minus(total, difference, f"Without the extra {thing} both would have @ {thing}.")
    story.over(twice, 2, f"So {less} has @ {thing}.")


@held_out_family
def working_backwards(story: Story) -> None:
    (who, other), thing = story.people(2), story.pick(SMALL)
    end, given = story.number(12, 140), story.number(3, 60)
    story.say(
        f"{who} had some {thing} in a {story.pick(CONTAINERS).one} and gave {given} [of them|] to {other}.",
        f"From [a|an old] collection of {thing}, {who} gave {given} to {other}.",
    )
    story.say(
        f"[Later|Then] {who.they} [doubled|exactly doubled] what was left by [buying|finding] more, and now "
        f"{who.they} has {end}.",
        f"[Later|Then] {who.they} bought as many {thing} as {who.they} had left, and now {who.they} has {end}.",
    )
    story.say(f"How many {thing} did {who} have [at first|at the start|in the beginning]?")
    left = story.over(end, 2, f"Before buying, {who} had @ {thing}.")
    story.plus(left, given, f"At first {who} had @ {thing}.")


@held_out_family
def legs_in_the_yard(story: Story) -> None:
    who, two = story.person(), story.pick(("hens", "ducks", "geese", "pigeons"))
    four = story.pick(("cows", "goats", "dogs", "horses", "rabbits", "cats"))
    animals, birds = story.number(8, 36), story.number(2, 20)
    story.say(
        f"[On the farm|In the yard|Behind the house] {who} [counts|sees] {animals} animals, [all|] {two} and {four}.",
        f"{who} [has|keeps|owns] {animals} animals [on the farm|in the yard|behind the house], [only|] {two} and {four}.",
    )
    story.say(f"{birds} of them are {two}.", f"There are {birds} {two} [among them|].")
    story.say(
        "How many legs do [all|all the] animals have [together|in all|in total]?",
        "How many legs is that [together|in all|in total]?",
    )
    rest = story.minus(animals, birds, f"There are @ {four}.")
    short = story.times(birds, 2, f"The {two} have @ legs.")
    long = story.times(rest, 4, f"The {four} have @ legs.")
    story.plus(short, long, "In all there are @ legs.")


@held_out_family
def meeting_on_the_way(story: Story) -> None:
    (first, second), place = story.people(2), story.pick_several(PLACES, 2)
    way, a, b = story.number(20, 160), story.number(3, 12), story.number(3, 12)
    unit, time = story.pick((("miles", "hour"), ("feet", "second"), ("yards", "second")))
    story.require(a + b <= 12)
    story.say(
        f"The {place[0]} and the {place[1]} are {way} {unit} apart.",
        f"From the {place[0]} to the {place[1]} it is {way} {unit}.",
    )
    story.say(
        f"{first} starts at one end and {second} at the other, and they [move|go] toward each other at {a} and {b} "
        f"{unit} per {time}.",
        f"At the same time {first} leaves one end and {second} the other. They [move|go] toward each other at {a} and "
        f"{b} {unit} per {time}.",
    )
    story.say(f"After how many {time}s do they meet?", f"How many {time}s does it take [them|] until they meet?")
    both = story.plus(a, b, f"They come @ {unit} closer every {time}.")
    story.over(way, both, f"They meet after @ {time}s.")


@held_out_family
def filling_with_leak(story: Story) -> None:
    who, tank = story.person(), story.pick(("tank", "pool", "pond", "barrel", "tub"))
    size, inside, fill, leak = story.number(40, 190), story.number(5, 60), story.number(5, 24), story.number(2, 12)
    story.say(
        f"A {tank} that holds {size} gallons already [has|contains] {inside} gallons of water.",
        f"There are {inside} gallons of water in a {tank} that [holds|can hold] {size} gallons.",
    )
    story.say(
        f"{who} [pours|pumps] in {fill} gallons [a|every|each] minute, but {leak} gallons [a|every|each] minute "
        "[leak|run|flow] out.",
        f"[Each|Every] minute {who} [pours|pumps] in {fill} gallons, but {leak} gallons [leak|run|flow] out.",
    )
    story.say(f"After how many minutes is the {tank} full?", f"How many minutes does it take to fill the {tank}?")
    room = story.minus(size, inside, "There is room for @ gallons.")
    gain = story.minus(fill, leak, "The water grows by @ gallons a minute.")
    story.over(room, gain, "That takes @ minutes.")


@held_out_family
def posts_along_a_path(story: Story) -> None:
    who, thing = story.person(), story.pick(("tree", "post", "lamp", "flag", "bench"))
    length, gap, price = story.number(12, 120), story.number(2, 12), story.number(2, 12)
    things = "benches" if thing == "bench" else f"{thing}s"
    story.say(
        f"{who} [sets|puts] up {things} along a [path|road|street] that is {length} yards long.",
        f"Along a [path|road|street] of {length} yards, {who} [sets|puts] up {things}.",
    )
    story.say(
        f"There is [a|one] {thing} every {gap} yards, with one at the start and one at the end.",
        f"One {thing} stands at the start, one at the end, and there are {gap} yards between neighbors.",
    )
    story.say(
        f"[Each|Every] {thing} costs ${price}. How [much|many dollars] do all the {things} cost?",
        f"How [much|many dollars] do all the {things} cost at ${price} each?",
    )
    gaps = story.over(length, gap, "There are @ gaps.")
    count = story.plus(gaps, 1, f"There are @ {things}.")
    story.times(count, price, "They cost @ dollars.")


@held_out_family
def shares_in_ratio(story: Story) -> None:
    (first, second), thing, box = story.pick_several(COLORS, 2), story.pick(SMALL), story.pick(CONTAINERS)
    a, b, total, who = story.number(2, 7), story.number(2, 7), story.number(15, 130), story.person()
    story.say(
        f"{who} has {total} {thing} in a {box.one}, [all|] {first} or {second}.",
        f"{who}'s {box.one} [holds|contains] {total} {thing} that are {first} or {second}.",
    )
    story.say(
        f"For every {a} {first} [ones|{thing}] there are {b} {second} ones.",
        f"There are {b} {second} ones for every {a} {first} ones.",
    )
    story.say(f"How many {second} {thing} are [there|in the {box.one}]?", f"How many of the {thing} are {second}?")
    group = story.plus(a, b, f"A group has @ {thing}.")
    groups = story.over(total, group, "There are @ groups.")
    story.times(groups, b, f"So @ {thing} are {second}.")


@held_out_family
def catching_up(story: Story) -> None:
    (ahead, behind), goal, helper = story.people(2), story.pick(GOALS), story.pick(HELPERS)
    lead, start, slow, fast = story.number(20, 150), story.number(2, 60), story.number(2, 9), story.number(4, 15)
    story.say(
        f"{ahead} has ${lead} and {ahead.their} {helper.one} {behind} has ${start}. Both save for a {goal}.",
        f"{ahead} and {behind} save for a {goal}. {ahead} has {lead} dollars and {behind} has {start} dollars.",
    )
    story.say(
        f"[Each|Every] week {ahead} saves {slow} [more|] dollars and {behind} saves {fast}.",
        f"{behind} saves ${fast} [a|each|every] week and {ahead} saves ${slow}.",
    )
    story.say(
        "After how many weeks do they have the same [amount|sum|amount of money]?",
        "How many weeks does it take until both have the same [amount|sum|amount of money]?",
    )
    gap = story.minus(lead, start, f"{behind} is behind by @ dollars.")
    gain = story.minus(fast, slow, f"{behind} catches up @ dollars a week.")
    story.over(gap, gain, "That takes @ weeks.")
