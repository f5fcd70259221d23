"""Swaps: two gangs of one pool exchange their places in the queue. Pure.

While both wait, each is ranked by the facts of the other: level, rank, promotions and the key that
decides between equal ranks are exchanged. So the ranks of a pool stay the same numbers, and only
the two gangs that have them change: no other gang has another place. Therefore the bound of
`policy.queues` holds for all others as before. It counts the ranks ahead of a gang, each of which
one gang uses once, and does not depend on which gang that is.

For the same reason a swap outlasts the start of one of both: the other one keeps the place that it
was given, else the two would have used the better place twice. From then on this is its place, also
in later swaps. If one of both ends without having started, its place is gone as it would be without
the swap, and the other one has its own place.

A swap is not in force while one of both does not wait for cells, nor where cells had been reserved
for one of both before: a promised start is not given away. Of several swaps of a gang the first
counts; of all that name one gang, only the first few are looked at.
"""

from bisect import insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from extender.queue.order.facts import QueueFacts
from extender.queue.order.listing import Ranked
from extender.queue.order.standing import SwapState
from policy.queues.pools import pool_of
from policy.queues.swaps import SwapRequest
from policy.submission import GangKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """A swap that the pods of a gang state."""

    gang: GangKey
    request: SwapRequest

    def of(self, gang: GangKey) -> SwapRequest:
        """Return the swap as seen from one of both gangs."""
        return self.request if gang == self.gang else replace(self.request, other=self.gang)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """The place of a gang whose partner has started."""

    request: SwapRequest
    place: QueueFacts
    is_final: bool
    """Whether the partner has used the other place; before, it may come back and wait."""


_MOST_NAMING: Final = 8
"""Gangs that may ask for a swap with the same gang: each change looks at all of them."""

Waiting = Mapping[GangKey, Ranked]
"""The gangs that wait for cells, with their own facts."""
ReservedAt = Callable[[GangKey], float | None]


class Swaps:
    """All swaps that pods state, and the places that gangs keep after one."""

    def __init__(self) -> None:
        self._stated: dict[GangKey, Swap] = {}
        """By the gang whose pods state it."""
        self._naming: dict[GangKey, list[tuple[float, GangKey]]] = {}
        """When the pods of which gangs named a gang, the first ones first."""
        self._kept: dict[GangKey, _Kept] = {}
        self.reserved_at: ReservedAt = lambda _: None
        """Tells since when cells are reserved for a gang, in seconds since 1970."""
        self.on_kept: list[Callable[[GangKey, SwapRequest, QueueFacts], None]] = []
        """Callbacks that run when a gang keeps its place because the other one has started."""

    # -- reports

    def put(self, gang: GangKey, request: SwapRequest) -> None:
        """The pods of a gang state a swap."""
        self.remove(gang)
        self._stated[gang] = Swap(gang=gang, request=request)
        insort(self._naming.setdefault(request.other, []), (request.at, gang))

    def remove(self, gang: GangKey) -> None:
        """The pods of a gang state no swap any more."""
        swap = self._stated.pop(gang, None)
        if swap is not None:
            naming = self._naming[swap.request.other]
            naming.remove((swap.request.at, gang))
            if not naming:
                del self._naming[swap.request.other]

    def keep(self, gang: GangKey, request: SwapRequest, place: QueueFacts) -> None:
        """A gang keeps a place that it was given, and that is on record."""
        self._kept[gang] = _Kept(request=request, place=place, is_final=True)

    def start(self, gang: GangKey, waiting: Waiting) -> None:
        """A gang starts: the one that it was swapped with keeps the place that it was given."""
        swap = self._in_force(gang, waiting)
        if swap is None:
            return
        other = swap.of(gang).other
        request, place = swap.of(other), self._own(gang, waiting)
        self._kept[other] = _Kept(request=request, place=place, is_final=False)
        for tell in self.on_kept:
            tell(other, request, place)

    def forget(self, gang: GangKey) -> None:
        """A gang has no pods any more; another one of its name has places of its own."""
        self._kept.pop(gang, None)

    def leave(self, gang: GangKey) -> None:
        """A gang is not known to the planner any more: what it has used is used."""
        for other, kept in self._kept.items():
            if kept.request.other == gang:
                self._kept[other] = replace(kept, is_final=True)

    # -- questions

    def concerned(self, gang: GangKey) -> list[GangKey]:
        """Return the gangs whose places may depend on a gang.

        Of two swaps with the same gang the first counts, so that the end of one is the begin of
        the other.
        """
        near = self._partners(gang)
        far = (other for one in near for other in self._partners(one))
        return [one for one in dict.fromkeys([*near, *far]) if one != gang]

    def _partners(self, gang: GangKey) -> list[GangKey]:
        swap = self._stated.get(gang)
        naming = self._first_naming(gang, _MOST_NAMING + 1)  # the last one follows one that ends
        return [*([swap.request.other] if swap else ()), *naming]

    def _first_naming(self, gang: GangKey, count: int = _MOST_NAMING) -> list[GangKey]:
        """Return the first gangs whose pods name a gang; all others are not swapped with it."""
        return [one for _, one in self._naming.get(gang, ())[:count]]

    def stated(self) -> list[GangKey]:
        """Return the gangs whose pods state a swap."""
        return list(self._stated)

    def state(self, facts: QueueFacts, waiting: Waiting) -> SwapState | None:
        """Return what became of the swap of a gang, and by what it is ranked; None without one."""
        swap = self._in_force(facts.gang, waiting)
        if swap is not None:
            request = swap.of(facts.gang)
            return SwapState(request=request, place=self._own(request.other, waiting))
        kept = self._kept.get(facts.gang)
        if kept is not None:
            return SwapState(request=kept.request, place=kept.place)
        stated = self._stated.get(facts.gang)
        if stated is None:
            return None
        return SwapState(request=stated.request, why_not=self._why_not(stated, waiting))

    def unheeded(self, gang: GangKey, waiting: Waiting) -> SwapState | None:
        """Return the swap that a gang states while another swap of it is in force, if it does."""
        stated, in_force = self._stated.get(gang), self._in_force(gang, waiting)
        if stated is None or in_force in (None, stated):
            return None
        return SwapState(request=stated.request, why_not=self._why_not(stated, waiting))

    def _in_force(self, gang: GangKey, waiting: Waiting) -> Swap | None:
        swap = self._first(gang, waiting)
        if swap is None or self._first(swap.of(gang).other, waiting) != swap:
            return None
        for one in (swap.gang, swap.request.other):
            if self._has_kept(one, swap):  # the other one waits again: it did not start after all
                del self._kept[one]
        return swap

    def _own(self, gang: GangKey, waiting: Waiting) -> QueueFacts:
        """Return by what a gang is ranked without a swap that is in force."""
        kept = self._kept.get(gang)
        return waiting[gang][0] if kept is None else kept.place

    def _has_kept(self, gang: GangKey, swap: Swap) -> bool:
        """Whether the place of a gang is what a swap has left it."""
        kept = self._kept.get(gang)
        return kept is not None and kept.request == swap.of(gang)

    def _first(self, gang: GangKey, waiting: Waiting) -> Swap | None:
        """Return the first swap of a gang that can be in force."""
        stated = (self._stated.get(one) for one in (gang, *self._first_naming(gang)))
        found = [one for one in stated if one is not None and not self._obstacle(one, waiting)]
        return min(found, key=lambda one: (one.request.at, one.gang), default=None)

    def _why_not(self, swap: Swap, waiting: Waiting) -> str:
        if swap.gang not in self._first_naming(swap.request.other):
            return f"{_MOST_NAMING} other gangs asked before for a swap with {swap.request.other}"
        return self._obstacle(swap, waiting) or "one of both is part of an earlier swap"

    def _obstacle(self, swap: Swap, waiting: Waiting) -> str | None:
        """Say why a swap is not in force, whatever other swaps there are."""
        both = swap.gang, swap.request.other
        if both[0] == both[1]:
            return "a gang cannot be swapped with itself"
        if any(self._has_kept(gang, swap) and self._kept[gang].is_final for gang in both):
            return "one of both has used its place"
        for gang in both:
            if gang not in waiting:
                return f"gang {gang} does not wait for cells"
            since = self.reserved_at(gang)
            if since is not None and since <= swap.request.at:
                return f"cells had been reserved for gang {gang} before"
        one, other = (pool_of(waiting[gang][0]) for gang in both)
        return None if one == other else f"gang {both[1]} waits for cells of another pool"
