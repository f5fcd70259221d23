"""Whose turn it is to get a reservation, where pools share cells.

Pools of one VC share cells: a gang without a leaf type competes with those that name one. Each pool
has reservations of its own, and none takes cells of another one. So gangs of one pool, one after
the other, could keep the head of another pool from ever finding enough cells. Therefore the best
ranked head is served first, and while reservations of others leave it no room, no gang behind it
gets a new one in a pool that shares cells with its own.

Gangs that wait for something else than cells, or that fit nowhere, are passed over: else some that
never start would keep all others of the pool from a reservation, and so from starting. One step
looks at a limited number of gangs, and the next step goes on behind them.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Final

from extender.queue.member_places import unplaced
from extender.queue.order.ranking import Ranking
from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.model import Reservation
from extender.queue.reserve.useful_cells import waits_for_cells
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from policy.queues.pools import Pool
from policy.queues.queues import ReservationRules
from policy.submission import GangKey

_RETRY_SECONDS: Final = 30.0
"""How long a gang is left out that has no shadow time."""
_LOOKS: Final = 64
"""Gangs of a pool that one step looks at."""


class Turns:
    """Finds the gang that is to get the next reservation."""

    def __init__(
        self, cells: Cells, *, waiting: WaitingGangs, seen: SeenGangs, ranking: Ranking
    ) -> None:
        self._cells = cells
        self._waiting = waiting
        self._ranking = ranking
        self._heads = PoolHeads(waiting, seen)
        self._retry_at: dict[GangKey, float] = {}
        """Gangs that are left out, and until when."""
        self._blocked: dict[GangKey, Pool] = {}
        """Gangs to which only reservations of others leave no room, and their pools."""

    @property
    def _rules(self) -> ReservationRules:
        return self._ranking.order.queues.reservation

    # -- reports

    def note_made(self, gang: GangKey, pool: Pool) -> None:
        """A gang got a reservation."""
        self._blocked.pop(gang, None)
        self._heads.begin_again(pool)

    def note_refused(self, gang: GangKey, *, is_blocked: bool = False) -> None:
        """A gang has no shadow time; if it is blocked, only beside the reservations of others."""
        self._retry_at[gang] = self._ranking.now + _RETRY_SECONDS
        pool = self._waiting.pool(gang) if is_blocked else None
        if pool is None:
            self._blocked.pop(gang, None)
        else:
            self._blocked[gang] = pool

    def note_unused(self, gang: GangKey) -> None:
        """A gang made no use of its reservation: it waits as long as others before the next one."""
        self._retry_at[gang] = self._ranking.now + self._rules.after

    def note_ended(self) -> None:
        """A reservation ended: gangs to which it left no room are tried again."""
        for gang, pool in self._blocked.items():
            self._retry_at.pop(gang, None)
            self._heads.begin_again(pool)

    def forget(self, gang: GangKey) -> None:
        """A gang is gone."""
        self._retry_at.pop(gang, None)
        self._blocked.pop(gang, None)

    # -- questions

    def next(self, made: Mapping[GangKey, Reservation]) -> QueuedGang | None:
        """Return the best ranked gang that is to get a reservation beside those that are made."""
        held = Counter(one.pool for one in made.values() if one.entry is None)
        heads = [
            head
            for pool in self._waiting.pools()
            if held[pool] < self._rules.per_pool and (head := self._head(pool, made)) is not None
        ]
        self._drop_unblocked()
        ranked = sorted((self._waiting.rank(head.key), head.key, head) for head in heads)
        return next((head for _, key, head in ranked if not self._must_wait(key)), None)

    def _head(self, pool: Pool, made: Collection[GangKey]) -> QueuedGang | None:
        """Return the gang of a pool that is to get a reservation now."""
        asked_by = self._ranking.now - self._rules.after
        return self._heads.next(pool, lambda gang: self._may_reserve(gang, made), asked_by=asked_by)

    def _may_reserve(self, gang: QueuedGang, made: Collection[GangKey]) -> bool:
        """Tell whether a gang waits for cells, and none are reserved for it."""
        left = self._retry_at.get(gang.key, 0.0) - self._ranking.now  # a clock may go back
        if gang.key in made or 0.0 < left <= max(_RETRY_SECONDS, self._rules.after):
            return False
        is_new = not gang.has_begun and not gang.victims
        return is_new and waits_for_cells(gang) and bool(unplaced(gang, self._cells))

    def _drop_unblocked(self) -> None:
        for gang, pool in list(self._blocked.items()):
            if self._waiting.pool(gang) != pool:
                del self._blocked[gang]

    def _must_wait(self, key: GangKey) -> bool:
        pool, rank = self._waiting.pool(key), self._waiting.rank(key)
        return any(
            other != key and self._waiting.rank(other) < rank and _share(own, pool)
            for other, own in self._blocked.items()
        )


def _share(one: Pool, other: Pool | None) -> bool:
    """Tell whether gangs of two pools may use the same cells of their VC."""
    if other is None or (one.vc, one.pinned) != (other.vc, other.pinned):
        return False
    return one.leaf_type == other.leaf_type or None in (one.leaf_type, other.leaf_type)


class PoolHeads:
    """Finds the head of each pool, and remembers how far the pool was looked through."""

    def __init__(self, waiting: WaitingGangs, seen: SeenGangs) -> None:
        self._waiting = waiting
        self._seen = seen
        self._passed: dict[Pool, int] = {}
        """How many of the best ranked gangs of a pool were passed over."""

    def next(
        self, pool: Pool, may_reserve: Callable[[QueuedGang], bool], *, asked_by: float
    ) -> QueuedGang | None:
        """Return the best ranked gang that may get a reservation.

        None if none is found now, or if it has asked later than `asked_by`: it may start soon.
        """
        passed = self._passed.pop(pool, 0)
        looked_at = self._waiting.first_of(pool, passed + _LOOKS)[passed:]
        for place, key in enumerate(looked_at):
            gang = self._seen.find(key)
            if gang is not None and may_reserve(gang):
                if gang.first.asked > asked_by:
                    return None
                if passed + place:
                    self._passed[pool] = passed + place
                return gang
        if len(looked_at) == _LOOKS:
            self._passed[pool] = passed + _LOOKS
        return None

    def begin_again(self, pool: Pool) -> None:
        """Begin with the best ranked gang of a pool the next time."""
        self._passed.pop(pool, None)
