"""Speed, rates, time spent, minutes and hours."""
# ruff: noqa: E501  (a wording is easier to judge on one line)

from r1lite.tasks.word_problems.story import Story, family
from r1lite.tasks.word_problems.vocabulary import BAKED, DAYS, PLACES, SUPPLIES, TOYS

RIDES = ("train", "bus", "car", "truck", "boat")
TASKS = ("reading", "drawing", "running", "swimming", "cooking", "singing", "dancing", "painting")


@family
def distance_two_speeds(story: Story) -> None:
    ride, goal = (
        story.pick(RIDES),
        story.pick(("a lake", "the sea", "the hills", "a big city", "an old town", "a port")),
    )
    speed_a, speed_b = story.number(10, 60, by=5), story.number(10, 60, by=5)
    hours_a, hours_b = story.number(2, 5), story.number(2, 5)
    story.say(
        f"A {ride} [goes|travels] to {goal}. It [moves|travels] at {speed_a} miles per hour for {hours_a} hours.",
        f"On the way to {goal}, a {ride} [goes|moves|travels] {hours_a} hours at {speed_a} miles [per|an] hour.",
    )
    story.say(
        f"[Then|After that] it [goes|travels|moves] {hours_b} [more|] hours at {speed_b} miles [per|an] hour.",
        f"For [the next|another] {hours_b} hours it [goes|travels|moves] at {speed_b} miles [per|an] hour.",
    )
    story.say(
        "How many miles does it [go|travel] in [all|total]?", f"How [far|many miles] does the {ride} go in [all|total]?"
    )
    first = story.times(hours_a, speed_a, f"First the {ride} goes @ miles.")
    second = story.times(hours_b, speed_b, "Then it goes @ miles.")
    story.plus(first, second, "In all it goes @ miles.")


@family
def trip_left(story: Story) -> None:
    who, way, place = story.person(), story.number(40, 190), story.pick(PLACES)
    speed, hours, last = story.number(6, 40), story.number(2, 6), story.number(2, 6)
    story.say(
        f"{who} [rides|drives|travels] to a [{place}|town|lake] that is {way} miles away.",
        f"The way [of {who}|that {who} drives|that {who} rides] to the [{place}|town|lake] is {way} miles long.",
    )
    story.say(
        f"{who.they} [goes|travels|covers] {speed} miles [an|each|every] hour for {hours} hours.",
        f"For {hours} hours {who.they} [goes|travels|covers] {speed} miles [an|each|every] hour.",
    )
    story.say(
        f"The rest takes {last} hours. How many miles [an|per] hour does {who} go then?",
        f"How many miles [an|per] hour must {who.they} go to [cover|finish] the rest in {last} hours?",
    )
    done = story.times(speed, hours, f"{who} covers @ miles.")
    rest = story.minus(way, done, "There are @ miles left.")
    story.over(rest, last, f"{who} goes @ miles an hour.")


@family
def reading_rest_per_day(story: Story) -> None:
    who, pages = story.person(), story.number(60, 200)
    daily, days, rest = story.number(6, 30), story.number(2, 7), story.number(2, 9)
    kind = story.pick(("book", "novel", "comic", "magazine", "story"))
    where = story.pick(("from school", "from the library", "about animals", "about the sea", "about trains", ""))
    story.say(
        f"{who} [reads|starts] a {kind} {where} with {pages} pages.",
        f"A {kind} {where} has {pages} pages, and {who} [starts|wants] to read it.",
    )
    story.say(
        f"{who.they} reads {daily} pages [a|each|every] day for {days} days.",
        f"For {days} days {who.they} reads {daily} pages [a|each|every] day.",
    )
    story.say(
        f"{who.they} [finishes|reads] the rest in {rest} days. How many pages [a day|each day|per day] is that?",
        f"How many pages [a day|each day|per day] must {who.they} read to [finish|end] it in {rest} [more|further] days?",
    )
    read = story.times(daily, days, f"{who} reads @ pages.")
    left = story.minus(pages, read, "There are @ pages left.")
    story.over(left, rest, "That is @ pages a day.")


@family
def growing_practice(story: Story) -> None:
    who, task, days = story.person(), story.pick(TASKS), story.pick(tuple(zip(DAYS, DAYS[1:], DAYS[2:], strict=False)))
    start, more, extra = story.number(10, 60, by=5), story.number(5, 30, by=5), story.number(2, 20)
    story.say(
        f"{who} spends {start} minutes {task} on {days[0]}.",
        f"On {days[0]} {who} spends {start} minutes {task} [at home|at school|with a friend|alone|].",
    )
    story.say(
        f"On {days[1]} it is {more} minutes more, and on {days[2]} it is {extra} minutes more than on {days[1]}.",
        f"On {days[1]} {who.they} needs {more} minutes more than on {days[0]}, and on {days[2]} {extra} more than on {days[1]}.",
    )
    story.say(
        "How many minutes is that [in all|in total|on all 3 days]?",
        f"How many minutes does {who.they} spend {task} [in all|in total|on these 3 days]?",
    )
    b = story.plus(start, more, f"On {days[1]} it is @ minutes.")
    c = story.plus(b, extra, f"On {days[2]} it is @ minutes.")
    two = story.plus(start, b, "The first 2 days take @ minutes.")
    story.plus(two, c, "All 3 days take @ minutes.")


@family
def school_days_and_weekend(story: Story) -> None:
    who, daily, weekend = story.person(), story.number(2, 25), story.number(2, 40)
    act, unit = story.pick(
        (("reads", "pages"), ("runs", "miles"), ("draws", "pictures"), ("learns", "words"), ("writes", "lines"))
    )
    story.say(
        f"From Monday to Friday {who} {act} {daily} {unit} [each|every|a] day.",
        f"{who} {act} {daily} {unit} [each|every] day from Monday to Friday.",
        f"On each of the 5 school days {who} {act} {daily} {unit}.",
    )
    story.say(
        f"On Saturday and Sunday it is {weekend} {unit} [each|a|per] day.",
        f"On each of the other 2 days {who.they} {act} {weekend} {unit}.",
        f"On each day of the weekend {who.they} {act} {weekend} {unit}.",
    )
    story.say(
        f"How many {unit} is that in [a|one|the whole] week?",
        f"How many {unit} does {who.they} [do|finish|manage] in [a|one|the whole] week?",
    )
    work = story.times(5, daily, f"In 5 days it is @ {unit}.")
    rest = story.times(2, weekend, f"In 2 days it is @ {unit}.")
    story.plus(work, rest, f"In a week it is @ {unit}.")


@family
def machine_with_faults(story: Story) -> None:
    thing, machines = story.pick((*TOYS, *SUPPLIES)), story.number(2, 6)
    rate, minutes, faulty = story.number(2, 9), story.number(2, 12), story.number(2, 20)
    unit = story.pick(("minute", "hour"))
    story.say(
        f"[A factory has|In a factory there are] {machines} machines. Each [makes|builds] {rate} {thing} [per|every] {unit}.",
        f"[A factory|A workshop] uses {machines} machines, and each [makes|builds] {rate} {thing} [per|every] {unit}.",
    )
    story.say(
        f"They run for {minutes} {unit}s, and {faulty} of the {thing} are [broken|bad|too small].",
        f"After {minutes} {unit}s they stop, and {faulty} of the {thing} are [broken|bad|too small].",
    )
    story.say(f"How many good {thing} are there?", f"How many of the {thing} are good?")
    each = story.times(machines, rate, f"The machines make @ {thing} per {unit}.")
    total = story.times(each, minutes, f"In {minutes} {unit}s they make @ {thing}.")
    story.minus(total, faulty, f"Of these @ {thing} are good.")


@family
def rate_found_first(story: Story) -> None:
    who, thing = story.person(), story.pick((*BAKED, *TOYS))
    made, hours, more, gone = story.number(8, 120), story.number(2, 9), story.number(2, 12), story.number(3, 30)
    work, works = story.pick((("make", "makes"), ("pack", "packs"), ("paint", "paints")))
    story.require(hours != more and (work == "paint") <= (thing in TOYS))
    story.say(
        f"{who} {works} {made} {thing} in {hours} hours.",
        f"In {hours} hours {who} {works} {made} {thing}.",
        f"{who} needs {hours} hours to {work} {made} {thing}.",
    )
    story.say(
        f"On {story.pick(DAYS)} {who.they} works {more} hours at the same [speed|rate], "
        f"and {gone} of the new {thing} are [sold|given away].",
        f"On {story.pick(DAYS)} {who.they} works {more} hours just as [fast|quickly] "
        f"and [sells|gives away] {gone} of the new {thing}.",
    )
    story.say(f"How many of the new {thing} [are left|remain]?")
    rate = story.over(made, hours, f"{who} {works} @ {thing} an hour.")
    new = story.times(rate, more, f"In {more} hours it is @ {thing}.")
    story.minus(new, gone, f"Then @ {thing} are left.")


@family
def film_minutes_left(story: Story) -> None:
    who, show = story.person(), story.pick(("film", "concert", "play", "game", "show", "match", "party", "meeting"))
    minutes, gone = story.number(5, 55, by=5), story.number(20, 110)
    story.say(
        f"{who} [goes|comes|walks] to a {show} that [lasts|takes] 2 hours and {minutes} minutes.",
        f"A {show} [lasts|takes] 2 hours and {minutes} minutes, and {who} is there from the start.",
    )
    story.say(
        f"{who.they} looks at {who.their} [watch|phone] {gone} minutes after the start.",
        f"{gone} minutes of it [are over|have passed] when {who.they} looks at {who.their} [watch|phone].",
    )
    story.say(
        f"How many minutes of the {show} are [left|still to come]?",
        f"For how many more minutes will the {show} [last|go on]?",
    )
    hours = story.times(2, 60, "2 hours are @ minutes.")
    total = story.plus(hours, minutes, f"The {show} takes @ minutes.")
    story.minus(total, gone, "There are @ minutes left.")


@family
def lessons_paid_by_time(story: Story) -> None:
    who, subject = story.person(), story.pick(("piano", "guitar", "math", "chess", "dance", "music", "art", "tennis"))
    lessons, weeks, price, aid = story.number(2, 4), story.number(2, 6), story.number(4, 12), story.number(5, 60)
    story.say(
        f"{who} [takes|has] {lessons} {subject} lessons [a|each|every] week for {weeks} weeks.",
        f"For {weeks} weeks {who} [takes|has] {lessons} {subject} lessons [a|each|every] week.",
    )
    story.say(
        f"[Each|Every|One] lesson costs ${price}, and {who.their} [school|uncle|mother|father] pays ${aid} of the total.",
        f"The price of a lesson is {price} dollars. {aid} dollars of the total are paid by {who.their} "
        "[school|uncle|mother|father].",
    )
    story.say(f"How [much|many dollars] does {who} [have to pay|pay] for the rest?")
    total = story.times(lessons, weeks, f"{who} has @ lessons.")
    cost = story.times(total, price, "They cost @ dollars.")
    story.minus(cost, aid, f"{who} pays @ dollars.")
