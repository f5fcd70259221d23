"""Rows that a replay of the extender reads: inputs of the engine and its decisions, by field."""

import base64
import zlib
from collections.abc import Mapping
from typing import Any, Final

from cli.log.mask.fields import (
    LeftOutError,
    Mask,
    Pass,
    computed,
    each,
    fields,
    list_of,
    mapping,
    moment,
    number,
    optional,
    text_of,
    tuple_of,
    words,
)
from cli.log.mask.reasons import mask_arguments, mask_reason
from cli.log.mask.structures import (
    cell_type,
    chain,
    form,
    gang_list,
    gang_text,
    key,
    label_value,
    node,
    pinned,
    pod_text,
    quarantine,
    resource,
    seat,
    sentence,
    type_name,
    uid,
    user,
    vc,
    vc_cell,
    window,
)
from extender.cells.model import FreeMode, ReasonCode

_MISSING: Final = "0" * 64
_numbers: Final = each(number)
request: Final = fields(
    {
        "member": uid,
        "gang": gang_list,
        "leafCount": number,
        "gangLeafCounts": each(_numbers),
        "gang_min": number,
        "leaf_type": type_name,
        "vc": vc,
        "priority": number,
        "pinned": pinned,
        "is_lazy": number,
        "ignores_candidates": number,
        "spans_chains": number,
        "release": words(*FreeMode),
        "created": number,
        "checkpoint_cost": number,
    }
)
_PLACEMENT: Final[Mapping[str, Mask]] = {
    "node": node,
    "leafCells": _numbers,
    "chain": chain,
    "vc_cell": vc_cell,
    "vc_cell_type": cell_type,
}
placement: Final = fields(_PLACEMENT)
foreign: Final = fields({"pod": pod_text, "owner": user, "protected": number})
"""A pod that runs without a place of ours."""
node_facts: Final = fields(
    {
        "healthy": number,
        "labels": mapping(key, label_value),
        "leafCounts": mapping(key, number),
        "usable": number,
        "leafType": type_name,
        "quarantine": quarantine,
    }
)


def candidates(value: object, now: Pass, where: str) -> object:
    """Mask candidate nodes: in the order of the pseudonyms, the bits are the same."""
    if value == "all":
        return value
    if not isinstance(value, Mapping):
        raise LeftOutError(where)
    known = {one: each(node) for one in ("but", "only", "and")}
    known["of"] = number
    masked = fields({**known, "sum": number, "bits": _bits})(value, now, where)
    if "sum" in masked:
        is_known = value["sum"] == now.known.checksum
        # Without an observation before, the row cannot be read, and must stay so.
        masked["sum"] = now.masked.checksum if is_known else now.masked.checksum ^ 1
    return masked


def _bits(value: object, _: Pass, where: str) -> str:
    try:
        zlib.decompress(base64.b85decode(text_of(value, where)))
    except (ValueError, TypeError, zlib.error) as exc:
        raise LeftOutError(where) from exc
    return str(value)


_shortage: Final = fields(
    {
        "resource": resource,
        "asked": number,
        "short": number,
        "nodes": number,
        "node": node,
        "free": number,
        "total": number,
    }
)
DECISION_INPUTS: Final[Mapping[str, Mask]] = {
    "request": request,
    "candidates": candidates,
    "now": number,
    "appliesPreemption": number,
    "limits": mapping(node, number),
    "parts": each(fields({"sizes": _numbers, "nodes": candidates})),
    "kept": each(seat),
    "shortage": _shortage,
    "reservedFor": gang_list,
    "window": fields({"name": window, "begins": moment, "ends": moment, "node": optional(node)}),
    "tried": fields({"form": form, "refused": each(tuple_of(form, sentence))}),
}
"""What the engine is asked."""


def _others(value: object, now: Pass, where: str) -> object:
    """Mask the places of other members; their checksum is computed anew."""
    return None if isinstance(value, int) else _named_others(value, now, where)


_named_others: Final = fields({"members": number, "nodes": each(node), "checksum": computed})
_place: Final = fields(
    {
        "is": words("place"),
        **_PLACEMENT,
        "others": _others,
        "downgraded": each(gang_text),
        "cancelled": each(gang_text),
    }
)
_no_place: Final = fields(
    {
        "is": words("wait", "reject", "preempt"),
        "code": words(*ReasonCode),
        "victims": each(gang_text),
        "cancelled": each(gang_text),
    }
)
_OF_REASON: Final = ("arguments", "reason", "wording")


def decision(value: object, now: Pass, where: str) -> dict[str, Any]:
    """Mask a decision."""
    if not isinstance(value, Mapping):
        raise LeftOutError(where)
    if value.get("is") == "place":
        return dict(_place(value, now, where))
    bare = {one: told for one, told in value.items() if one not in _OF_REASON}
    masked = dict(_no_place(bare, now, where))
    if "arguments" in value:
        told = mask_arguments(value.get("code"), value["arguments"], now, f"{where}.arguments")
        masked["arguments"] = told
        masked |= mask_reason(value, told)
    return masked


def _ranked(value: object, now: Pass, where: str) -> list[Any]:
    """Mask a gang and its priority, in one list."""
    *gang, rank = list_of(value, where)
    return [*gang_list(gang, now, where), number(rank, now, where)]


def document(value: object, now: Pass, where: str) -> str:
    """Return the hash of the masked document; of one that is missing, that of none."""
    return now.hashes.get(text_of(value, where), _MISSING)


ENGINE_INPUTS: Final[Mapping[str, Mask]] = {
    "leaseSeconds": number,
    "node": node_facts,
    "document": document,
    "steps": number,
    "isLast": number,
    "priorities": each(_ranked),
    "gang": gang_list,
    "priority": number,
    "request": request,
    "placement": placement,
    "foreign": foreign,
    "now": number,
    "owner": uid,
    "breaks": number,
    "seconds": number,
}
"""Inputs that are observed: one meaning for each name, in all rows."""
