"""Gangs by VC and priority, for those who look for victims. Private to `extender.cells`."""

from collections.abc import Iterator
from itertools import islice

from extender.cells.model import MemberRequest
from extender.cells.state.placed_gangs import PlacedGang
from policy.submission import GangKey, VcName


class Registry:
    """All gangs; an opportunistic or downgraded gang belongs to no VC here."""

    def __init__(self) -> None:
        self._guaranteed: dict[VcName, dict[int, dict[GangKey, PlacedGang]]] = {}
        self._opportunistic: dict[GangKey, PlacedGang] = {}
        self._reserving: dict[GangKey, PlacedGang] = {}
        self._lazy: dict[VcName, dict[GangKey, PlacedGang]] = {}
        """Guaranteed gangs that are to be downgraded rather than ended."""
        self._ending: dict[VcName | None, dict[GangKey, PlacedGang]] = {}
        """Gangs with a member that is ending, by the VC on whose cells they count, if on any."""

    def __len__(self) -> int:
        guaranteed = (len(gangs) for by in self._guaranteed.values() for gangs in by.values())
        return len(self._opportunistic) + sum(guaranteed)

    def add(self, gang: PlacedGang) -> None:
        """Take in a gang, under its present standing; foreign ones are nobody's victims."""
        if gang.is_guaranteed:
            by_priority = self._guaranteed.setdefault(gang.request.vc, {})
            by_priority.setdefault(gang.priority, {})[gang.key] = gang
            if gang.request.is_lazy:
                self._lazy.setdefault(gang.request.vc, {})[gang.key] = gang
        elif not gang.is_foreign:
            self._opportunistic[gang.key] = gang
        if any(slot.is_ending for slot in gang.slots):
            self.note_ending(gang)

    def remove(self, gang: PlacedGang) -> None:
        """Forget a gang; before its standing changes."""
        self._opportunistic.pop(gang.key, None)
        self._reserving.pop(gang.key, None)
        self._lazy.get(gang.request.vc, {}).pop(gang.key, None)
        for vc in (None, gang.request.vc):
            self._ending.get(vc, {}).pop(gang.key, None)
        by_priority = self._guaranteed.get(gang.request.vc, {})
        gangs = by_priority.get(gang.request.priority, {})
        gangs.pop(gang.key, None)
        if not gangs:
            by_priority.pop(gang.request.priority, None)

    def refresh(self, gang: PlacedGang) -> None:
        """A gang got or lost members: it may have become foreign, or have ceased to be."""
        if not gang.is_guaranteed and gang.is_foreign == (gang.key in self._opportunistic):
            self.remove(gang)
            self.add(gang)

    def has(self, gang: PlacedGang) -> bool:
        """True if a gang is listed exactly where its standing says."""
        by_priority = self._guaranteed.get(gang.request.vc, {})
        is_guaranteed = by_priority.get(gang.request.priority, {}).get(gang.key) is gang
        is_opportunistic = self._opportunistic.get(gang.key) is gang
        should_be = not gang.is_guaranteed and not gang.is_foreign
        if gang.reserved_slots() and self._reserving.get(gang.key) is not gang:
            return False
        if gang.is_ending and not self.has_ending_member(gang):
            return False
        is_lazy = self._lazy.get(gang.request.vc, {}).get(gang.key) is gang
        if is_lazy != (gang.is_guaranteed and gang.request.is_lazy):
            return False
        return (is_guaranteed, is_opportunistic) == (gang.is_guaranteed, should_be)

    def below(self, vc: VcName, priority: int) -> Iterator[PlacedGang]:
        """Guaranteed gangs of a VC at a lower priority, by priority, then the youngest first."""
        by_priority = self._guaranteed.get(vc, {})
        for lower in sorted(level for level in by_priority if level < priority):
            yield from reversed(by_priority[lower].values())

    def lazy_below(self, vc: VcName, priority: int) -> Iterator[PlacedGang]:
        """The lazy ones of those, in the same order."""
        lazy = self._lazy.get(vc, {})
        lower = [gang for gang in reversed(lazy.values()) if gang.priority < priority]
        yield from sorted(lower, key=lambda gang: gang.priority)

    def highest_below(self, vc: VcName, priority: int) -> int | None:
        """The highest of the lower priorities of a VC's guaranteed gangs; None if there is none."""
        by_priority = self._guaranteed.get(vc, {})
        return max((level for level in by_priority if level < priority), default=None)

    def opportunistic(self) -> Iterator[PlacedGang]:
        """Opportunistic gangs, those that came last first."""
        yield from reversed(self._opportunistic.values())

    def has_few_candidates(self, vc: VcName, priority: int, *, most: int) -> bool:
        """True if no more than so many gangs of either kind are below a VC's priority."""
        by_priority = self._guaranteed.get(vc, {})
        own = sum(len(gangs) for level, gangs in by_priority.items() if level < priority)
        return own <= most and len(self._opportunistic) <= most

    def note_reserving(self, gang: PlacedGang) -> None:
        """A gang has reserved something; who has nothing reserved any more is forgotten here."""
        still = {key: g for key, g in self._reserving.items() if g.reserved_slots()}
        self._reserving = {**still, gang.key: gang}

    def reserving(self) -> list[PlacedGang]:
        """Gangs that wait for what is reserved for them, by age of their preemption."""
        return [gang for gang in self._reserving.values() if gang.reserved_slots()]

    def note_ending(self, gang: PlacedGang) -> None:
        """A member of a gang is ending."""
        vc = gang.request.vc if gang.is_guaranteed else None
        self._ending.setdefault(vc, {})[gang.key] = gang

    def has_ending_member(self, gang: PlacedGang) -> bool:
        """True if a member of a gang is ending, or was; quick."""
        vc = gang.request.vc if gang.is_guaranteed else None
        return self._ending.get(vc, {}).get(gang.key) is gang

    def ending_for(self, request: MemberRequest, *, most: int) -> Iterator[PlacedGang]:
        """Gangs that are ending, and that a guaranteed gang may wait for, those told first first.

        Its own VC's come before opportunistic ones; of both, no more than so many are looked at.
        """
        for vc in (request.vc, None):
            for gang in islice(self._ending.get(vc, {}).values(), most):
                if gang.is_ending and gang.may_be_ended_for(request):
                    yield gang

    def reserving_below(self, vc: VcName, priority: int) -> list[PlacedGang]:
        """Gangs of a VC that preempt at a lower priority, by age of their preemption."""
        return [
            gang for gang in self.reserving() if gang.request.vc == vc and gang.priority < priority
        ]

    def has_candidates(self, vc: VcName, priority: int) -> bool:
        """True if a gang of that VC and priority could find anybody below it."""
        lowest = min(self._guaranteed.get(vc, {}), default=priority)
        return bool(self._opportunistic) or lowest < priority
