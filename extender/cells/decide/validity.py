"""Checks that a decision is still valid: everything that it was planned on is checked again.

Between `plan` and `apply` a node may have left, a gang may have ended or got members, a leaf may
have been taken, a cell may have been mapped to another VC. These checks run before any change.
Promises are checked by `applier`, which maps cells and undoes the mapping if it is not safe.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from extender.cells.decide.refusals import refusal
from extender.cells.model import Decision, MemberRequest, Place, Preempt, Seat, Wait
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, free_slot_at, slot_placement
from extender.cells.state.tree import Cell
from policy.errors import ConflictError
from policy.submission import GangKey, PodUid


def check_current(
    table: AllocationTable, gang_of: Mapping[PodUid, GangKey], decision: Decision
) -> None:
    """Raise ConflictError with the first difference to the state that was planned on."""
    problem = next(_problems(table, gang_of, decision), None)
    if problem is not None:
        raise outdated(decision.request, problem)


def outdated(request: MemberRequest, problem: str) -> ConflictError:
    """Build the error for a decision that is out of date."""
    return ConflictError(f"decision about gang {request.gang} is out of date: {problem}")


def _problems(
    table: AllocationTable, gang_of: Mapping[PodUid, GangKey], decision: Decision
) -> Iterator[str]:
    gang = table.gangs.get(decision.request.gang)
    match decision:
        case Place() | Preempt():
            if decision.request.gang in decision.cancelled:
                gang = None  # it is planned again, without what it has reserved
            yield from _of_request(table, gang_of, decision, gang)
            if decision.seats:
                yield from _of_growth(gang, decision)
                yield from _of_seats(table, decision, gang)
            elif isinstance(decision, Place):
                yield from _of_open_slot(gang, decision)
            elif gang is not None:
                yield from _of_victims(gang, decision)
        case Wait(cancels_own=True) if gang is None or not _waits(gang, decision.request.member):
            yield "the gang does not preempt"


def _of_request(
    table: AllocationTable,
    gang_of: Mapping[PodUid, GangKey],
    decision: Place | Preempt,
    gang: PlacedGang | None,
) -> Iterator[str]:
    request = decision.request
    if gang_of.get(request.member, request.gang) != request.gang:
        yield f"pod {request.member} is a member of gang {gang_of[request.member]}"
    refused = refusal(table, request, gang)
    if refused is not None:
        yield refused.reason.text
    yield from _of_cancelled(table, request, decision.cancelled)
    if isinstance(decision, Place):
        yield from _of_downgraded(table, decision)


def _of_cancelled(
    table: AllocationTable, request: MemberRequest, cancelled: tuple[GangKey, ...]
) -> Iterator[str]:
    for key in cancelled:
        gang = table.gangs.get(key)
        if gang is None or not gang.reserved_slots():
            yield f"gang {key} does not preempt"
        elif key == request.gang and not gang.is_preempting:
            yield f"the gang is {gang.state()}"
        elif key != request.gang and not gang.is_below(request):
            yield f"the preemption of gang {key} may not be cancelled"


def _waits(gang: PlacedGang, member: PodUid) -> bool:
    """Tell whether cells are reserved for a member, alone or with its whole gang."""
    return gang.is_preempting or gang.reserved_for(member) is not None


def _of_downgraded(table: AllocationTable, decision: Place) -> Iterator[str]:
    for key in decision.downgraded:
        gang = table.gangs.get(key)
        if gang is None or gang.is_preempting or not gang.is_below(decision.request):
            yield f"gang {key} cannot be downgraded"
        elif not gang.request.is_lazy:
            yield f"gang {key} is not lazy"


# -- places that the gang has, and victims that it waits for


def _of_growth(gang: PlacedGang | None, decision: Place | Preempt) -> Iterator[str]:
    """New seats must be for members without seats, and not exceed the members."""
    request = decision.request
    added, members = Counter(len(seat.leaves) for seat in decision.seats), request.gang_leaf_counts
    taken = {size: gang.slots.count(size) if gang else 0 for size in added}
    if gang is not None and gang.reserved_for(request.member) is not None:
        taken[request.leaf_count] = taken.get(request.leaf_count, 0) - 1
    if any(taken[size] + count > members.count(size) for size, count in added.items()):
        yield "all members have places"
    if not any(len(seat.leaves) == request.leaf_count for seat in decision.seats):
        yield f"no seat fits pod {request.member}"
    if gang is not None and (gang.is_preempting or gang.is_being_preempted()):
        yield f"the gang is {gang.state()}"
    if gang is not None and gang.slot_of(request.member) is not None:
        yield f"pod {request.member} already has a place"


def _of_open_slot(gang: PlacedGang | None, decision: Place) -> Iterator[str]:
    if gang is None:
        yield "the gang no longer has places"
        return
    request, size = decision.request, decision.request.leaf_count
    own = gang.slot_of(request.member)
    found = own if own is not None else free_slot_at(gang, size, decision.placement)
    if found is None or slot_placement(found) != decision.placement:
        yield f"the gang no longer has the place on node {decision.placement.node}"
        return
    if own is None and gang.is_being_preempted():
        yield "the gang is being preempted"
    if found.is_reserved:
        if not _waits(gang, request.member):
            yield f"nothing is reserved for pod {request.member}"
        yield from _of_reserved(list(gang.slots) if gang.is_preempting else [found])


def _of_reserved(slots: Sequence[MemberSlot]) -> Iterator[str]:
    """The victims must have ended, and their leaves must be healthy."""
    for leaf in [leaf for slot in slots for leaf in slot.leaves]:
        if leaf.holder is not None:
            yield f"leaf {leaf.address} is held by gang {leaf.holder.key}"
        if leaf.is_bad:
            yield f"leaf {leaf.address} is bad"


def _of_victims(gang: PlacedGang, decision: Preempt) -> Iterator[str]:
    if not _waits(gang, decision.request.member):
        yield from _of_late_member(gang, decision.request)
    elif gang.is_preempting:
        new = [other.key for other in gang.victims() if other.key not in decision.victims]
        yield from (f"gang {key} has become its victim" for key in new)


def _of_late_member(gang: PlacedGang, request: MemberRequest) -> Iterator[str]:
    """Without a reservation, the member must have no place and its gang must lack one."""
    has_room = gang.slots.count(request.leaf_count) < gang.member_count(request.leaf_count)
    has_place = gang.slot_of(request.member) is not None
    if not has_room or has_place or gang.is_being_preempted():
        yield f"the gang is {gang.state()}"


# -- seats


def _of_seats(
    table: AllocationTable, decision: Place | Preempt, gang: PlacedGang | None
) -> Iterator[str]:
    counts_on_vc = gang.is_guaranteed if gang else table.is_guaranteed(decision.request)
    own = gang.reserved_for(decision.request.member) if gang else None
    addresses = [(seat.chain, leaf) for seat in decision.seats for leaf in seat.leaves]
    if len(set(addresses)) < len(addresses):
        yield "a leaf occurs twice"
    for seat in decision.seats:
        if (seat.claim is not None) != counts_on_vc:
            yield "the gang has become guaranteed or opportunistic"
        yield from _of_seat(table, decision, seat, own)


def _of_seat(
    table: AllocationTable, decision: Place | Preempt, seat: Seat, own: MemberSlot | None
) -> Iterator[str]:
    around = table.cell(seat.chain, seat.claim) if seat.claim is not None else None
    if seat.claim is not None and around is None:
        yield f"cell {seat.claim} does not exist"
    for address in seat.leaves:
        leaf = table.cell(seat.chain, address)
        if leaf is None or not leaf.is_leaf:
            yield f"leaf {address} does not exist"
        elif around is not None and leaf.ancestor(around.level) is not around:
            yield f"leaf {address} is not in cell {around.address}"
        elif leaf.is_bad or leaf.holder is not None or leaf.reserver is not None:
            yield from _of_used_leaf(leaf, decision, own)


def _of_used_leaf(leaf: Cell, decision: Place | Preempt, own: MemberSlot | None) -> Iterator[str]:
    """Check a leaf in use; `own` is the member's reserved slot, which its new seat replaces."""
    if leaf.is_bad:
        yield f"leaf {leaf.address} is bad"
    is_given_up = own is not None and leaf in own.leaves
    if (
        leaf.reserver is not None
        and leaf.reserver.key not in decision.cancelled
        and not is_given_up
    ):
        yield f"leaf {leaf.address} is reserved for gang {leaf.reserver.key}"
    if leaf.holder is not None and not _is_victim(leaf.holder, decision):
        yield f"leaf {leaf.address} is held by gang {leaf.holder.key}"


def _is_victim(gang: PlacedGang, decision: Place | Preempt) -> bool:
    if not isinstance(decision, Preempt) or gang.key not in decision.victims:
        return False
    return gang.may_be_ended_for(decision.request)
