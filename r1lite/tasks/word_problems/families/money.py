"""Buying, selling, earning and saving. All amounts are whole dollars."""
# ruff: noqa: E501  (a wording is easier to judge on one line)

from r1lite.tasks.word_problems.story import Story, family
from r1lite.tasks.word_problems.vocabulary import (
    BAKED,
    CLOTHES,
    FRUIT,
    GOALS,
    HELPERS,
    PERCENT_DIVISORS,
    SHOPS,
    SNACKS,
    SUPPLIES,
    TOYS,
)

WARES = (*SUPPLIES, *CLOTHES, *TOYS)


@family
def shopping_change(story: Story) -> None:
    who, ware, shop = story.person(), story.pick(WARES), story.pick(SHOPS)
    count, price, paid = story.number(2, 12), story.number(2, 12), story.pick((20, 50, 100, 200))
    story.say(
        f"{who} [buys|wants to buy|is buying] {count} {ware} at the {shop}.",
        f"{who} goes to the {shop} [and takes|and picks|to get] {count} {ware}.",
    )
    story.say(
        f"[Each|Every] {ware.one} costs ${price}.",
        f"The {ware} cost ${price} each.",
        f"The price of one {ware.one} is {price} dollars.",
    )
    story.say(
        f"{who.they} [pays with|gives the seller] ${paid}. How much [change|money] does {who.they} get back?",
        f"If {who.they} pays with {paid} dollars, how [much|many dollars of] change [does|should] {who.they} get?",
    )
    cost = story.times(count, price, f"The {ware} cost @ dollars.")
    story.minus(paid, cost, f"{who} gets back @ dollars.")


@family
def two_wares_total(story: Story) -> None:
    who, (first, second) = story.person(), story.pick_several(WARES, 2)
    a, price_a, b, price_b = story.number(2, 9), story.number(2, 12), story.number(2, 9), story.number(2, 12)
    story.require(price_a != price_b)
    story.say(
        f"At the {story.pick(SHOPS)}, {first} cost ${price_a} each and {second} cost ${price_b} each.",
        f"A {story.pick(SHOPS)} sells {first} for ${price_a} each and {second} for ${price_b} each.",
    )
    story.say(
        f"{who} [buys|takes|gets] {a} {first} and {b} {second}.",
        f"{who} needs {a} {first} and {b} {second} for [school|a party|a trip].",
    )
    story.say(
        f"How much does {who.they} [pay|spend] in [all|total]?",
        "How many dollars is that [in all|together|in total]?",
    )
    cost_a = story.times(a, price_a, f"The {first} cost @ dollars.")
    cost_b = story.times(b, price_b, f"The {second} cost @ dollars.")
    story.plus(cost_a, cost_b, f"{who} pays @ dollars.")


@family
def percent_off_total(story: Story) -> None:
    who, ware = story.person(), story.pick(WARES)
    count, price, percent = story.number(2, 12), story.number(2, 20), story.pick(tuple(PERCENT_DIVISORS))
    story.say(
        f"{who} [buys|chooses|orders] {count} {ware} that cost ${price} each.",
        f"{who} [goes|walks] to a {story.pick(SHOPS)} for {count} {ware} at {price} dollars each.",
    )
    story.say(
        f"[Today|This week] there is a sale and {who.they} gets {percent} percent off the [total|whole] price.",
        f"{who.they} has a coupon for {percent} percent off the [total|whole] price.",
    )
    story.say(f"How [much|many dollars] does {who.they} [pay|have to pay|spend]?")
    full = story.times(count, price, "The full price is @ dollars.")
    off = story.over(full, PERCENT_DIVISORS[percent], f"{who} saves @ dollars.")
    story.minus(full, off, f"{who} pays @ dollars.")


@family
def saving_for_goal(story: Story) -> None:
    who, goal = story.person(), story.pick(GOALS)
    cost, has, weekly = story.number(20, 150), story.number(5, 60), story.number(2, 12)
    story.say(
        f"{who} [wants|hopes|plans] to buy a {goal} that costs ${cost}.",
        f"{who} is saving for a {goal}. [It costs|The price is] {cost} dollars.",
    )
    story.say(
        f"{who.they} [already has|has saved] ${has} and [saves|puts aside] ${weekly} [each|every] week.",
        f"So far {who.they} has {has} dollars, and {who.they} [saves|earns] {weekly} dollars more [each|every] week.",
    )
    story.say(
        f"[In|After] how many weeks can {who.they} buy the {goal}?",
        f"How many [more|] weeks does {who.they} [need to|have to] save?",
    )
    missing = story.minus(cost, has, f"{who} still needs @ dollars.")
    story.over(missing, weekly, "That takes @ weeks.")


@family
def allowance_after_spending(story: Story) -> None:
    who, snack = story.person(), story.pick((*SNACKS, *BAKED))
    income, spent, weeks, start = story.number(6, 20), story.number(2, 9), story.number(3, 12), story.number(5, 60)
    story.say(
        f"{who} gets ${income} [each|every] week from {who.their} [parents|uncle|aunt] and spends ${spent} of it on {snack}.",
        f"[Each|Every] week {who} earns {income} dollars and spends {spent} dollars on {snack}.",
    )
    story.say(
        f"{who.they} [keeps|saves|puts aside] the rest, and {who.they} already has ${start}.",
        f"The rest goes into a [jar|box] that already holds {start} dollars.",
    )
    story.say(
        f"How much [money|] will {who.they} have after {weeks} weeks?",
        f"How many dollars [are there|does {who.they} have] {weeks} weeks later?",
    )
    rest = story.minus(income, spent, f"{who} saves @ dollars a week.")
    saved = story.times(rest, weeks, f"In {weeks} weeks that is @ dollars.")
    story.plus(saved, start, f"{who} has @ dollars.")


@family
def wages_with_bonus(story: Story) -> None:
    who, days = story.person(), story.number(2, 6)
    hours, rate, bonus = story.number(2, 8), story.number(5, 12), story.number(5, 50, by=5)
    job = story.pick(("in a garden", "in a bakery", "on a farm", "in a library", "in a shop", "at a school"))
    story.say(
        f"{who} [works|helps|has a job] {job} for {hours} hours a day and [earns|gets|is paid] ${rate} an hour.",
        f"{who} earns {rate} dollars [an|for every] hour {job} and works {hours} hours [each|every|a] day.",
    )
    story.say(
        f"After {days} days {who.they} also gets a [bonus|gift] of ${bonus}.",
        f"{who.they} works {days} days and [then gets|is then given] {bonus} dollars [more|extra].",
    )
    story.say(f"How much [money|] does {who.they} [get|earn|make] in [all|total]?")
    daily = story.times(hours, rate, f"{who} earns @ dollars a day.")
    wages = story.times(daily, days, f"In {days} days that is @ dollars.")
    story.plus(wages, bonus, f"In all {who} gets @ dollars.")


@family
def profit_from_sale(story: Story) -> None:
    who, good = story.person(), story.pick((*BAKED, *FRUIT))
    trays, size, price, cost = story.number(2, 6), story.number(3, 12), story.number(2, 5), story.number(5, 60)
    story.say(
        f"{who} [brings|takes|carries] {trays} trays with {size} {good} each to the {story.pick(SHOPS)}.",
        f"{who} fills {trays} trays with {size} {good} each [for a fair|for a sale|to sell them].",
    )
    story.say(
        f"{who.they} [paid|spent] ${cost} [to make|for] [all of them|everything] and sells every {good.one} for ${price}.",
        f"[Each|Every] {good.one} is sold for {price} dollars, and {who.their} [costs|expenses] are {cost} dollars [in all|].",
    )
    story.say(
        f"How much profit does {who.they} make?",
        f"How [much|many dollars] does {who.they} earn after [paying|] the costs?",
    )
    goods = story.times(trays, size, f"{who} has @ {good}.")
    income = story.times(goods, price, "They sell for @ dollars.")
    story.minus(income, cost, "The profit is @ dollars.")


@family
def split_bill(story: Story) -> None:
    who, helper, snack = story.person(), story.pick(HELPERS), story.pick(SNACKS)
    others, bill, tip = story.number(2, 9), story.number(20, 120), story.number(2, 20)
    story.say(
        f"{who} and {others} {helper} [eat|order|share] {snack} in a [cafe|restaurant].",
        f"{who} [goes|walks] to a [cafe|restaurant] with {others} {helper} and they order {snack}.",
    )
    story.say(
        f"The [bill|meal] is ${bill} and they [add|leave] a tip of ${tip}.",
        f"They [pay|owe] {bill} dollars and [give|leave] {tip} dollars as a tip.",
    )
    story.say(
        "[All of them|They all] pay the same [amount|]. How much does each [person|one] pay?",
        f"If {who} and the {helper} split the [sum|total] equally, how much does each [person|one] pay?",
    )
    total = story.plus(bill, tip, "They pay @ dollars.")
    people = story.plus(others, 1, "There are @ people.")
    story.over(total, people, "Each one pays @ dollars.")


@family
def child_tickets_half_price(story: Story) -> None:
    who, place = story.person(), story.pick(("zoo", "museum", "circus", "cinema", "fair", "pool", "show"))
    adults, children, price = story.number(2, 6), story.number(2, 12), story.number(6, 24, by=2)
    story.say(
        f"A ticket [for|to] the {place} costs ${price} for an adult and half as much for a child.",
        f"At the {place} adults pay {price} dollars [each|] and children pay half of that [each|].",
    )
    story.say(
        f"{who} [buys|pays for|needs] tickets for {adults} adults and {children} children.",
        f"{adults} adults and {children} children [go there|want to go there] with tickets that {who} buys.",
    )
    story.say(
        f"How [much|many dollars] does {who.they} [pay|spend] in [all|total]?",
        "How [much|many dollars] do [all|all the] tickets cost [together|in all|in total]?",
    )
    half = story.over(price, 2, "A ticket for a child costs @ dollars.")
    big = story.times(adults, price, "The adults cost @ dollars.")
    small = story.times(children, half, "The children cost @ dollars.")
    story.plus(big, small, "All tickets cost @ dollars.")


@family
def rental_with_fee(story: Story) -> None:
    who, thing = story.person(), story.pick(("boat", "bike", "tent", "car", "truck", "horse", "skateboard", "camera"))
    fee, rate, hours, friends = story.number(3, 30), story.number(2, 12), story.number(2, 10), story.number(2, 6)
    unit = story.pick(("hour", "day"))
    story.say(
        f"To rent a {thing} costs a fee of ${fee} and ${rate} [per|for every|for each] {unit}.",
        f"A shop rents out a {thing} for a fee of {fee} dollars and {rate} dollars [per|for every|for each] {unit}.",
    )
    story.say(
        f"{friends} [friends|cousins|neighbors] of {who} [take|rent|use] it for {hours} {unit}s and share the [cost|price] equally.",
        f"{who} has {friends} [friends|cousins|neighbors] who rent it for {hours} {unit}s and split the "
        "[cost|price] equally.",
    )
    story.say("How [much|many dollars] does each of them pay?", "How [much|many dollars] is that for each of them?")
    time = story.times(hours, rate, f"The {hours} {unit}s cost @ dollars.")
    total = story.plus(time, fee, "With the fee it is @ dollars.")
    story.over(total, friends, "Each one pays @ dollars.")


@family
def cheaper_shop(story: Story) -> None:
    who, ware = story.person(), story.pick(WARES)
    first, second, count, bus = story.number(6, 30), story.number(3, 24), story.number(2, 12), story.number(2, 9)
    story.say(
        f"{ware} cost ${first} each [in|at] the [old|small|near] shop and ${second} each [in|at] the [new|big|far] shop.",
        f"One {ware.one} costs {first} dollars [in|at] the [old|small|near] shop but only {second} dollars [in|at] the "
        "[new|big|far] [one|shop].",
    )
    story.say(
        f"{who} [needs|wants|buys] {count} {ware}, but the bus to the cheaper shop costs ${bus}.",
        f"To buy {count} {ware} in the cheaper shop, {who} [pays|must pay] {bus} dollars for the bus.",
    )
    story.say(
        f"How [much|many dollars] does {who.they} save by [buying them|going] there?",
        f"How [much|many dollars] does {who} save in the end [with the cheaper shop|there]?",
    )
    less = story.minus(first, second, f"Each {ware.one} is @ dollars cheaper.")
    saved = story.times(count, less, f"For {count} {ware} that is @ dollars.")
    story.minus(saved, bus, f"After the bus {who} saves @ dollars.")


@family
def money_left_after_two(story: Story) -> None:
    who, (first, second) = story.person(), story.pick_several(WARES, 2)
    start, a, b, gift = story.number(40, 180), story.number(3, 40), story.number(3, 40), story.number(5, 50)
    kin = story.pick(("father", "mother", "aunt", "uncle", "brother", "sister"))
    story.say(
        f"{who} has ${start} and [buys|pays for] {first.a} for ${a} and {second.a} for ${b}.",
        f"With {start} dollars {who} [goes|walks] to the {story.pick(SHOPS)}. {who.they} pays {a} dollars for {first.a} "
        f"and {b} dollars for {second.a}.",
    )
    story.say(
        f"[Then|Later|On the way home] {who.their} {kin} gives {who.them} ${gift}.",
        f"{who.their} {kin} then gives {who.them} {gift} dollars.",
    )
    story.say(f"How [much|many dollars] does {who} have [now|in the end|then]?")
    spent = story.plus(a, b, f"{who} spends @ dollars.")
    left = story.minus(start, spent, "That leaves @ dollars.")
    story.plus(left, gift, f"Now {who} has @ dollars.")
