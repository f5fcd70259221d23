"""Rows of the queue: ranks, reservations, and gates that are lifted."""

from collections.abc import Mapping
from typing import Final

from cli.log.mask.engine_rows import candidates, document, request
from cli.log.mask.fields import (
    Mask,
    Pass,
    computed,
    each,
    fields,
    list_of,
    mapping,
    name,
    number,
    optional,
    text_of,
    tuple_of,
    words,
)
from cli.log.mask.names import Kind
from cli.log.mask.structures import (
    class_name,
    gang_list,
    group,
    node,
    pinned,
    seat,
    type_name,
    uid,
    user,
    vc,
    window,
)
from extender.queue.order.gang_order import FORMULA
from extender.queue.reserve.model import ReservationEnd, SlipCause
from policy.queues.factors import FactorName

level: Final = name(Kind.LEVEL)
_BEGIN: Final = "entry "
_numbers: Final = each(number)


def reservation_subject(value: object, now: Pass, where: str) -> str:
    """Mask the gang that owns a reservation, or the entry of the document that it is for."""
    text = text_of(value, where)
    if text.startswith(_BEGIN):
        return f"{_BEGIN}{window(text.removeprefix(_BEGIN), now, where)}"
    namespace, slash, gang = text.partition("/")
    return "/".join(map(str, gang_list([namespace, gang] if slash else ["", text], now, where)))


_facts: Final = fields(
    {
        "vc": vc,
        "leafCells": number,
        "asked": number,
        "user": user,
        "group": group,
        "class": class_name,
        "leafType": type_name,
        "pinned": pinned,
        "startBy": number,
        "priority": number,
        "median": number,
        "limit": number,
    }
)
RANK_INPUTS: Final[Mapping[str, Mask]] = {
    "gang": gang_list,
    "facts": _facts,
    "now": number,
    "placeOf": gang_list,
    "behind": number,
    "share": number,
    "vc": _numbers,
    "leafCells": number,
}
_rank: Final = fields(
    {
        "is": words("rank"),
        "level": number,
        "levelName": level,
        "rank": number,
        "parts": mapping(words(*FactorName, FORMULA), _numbers),
        "ownLevel": level,
        "nextPromotion": number,
        "failure": computed,
    }
)
RANK_DETAILS: Final[Mapping[str, Mask]] = {"decision": _rank}
ORDER_INPUTS: Final[Mapping[str, Mask]] = {
    "now": number,
    "leafCells": number,
    "shares": each(tuple_of(group, user, number)),
    "vcs": mapping(vc, _numbers),
    "all": number,
}
ORDER_DETAILS: Final[Mapping[str, Mask]] = {
    "decision": fields({"is": words("order"), "gangs": number, "checksum": computed})
}


def _end(value: object, now: Pass, where: str) -> list[object]:
    """Mask a gang and when it is expected to end, in one list."""
    *gang, at = list_of(value, where)
    return [*gang_list(gang, now, where), number(at, now, where)]


_slip: Final = fields(
    {
        "at": number,
        "before": number,
        "promised": number,
        "cause": words(*SlipCause),
        "gang": optional(gang_list),
        "nodes": each(node),
    }
)
_RESERVATION: Final[Mapping[str, Mask]] = {
    "pool": tuple_of(vc, type_name, pinned),
    "domain": vc,
    "priority": number,
    "seats": each(seat),
    "drained": each(seat),
    "nodes": each(node),
    "firstPromised": number,
    "promised": number,
    "deadline": number,
    "waitsFor": optional(gang_list),
    "slips": each(_slip),
    "end": words(*ReservationEnd),
}
RESERVATION_DETAILS: Final[Mapping[str, Mask]] = {
    "decision": fields({"is": words("reservation", "slip"), **_RESERVATION}),
    "reservation": fields(_RESERVATION),
    "end": words(*ReservationEnd),
}
RESERVATION_INPUTS: Final[Mapping[str, Mask]] = {
    "gang": gang_list,
    "madeAt": number,
    "now": number,
    "ends": each(_end),
    "request": request,
    "searchedAt": number,
    "kept": each(seat),
    "mayPreempt": number,
    "byNodes": number,
    "candidates": candidates,
}


def _pods(value: object, now: Pass, where: str) -> object:
    return value if value == "all" else each(uid)(value, now, where)


RELEASE_INPUTS: Final[Mapping[str, Mask]] = {"gang": gang_list, "pods": _pods}
RELEASE_DETAILS: Final[Mapping[str, Mask]] = {
    "decision": fields(
        {"is": words("release"), "members": number, "nodes": each(node), "checksum": computed}
    ),
    "plan": number,
}
FOLLOWED_INPUTS: Final[Mapping[str, Mask]] = {"policy": document}
