"""What forecasts read from the planner: the order of waiting gangs, and what is reserved."""

from collections.abc import Collection, Sequence
from typing import Protocol

from extender.cells.reason_kinds import may_start_unchanged
from extender.cells.views.listings import Stepwise
from extender.queue.forecast.copied_gangs import KeptCells
from extender.queue.order.facts import QueueFacts
from extender.queue.order.new_places import NewPlace, places_of
from extender.queue.order.ranking import Ranking
from extender.queue.ports import Cells
from extender.queue.reserve.reservations import Reservations
from extender.queue.seen_gangs import SeenGangs
from policy.submission import GangKey


class QueueView(Protocol):
    """The queue, as forecasts see it."""

    def order(self) -> Sequence[GangKey]:
        """Return the gangs that wait for cells, in the order in which they are planned."""

    def without_chance(self) -> Collection[GangKey]:
        """Return the gangs that wait and cannot start unless they or the cluster change."""

    def reserved(self, *, now: float) -> dict[GangKey, KeptCells]:
        """Return the concrete cells that are reserved, as seen from now."""

    def places(self, new: Sequence[QueueFacts]) -> Stepwise[list[NewPlace]]:
        """Return where gangs that do not exist yet would be. Yields often."""


class EmptyQueue:
    """The queue before there is a planner."""

    def order(self) -> Sequence[GangKey]:
        """Return no gangs."""
        return ()

    def without_chance(self) -> Collection[GangKey]:
        """Return no gangs."""
        return ()

    def reserved(self, *, now: float) -> dict[GangKey, KeptCells]:
        """Return no cells."""
        return {}

    def places(self, new: Sequence[QueueFacts]) -> Stepwise[list[NewPlace]]:
        """Return the first place."""
        yield
        return [NewPlace(ahead=0) for _ in new]


class PlannedQueueView:
    """The queue of the planner."""

    def __init__(
        self, seen: SeenGangs, ranking: Ranking, reservations: Reservations, cells: Cells
    ) -> None:
        self._seen = seen
        self._ranking = ranking
        self._reservations = reservations
        self._cells = cells

    def order(self) -> Sequence[GangKey]:
        """Return the gangs that wait for cells, in the order in which they are planned."""
        return [facts.gang for facts, _ in self._ranking.in_order()]

    def without_chance(self) -> Collection[GangKey]:
        """Return the gangs that wait and cannot start unless they or the cluster change."""
        return {gang for gang in self.order() if not self._has_chance(gang)}

    def _has_chance(self, key: GangKey) -> bool:
        gang = self._seen.find(key)
        reason = gang.noticed if gang is not None else None
        return reason is None or may_start_unchanged(reason.code)

    def reserved(self, *, now: float) -> dict[GangKey, KeptCells]:
        """Return the concrete cells that are reserved, as seen from now."""
        return {
            one.gang: KeptCells(
                deadline=one.deadline - now,
                holders=frozenset(self._cells.view_seats(one.domain, one.kept).holders),
                needs_them=any(len(seat.leaves) > 1 for seat in one.seats),
            )
            for one in self._reservations.in_force()
        }

    def places(self, new: Sequence[QueueFacts]) -> Stepwise[list[NewPlace]]:
        """Return where gangs that do not exist yet would be. Yields often."""
        order, now = self._ranking.order, self._ranking.now
        return places_of(
            new,
            self._ranking.in_order(),
            standing=lambda facts: order.standing(facts, now=now),
        )
