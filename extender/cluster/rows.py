"""What the engine is fed and answers, as JSON and back: the inputs of the log's rows.

A replay must get back exactly what the engine got. Fields that have their default are left out, so
that the row of a plain pod stays small, and one that a later version adds is no difference.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from itertools import groupby
from typing import Any, Final

import orjson

from extender.cells.model import (
    Decision,
    MemberRequest,
    Place,
    Placement,
    Preempt,
    ReleaseMode,
)
from kube.read.nodes import KubeNode
from policy.submission import GangKey, NodeName

Row = dict[str, Any]

_REQUEST_DEFAULTS: Final = {
    field.name: field.default for field in fields(MemberRequest) if field.default is not MISSING
}


def encode_request(request: MemberRequest) -> Row:
    """Say what a member asked; a gang of a thousand equal members is one pair of numbers."""
    row: Row = {
        "member": request.member,
        "gang": [request.gang.namespace, request.gang.name],
        "leafCount": request.leaf_count,
        "gangLeafCounts": [
            [size, len(list(same))] for size, same in groupby(request.gang_leaf_counts)
        ],
    }
    for name, default in _REQUEST_DEFAULTS.items():
        value = getattr(request, name)
        if value != default:
            row[name] = value
    return row


def decode_request(row: Mapping[str, Any]) -> MemberRequest:
    """Read what `encode_request` wrote."""
    optional = {name: row[name] for name in _REQUEST_DEFAULTS if name in row}
    if "release" in optional:
        optional["release"] = ReleaseMode(optional["release"])
    return MemberRequest(
        member=row["member"],
        gang=GangKey(*row["gang"]),
        leaf_count=row["leafCount"],
        gang_leaf_counts=tuple(
            size for size, number in row["gangLeafCounts"] for _ in range(number)
        ),
        **optional,
    )


def encode_placement(placement: Placement) -> Row:
    """Say where a member is."""
    row: Row = {"node": placement.node, "leafCells": list(placement.leaf_cells)}
    for name in ("chain", "vc_cell", "vc_cell_type"):
        value = getattr(placement, name)
        if value is not None:
            row[name] = value
    return row


def decode_placement(row: Mapping[str, Any]) -> Placement:
    """Read what `encode_placement` wrote."""
    return Placement(
        node=row["node"],
        leaf_cells=tuple(row["leafCells"]),
        chain=row.get("chain"),
        vc_cell=row.get("vc_cell"),
        vc_cell_type=row.get("vc_cell_type"),
    )


def encode_node(node: KubeNode) -> Row:
    """Say how a node was."""
    return {
        "healthy": node.is_healthy,
        "labels": dict(node.labels),
        "leafCounts": dict(node.leaf_counts),
        "usable": node.usable_count,
        "leafType": node.leaf_type,
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
    )


def encode_decision(decision: Decision) -> Row:
    """Say what was decided, so that equal decisions give equal rows.

    The places of a gang's other members are only told apart by a checksum: they may be thousands.
    """
    if isinstance(decision, Place):
        return {
            "is": "place",
            **encode_placement(decision.placement),
            "others": _checksum(decision.others),
            "downgraded": list(map(str, decision.downgraded)),
            "cancelled": list(map(str, decision.cancelled)),
        }
    row: Row = {"is": type(decision).__name__.lower(), "code": str(decision.code)}
    if isinstance(decision, Preempt):
        row["victims"] = list(map(str, decision.victims))
        row["cancelled"] = list(map(str, decision.cancelled))
    return row | {"reason": decision.reason}


def _checksum(placements: Sequence[Placement]) -> int:
    return zlib.crc32(orjson.dumps([encode_placement(one) for one in placements]))
