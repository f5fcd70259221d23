"""A reservation as JSON: the cells, the promised start, each slip with its reason.

A viewer who may read only the own gangs sees no name of another gang.
"""

from dataclasses import replace

from extender.inspection.json_views import JsonObject, if_any
from extender.queue.reserve.defragmentation import ProposedMoves, moves_sentence
from extender.queue.reserve.model import Reservation, Slip
from extender.queue.reserve.sentences import end_sentence, reserved_sentence, slip_sentence
from policy.submission import GangKey
from policy.wording import moment

_OTHER = GangKey("another", "user's gang")


def show_reservation(
    one: Reservation | None, moves: ProposedMoves | None = None, *, viewer: str | None = None
) -> JsonObject:
    """Show the reservation of a gang, or the last one that it had, as a field; none if None.

    With it come the moves of other gangs that would let it start earlier.
    """
    if one is None:
        return {}
    told = one if viewer is None else _anonymous(one)
    ended = {"ended": _moment(one.ended_at), "end": one.end} if one.end is not None else {}
    return {
        "reservation": {
            "nodes": list(dict.fromkeys(one.nodes)),
            "since": moment(one.made_at),
            **if_any("firstPromisedStart", _moment(one.first_promised)),
            **if_any("promisedStart", _moment(one.promised)),
            "deadline": moment(one.deadline),
            **if_any("waitsFor", _name(one.waits_for) if viewer is None else None),
            "slips": list(map(_show_slip, told.slips)),
            **ended,
            **if_any("moves", _show_moves(moves, viewer)),
            "explanation": [
                end_sentence(one.end) if one.end else reserved_sentence(told, moment),
                *(slip_sentence(slip, moment) for slip in told.slips),
            ],
        }
    }


def _show_moves(found: ProposedMoves | None, viewer: str | None) -> JsonObject | None:
    if found is None:
        return None
    names = None if viewer is not None else list(map(str, found.moves.gangs))
    return {
        **if_any("gangs", names),
        "count": len(found.moves.gangs),
        "nodes": list(dict.fromkeys(found.moves.nodes)),
        "costSeconds": round(found.moves.cost),
        "performed": found.is_performed,
        "foundAt": moment(found.found_at),
        "explanation": moves_sentence(found, names=names),
    }


def _show_slip(slip: Slip) -> JsonObject:
    return {
        "at": moment(slip.at),
        **if_any("before", _moment(slip.before)),
        **if_any("promisedStart", _moment(slip.promised)),
        "cause": slip.cause,
        **if_any("gang", None if slip.gang == _OTHER else _name(slip.gang)),
        **if_any("nodes", list(slip.nodes) or None),
    }


def _anonymous(one: Reservation) -> Reservation:
    slips = tuple(replace(slip, gang=_OTHER if slip.gang else None) for slip in one.slips)
    return replace(one, waits_for=_OTHER if one.waits_for else None, slips=slips)


def _name(gang: GangKey | None) -> str | None:
    return None if gang is None else str(gang)


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else moment(seconds)
