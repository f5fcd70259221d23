"""Sentences about reservations, for their owners. Times are those that were promised."""

from collections.abc import Callable, Sequence

from extender.cells.phrases import names_text
from extender.queue.reserve.model import Reservation, ReservationEnd, Slip, SlipCause
from policy.wording import count_of

ShowTime = Callable[[float], str]
_LISTED = 4
_ENDS = {
    ReservationEnd.STARTED: "the gang has its places",
    ReservationEnd.GONE: "the gang has no pods any more",
    ReservationEnd.NOT_WAITING: "the gang does not wait for leaf cells any more",
    ReservationEnd.UNUSED: "its leaf cells are free, but the gang waits for something else",
    ReservationEnd.OUTRANKED: "another gang is ahead, and reservations are not sticky",
    ReservationEnd.NO_ROOM: "leaf cells were lost, and the gang would not fit without them",
}


def reserved_sentence(one: Reservation, show: ShowTime) -> str:
    """Say what is reserved for a gang, and what follows."""
    return (
        f"leaf cells on {_nodes_text(one.nodes)} are reserved for gang {one.gang}; "
        f"{_promise(one, show)}; gangs that may still run at {show(one.deadline)} do not use them"
    )


def _promise(one: Reservation, show: ShowTime) -> str:
    if one.promised is None:
        return f"no start is promised: it is not known when gang {one.waits_for} ends"
    after = f", when gang {one.waits_for} is expected to have ended" if one.waits_for else ""
    return f"its start is promised for {show(one.promised)}{after}"


def slip_sentence(slip: Slip, show: ShowTime) -> str:
    """Say why a promised start was put off."""
    before = "an unknown time" if slip.before is None else show(slip.before)
    until = "an unknown time" if slip.promised is None else show(slip.promised)
    return f"the promised start was put off from {before} to {until}: {_cause(slip)}"


def _cause(slip: Slip) -> str:
    if slip.cause is SlipCause.OVERRUN:
        return f"gang {slip.gang} runs longer than expected"
    return f"reserved leaf cells on {_nodes_text(slip.nodes)} can no longer be used"


def end_sentence(end: ReservationEnd) -> str:
    """Say why a reservation ended."""
    return f"the reservation ended: {_ENDS[end]}"


def _nodes_text(nodes: Sequence[str]) -> str:
    names = list(dict.fromkeys(nodes))
    return f"{count_of(len(names), 'node')} ({names_text(names[:_LISTED], len(names))})"
