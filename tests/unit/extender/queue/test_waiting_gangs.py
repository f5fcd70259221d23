"""Who is worth a look, and who is not asked again in vain."""

from collections.abc import Sequence
from dataclasses import replace

from extender.queue.lines.shapes import GangShape, shape_of
from extender.queue.waiting_gangs import WaitingGangs
from policy.submission import GangKey
from tests.support.cells.builders import a_gang


def _shape(sizes: Sequence[int], *, vc: str = "a") -> GangShape:
    request = a_gang("any").of(*sizes).in_vc(vc).member()
    return shape_of(request, sizes, nodes=None, own=None)


def _key(name: str) -> GangKey:
    return GangKey("ns", name)


def _drain(waiting: WaitingGangs) -> list[str]:
    """Refuse everybody, in the order in which they are looked at."""
    looked_at = []
    while (gang := waiting.first()) is not None:
        looked_at.append(gang.name)
        waiting.refuse(gang)
    return looked_at


def _waiting(**sizes: Sequence[int]) -> WaitingGangs:
    waiting = WaitingGangs()
    for rank, (name, each) in enumerate(sizes.items()):
        waiting.put(_key(name), _shape(each), (rank,))
    return waiting


def test_everybody_new_is_looked_at_once_in_order_of_rank() -> None:
    waiting = _waiting(first=[8], second=[8], third=[4])
    assert _drain(waiting) == ["first", "second", "third"]


def test_after_a_change_one_gang_of_each_shape_is_looked_at() -> None:
    waiting = _waiting(first=[8, 8], second=[8, 8], other=[4], another=[4])
    _drain(waiting)
    waiting.wake()
    assert _drain(waiting) == ["first", "other"]


def test_who_asks_for_more_than_what_did_not_fit_is_not_looked_at() -> None:
    waiting = _waiting(small=[4, 4], more=[4, 4, 4], larger=[8, 4], less=[4, 2], few=[8])
    _drain(waiting)
    waiting.wake()
    assert _drain(waiting) == ["small", "less", "few"]


def test_small_members_that_may_start_alone_are_looked_at_though_large_ones_do_not_fit() -> None:
    waiting = WaitingGangs()
    for rank, sizes in enumerate([(4, 4), (4, 4, 1, 1), (4, 4, 1, 1)]):
        request = replace(a_gang("any").of(*sizes).member(), gang_min=2)
        waiting.put(_key(f"gang-{rank}"), shape_of(request, sizes, nodes=None, own=None), (rank,))
    _drain(waiting)
    waiting.wake()
    assert _drain(waiting) == ["gang-0", "gang-1"]


def test_other_vcs_are_another_kind() -> None:
    waiting = WaitingGangs()
    waiting.put(_key("a"), _shape([4], vc="a"), (0,))
    waiting.put(_key("b"), _shape([8], vc="b"), (1,))
    _drain(waiting)
    waiting.wake()
    assert _drain(waiting) == ["a", "b"]


def test_the_next_of_a_shape_is_looked_at_when_its_first_has_started() -> None:
    waiting = _waiting(first=[8], second=[8])
    _drain(waiting)
    waiting.wake()
    waiting.remove(_key("first"))
    assert waiting.first() == _key("second")


def test_who_leaves_is_forgotten_everywhere() -> None:
    waiting = _waiting(only=[8])
    waiting.remove(_key("only"))
    assert waiting.first() is None
    assert not waiting._entries


def test_a_gang_that_changed_is_looked_at_again() -> None:
    waiting = _waiting(only=[8])
    _drain(waiting)
    waiting.put(_key("only"), _shape([8]), (0,))
    assert waiting.first() is None
    waiting.put(_key("only"), _shape([4]), (0,))
    assert waiting.first() == _key("only")


def test_who_may_preempt_is_another_kind() -> None:
    waiting = WaitingGangs()
    for rank, may_preempt in enumerate([False, True]):
        request = a_gang("any").of(8).member()
        shape = shape_of(request, [8], nodes=None, own=None, may_preempt=may_preempt)
        waiting.put(_key(str(may_preempt)), shape, (rank,))
    _drain(waiting)
    waiting.wake()
    assert _drain(waiting) == ["False", "True"]


def test_who_is_refused_after_a_change_is_not_woken_by_it() -> None:
    waiting = _waiting(first=[8])
    waiting.wake()
    waiting.refuse(_key("first"))
    assert waiting.first() is None


def test_a_better_rank_comes_first_in_a_line_that_was_looked_at() -> None:
    waiting = _waiting(first=[8], second=[8])
    assert waiting.first() == _key("first")
    waiting.put(_key("best"), _shape([8]), (-1,))
    assert waiting.first() == _key("best")
    waiting.remove(_key("best"))
    waiting.remove(_key("first"))
    assert waiting.first() == _key("second")


def test_nothing_is_remembered_of_those_that_left() -> None:
    waiting = _waiting(first=[8])
    _drain(waiting)
    waiting.remove(_key("first"))
    waiting.wake()
    assert waiting.first() is None
    assert not waiting._kinds


def test_a_gang_that_was_told_is_not_looked_at_again_for_another_run_time_alone() -> None:
    """Larger run times fit no gap that is too short, so the line of the other one is refused."""
    waiting = _waiting(first=[8], second=[8])
    _drain(waiting)
    longer = replace(_shape([8]), run=7)
    waiting.put(_key("second"), longer, (1,))
    assert _drain(waiting) == []
    waiting.put(_key("second"), replace(_shape([4]), run=7), (1,))
    assert _drain(waiting) == ["second"]


def test_a_new_gang_is_looked_at_though_its_run_time_changes_before() -> None:
    waiting = _waiting(first=[8])
    _drain(waiting)
    waiting.put(_key("new"), _shape([8]), (1,))
    waiting.put(_key("new"), replace(_shape([8]), run=7), (1,))
    assert _drain(waiting) == ["new"]
