"""People in buses, seats in rows, teams, collections that grow and shrink, averages."""
# ruff: noqa: E501  (a wording is easier to judge on one line)

from r1lite.tasks.word_problems.story import Story, family
from r1lite.tasks.word_problems.vocabulary import BAKED, DAYS, FRUIT, HELPERS, PLACES, SUPPLIES, TOYS, TREASURES

SMALL = (*TREASURES, *SUPPLIES, *FRUIT)


@family
def empty_seats(story: Story) -> None:
    room = story.pick(("hall", "cinema", "theater", "circus", "church", "classroom", "stadium", "tent"))
    rows, seats, adults, children = story.number(3, 12), story.number(4, 12), story.number(5, 60), story.number(5, 60)
    event = story.pick(("a concert", "a play", "a film", "a show", "a party", "a meeting"))
    story.say(
        f"A {room} has {rows} rows of {seats} seats.",
        f"In a {room} there are {rows} rows with {seats} seats [each|in each row].",
        f"There are {rows} rows in a {room}, and [each|every] row has {seats} seats.",
    )
    story.say(
        f"{adults} adults and {children} children [come|sit down] to [see|watch|enjoy] {event}."
        if event not in ("a party", "a meeting")
        else f"{adults} adults and {children} children [come|sit down] for {event}.",
    )
    story.say("How many seats [are|stay|remain] [empty|free]?", "How many [empty|free] seats are there?")
    total = story.times(rows, seats, f"The {room} has @ seats.")
    people = story.plus(adults, children, "There are @ people.")
    story.minus(total, people, "So @ seats are free.")


@family
def vans_for_trip(story: Story) -> None:
    who, place, ride = story.person(), story.pick(PLACES), story.pick(("van", "bus", "boat", "tram"))
    adults, children, seats, price = story.number(2, 30), story.number(6, 70), story.number(4, 12), story.number(5, 20)
    rides = "buses" if ride == "bus" else f"{ride}s"
    story.say(
        f"{who} plans a trip to the {place} for {children} children and {adults} adults.",
        f"{children} children and {adults} adults [go|want to go] on a trip to the {place} with {who}'s [club|group|team].",
    )
    story.say(
        f"They [rent|take] {rides} with {seats} seats each, and [each|every|one] {ride} costs ${price}.",
        f"[Each|Every|One] {ride} has room for {seats} of them and costs {price} dollars.",
    )
    story.say(
        f"How [much|many dollars] do the {rides} cost [in all|in total|together] if every seat is taken?",
        f"If every seat is taken, how [much|many dollars] do the {rides} cost [in all|in total|together]?",
    )
    people = story.plus(children, adults, "There are @ people.")
    needed = story.over(people, seats, f"They need @ {rides}.")
    story.times(needed, price, "That costs @ dollars.")


@family
def bus_stops(story: Story) -> None:
    ride, start = story.pick(("bus", "train", "boat", "tram")), story.number(15, 90)
    off_a, on_a, off_b = story.number(2, 25), story.number(2, 30), story.number(2, 30)
    story.require(off_a != on_a)
    stops = ("the school", "the park", "the market", "the museum", "the library", "the lake", "the port", "the zoo")
    first, second = story.pick_several(stops, 2)
    story.say(
        f"A {ride} [starts|leaves] with {start} people.",
        f"There are {start} people on a {ride} [at the start|in the morning|].",
    )
    story.say(
        f"At {first} {off_a} people get off and {on_a} get on.",
        f"{off_a} people get off and {on_a} get on at {first}.",
    )
    story.say(
        f"[Then|Later] {off_b} people get off at {second}.",
        f"At {second} {off_b} [more|other] people get off.",
    )
    story.say(f"How many people are [now on|still on|left on] the {ride}?")
    a = story.minus(start, off_a, f"After some leave, @ people are on the {ride}.")
    b = story.plus(a, on_a, "Then there are @ people.")
    story.minus(b, off_b, f"In the end @ people are on the {ride}.")


@family
def collected_for_days(story: Story) -> None:
    who, thing, place = story.person(), story.pick(SMALL), story.pick(PLACES)
    start, daily, days, given = story.number(5, 60), story.number(2, 12), story.number(3, 12), story.number(5, 50)
    story.say(
        f"{who} has {start} {thing} and [finds|gets|buys] {daily} more at the {place} [each|every] day for {days} days.",
        f"{who} starts with {start} {thing}. For {days} days {who.they} [finds|gets|buys] {daily} more "
        f"[each|every] day at the {place}.",
    )
    story.say(
        f"Then {who.they} gives {given} [of them|{thing}] to {story.pick(HELPERS).a}.",
        f"After that {who.they} [loses|sells|gives away] {given} of [them|the {thing}].",
    )
    story.say(f"How many {thing} does {who} have [now|in the end|left|then]?")
    new = story.times(days, daily, f"In {days} days {who} gets @ {thing}.")
    total = story.plus(start, new, f"With the others {who} has @ {thing}.")
    story.minus(total, given, f"In the end {who} has @ {thing}.")


@family
def average_of_three(story: Story) -> None:
    who, days = story.person(), story.pick(tuple(zip(DAYS, DAYS[1:], DAYS[2:], strict=False)))
    a, b, c = story.number(4, 60), story.number(4, 60), story.number(4, 60)
    verb, thing = story.pick(
        (("reads", "pages"), ("sells", "tickets"), ("writes", "lines"), ("learns", "words"), ("sees", "birds"))
    )
    story.require(a != c and b != c)
    story.say(
        f"{who} {verb} {a} {thing} on {days[0]}, {b} on {days[1]} and {c} on {days[2]}.",
        f"On {days[0]} {who} {verb} {a} {thing}, on {days[1]} {who.they} {verb} {b} and on {days[2]} {c}.",
    )
    story.say(
        f"What is the average [number of {thing}|] [per|for one|for each] day over [these|the|all] 3 days?",
        f"How many {thing} a day is that on average [over|in|for] [these|the|all] 3 days?",
    )
    two = story.plus(a, b, f"The first 2 days make @ {thing}.")
    total = story.plus(two, c, f"All 3 days make @ {thing}.")
    story.over(total, 3, f"The average is @ {thing}.")


@family
def teams_from_classes(story: Story) -> None:
    game = story.pick(("soccer", "chess", "tennis", "basketball", "hockey", "volleyball"))
    classes, size, sick, team = story.number(2, 6), story.number(8, 24), story.number(2, 15), story.number(3, 12)
    story.require(classes != team)
    story.say(
        f"{classes} classes with {size} children each [come|go|meet] for a {game} day.",
        f"A school plans a {game} day for {classes} classes with {size} children each.",
        f"On a {game} day there are {classes} classes with {size} children in each.",
    )
    story.say(
        f"{sick} of the children [are sick|only watch|go home|stay at home], and the [others|rest] [form|make] teams of {team}.",
        f"The children form teams of {team}, but {sick} of them [are sick|only watch|go home] and are in no team.",
    )
    story.say("How many teams are there?", "How many teams [play|do they get|can play]?")
    total = story.times(classes, size, "There are @ children.")
    players = story.minus(total, sick, "Of these @ play.")
    story.over(players, team, "They make @ teams.")


@family
def hens_and_eggs(story: Story) -> None:
    who, birds = story.person(), story.pick(("hens", "ducks", "geese", "birds"))
    count, eggs, kept, box = story.number(3, 12), story.number(2, 7), story.number(2, 20), story.number(2, 12)
    story.say(
        f"{who} [has|keeps|owns] {count} {birds}. Each [of them|] lays {eggs} eggs [a|per|every] week.",
        f"{who}'s {count} {birds} lay {eggs} eggs each [in a week|per week|every week].",
        f"On [a|one|the] farm {who} has {count} {birds} that lay {eggs} eggs each [in a|per|every] week.",
    )
    story.say(
        f"{who.they} [keeps|eats|uses|cooks] {kept} of the eggs and [packs|puts] the [rest|others] into boxes of {box}.",
        f"{kept} [of the|] eggs [are eaten|break|are used for a cake], and the [rest|others] go into boxes of {box}.",
    )
    story.say("How many boxes [are filled|are needed|are there] [each|a|every] week?")
    total = story.times(count, eggs, "There are @ eggs.")
    rest = story.minus(total, kept, "There are @ eggs left.")
    story.over(rest, box, "They fill @ boxes.")


@family
def sets_of_two_kinds(story: Story) -> None:
    who, (first, second), helper = story.person(), story.pick_several((*SMALL, *BAKED, *TOYS), 2), story.pick(HELPERS)
    a, b, friends, has = story.number(2, 7), story.number(2, 6), story.number(3, 12), story.number(5, 60)
    story.say(
        f"{who} [makes|packs|prepares] gift bags for {friends} {helper}.",
        f"For a party {who} [makes|packs|prepares] gift bags for {friends} {helper}.",
        f"{friends} {helper} of {who} [each get|will each get] a gift bag.",
    )
    story.say(
        f"[Each|Every] bag [holds|contains|gets] {a} {first} and {b} {second}.",
        f"{who.they} puts {a} {first} and {b} {second} into [each|every] bag.",
    )
    story.say(
        f"{who.they} has [found|bought] {has} of these things already. How many things are missing?",
        f"If {who.they} already has {has} of these things, how many more does {who.they} need?",
    )
    bag = story.plus(a, b, "A bag holds @ things.")
    total = story.times(bag, friends, "All bags hold @ things.")
    story.minus(total, has, "So @ things are missing.")


@family
def votes_for_three(story: Story) -> None:
    (first, second, third), group = story.people(3), story.pick(("class", "team", "club", "school", "choir"))
    total, votes, more = story.number(40, 190), story.number(8, 60), story.number(2, 25)
    post = story.pick(("speaker", "captain", "leader", "president"))
    story.say(
        f"{total} children [of|from] a {group} [vote for|choose] a {post}.",
        f"A {group} of {total} children [votes for|chooses] a {post}.",
    )
    story.say(
        f"[All of them vote|Everyone votes] for {first}, {second} or {third}. {first} gets {votes} votes and {second} "
        f"gets {more} more [votes|] than {first}.",
        f"{first} gets {votes} votes, {second} gets {more} [votes|] more than {first}, and [all|] the [others|rest] "
        f"vote for {third}.",
    )
    story.say(f"How many votes does {third} [get|have|receive]?", f"How many children [vote for|choose] {third}?")
    b = story.plus(votes, more, f"{second} gets @ votes.")
    both = story.plus(votes, b, "Together they get @ votes.")
    story.minus(total, both, f"{third} gets @ votes.")
