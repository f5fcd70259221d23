"""Reservations as documents of the promise ledger, and back."""

from datetime import UTC, datetime

from extender.cluster.reservation_rows import decode_body, encode_body
from extender.queue.reserve.model import Reservation
from state.promises.promises import PromiseRow


def to_row(one: Reservation) -> PromiseRow:
    """Encode a reservation."""
    ended = None if one.ended_at is None else _time(one.ended_at)
    body = encode_body(one)
    return PromiseRow(gang=one.gang, made_at=_time(one.made_at), ended_at=ended, body=body)


def from_row(row: PromiseRow) -> Reservation:
    """Read what `to_row` wrote; KeyError, TypeError or ValueError if it is something else."""
    ended = None if row.ended_at is None else row.ended_at.timestamp()
    return decode_body(row.gang, row.body, made_at=row.made_at.timestamp(), ended_at=ended)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
