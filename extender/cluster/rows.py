"""Inputs and decisions of the engine as JSON, and back: the contents of the log's rows.

A replay must read exactly what the engine received. Fields with their default are left out: rows
of plain pods stay small, and a field that a later version adds is no difference.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from itertools import groupby
from os.path import commonprefix
from typing import Any, Final

import orjson

from extender.cells.model import (
    Decision,
    ForeignPod,
    FreeMode,
    MemberRequest,
    Place,
    Preempt,
    Seat,
    TriedForms,
    WaitFacts,
    WindowNote,
    Withheld,
)
from extender.cells.wording import WORDING
from kube.read.nodes import KubeNode
from policy.placement import Placement
from policy.pod_resources import Shortage
from policy.submission import GangKey, NodeName
from policy.topology import CellAddress, ChainName

Row = dict[str, Any]

_REQUEST_DEFAULTS: Final = {
    field.name: field.default for field in fields(MemberRequest) if field.default is not MISSING
}
_PLACEMENT_OPTIONS: Final = ("chain", "vc_cell", "vc_cell_type")
_NAMED_NODES: Final = 8
_MOST_MEMBERS: Final = 1_000_000
"""Of a gang in a row: more are not read, because the row is damaged."""
_STORED_NAMES: Final = {name: name for name in _REQUEST_DEFAULTS} | {"free_mode": "release"}


def encode_gang(gang: GangKey) -> list[str]:
    """Encode the key of a gang; `GangKey(*row)` reads it."""
    return [gang.namespace, gang.name, *([gang.owner] if gang.owner else [])]


def encode_request(request: MemberRequest) -> Row:
    """Encode a request; equal members are one pair of numbers, however many there are."""
    row: Row = {
        "member": request.member,
        "gang": encode_gang(request.gang),
        "leafCount": request.leaf_count,
        "gangLeafCounts": _runs(request.gang_leaf_counts),
    }
    for name, default in _REQUEST_DEFAULTS.items():
        value = getattr(request, name)
        if value != default:
            row[_STORED_NAMES[name]] = value
    return row


def _runs(sizes: tuple[int, ...]) -> list[list[int]]:
    if sizes and sizes.count(sizes[0]) == len(sizes):  # much faster for a large gang
        return [[sizes[0], len(sizes)]]
    return [[size, len(list(same))] for size, same in groupby(sizes)]


def decode_request(row: Mapping[str, Any]) -> MemberRequest:
    """Read what `encode_request` wrote."""
    optional = {name: row[stored] for name, stored in _STORED_NAMES.items() if stored in row}
    if "free_mode" in optional:
        optional["free_mode"] = FreeMode(optional["free_mode"])
    return MemberRequest(
        member=row["member"],
        gang=GangKey(*row["gang"]),
        leaf_count=row["leafCount"],
        gang_leaf_counts=_sizes(row["gangLeafCounts"]),
        **optional,
    )


def _sizes(runs: Sequence[Sequence[int]]) -> tuple[int, ...]:
    if sum(abs(number) for _, number in runs) > _MOST_MEMBERS:
        raise ValueError(f"a gang has more than {_MOST_MEMBERS:,} members")
    return tuple(size for size, number in runs for _ in range(number))


def encode_placement(placement: Placement) -> Row:
    """Encode a place."""
    row: Row = {"node": placement.node, "leafCells": list(placement.leaf_cells)}
    for name in _PLACEMENT_OPTIONS:
        value = getattr(placement, name)
        if value is not None:
            row[name] = value
    return row


def decode_placement(row: Mapping[str, Any]) -> Placement:
    """Read what `encode_placement` wrote."""
    optional = {name: row[name] for name in _PLACEMENT_OPTIONS if name in row}
    return Placement(node=row["node"], leaf_cells=tuple(row["leafCells"]), **optional)


def encode_foreign(pod: ForeignPod | None) -> Row:
    """Encode which pod runs without a placement; an empty row for any other pod."""
    if pod is None:
        return {}
    protected = {"protected": True} if pod.is_protected else {}
    return {"foreign": {"pod": pod.name, "owner": pod.owner, **protected}}


def decode_foreign(row: Mapping[str, Any]) -> ForeignPod | None:
    """Read what `encode_foreign` wrote."""
    told = row.get("foreign")
    if told is None:
        return None
    is_protected = told.get("protected", False)
    return ForeignPod(name=told["pod"], owner=told["owner"], is_protected=is_protected)


def encode_node(node: KubeNode) -> Row:
    """Encode a node."""
    return {
        "healthy": node.is_healthy,
        "labels": dict(node.labels),
        "leafCounts": dict(node.leaf_counts),
        "usable": node.usable_count,
        "leafType": node.leaf_type,
        **({"quarantine": node.quarantine} if node.quarantine is not None else {}),
    }


def decode_node(name: NodeName, row: Mapping[str, Any]) -> KubeNode:
    """Read what `encode_node` wrote."""
    return KubeNode(
        name=name,
        is_healthy=row["healthy"],
        labels=row["labels"],
        leaf_counts=row["leafCounts"],
        usable_count=row["usable"],
        leaf_type=row["leafType"],
        quarantine=row.get("quarantine"),
    )


def encode_seat(seat: Seat) -> list[str]:
    """Encode a seat: chain, claim, what the addresses of its leaf cells begin with, their ends."""
    prefix = commonprefix(seat.leaves)  # noqa: RUF071 - any prefix will do
    ends = [address[len(prefix) :] for address in seat.leaves]
    return [seat.chain, seat.claim or "", prefix, *ends]


def decode_seat(row: Sequence[str]) -> Seat:
    """Read what `encode_seat` wrote."""
    chain, claim, prefix, *ends = row
    return Seat(
        chain=ChainName(chain),
        leaves=tuple(CellAddress(prefix + end) for end in ends),
        claim=CellAddress(claim) if claim else None,
    )


def encode_facts(facts: WaitFacts) -> Row:
    """Encode what the reason of a decision says beyond what the engine knows."""
    row: Row = {}
    if facts.shortage is not None:
        row["shortage"] = asdict(facts.shortage)
    if isinstance(facts.reserved_for, GangKey):
        row["reservedFor"] = encode_gang(facts.reserved_for)
    elif facts.reserved_for is not None:
        row["window"] = asdict(facts.reserved_for)
    if facts.tried is not None:
        refused = [list(one) for one in facts.tried.refused]
        row["tried"] = {"form": facts.tried.form, "refused": refused}
    return row


def decode_facts(row: Mapping[str, Any]) -> WaitFacts:
    """Read what `encode_facts` wrote."""
    tried = row.get("tried")
    return WaitFacts(
        shortage=Shortage(**row["shortage"]) if "shortage" in row else None,
        reserved_for=_decode_withheld(row),
        tried=None if tried is None else _decode_tried(tried),
    )


def _decode_withheld(row: Mapping[str, Any]) -> Withheld | None:
    if "window" in row:
        return WindowNote(**row["window"])
    return GangKey(*row["reservedFor"]) if "reservedFor" in row else None


def _decode_tried(row: Mapping[str, Any]) -> TriedForms:
    return TriedForms(form=row["form"], refused=tuple((form, why) for form, why in row["refused"]))


def describe_place(decision: Place, tried: TriedForms | None) -> str:
    """Say where a member was placed and, if its gang has alternatives, in which form and why."""
    placed = f"placed on {decision.placement.node}"
    if tried is None:
        return placed
    why = "; ".join(f"{form}: {why}" for form, why in tried.refused)
    return f"{placed}, {tried.form}" + (f": {why}" if why else "")


def encode_decision(decision: Decision) -> Row:
    """Encode a decision; equal decisions give equal rows.

    Of the gang's other members, which may be thousands, the row has their number, some of their
    nodes, and a checksum of their places.
    """
    if isinstance(decision, Place):
        return {
            "is": "place",
            **encode_placement(decision.placement),
            "others": _encode_others(decision.others),
            "downgraded": list(map(str, decision.downgraded)),
            "cancelled": list(map(str, decision.cancelled)),
        }
    reason = decision.reason
    row: Row = {"is": type(decision).__name__.lower(), "code": str(reason.code)}
    if isinstance(decision, Preempt):
        row["victims"] = list(map(str, decision.victims))
        row["cancelled"] = list(map(str, decision.cancelled))
    arguments = orjson.loads(orjson.dumps(reason.arguments))
    return row | {"arguments": arguments, "reason": reason.text, "wording": WORDING}


def encode_release(placements: Sequence[Placement]) -> Row:
    """Encode which places are written to the pods of a gang, whose gates are lifted with that."""
    return {"is": "release", **_encode_others(placements)}


def is_same_decision(logged: Row, replayed: Row) -> bool:
    """Tell whether a replay repeats a logged decision.

    Sentences are compared only if the row has the current wording version. A row of another version
    is compared by its code and by those arguments that it has.
    """
    logged, replayed = _by_checksum(logged), _by_checksum(replayed)
    if logged.get("wording") == replayed.get("wording"):
        return logged == replayed
    return _wordless(logged, logged) == _wordless(replayed, logged)


def _wordless(row: Row, logged: Row) -> Row:
    """Return a decision without its sentence, with the arguments that the logged one has."""
    told = row.get("arguments", {})
    arguments = {name: told.get(name) for name in logged.get("arguments", {})}
    bare = {key: value for key, value in row.items() if key not in ("reason", "wording")}
    return bare | {"arguments": arguments}


def _by_checksum(row: Row) -> Row:
    """Return a decision with the checksum of the other places alone: older rows have no more."""
    others = row.get("others")
    return row | {"others": others["checksum"]} if isinstance(others, dict) else row


def _encode_others(placements: Sequence[Placement]) -> Row:
    nodes = dict.fromkeys(one.node for one in placements)
    named = list(nodes)[:_NAMED_NODES]
    return {"members": len(placements), "nodes": named, "checksum": _checksum(placements)}


def _checksum(placements: Sequence[Placement]) -> int:
    return zlib.crc32(orjson.dumps([encode_placement(one) for one in placements]))
