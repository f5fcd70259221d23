"""Gangs get other priorities on the leaves that they hold, one after the other.

All cells stay mapped as they are. A gang that becomes opportunistic gives its preassigned cells
back, one that becomes guaranteed gets unused cells of its VC if they cover its leaves, and a
preemption ends if one of its victims may not be ended any more. Between two steps some gangs have
their new priority and others not yet: no gang may be preempted meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from extender.cells.model import OPPORTUNISTIC
from extender.cells.observe.adoption import Adopter
from extender.cells.observe.lifecycle import GangLifecycle
from extender.cells.observe.reconfiguration import ranked, replay_order
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.gang_slots import GangSlots
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.registry import Registry
from extender.cells.views.listings import Stepwise
from policy.submission import GangKey


class PriorityChange:
    """Changes the priorities of gangs in place."""

    def __init__(
        self,
        table: AllocationTable,
        registry: Registry,
        lifecycle: GangLifecycle,
        adopter: Adopter,
    ) -> None:
        self._table = table
        self._registry = registry
        self._lifecycle = lifecycle
        self._adopter = adopter
        self.before: dict[GangKey, PlacedGang] = {}
        """Copies of the affected gangs as they were, but with their new priorities."""

    def steps(self, priorities: Mapping[GangKey, int]) -> Stepwise[None]:
        """Change the priorities of some gangs, and promote downgraded ones if possible."""
        for gang in self._in_order(priorities):
            if self._table.gangs.get(gang.key) is gang:
                self.change(gang, priorities[gang.key])
            yield
        for gang in self._registry.reserving():
            self._cancel_overtaken(gang)
            yield
        for gang in self._downgraded():
            if self._table.gangs.get(gang.key) is gang:
                self._promote(gang)
            yield

    def raise_one(self, gang: PlacedGang, priority: int) -> None:
        """Raise the priority of one gang, and make it guaranteed if possible."""
        self.change(gang, priority)
        self._adopter.promote_downgraded(gang)

    def change(self, gang: PlacedGang, priority: int) -> None:
        """Change the priority of one gang."""
        new = ranked(gang, {gang.key: priority})
        self._remember(new)
        if priority == OPPORTUNISTIC and gang.is_preempting:
            self._lifecycle.end(gang)
            return
        if priority == OPPORTUNISTIC and gang.is_guaranteed:
            self._lifecycle.downgrade(gang, by=gang.key)
        is_reserving = bool(gang.reserved_slots())
        self._registry.remove(gang)
        gang.request = new.request
        if self._table.is_guaranteed(gang.request) or priority == OPPORTUNISTIC:
            gang.downgraded_by = new.downgraded_by
        self._registry.add(gang)
        if is_reserving:
            self._registry.note_reserving(gang)
        self._table.changes.record(gang)
        for slot in gang.slots:
            self._lifecycle.cancel_blocked_preemptions(gang, slot.leaves)

    def _in_order(self, priorities: Mapping[GangKey, int]) -> Sequence[PlacedGang]:
        known = (self._table.gangs.get(key) for key in priorities)
        changed = [gang for gang in known if gang is not None]
        return sorted(changed, key=lambda gang: (-priorities[gang.key], gang.sequence_number))

    def _cancel_overtaken(self, gang: PlacedGang) -> None:
        """Cancel a preemption of which a victim may not be ended any more."""
        if not all(victim.may_be_ended_for(gang.request) for victim in gang.victims()):
            self._remember(gang)
            self._lifecycle.cancel_preemption(gang)

    def _downgraded(self) -> list[PlacedGang]:
        gangs = self._table.gangs.values()
        return replay_order([gang for gang in gangs if gang.downgraded_by is not None])

    def _promote(self, gang: PlacedGang) -> None:
        copy = _copy(gang)
        self._adopter.promote_downgraded(gang)
        if gang.downgraded_by is None:
            self.before.setdefault(gang.key, copy)

    def _remember(self, gang: PlacedGang) -> None:
        self.before[gang.key] = _copy(gang)


def _copy(gang: PlacedGang) -> PlacedGang:
    slots = GangSlots(replace(slot) for slot in gang.slots)
    return replace(gang, slots=slots, waiting_members=dict(gang.waiting_members))
