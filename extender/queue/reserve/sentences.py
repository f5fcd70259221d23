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
    ReservationEnd.OVER: "its time is over",
    ReservationEnd.WITHDRAWN: "the Queues document no longer has it in this form",
    ReservationEnd.NO_ROOM: "leaf cells were lost, and the gang would not fit without them",
    ReservationEnd.CHANGED: "the gang asks for other leaf cells than those that were reserved",
    ReservationEnd.TOO_MANY: "the Queues document allows fewer reservations in each pool",
    ReservationEnd.REPLACED: "the gang has another reservation",
    ReservationEnd.WRONG_CLOCK: "the leader's clock was wrong when it was made",
}


def reserved_sentence(one: Reservation, show: ShowTime) -> str:
    """Say what is reserved for a gang, and what follows."""
    return (
        f"leaf cells on {_nodes_text(one.nodes)} are reserved for {_owner(one)}; "
        f"{_promise(one, show)}; gangs that may still run at {show(one.deadline)} do not use them"
    )


def _owner(one: Reservation) -> str:
    return f"gang {one.gang}" if one.entry is None else f"the advance reservation {one.entry}"


def _promise(one: Reservation, show: ShowTime) -> str:
    if one.entry is not None:
        return f"only gangs that it names use them from {show(one.deadline)} on"
    if one.promised is None:
        return f"no start is promised: it is not known when gang {one.waits_for} ends"
    after = f", when gang {one.waits_for} is expected to have ended" if one.waits_for else ""
    return f"its start is promised for {show(one.promised)}{after}"


def slip_sentence(slip: Slip, show: ShowTime) -> str:
    """Say why a promised start was put off, or only other cells are reserved."""
    if slip.before is not None and slip.promised is not None and slip.promised <= slip.before:
        return (
            f"other leaf cells are reserved, and the start is promised for {show(slip.promised)}: "
            f"{_cause(slip)}"
        )
    before = "an unknown time" if slip.before is None else show(slip.before)
    until = "an unknown time" if slip.promised is None else show(slip.promised)
    return f"the promised start was put off from {before} to {until}: {_cause(slip)}"


def overrun_sentence(one: Reservation, show: ShowTime) -> str:
    """Say to the owner of a gang that it still uses cells which are reserved for others."""
    return (
        f"the gang still uses leaf cells that are reserved since {show(one.deadline)} for "
        f"{_owner(one)}; Cellgate does not end it"
    )


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
