"""Which event wakes which line, and the head of each pool."""

from dataclasses import replace

from extender.cells.freed_cells import FreedCells
from extender.queue.lines.shapes import shape_of
from extender.queue.lines.sleepers import Lack
from extender.queue.waiting_gangs import WaitingGangs
from policy.queues.pools import Pool
from policy.submission import GangKey, LeafType, VcName
from tests.support.cells.builders import a_gang

A100, H100 = LeafType("A100"), LeafType("H100")
OWN, ANY = Lack.OWN_CELLS, Lack.CELLS


def _put(
    waiting: WaitingGangs, name: str, *, vc: str = "a", leaf_type: LeafType | None = A100,
    priority: int = 0, rank: tuple[float, ...] = (0, 0), run: int = 0, size: int = 8,
) -> None:  # fmt: skip
    request = replace(a_gang(name).of(size).in_vc(vc).at(priority).member(), leaf_type=leaf_type)
    waiting.put(_key(name), shape_of(request, [size], nodes=None, own=None, run=run), rank)


def _key(name: str) -> GangKey:
    return GangKey("ns", name)


def _drain(waiting: WaitingGangs, **lacks: Lack) -> list[str]:
    looked_at = []
    while (gang := waiting.first()) is not None:
        looked_at.append(gang.name)
        waiting.refuse(gang, lacks.get(gang.name, ANY))
    return sorted(looked_at)


def _freed(vc: str | None, leaf_type: LeafType = A100) -> FreedCells:
    return FreedCells(leaf_type=leaf_type, vc=None if vc is None else VcName(vc))


def test_what_a_vc_gives_up_wakes_gangs_that_lack_its_cells_and_not_those_of_other_vcs() -> None:
    waiting = WaitingGangs()
    for vc in "abc":
        _put(waiting, f"of-{vc}", vc=vc)
    lacks = {"of-a": OWN, "of-b": OWN, "of-c": ANY}
    _drain(waiting, **lacks)
    waiting.wake(_freed("b"))
    assert _drain(waiting, **lacks) == ["of-b", "of-c"]


def test_what_opportunistic_gangs_give_up_wakes_gangs_of_all_vcs() -> None:
    waiting = WaitingGangs()
    _put(waiting, "full", vc="a")
    _put(waiting, "idle", vc="b", priority=-1)
    _drain(waiting, full=OWN)
    waiting.wake(_freed(None))
    assert _drain(waiting) == ["full", "idle"]


def test_another_leaf_type_wakes_only_gangs_that_may_use_it() -> None:
    waiting = WaitingGangs()
    _put(waiting, "a100")
    _put(waiting, "h100", leaf_type=H100)
    _put(waiting, "any", leaf_type=None)
    _drain(waiting)
    waiting.wake(_freed("a", H100))
    assert _drain(waiting) == ["any", "h100"]


def test_a_larger_gang_that_was_skipped_wakes_with_the_one_that_did_not_fit() -> None:
    waiting = WaitingGangs()
    _put(waiting, "small", size=4)
    _put(waiting, "large", size=8, rank=(0, 1))
    _drain(waiting, small=OWN, large=OWN)
    waiting.wake(_freed("a"))
    assert waiting.first() == _key("small")
    waiting.remove(_key("small"))
    assert waiting.first() == _key("large")


def test_a_change_of_the_cluster_wakes_all_gangs() -> None:
    waiting = WaitingGangs()
    for vc in "ab":
        _put(waiting, f"of-{vc}", vc=vc)
    _drain(waiting, **{"of-a": OWN, "of-b": OWN})
    waiting.wake()
    assert _drain(waiting) == ["of-a", "of-b"]


def test_a_shorter_run_is_tried_where_a_longer_one_did_not_fit_a_gap() -> None:
    waiting = WaitingGangs()
    _put(waiting, "long", run=5)
    _put(waiting, "short", run=2, rank=(0, 1))
    _put(waiting, "longer", run=7, rank=(0, 2))
    _drain(waiting)
    waiting.wake()
    assert _drain(waiting, long=Lack.GAP) == ["long", "short"]
    waiting.wake()
    assert _drain(waiting) == ["long"]  # it lacks cells, however short a run is


def test_a_pool_has_a_head_whether_or_not_it_may_fit() -> None:
    waiting = WaitingGangs()
    _put(waiting, "second", rank=(0, 5))
    _put(waiting, "first", rank=(0, 1), size=4)
    _put(waiting, "other", vc="b", rank=(0, 0))
    _drain(waiting)
    assert waiting.head(Pool(VcName("a"), A100)) == _key("first")
    assert waiting.head(Pool(VcName("c"), A100)) is None
    assert waiting.pools() == [Pool(VcName("a"), A100), Pool(VcName("b"), A100)]


def test_opportunistic_gangs_of_all_vcs_share_a_pool() -> None:
    waiting = WaitingGangs()
    _put(waiting, "a", vc="a", priority=-1)
    _put(waiting, "b", vc="b", priority=-1, rank=(0, 1))
    assert waiting.pools() == [Pool(None, A100)]
    waiting.remove(_key("a"))
    assert waiting.head(Pool(None, A100)) == _key("b")


def test_a_gap_in_cells_of_a_vc_is_no_concern_of_other_vcs() -> None:
    waiting = WaitingGangs()
    for vc in "ab":
        _put(waiting, f"of-{vc}", vc=vc)
    _put(waiting, "idle", priority=-1)
    lacks = {"of-a": Lack.OWN_GAP, "of-b": Lack.OWN_GAP, "idle": Lack.GAP}
    _drain(waiting, **lacks)
    waiting.wake(_freed("b"))
    assert _drain(waiting, **lacks) == ["idle", "of-b"]
    waiting.wake(_freed(None))
    assert _drain(waiting, **lacks) == ["idle", "of-a", "of-b"]


def test_the_end_of_a_reservation_wakes_gangs_that_left_its_cells_alone() -> None:
    waiting = WaitingGangs()
    for vc in "ab":
        _put(waiting, f"of-{vc}", vc=vc)
    _put(waiting, "idle", priority=-1)
    lacks = {"of-a": Lack.OWN_GAP, "of-b": OWN, "idle": Lack.GAP}
    _drain(waiting, **lacks)
    waiting.wake_bound(VcName("a"), others=False)
    assert _drain(waiting, **lacks) == ["of-a"]
    waiting.wake_bound(VcName("b"), others=True)
    assert _drain(waiting, **lacks) == ["idle", "of-b"]
    waiting.wake_bound(None, others=False)
    assert _drain(waiting, **lacks) == ["idle", "of-a", "of-b"]
