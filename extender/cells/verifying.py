"""Whether a decision still holds: everything that it was planned on is looked at again.

Between `plan` and `apply` anything may have happened: a node left, a gang ended or got its members,
a leaf was taken, a cell was mapped for somebody else. What does not hold any more is said before
anything is changed. Promises are not looked at here: `Lives` maps, asks `Supply`, and undoes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from extender.cells.admission import refusal
from extender.cells.gangs import Gang, Slot, holders
from extender.cells.model import OPPORTUNISTIC, Decision, MemberRequest, Place, Preempt, Seat, Wait
from extender.cells.placing import slot_placement
from extender.cells.table import Table
from extender.cells.tree import Cell
from policy.errors import ConflictError
from policy.submission import GangKey, PodUid


def check_current(table: Table, gang_of: Mapping[PodUid, GangKey], decision: Decision) -> None:
    """Raise ConflictError with the first thing that is not as it was planned."""
    problem = next(_problems(table, gang_of, decision), None)
    if problem is not None:
        raise outdated(decision.request, problem)


def outdated(request: MemberRequest, problem: str) -> ConflictError:
    """The error of a decision that does not hold any more."""
    return ConflictError(f"decision about gang {request.gang} is out of date: {problem}")


def _problems(table: Table, gang_of: Mapping[PodUid, GangKey], decision: Decision) -> Iterator[str]:
    match decision:
        case Place():
            yield from _of_request(table, gang_of, decision)
            yield from _of_downgraded(table, decision)
            yield from _of_place(table, decision)
        case Preempt():
            yield from _of_request(table, gang_of, decision)
            yield from _of_preempt(table, decision)
        case Wait(cancels_own=True):
            yield from _of_cancelled(table, decision.request, (decision.request.gang,))


def _of_request(
    table: Table, gang_of: Mapping[PodUid, GangKey], decision: Place | Preempt
) -> Iterator[str]:
    request = decision.request
    if gang_of.get(request.member, request.gang) != request.gang:
        yield f"pod {request.member} is a member of gang {gang_of[request.member]}"
    refused = refusal(table, request, _gang(table, decision))
    if refused is not None:
        yield refused.reason
    yield from _of_cancelled(table, request, decision.cancelled)


def _gang(table: Table, decision: Place | Preempt) -> Gang | None:
    """The gang as it is when its own preemption has been given up, if that is part of it."""
    gang = table.gangs.get(decision.request.gang)
    if gang is not None and gang.is_preempting and gang.key in decision.cancelled:
        return None
    return gang


def _of_cancelled(
    table: Table, request: MemberRequest, cancelled: tuple[GangKey, ...]
) -> Iterator[str]:
    for key in cancelled:
        gang = table.gangs.get(key)
        if gang is None or not gang.reserved_slots():
            yield f"gang {key} does not preempt"
        elif key != request.gang and not gang.is_below(request):
            yield f"gang {key} may not be overtaken"


def _of_downgraded(table: Table, decision: Place) -> Iterator[str]:
    for key in decision.downgraded:
        gang = table.gangs.get(key)
        if gang is None or gang.is_preempting or not gang.is_below(decision.request):
            yield f"gang {key} cannot be downgraded"
        elif not gang.request.is_lazy:
            yield f"gang {key} is not lazy"


# -- places


def _of_place(table: Table, decision: Place) -> Iterator[str]:
    gang = _gang(table, decision)
    if decision.seats:
        yield from _of_growth(gang, decision)
        yield from _of_seats(table, decision, gang)
    elif gang is None:
        yield "it has no places any more"
    else:
        yield from _of_open_slot(gang, decision)


def _of_growth(gang: Gang | None, decision: Place | Preempt) -> Iterator[str]:
    """New seats are for members that have none, and no more than there are members."""
    request = decision.request
    taken = Counter(slot.size for slot in gang.slots) if gang else Counter[int]()
    if gang is not None and request.member in gang.asking:
        taken[request.leaf_count] -= 1  # what is reserved for it is given up
    added = Counter(len(seat.leaves) for seat in decision.seats)
    members = Counter(request.gang_leaf_counts)
    if any(taken[size] + count > members[size] for size, count in added.items()):
        yield "it has places for all its members"
    if isinstance(decision, Place) and len(decision.seats[0].leaves) != request.leaf_count:
        yield "the first seat is not its member's"
    if gang is not None and (gang.is_preempting or gang.is_being_preempted()):
        yield f"it is {gang.state()}"
    if gang is not None and gang.slot_of(request.member) is not None:
        yield f"pod {request.member} has a place"


def _of_open_slot(gang: Gang, decision: Place) -> Iterator[str]:
    request = decision.request
    own = gang.slot_of(request.member)
    slots = [own] if own is not None else _slots_for(gang, request)
    mine = [slot for slot in slots if slot_placement(slot) == decision.placement]
    if not mine:
        yield f"the place on node {decision.placement.node} is not its any more"
    if own is None and gang.is_being_preempted():
        yield "it is being preempted"
    awaited = gang.slots if gang.is_preempting else mine[:1]
    if any(slot.is_reserved for slot in awaited):
        leaves = [leaf for slot in awaited for leaf in slot.leaves]
        yield from (f"leaf {leaf.address} is in use" for leaf in leaves if leaf.holder is not None)
        yield from (f"leaf {leaf.address} is bad" for leaf in leaves if leaf.is_bad)


def _slots_for(gang: Gang, request: MemberRequest) -> list[Slot]:
    """Slots that a member may take: open ones, or what it waits for."""
    is_waiting = gang.is_preempting or request.member in gang.asking
    reserved = gang.reserved_slots(request.leaf_count) if is_waiting else []
    return [*gang.open_slots(request.leaf_count), *reserved]


# -- preemptions


def _of_preempt(table: Table, decision: Preempt) -> Iterator[str]:
    gang = _gang(table, decision)
    if decision.seats:
        yield from _of_growth(gang, decision)
        yield from _of_seats(table, decision, gang)
    elif gang is not None:
        slots = gang.slots if gang.is_preempting else _slots_for(gang, decision.request)
        new = [other.key for other in holders(slots) if other.key not in decision.victims]
        yield from (f"gang {key} has become its victim" for key in new)


# -- seats


def _of_seats(table: Table, decision: Place | Preempt, gang: Gang | None) -> Iterator[str]:
    counts_on_vc = gang.is_guaranteed if gang else _is_guaranteed(table, decision.request)
    addresses = [(seat.chain, leaf) for seat in decision.seats for leaf in seat.leaves]
    if len(set(addresses)) < len(addresses):
        yield "it has a leaf twice"
    for seat in decision.seats:
        if (seat.claim is not None) != counts_on_vc:
            yield "it counts on cells of its VC no more, or only now"
        yield from _of_seat(table, decision, seat)


def _is_guaranteed(table: Table, request: MemberRequest) -> bool:
    return request.priority != OPPORTUNISTIC and not table.is_open


def _of_seat(table: Table, decision: Place | Preempt, seat: Seat) -> Iterator[str]:
    around = table.cell(seat.chain, seat.claim) if seat.claim is not None else None
    if seat.claim is not None and around is None:
        yield f"there is no cell {seat.claim}"
    for address in seat.leaves:
        leaf = table.cell(seat.chain, address)
        if leaf is None or not leaf.is_leaf:
            yield f"there is no leaf {address}"
        elif around is not None and leaf.ancestor(around.level) is not around:
            yield f"leaf {address} is not in cell {around.address}"
        elif leaf.is_bad or leaf.holder is not None or leaf.reserver is not None:
            yield from _of_used_leaf(leaf, decision)


def _of_used_leaf(leaf: Cell, decision: Place | Preempt) -> Iterator[str]:
    if leaf.is_bad:
        yield f"leaf {leaf.address} is bad"
    is_given_up = leaf.reserver is not None and (
        leaf.reserver.key in decision.cancelled or _is_own(leaf, decision)
    )
    if leaf.reserver is not None and not is_given_up:
        yield f"leaf {leaf.address} is reserved for gang {leaf.reserver.key}"
    if leaf.holder is not None and not _is_victim(leaf.holder, decision):
        yield f"leaf {leaf.address} is held by gang {leaf.holder.key}"


def _is_own(leaf: Cell, decision: Place | Preempt) -> bool:
    """True if the leaf was reserved for the member that is planned anew."""
    gang, request = leaf.reserver, decision.request
    if gang is None or gang.key != request.gang or request.member not in gang.asking:
        return False
    return leaf in gang.reserved_slots(request.leaf_count)[0].leaves


def _is_victim(gang: Gang, decision: Place | Preempt) -> bool:
    if not isinstance(decision, Preempt) or gang.key not in decision.victims:
        return False
    return gang.may_be_ended_for(decision.request)
