"""Families for `test_hard` alone: their structures occur in no other family."""

from r1lite.word_problems.story import Story, held_out_family
from r1lite.word_problems.vocabulary import SUPPLIES, TREASURES

SMALL = (*TREASURES, *SUPPLIES)


@held_out_family
def sum_and_difference(story: Story) -> None:
    (less, more), thing = story.people(2), story.pick(SMALL)
    total, difference = story.number(12, 120), story.number(2, 30)
    story.say(
        f"{less} and {more} have {total} {thing} [together|in all|in total].",
        f"Together {less} and {more} [own|collect|find] {total} {thing}.",
    )
    story.say(
        f"{more} has {difference} [more|more {thing}] than {less}.",
        f"{less} has {difference} fewer [{thing}|] than {more}.",
    )
    story.say(f"How many {thing} does {less} have [|in {less.their} {story.pick(('box', 'bag', 'jar'))}]?")
    twice = story.minus(total, difference, f"Without the extra {thing} both would have @ {thing}.")
    story.over(twice, 2, f"So {less} has @ {thing}.")
