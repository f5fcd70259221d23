"""Application of a decision to the state: completely or not at all."""

from collections.abc import Sequence

from extender.cells.decide.validity import check_current, outdated
from extender.cells.model import (
    NO_MEMBER,
    Decision,
    MemberRequest,
    Place,
    Preempt,
    Reject,
    Seat,
    Wait,
)
from extender.cells.observe.lifecycle import GangLifecycle
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, free_slot_at
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim


class Applier:
    """Applies decisions."""

    def __init__(
        self, table: AllocationTable, lifecycle: GangLifecycle, *, lease_seconds: float
    ) -> None:
        self._table = table
        self._lifecycle = lifecycle
        self._lease_seconds = lease_seconds

    def apply(self, decision: Decision, *, now: float) -> None:
        """Apply a decision; ConflictError, and no change, if it is out of date."""
        check_current(self._table, self._lifecycle.gang_of, decision)
        match decision:
            case Place():
                self._apply_place(decision, self._make_room(decision), now)
            case Preempt():
                self._apply_preempt(decision, self._make_room(decision), now)
            case Wait(cancels_own=True):
                self._stop_waiting(decision.request)
            case Wait() | Reject():
                pass

    def _make_room(self, decision: Place | Preempt) -> list[MemberSlot]:
        """Cancel, downgrade and map as decided; return the new slots, which no gang has yet.

        A ConflictError leaves everything as it was: a mapping may break a promise now that it did
        not break when the decision was planned.
        """
        gangs = self._table.gangs
        downgraded = decision.downgraded if isinstance(decision, Place) else ()
        with self._table.what_if() as trial:
            for key in decision.cancelled:
                self._table.remove_reserved_slots(gangs[key])
            for key in downgraded:
                self._table.downgrade(gangs[key])
            self._unreserve(decision)
            slots = [self._new_slot(decision, seat) for seat in decision.seats]
            self._check_promises(decision)
            trial.keep()
        for key in decision.cancelled:
            self._lifecycle.cancel_preemption(gangs[key])
        for key in downgraded:
            self._lifecycle.downgrade(gangs[key], by=decision.request.gang)
        return slots

    def _unreserve(self, decision: Place | Preempt) -> None:
        """Give up the place that is reserved for a late member, if it gets another one."""
        gang = self._table.gangs.get(decision.request.gang)
        reserved = gang.reserved_for(decision.request.member) if gang else None
        if gang is not None and reserved is not None and decision.seats:
            self._table.remove_slot(gang, reserved)

    def _new_slot(self, decision: Place | Preempt, seat: Seat) -> MemberSlot:
        by_address = self._table.trees[seat.chain].by_address
        leaves, claim = tuple(by_address[address] for address in seat.leaves), None
        if seat.claim is not None:
            claim = self._claim(decision.request, by_address[seat.claim])
        return MemberSlot(leaves, len(leaves), claim, is_reserved=isinstance(decision, Preempt))

    def _claim(self, request: MemberRequest, cell: Cell) -> Claim:
        """Return the preassigned cell that is mapped to this one; map it if it is not."""
        vc = self._table.vcs[request.vc]
        if cell.claim is not None:
            if cell.claim.vc == vc.name and cell.claim.virtual.pinned == request.pinned:
                return cell.claim
            raise outdated(request, f"cell {cell.address} is mapped to {cell.claim.address}")
        if not cell.is_unclaimed() or not vc.unused(cell.chain.name, cell.level):
            raise outdated(request, f"VC {vc.name} cannot have cell {cell.address}")
        return self._table.map_cell(vc, cell)

    def _check_promises(self, decision: Place | Preempt) -> None:
        for chain in dict.fromkeys(seat.chain for seat in decision.seats if seat.claim):
            if not self._table.supplies[chain].is_safe():
                raise outdated(decision.request, f"it would break a promise in chain {chain}")

    def _apply_place(self, decision: Place, slots: Sequence[MemberSlot], now: float) -> None:
        request = decision.request
        gang = self._table.gangs.get(request.gang)
        if gang is None:
            gang = self._lifecycle.begin(request, is_guaranteed=self._table.is_guaranteed(request))
        gang.lease_expires = now + self._lease_seconds
        if gang.is_preempting:
            self._lifecycle.occupy_reserved(gang)
        for slot in slots:
            self._table.add_slot(gang, slot)
        self._lifecycle.refresh(gang)
        if request.member != NO_MEMBER and gang.slot_of(request.member) is None:
            self._lifecycle.take_slot(
                gang, slots[0] if slots else _slot_at(gang, decision), request.member
            )

    def _apply_preempt(self, decision: Preempt, slots: Sequence[MemberSlot], now: float) -> None:
        request = decision.request
        gang = self._table.gangs.get(request.gang)
        if gang is None and slots:
            gang = self._lifecycle.begin(request, is_guaranteed=True)
        for slot in slots:
            assert gang is not None
            self._table.add_slot(gang, slot)
        if gang is not None and (
            slots or gang.is_preempting or request.member in gang.waiting_members
        ):
            gang.lease_expires = now + self._lease_seconds
            self._lifecycle.wait_for_victims(gang, request.member, request.leaf_count)

    def _stop_waiting(self, request: MemberRequest) -> None:
        """Give up what is reserved for a member."""
        gang = self._table.gangs[request.gang]
        if gang.is_preempting:
            self._lifecycle.end(gang)
        else:
            self._lifecycle.cancel_wait(gang, request.member)
            self._lifecycle.end_if_empty(gang)


def _slot_at(gang: PlacedGang, decision: Place) -> MemberSlot:
    """Return the slot of a decision, which `check_current` has found."""
    found = free_slot_at(gang, decision.request.leaf_count, decision.placement)
    assert found is not None
    return found
