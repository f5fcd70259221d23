"""Sampled futures of a light copy of the queue."""

from collections.abc import Mapping
from dataclasses import replace

from extender.cells.views.listings import run_to_end
from extender.queue.forecast.closures import Closure, CopiedPool
from extender.queue.forecast.copied_gangs import NEVER, CopiedGang, KeptCells
from extender.queue.forecast.draws import share_of
from extender.queue.forecast.futures import QueueCopy, SampledStart, sample_starts
from policy.submission import GangKey

_LAB: CopiedPool = ("lab", "A100")
_ALL: CopiedPool = ("all", "A100")


def _gang(
    name: str,
    cells: int,
    *,
    left: float | None,
    pool: CopiedPool = _LAB,
    also: tuple[CopiedPool, ...] = (),
) -> CopiedGang:
    return CopiedGang(
        gang=GangKey("lab", name),
        pool=pool,
        also=also,
        leaf_cells=cells,
        left=lambda *_: left,
        safe=left,
    )


def _play(
    free: Mapping[CopiedPool, int],
    running: list[CopiedGang],
    waiting: list[CopiedGang],
    *,
    reserves: bool = True,
    closures: tuple[Closure, ...] = (),
) -> dict[str, SampledStart]:
    copy = QueueCopy(
        free=free, running=running, waiting=waiting, reserves=reserves, closures=closures
    )
    starts = run_to_end(sample_starts(copy, samples=2))
    assert all(found == [found[0]] * 2 for found in starts.values())
    return {gang.name: found[0] for gang, found in starts.items()}


def test_a_gang_starts_when_enough_leaf_cells_are_free() -> None:
    running = [_gang("one", 8, left=100), _gang("two", 8, left=300)]
    starts = _play({_LAB: 0}, running, [_gang("waits", 16, left=50), _gang("next", 8, left=50)])
    assert starts["waits"] == SampledStart(300, GangKey("lab", "two"))
    assert starts["next"] == SampledStart(100, GangKey("lab", "one"))


def test_a_gang_that_ends_too_late_does_not_delay_the_first() -> None:
    running = [_gang("one", 8, left=100), _gang("two", 8, left=300)]
    starts = _play({_LAB: 0}, running, [_gang("waits", 16, left=50), _gang("long", 8, left=900)])
    assert starts["waits"].seconds == 300
    assert starts["long"].seconds == 350


def test_without_reservations_smaller_gangs_go_first() -> None:
    running = [_gang("one", 8, left=100), _gang("two", 8, left=300)]
    waiting = [_gang("waits", 16, left=50), _gang("long", 8, left=900)]
    starts = _play({_LAB: 0}, running, waiting, reserves=False)
    assert (starts["waits"].seconds, starts["long"].seconds) == (1000, 100)


def test_a_gang_behind_one_of_which_nothing_is_known_never_starts() -> None:
    starts = _play({_LAB: 0}, [_gang("silent", 8, left=None)], [_gang("waits", 8, left=1)])
    assert starts["waits"] == SampledStart(NEVER, None)


def test_a_gang_of_another_vc_waits_for_its_own_cells_only() -> None:
    other: CopiedPool = ("other", "A100")
    running = [_gang("one", 8, left=100, also=(_ALL,))]
    borrows = _gang("borrows", 8, left=10, pool=_ALL)
    own = _gang("own", 8, left=10, pool=other, also=(_ALL,))
    starts = _play({_LAB: 0, other: 8, _ALL: 0}, running, [borrows, own])
    assert (starts["own"].seconds, starts["borrows"].seconds) == (0, 100)


def test_many_gangs_are_played_in_short_steps() -> None:
    running = [_gang(f"r{number}", 1, left=number) for number in range(200)]
    waiting = [_gang(f"w{number}", 2, left=10) for number in range(500)]
    copy = QueueCopy(free={_LAB: 0}, running=running, waiting=waiting)
    steps = sum(1 for _ in sample_starts(copy, samples=2))
    assert steps > 2 * 500 / 16


def test_draws_look_random_and_are_always_the_same() -> None:
    draws = [share_of(place, sample) for place in range(100) for sample in range(8)]
    assert len(set(draws)) == 800
    assert 0.45 < sum(draws) / 800 < 0.55
    assert share_of(3, 4) == share_of(3, 4)


def _closed(cells: int, begins: float, ends: float) -> Closure:
    return Closure(name="firmware", pool=_LAB, leaf_cells=cells, begins=begins, ends=ends)


def test_a_gang_that_would_run_into_a_closure_starts_after_it() -> None:
    waiting = [_gang("long", 8, left=900), _gang("short", 8, left=60)]
    starts = _play({_LAB: 16}, [], waiting, closures=(_closed(16, 100, 500),))
    assert starts["long"] == SampledStart(500, None)
    assert starts["short"].seconds == 0
    starts = _play({_LAB: 16}, [], waiting, closures=(_closed(8, 100, 500),))
    assert starts["long"].seconds == 0  # beside the closed cells


def test_a_closure_that_is_over_or_far_away_makes_no_difference() -> None:
    waiting = [_gang("one", 8, left=60)]
    for closure in (_closed(8, -500, -100), _closed(8, 500, 900)):
        assert _play({_LAB: 8}, [], waiting, closures=(closure,))["one"].seconds == 0
    assert _play({_LAB: 8}, [], waiting, closures=(_closed(8, -1, 70),))["one"].seconds == 70


def test_gangs_that_end_in_time_make_room_for_a_closure() -> None:
    running = [_gang("old", 8, left=90)]
    starts = _play(
        {_LAB: 8}, running, [_gang("long", 8, left=900)], closures=(_closed(8, 100, 500),)
    )
    assert starts["long"].seconds == 0
    running = [_gang("old", 8, left=110)]
    starts = _play(
        {_LAB: 8}, running, [_gang("long", 8, left=900)], closures=(_closed(8, 100, 500),)
    )
    assert starts["long"].seconds == 110  # beside the closed cells


def test_cells_that_are_reserved_in_advance_are_there_for_exempt_gangs() -> None:
    own = replace(_gang("own", 8, left=100), exempt=frozenset({"firmware"}))
    waiting = [own, _gang("other", 8, left=100)]
    starts = _play({_LAB: 16}, [], waiting, closures=(_closed(8, 0, 500),))
    assert starts["own"].seconds == starts["other"].seconds == 0
    starts = _play({_LAB: 8}, [], waiting[::-1], closures=(_closed(8, 0, 500),))
    assert starts["own"].seconds == 0
    assert starts["other"].seconds == 500


def test_an_unknown_run_counts_as_long_as_is_assumed() -> None:
    unknown = replace(_gang("unknown", 8, left=None), assumed=200.0)
    closure = _closed(8, 100, 500)
    assert _play({_LAB: 8}, [], [unknown], closures=(closure,))["unknown"].seconds == 500
    closure = _closed(8, 300, 500)
    assert _play({_LAB: 8}, [], [unknown], closures=(closure,))["unknown"].seconds == 0


def _kept(gang: CopiedGang, *holders: str, deadline: float, needs_them: bool = True) -> CopiedGang:
    keys = frozenset(GangKey("lab", name) for name in holders)
    return replace(gang, kept=KeptCells(deadline=deadline, holders=keys, needs_them=needs_them))


def test_a_gang_with_reserved_cells_starts_when_the_gangs_that_hold_them_have_ended() -> None:
    running = [_gang("holds", 8, left=500), _gang("other", 8, left=100)]
    head = _kept(_gang("head", 8, left=50), "holds", deadline=400)
    starts = _play({_LAB: 0}, running, [head])
    assert starts["head"] == SampledStart(500, GangKey("lab", "holds"))


def test_a_gang_of_single_leaf_cells_starts_wherever_enough_are_free() -> None:
    running = [_gang("holds", 8, left=500), _gang("other", 8, left=100)]
    head = _kept(_gang("head", 8, left=50), "holds", deadline=400, needs_them=False)
    assert _play({_LAB: 0}, running, [head])["head"].seconds == 100


def test_other_gangs_leave_reserved_cells_alone_unless_they_end_before_the_deadline() -> None:
    running = [_gang("holds", 8, left=500)]
    head = _kept(_gang("head", 16, left=50), "holds", deadline=300)
    waiting = [head, _gang("long", 8, left=350), _gang("short", 8, left=100)]
    starts = _play({_LAB: 8}, running, waiting)
    assert starts["short"].seconds == 0
    assert starts["head"] == SampledStart(500, GangKey("lab", "holds"))
    assert starts["long"].seconds == 550


def test_other_gangs_use_what_is_not_reserved() -> None:
    running = [_gang("holds", 8, left=500)]
    head = _kept(_gang("head", 8, left=50), "holds", deadline=300)
    starts = _play({_LAB: 8}, running, [head, _gang("long", 8, left=9000)])
    assert (starts["long"].seconds, starts["head"].seconds) == (0, 500)


def test_a_reservation_is_kept_by_a_gang_that_is_outranked() -> None:
    running = [_gang("holds", 8, left=500)]
    kept = _kept(_gang("kept", 16, left=50), "holds", deadline=300)
    starts = _play({_LAB: 8}, running, [_gang("first", 8, left=900), kept])
    assert (starts["kept"].seconds, starts["first"].seconds) == (500, 550)


def test_gangs_that_do_not_exist_take_nothing_from_others_and_from_each_other() -> None:
    running = [_gang("one", 8, left=100)]
    probes = [replace(_gang(f"probe-{n}", 8, left=900), is_probe=True) for n in range(3)]
    starts = _play({_LAB: 0}, running, [*probes, _gang("waits", 8, left=50)])
    assert {starts[name].seconds for name in ("probe-0", "probe-1", "probe-2", "waits")} == {100}


def test_a_gang_that_does_not_exist_waits_behind_the_gangs_ahead_of_it() -> None:
    running = [_gang("one", 8, left=100)]
    probe = replace(_gang("probe", 8, left=900), is_probe=True)
    starts = _play({_LAB: 0}, running, [_gang("waits", 8, left=50), probe])
    assert starts["probe"] == SampledStart(150, GangKey("lab", "waits"))
