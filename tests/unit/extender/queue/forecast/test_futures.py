"""Sampled futures of a light copy of the queue."""

from collections.abc import Mapping

from extender.cells.views.listings import run_to_end
from extender.queue.forecast.futures import (
    NEVER,
    CopiedGang,
    Pool,
    QueueCopy,
    SampledStart,
    sample_starts,
    share_of,
)
from policy.submission import GangKey

_LAB: Pool = ("lab", "A100")
_ALL: Pool = ("all", "A100")


def _gang(
    name: str, cells: int, *, left: float | None, pool: Pool = _LAB, also: tuple[Pool, ...] = ()
) -> CopiedGang:
    return CopiedGang(
        gang=GangKey("lab", name),
        pool=pool,
        also=also,
        leaf_cells=cells,
        left=lambda _: left,
        safe=left,
    )


def _play(
    free: Mapping[Pool, int],
    running: list[CopiedGang],
    waiting: list[CopiedGang],
    *,
    reserves: bool = True,
) -> dict[str, SampledStart]:
    copy = QueueCopy(free=free, running=running, waiting=waiting, reserves=reserves)
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
    other: Pool = ("other", "A100")
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
