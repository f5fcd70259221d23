"""Reservations as documents of the promise ledger, and back."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from extender.cluster.rows import decode_seat, encode_gang, encode_seat
from extender.queue.reserve.model import Reservation, ReservationEnd, Slip, SlipCause
from policy.queues.pools import Pool
from policy.submission import GangKey
from state.promises.promises import PromiseRow


def to_row(one: Reservation) -> PromiseRow:
    """Encode a reservation."""
    body = {
        "pool": list(one.pool),
        "domain": one.domain,
        "priority": one.priority,
        "seats": [encode_seat(seat) for seat in one.seats],
        "drained": [encode_seat(seat) for seat in one.drained],
        "nodes": list(one.nodes),
        "firstPromised": one.first_promised,
        "promised": one.promised,
        "deadline": one.deadline,
        "waitsFor": _gang_row(one.waits_for),
        "slips": [_slip_row(slip) for slip in one.slips],
        **({"end": str(one.end)} if one.end is not None else {}),
    }
    ended = None if one.ended_at is None else _time(one.ended_at)
    return PromiseRow(gang=one.gang, made_at=_time(one.made_at), ended_at=ended, body=body)


def from_row(row: PromiseRow) -> Reservation:
    """Read what `to_row` wrote; KeyError, TypeError or ValueError if it is something else."""
    body = row.body
    vc, leaf_type, pinned = body["pool"]
    return Reservation(
        gang=row.gang,
        pool=Pool(vc, leaf_type, pinned),
        domain=body["domain"],
        priority=body["priority"],
        seats=tuple(map(decode_seat, body["seats"])),
        drained=tuple(map(decode_seat, body["drained"])),
        nodes=tuple(body["nodes"]),
        made_at=row.made_at.timestamp(),
        first_promised=body["firstPromised"],
        promised=body["promised"],
        deadline=body["deadline"],
        waits_for=_gang(body["waitsFor"]),
        slips=tuple(map(_slip, body["slips"])),
        ended_at=None if row.ended_at is None else row.ended_at.timestamp(),
        end=ReservationEnd(body["end"]) if "end" in body else None,
    )


def _slip_row(slip: Slip) -> dict[str, Any]:
    return {
        "at": slip.at,
        "before": slip.before,
        "promised": slip.promised,
        "cause": str(slip.cause),
        "gang": _gang_row(slip.gang),
        "nodes": list(slip.nodes),
    }


def _slip(row: Mapping[str, Any]) -> Slip:
    return Slip(
        at=row["at"],
        before=row["before"],
        promised=row["promised"],
        cause=SlipCause(row["cause"]),
        gang=_gang(row["gang"]),
        nodes=tuple(row["nodes"]),
    )


def _gang_row(gang: GangKey | None) -> list[str] | None:
    return None if gang is None else encode_gang(gang)


def _gang(row: list[str] | None) -> GangKey | None:
    return None if row is None else GangKey(*row)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
