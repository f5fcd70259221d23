"""Reservations decided again from the log: the same search, on the engine as it was then.

Why a reservation was looked at, and why it ended, is taken from the log.
"""

from collections.abc import Callable, Collection, Sequence

from extender.cells.model import Seat
from extender.cluster.cluster import Cluster
from extender.cluster.reservation_rows import (
    decode_body,
    decode_ends,
    decode_overrun,
    encode_overrun,
    encode_reservation,
)
from extender.cluster.rows import Row, decode_request, decode_seat
from extender.queue.reserve.model import CellSearch, FoundCells, Reservation, ReservationStep
from extender.queue.reserve.steps import (
    exchanged_for,
    gathered_on,
    made,
    made_for,
    moved,
    moved_for,
    on_cells,
    overrun,
)
from policy.queues.queues import Queues
from policy.submission import GangKey, NodeName, VcName
from state.log.records import DecisionRecord


class ReservationReplay:
    """The reservations in force, by the rows about them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._of: dict[GangKey, Reservation] = {}

    def decide(
        self,
        record: DecisionRecord,
        queues: Queues,
        nodes: Callable[[object], Collection[NodeName]],
    ) -> Row | None:
        """Take in a row; return what is decided again, if it has a decision."""
        gang, step = GangKey(*record.inputs["gang"]), ReservationStep(record.outcome)
        before = self._of.pop(gang, None)
        if step is ReservationStep.ENDED:
            return None
        if step is ReservationStep.SLIPPED:
            return None if before is None else self._slip(before, record)
        body = record.details.get("decision") or record.details["reservation"]
        logged = self._of[gang] = decode_body(gang, body, made_at=record.inputs["madeAt"])
        if "decision" not in record.details:
            return None
        found = self._search(record, nodes(record.inputs["candidates"]))
        if found is None:
            return _row(None)
        if logged.entry is not None:
            return _row(_for_entry(step, before, found, logged=logged, queues=queues))
        domain = self._cluster.domain(found.search.request)
        return _row(_for_gang(step, before, found, logged=logged, domain=domain, queues=queues))

    def _search(self, record: DecisionRecord, nodes: Collection[NodeName]) -> FoundCells | None:
        inputs = record.inputs
        search = CellSearch(
            request=decode_request(inputs["request"]),
            nodes=nodes,
            kept=_seats(inputs.get("kept", ())),
            may_preempt=inputs.get("mayPreempt", True),
            now=inputs["searchedAt"],
        )
        shadow = self._cluster.shadow(
            search.request,
            ends=decode_ends(inputs["ends"]),
            candidate_nodes=nodes,
            now=search.now,
            kept=search.kept,
            may_preempt=search.may_preempt,
            is_by_nodes=inputs.get("byNodes", False),
        )
        return None if shadow is None else FoundCells(shadow=shadow, search=search)

    def _slip(self, before: Reservation, record: DecisionRecord) -> Row:
        """Put the promised start off for the gangs that still hold reserved cells."""
        logged, now = dict(record.details["decision"]), record.inputs["now"]
        self._of[before.gang] = decode_overrun(before, logged, now=now)
        held = set(self._cluster.view_seats(before.domain, before.kept).holders)
        ends = [one for one in decode_ends(record.inputs["ends"]) if one[0] in held]
        after = overrun(before, ends, now=now) if ends else None
        return _row(None) if after is None else encode_overrun(after)


def _for_gang(
    step: ReservationStep,
    before: Reservation | None,
    found: FoundCells,
    *,
    logged: Reservation,
    domain: VcName | None,
    queues: Queues,
) -> Reservation:
    """Return what the reservation of a gang becomes; as logged if rows before it are missing."""
    longest = queues.run_time.longest
    if step is ReservationStep.MADE:
        return made(found, domain=domain, longest=longest)
    if before is None:
        return logged
    match step:
        case ReservationStep.MOVED:
            lost = logged.slips[-1].nodes
            return moved(before, found, domain=domain, lost=lost, longest=longest)
        case ReservationStep.GATHERED:
            return gathered_on(before, found.shadow)
        case _:
            return on_cells(before, found.shadow)


def _for_entry(
    step: ReservationStep,
    before: Reservation | None,
    found: FoundCells,
    *,
    logged: Reservation,
    queues: Queues,
) -> Reservation | None:
    """Return what the reservation of an entry becomes; None if the document has no such entry."""
    entry = next((one for one in queues.reservations if one.name == logged.entry), None)
    if entry is None:
        return None
    if step is ReservationStep.MADE:
        return made_for(entry, found)
    if before is None:
        return logged
    if step is ReservationStep.MOVED:
        return moved_for(before, entry, found, lost=logged.slips[-1].nodes)
    return exchanged_for(before, entry, found)


def _seats(rows: Sequence[Sequence[str]]) -> tuple[Seat, ...]:
    return tuple(map(decode_seat, rows))


def _row(one: Reservation | None) -> Row:
    return {"is": "none"} if one is None else encode_reservation(one)
