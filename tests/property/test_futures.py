"""Sampled futures skip gangs that cannot start: the result is that of looking at every gang."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from extender.cells.views.listings import run_to_end
from extender.queue.forecast.closures import CopiedPool
from extender.queue.forecast.copied_gangs import NEVER, CopiedGang
from extender.queue.forecast.expectation import Draw
from extender.queue.forecast.futures import QueueCopy, sample_starts
from policy.submission import GangKey

_POOLS: tuple[CopiedPool, ...] = (("lab", "A100"), ("other", "A100"))
_ALL: CopiedPool = ("all", "A100")

_SECONDS = st.sampled_from((1.0, 10.0, 30.0, 100.0, 250.0, 1000.0))


def _constant(left: float | None) -> Draw:
    return lambda *_: left


@st.composite
def _gangs(draw: Callable[..., Any], *, most: int, is_waiting: bool) -> list[CopiedGang]:
    found = []
    for number in range(draw(st.integers(0, most))):
        left, is_known = draw(_SECONDS), draw(st.integers(0, 9)) > 0
        is_own = draw(st.booleans())
        pool = draw(st.sampled_from(_POOLS)) if is_own else _ALL
        found.append(
            CopiedGang(
                gang=GangKey("lab", f"{'waits' if is_waiting else 'runs'}-{number}"),
                pool=pool,
                also=(_ALL,) if is_own else (),
                leaf_cells=draw(st.integers(1, 12)),
                left=_constant(left if is_known else None),
                safe=draw(st.one_of(st.none(), _SECONDS)),
                is_probe=is_waiting and draw(st.integers(0, 4)) == 0,
            )
        )
    return found


@given(
    running=_gangs(most=12, is_waiting=False),
    waiting=_gangs(most=14, is_waiting=True),
    free=st.integers(0, 12),
    reserves=st.booleans(),
)
def test_a_future_is_that_of_looking_at_every_gang(
    running: list[CopiedGang], waiting: list[CopiedGang], free: int, reserves: bool
) -> None:
    pools: dict[CopiedPool, int] = dict.fromkeys((*_POOLS, _ALL), free)
    copy = QueueCopy(free=pools, running=running, waiting=waiting, reserves=reserves)
    found = run_to_end(sample_starts(copy, samples=1))
    assert {gang.name: one[0].seconds for gang, one in found.items()} == _plain(copy)


class _Plain:
    """Plays one future gang by gang."""

    def __init__(self, copy: QueueCopy) -> None:
        self.copy, self.now, self.free = copy, 0.0, dict(copy.free)
        self.ends: list[tuple[float, int, CopiedGang]] = []
        self.started: dict[str, float] = {}
        for number, gang in enumerate(copy.running):
            self.run(number, gang)

    def run(self, number: int, gang: CopiedGang) -> None:
        left = gang.left(0.5, 0)
        if left is not None:
            self.ends.append((self.now + left, number, gang))

    def fill(self, pool: CopiedPool) -> None:
        head: tuple[float, int] | None = None
        for place, gang in enumerate(self.copy.waiting):
            if gang.pool != pool or gang.gang.name in self.started or self.free[pool] <= 0:
                continue
            shadow, spare = head or (NEVER, self.free[pool])
            in_time = gang.safe is not None and self.now + _rounded(gang.safe) <= shadow
            in_time = in_time or shadow == NEVER
            if gang.leaf_cells <= self.free[pool] and (in_time or gang.leaf_cells <= spare):
                self.started[gang.gang.name] = self.now
                if gang.is_probe:
                    continue
                if head is not None and not in_time:
                    head = shadow, spare - gang.leaf_cells
                for name in gang.pools:
                    self.free[name] -= gang.leaf_cells
                self.run(len(self.copy.running) + place, gang)
            elif head is None and self.copy.reserves and not gang.is_probe:
                head = self.shadow(pool, gang.leaf_cells)

    def shadow(self, pool: CopiedPool, needed: int) -> tuple[float, int]:
        free = self.free[pool]
        for end, _, gang in sorted(self.ends, key=lambda one: one[:2]):
            free += gang.leaf_cells if pool in gang.pools else 0
            if free >= needed:
                return end, free - needed
        return NEVER, self.free[pool]

    def play(self) -> dict[str, float]:
        pools = [*self.copy.free]
        for pool in pools:
            self.fill(pool)
        while self.ends:
            self.ends.sort(key=lambda one: one[:2])
            self.now, _, ended = self.ends.pop(0)
            for pool in ended.pools:
                self.free[pool] += ended.leaf_cells
            for pool in ended.pools:
                self.fill(pool)
        return {
            gang.gang.name: self.started.get(gang.gang.name, NEVER) for gang in self.copy.waiting
        }


def _rounded(seconds: float) -> float:
    """Return a run time as groups of gangs have it: half powers of two."""
    power = 1.0
    while power < seconds * (1 - 1e-9):
        power *= 2.0**0.5
    return power


def _plain(copy: QueueCopy) -> dict[str, float]:
    return _Plain(copy).play()
