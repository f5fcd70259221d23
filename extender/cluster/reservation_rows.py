"""Reservations as JSON, and back: for the log, and for the promise ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from extender.cluster.rows import Row, decode_seat, encode_gang, encode_request, encode_seat
from extender.queue.reserve.model import (
    FoundCells,
    Reservation,
    ReservationChange,
    ReservationEnd,
    Slip,
    SlipCause,
)
from extender.queue.reserve.steps import with_overrun
from policy.queues.pools import Pool
from policy.submission import GangKey

End = tuple[GangKey, float]


def encode_body(one: Reservation) -> Row:
    """Encode a reservation, without its gang and its times in the ledger."""
    return {
        "pool": list(one.pool),
        "domain": one.domain,
        "priority": one.priority,
        "seats": [encode_seat(seat) for seat in one.seats],
        "drained": [encode_seat(seat) for seat in one.drained],
        "nodes": list(one.nodes),
        "firstPromised": one.first_promised,
        "promised": one.promised,
        "deadline": one.deadline,
        "waitsFor": _encode_gang(one.waits_for),
        "slips": [_encode_slip(slip) for slip in one.slips],
        **({"end": str(one.end)} if one.end is not None else {}),
    }


def decode_body(
    gang: GangKey, body: Mapping[str, Any], *, made_at: float, ended_at: float | None = None
) -> Reservation:
    """Read what `encode_body` wrote; KeyError, TypeError or ValueError if it is something else."""
    vc, leaf_type, pinned = body["pool"]
    return Reservation(
        gang=gang,
        pool=Pool(vc, leaf_type, pinned),
        domain=body["domain"],
        priority=body["priority"],
        seats=tuple(map(decode_seat, body["seats"])),
        drained=tuple(map(decode_seat, body["drained"])),
        nodes=tuple(body["nodes"]),
        made_at=made_at,
        first_promised=body["firstPromised"],
        promised=body["promised"],
        deadline=body["deadline"],
        waits_for=_decode_gang(body["waitsFor"]),
        slips=tuple(map(_decode_slip, body["slips"])),
        ended_at=ended_at,
        end=ReservationEnd(body["end"]) if "end" in body else None,
    )


def _encode_slip(slip: Slip) -> Row:
    return {
        "at": slip.at,
        "before": slip.before,
        "promised": slip.promised,
        "cause": str(slip.cause),
        "gang": _encode_gang(slip.gang),
        "nodes": list(slip.nodes),
    }


def _decode_slip(row: Mapping[str, Any]) -> Slip:
    return Slip(
        at=row["at"],
        before=row["before"],
        promised=row["promised"],
        cause=SlipCause(row["cause"]),
        gang=_decode_gang(row["gang"]),
        nodes=tuple(row["nodes"]),
    )


def _encode_gang(gang: GangKey | None) -> list[str] | None:
    return None if gang is None else encode_gang(gang)


def _decode_gang(row: list[str] | None) -> GangKey | None:
    return None if row is None else GangKey(*row)


# -- rows of the log


def encode_reservation(one: Reservation) -> Row:
    """Encode what was decided about a reservation; equal reservations give equal rows."""
    return {"is": "reservation", **encode_body(one)}


def encode_overrun(one: Reservation) -> Row:
    """Encode that a promised start was put off: one that is late has many such rows."""
    return {"is": "slip", "promised": one.promised, "waitsFor": _encode_gang(one.waits_for)}


def decode_overrun(before: Reservation, row: Row, *, now: float) -> Reservation:
    """Return what a reservation became by what `encode_overrun` wrote."""
    promised, gang = row["promised"], _decode_gang(row["waitsFor"])
    slip = Slip(
        at=now, before=before.promised, promised=promised, cause=SlipCause.OVERRUN, gang=gang
    )
    return with_overrun(replace(before, promised=promised, waits_for=gang), slip)


def encode_change(change: ReservationChange) -> Row:
    """Encode what a change of a reservation depended on, without the nodes that were searched."""
    one = change.after
    row: Row = {"gang": encode_gang(one.gang), "madeAt": one.made_at, "now": change.at}
    if change.found is not None:
        row |= _encode_found(change.found)
    if change.ends:
        row["ends"] = encode_ends(change.ends)
    return row


def _encode_found(found: FoundCells) -> Row:
    search, shadow = found.search, found.shadow
    row: Row = {
        "request": encode_request(search.request),
        "searchedAt": search.now,
        "ends": encode_ends(shadow.ends),
    }
    if search.kept:
        row["kept"] = [encode_seat(seat) for seat in search.kept]
    if not search.may_preempt:
        row["mayPreempt"] = False
    return row | ({"byNodes": True} if shadow.is_by_nodes else {})


def encode_ends(ends: Sequence[End]) -> list[list[Any]]:
    """Encode when gangs are expected to end; None stands for a time that is unknown."""
    return [[*encode_gang(gang), end if end < inf else None] for gang, end in ends]


def decode_ends(row: Sequence[Sequence[Any]]) -> tuple[End, ...]:
    """Read what `encode_ends` wrote."""
    return tuple((GangKey(*gang), inf if end is None else end) for *gang, end in row)
