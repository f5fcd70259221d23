"""Gangs by VC and priority: finds possible victims without visiting all gangs."""

from collections.abc import Iterator
from itertools import islice

from extender.cells.model import MemberRequest
from extender.cells.state.placed_gangs import PlacedGang
from policy.submission import GangKey, VcName


class Registry:
    """All gangs by their standing; opportunistic and downgraded gangs belong to no VC here."""

    def __init__(self) -> None:
        self._guaranteed: dict[VcName, dict[int, dict[GangKey, PlacedGang]]] = {}
        self._borrowers: dict[GangKey, PlacedGang] = {}
        self._reserving: dict[GangKey, PlacedGang] = {}
        self._lazy: dict[VcName, dict[GangKey, PlacedGang]] = {}
        """Guaranteed gangs that are downgraded rather than ended, if that is enough."""
        self._ending: dict[VcName | None, dict[GangKey, PlacedGang]] = {}
        """Gangs with a member that is ending; by VC, or None for gangs that every VC may end."""
        self._young: dict[VcName, dict[GangKey, PlacedGang]] = {}
        """Gangs that must run on for a while before they may be ended."""

    def __len__(self) -> int:
        guaranteed = (len(gangs) for by in self._guaranteed.values() for gangs in by.values())
        return len(self._borrowers) + sum(guaranteed)

    def add(self, gang: PlacedGang) -> None:
        """Add a gang under its present standing; a foreign gang is a victim only by policy."""
        if gang.is_borrower:
            self._borrowers[gang.key] = gang
        elif gang.is_guaranteed:
            by_priority = self._guaranteed.setdefault(gang.request.vc, {})
            by_priority.setdefault(gang.priority, {})[gang.key] = gang
            if gang.request.is_lazy:
                self._lazy.setdefault(gang.request.vc, {})[gang.key] = gang
        if any(slot.is_ending for slot in gang.slots):
            self.note_ending(gang)
        self.note_minimum_run(gang)

    def remove(self, gang: PlacedGang) -> None:
        """Remove a gang; call it before the gang's standing changes."""
        self._borrowers.pop(gang.key, None)
        self._reserving.pop(gang.key, None)
        self._lazy.get(gang.request.vc, {}).pop(gang.key, None)
        self._young.get(gang.request.vc, {}).pop(gang.key, None)
        for vc in (None, gang.request.vc):
            self._ending.get(vc, {}).pop(gang.key, None)
        by_priority = self._guaranteed.get(gang.request.vc, {})
        gangs = by_priority.get(gang.request.priority, {})
        gangs.pop(gang.key, None)
        if not gangs:
            by_priority.pop(gang.request.priority, None)

    def refresh(self, gang: PlacedGang) -> None:
        """Update a gang that got or lost members, since it may have become foreign or ceased to."""
        if gang.is_borrower != (gang.key in self._borrowers):
            self.remove(gang)
            self.add(gang)
            if gang.reserved_slots():
                self.note_reserving(gang)

    def has(self, gang: PlacedGang) -> bool:
        """True if a gang is registered exactly as its standing requires."""
        by_priority = self._guaranteed.get(gang.request.vc, {})
        is_guaranteed = by_priority.get(gang.request.priority, {}).get(gang.key) is gang
        is_borrower = self._borrowers.get(gang.key) is gang
        if gang.reserved_slots() and self._reserving.get(gang.key) is not gang:
            return False
        if gang.is_ending and not self.has_ending_member(gang):
            return False
        is_lazy = self._lazy.get(gang.request.vc, {}).get(gang.key) is gang
        should_be_guaranteed = gang.is_guaranteed and not gang.is_borrower
        if is_lazy != (should_be_guaranteed and gang.request.is_lazy):
            return False
        return (is_guaranteed, is_borrower) == (should_be_guaranteed, gang.is_borrower)

    def below(self, vc: VcName, priority: int) -> Iterator[PlacedGang]:
        """Guaranteed gangs of a VC at lower priorities: lowest priority first, then youngest."""
        by_priority = self._guaranteed.get(vc, {})
        for lower in sorted(level for level in by_priority if level < priority):
            yield from reversed(by_priority[lower].values())

    def lazy_below(self, vc: VcName, priority: int) -> Iterator[PlacedGang]:
        """The gangs of `below` that may be downgraded, in the same order."""
        lazy = self._lazy.get(vc, {})
        lower = [gang for gang in reversed(lazy.values()) if gang.priority < priority]
        yield from sorted(lower, key=lambda gang: gang.priority)

    def highest_below(self, vc: VcName, priority: int) -> int | None:
        """The highest priority below `priority` that a guaranteed gang of the VC has, if any."""
        by_priority = self._guaranteed.get(vc, {})
        return max((level for level in by_priority if level < priority), default=None)

    def borrowers(self) -> Iterator[PlacedGang]:
        """Gangs that every VC may end, youngest first."""
        yield from reversed(self._borrowers.values())

    def guaranteed(self, vc: VcName) -> list[GangKey]:
        """The guaranteed gangs of a VC, in an order that equal histories give."""
        return [key for gangs in self._guaranteed.get(vc, {}).values() for key in gangs]

    def has_few_candidates(self, vc: VcName, priority: int, *, most: int) -> bool:
        """True if a gang of the VC has at most `most` possible victims of each kind."""
        by_priority = self._guaranteed.get(vc, {})
        own = sum(len(gangs) for level, gangs in by_priority.items() if level < priority)
        return own <= most and len(self._borrowers) <= most

    def note_reserving(self, gang: PlacedGang) -> None:
        """Register a gang that has reserved slots; drops gangs that no longer have any."""
        still = {key: g for key, g in self._reserving.items() if g.reserved_slots()}
        self._reserving = {**still, gang.key: gang}

    def reserving(self) -> list[PlacedGang]:
        """Gangs with reserved slots, oldest preemption first."""
        return [gang for gang in self._reserving.values() if gang.reserved_slots()]

    def note_ending(self, gang: PlacedGang) -> None:
        """Register a gang with a member that is ending."""
        self._ending.setdefault(_ending_vc(gang), {})[gang.key] = gang

    def has_ending_member(self, gang: PlacedGang) -> bool:
        """True if a member of a gang is or was ending; constant time."""
        return self._ending.get(_ending_vc(gang), {}).get(gang.key) is gang

    def ending_for(self, request: MemberRequest, *, most: int) -> Iterator[PlacedGang]:
        """Ending gangs that a guaranteed gang may wait for, the first to end first.

        Gangs of its own VC come before borrowers; at most `most` of each are visited.
        """
        for vc in (request.vc, None):
            for gang in islice(self._ending.get(vc, {}).values(), most):
                if gang.is_ending and gang.may_be_ended_for(request):
                    yield gang

    def note_minimum_run(self, gang: PlacedGang) -> None:
        """Register or remove a gang whose minimum run began or is over."""
        young = self._young.setdefault(gang.request.vc, {})
        if gang.minimum_run and not gang.is_borrower:
            young[gang.key] = gang
        else:
            young.pop(gang.key, None)

    def young_below(self, vc: VcName, priority: int) -> Iterator[PlacedGang]:
        """Gangs of a VC at lower priorities that are spared, the longest known first."""
        for gang in self._young.get(vc, {}).values():
            if gang.is_spared and gang.is_guaranteed and gang.priority < priority:
                yield gang

    def reserving_below(self, vc: VcName, priority: int) -> list[PlacedGang]:
        """Gangs of a VC that are preempting at a lower priority, oldest preemption first."""
        return [
            gang for gang in self.reserving() if gang.request.vc == vc and gang.priority < priority
        ]

    def has_candidates(self, vc: VcName, priority: int) -> bool:
        """True if there is any possible victim for a gang of this VC and priority."""
        lowest = min(self._guaranteed.get(vc, {}), default=priority)
        return bool(self._borrowers) or lowest < priority


def _ending_vc(gang: PlacedGang) -> VcName | None:
    return gang.request.vc if gang.is_guaranteed and not gang.is_borrower else None
