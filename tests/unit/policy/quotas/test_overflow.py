"""Which gang beyond its quotas is raised next, and for which limits the ledger is not asked."""

from dataclasses import replace
from typing import Any

import pytest

from policy.quotas.limits import Exceeded, Limit, Measure, Scope
from policy.quotas.overflow import OverflowGang, OverflowQueue
from policy.submission import GangKey, GroupName, LeafType, UserName

ALICE, BOB, VISION = UserName("alice"), UserName("bob"), GroupName("vision")
A100 = LeafType("A100")
CELLS = Limit(scope=Scope(None, VISION), measure=Measure.LEAF_CELLS, most=8)


def a_gang(name: str, *, at: float = 0.0, cells: int = 4, **fields: Any) -> OverflowGang:
    told = {"user": ALICE, "group": VISION, **fields}
    return OverflowGang(key=GangKey("lab", name), asked_at=at, leaf_count=cells, **told)


def over(limit: Limit = CELLS, *, used: float, asked: int = 4) -> Exceeded:
    return Exceeded(limit=limit, used=used, asked=asked)


def a_queue(*gangs: OverflowGang) -> OverflowQueue:
    queue = OverflowQueue()
    for gang in gangs:
        queue.put(gang)
    return queue


def test_the_gang_that_was_asked_for_first_is_first() -> None:
    old, young = a_gang("b", at=1), a_gang("a", at=2)
    queue = a_queue(young, old)
    assert queue.oldest_first() == [old, young]
    queue.put(replace(old, asked_at=5))
    assert queue.oldest_first() == [old, young]
    assert len(queue) == 2


def test_a_limit_that_was_in_the_way_of_one_gang_is_in_the_way_of_all_that_need_as_much() -> None:
    small, large = a_gang("small", cells=2), a_gang("large", cells=4)
    other = a_gang("other", user=BOB)
    queue = a_queue(small, large, other)
    queue.note_refused([over(used=6)])
    assert [queue.may_fit(one) for one in (small, large, other)] == [True, False, False]
    queue.note_raised(small)
    assert queue.find(small.key) is None
    assert [one.used for one in queue.obstacles(large)] == [8]
    queue.free([Scope(None, VISION)])
    assert queue.may_fit(large)


@pytest.mark.parametrize(
    ("limit", "fits"),
    [
        (Limit(scope=Scope(ALICE, VISION), measure=Measure.LEAF_CELLS, most=8), False),
        (Limit(scope=Scope(BOB, VISION), measure=Measure.LEAF_CELLS, most=8), True),
        (replace(CELLS, measure=Measure.LEAF_CELLS_HIGH), True),
        (replace(CELLS, measure=Measure.LEAF_CELLS_OF_TYPE, leaf_type=A100), False),
        (replace(CELLS, measure=Measure.LEAF_CELLS_OF_TYPE, leaf_type=LeafType("V100")), True),
        (replace(CELLS, measure=Measure.GANGS), False),
        (replace(CELLS, measure=Measure.HOURS_DAY), False),
    ],
)
def test_only_limits_that_apply_are_in_the_way(limit: Limit, fits: bool) -> None:
    gang = a_gang("a", leaf_type=A100)
    queue = a_queue(gang)
    queue.note_refused([over(limit, used=8)])
    assert queue.may_fit(gang) is fits


def test_a_gang_without_a_group_has_only_the_limits_of_rules() -> None:
    gang = a_gang("a", group=None)
    assert gang.scopes == (Scope(ALICE),)


def test_rules_keep_a_gang_until_its_submitter_holds_less() -> None:
    gang, other = a_gang("a"), a_gang("b", user=BOB)
    queue = a_queue(gang, other)
    queue.note_ruled(gang)
    assert [queue.may_fit(one) for one in (gang, other)] == [False, True]
    assert "the rules keep it in its class while alice holds" in queue.explain(gang)
    queue.free([Scope(BOB)])
    assert not queue.may_fit(gang)
    queue.free([Scope(ALICE)])
    assert queue.may_fit(gang)


def test_everything_is_asked_again_when_documents_change() -> None:
    gang, ruled = a_gang("a"), a_gang("b")
    queue = a_queue(gang, ruled)
    queue.note_refused([over(used=8)])
    queue.note_ruled(ruled)
    queue.free_all()
    assert [queue.may_fit(one) for one in (gang, ruled)] == [True, True]


def test_explain_says_how_much_of_which_limit_is_used() -> None:
    gang = a_gang("a", is_high=True)
    queue = a_queue(gang)
    assert queue.explain(gang) == "its quotas are compared soon"
    limits = [
        over(replace(CELLS, measure=Measure.LEAF_CELLS_HIGH), used=6),
        over(replace(CELLS, measure=Measure.GANGS), used=8),
        over(replace(CELLS, measure=Measure.HOURS_DAY), used=8.5),
    ]
    queue.note_refused(limits)
    assert queue.explain(gang) == (
        "group vision holds 6 of 8 leaf cells in high classes within quota, and 4 more must fit; "
        "group vision has 8 of 8 gangs within quota, and a gang must fit; "
        "group vision used 8.5 of 8 leaf-cell-hours today"
    )
