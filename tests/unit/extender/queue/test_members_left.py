"""How many members of a gang have not succeeded, and which of them are created later."""

import pytest

from extender.queue.model import MembersLeft


@pytest.mark.parametrize(
    ("finished", "count", "created_first", "missing"),
    [
        ({}, 5, 3, [8, 8, 1, 1]),
        ({1: 1}, 4, 2, [8, 8, 1]),
        ({8: 1}, 4, 3, [8, 1, 1]),
        ({8: 2}, 3, 3, [1, 1]),
        ({1: 3}, 2, 2, [8]),
        ({1: 3, 8: 2}, 5, 3, [8, 8, 1, 1]),
        ({1: 3, 8: 3}, 4, 3, [8, 1, 1]),
    ],
    ids=["none", "first", "late", "all late", "all first", "a set", "a set and a late one"],
)
def test_members_that_have_succeeded_are_not_needed_again(
    finished: dict[int, int], count: int, created_first: int, missing: list[int]
) -> None:
    left = MembersLeft(size=5, each=1, late=(8, 8), finished=finished)
    assert (left.count, left.created_first) == (count, created_first)
    assert left.missing(1, each=1) == missing
    assert left.least(None) == created_first
    assert left.least(2) == max(1, 2 - (5 - count))


def test_of_members_that_are_alike_the_first_succeed_first() -> None:
    left = MembersLeft(size=3, each=2, late=(2, 2), finished={2: 1})
    assert (left.count, left.created_first, left.created_late) == (2, 2, (2, 2))
