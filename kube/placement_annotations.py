"""The annotations that say where a pod was put: ours, and HiveD's two beside it.

`cellgate.io/placement` is compact JSON with keys in a fixed order; recovery rebuilds the cells from
it:

    {"node":"gpu-7","leafCells":[0,1],"vcCell":"lab/0","chain":"DGX2-V100-NODE"}

Containers read HiveD's `pod-leaf-cell-isolation` into `NVIDIA_VISIBLE_DEVICES`. Its `pod-bind-info`
is read on pods that HiveD bound before us. It records the whole gang of a pod; we write the pod
alone, since over all its pods the record grows with the square of the gang.
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from kube import marks
from kube.hived.spec import modernise
from kube.hived.yaml_values import YamlFields, format_yaml, open_yaml
from kube.values import size_limits
from kube.values.fields import Fields, Problems
from kube.values.texts import FREE_TEXT, OBJECT_NAME
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName
from policy.wording import describe

_PATH: Final = f"metadata.annotations[{marks.PLACEMENT_ANNOTATION}]"
_BIND_INFO_PATH: Final = f"metadata.annotations[{marks.HIVED_BIND_INFO_ANNOTATION}]"


def placement_annotations(placement: Placement) -> dict[str, str]:
    """Build every annotation that says where a pod was put."""
    return {
        marks.PLACEMENT_ANNOTATION: format_placement(placement),
        marks.HIVED_BIND_INFO_ANNOTATION: format_bind_info(placement),
        marks.HIVED_ISOLATION_ANNOTATION: ",".join(map(str, placement.leaf_cells)),
    }


def format_placement(placement: Placement) -> str:
    """Write our annotation; equal placements give equal texts."""
    fields: dict[str, Any] = {
        "node": placement.node,
        "leafCells": placement.leaf_cells,
        "vcCell": placement.vc_cell,
        "vcCellType": placement.vc_cell_type,
        "chain": placement.chain,
    }
    return orjson.dumps({key: value for key, value in fields.items() if value is not None}).decode()


def parse_placement(text: str) -> Placement:
    """Read our annotation; raise RequestError with every problem and its path.

    Unknown fields are ignored: a newer version may have written them.
    """
    try:
        value = orjson.loads(text)
    except ValueError as exc:
        raise RequestError.at(_PATH, "must be valid JSON") from exc
    if not isinstance(value, dict):
        raise RequestError.at(_PATH, f"must be a mapping, not {describe(value)}")
    fields = Fields(value, key=_PATH, parent=None, problems=Problems())
    placement = Placement(
        node=NodeName(fields.required_text("node", OBJECT_NAME)),
        leaf_cells=_read_leaf_cells(fields, "leafCells"),
        vc_cell=fields.text("vcCell", FREE_TEXT) or None,
        vc_cell_type=CellTypeName(fields.text("vcCellType", FREE_TEXT)) or None,
        chain=ChainName(fields.text("chain", FREE_TEXT)) or None,
    )
    fields.problems.check()
    return placement


def format_bind_info(placement: Placement) -> str:
    """Write HiveD's record, so that HiveD could read it."""
    member = {
        "physicalNode": placement.node,
        "physicalLeafCellIndices": placement.leaf_cells,
        "preassignedCellTypes": [placement.vc_cell_type or ""] * len(placement.leaf_cells),
    }
    fields: dict[str, Any] = {
        "node": placement.node,
        "leafCellIsolation": placement.leaf_cells,
        "cellChain": placement.chain or "",
        "affinityGroupBindInfo": [{"podPlacements": [member]}],
    }
    return format_yaml(fields)


def parse_bind_info(text: str) -> Placement:
    """Read a pod's own part of HiveD's record; raise RequestError with every problem and its path.

    HiveD records no address of the VC's cell, only its type.
    """
    max_bytes = size_limits.MAX_BIND_INFO_BYTES
    fields = open_yaml(modernise(text), path=_BIND_INFO_PATH, max_bytes=max_bytes)
    node = NodeName(fields.required_text("node", OBJECT_NAME))
    leaf_cells = _read_leaf_cells(fields, "leafCellIsolation")
    chain = ChainName(fields.text("cellChain", FREE_TEXT)) or None
    gang = [
        _read_member(member, chain)
        for part in fields.items("affinityGroupBindInfo")
        for member in part.items("podPlacements")
    ]
    fields.problems.check()
    own = (member for member in gang if (member.node, member.leaf_cells) == (node, leaf_cells))
    return next(own, Placement(node=node, leaf_cells=leaf_cells, chain=chain))


def _read_member(fields: YamlFields, chain: ChainName | None) -> Placement:
    cell_types = fields.words("preassignedCellTypes", FREE_TEXT)
    return Placement(
        node=NodeName(fields.required_text("physicalNode", OBJECT_NAME)),
        leaf_cells=_read_leaf_cells(fields, "physicalLeafCellIndices"),
        chain=chain,
        vc_cell_type=CellTypeName("".join(cell_types[:1])) or None,
    )


def _read_leaf_cells(fields: Fields, key: str) -> tuple[int, ...]:
    leaf_cells = fields.numbers(key, minimum=0, maximum=size_limits.MAX_LEAF_INDEX)
    problem = _leaf_cells_problem(leaf_cells) if leaf_cells is not None else None
    if problem:
        fields.note(key, problem)
    return leaf_cells or ()


def _leaf_cells_problem(leaf_cells: Sequence[int]) -> str | None:
    """Say why these cannot be the leaf cells of a pod, or None."""
    if not 1 <= len(leaf_cells) <= size_limits.MAX_LEAF_COUNT:
        return f"must have 1 to {size_limits.MAX_LEAF_COUNT} leaf cells, not {len(leaf_cells)}"
    if len(set(leaf_cells)) < len(leaf_cells):
        return "must not have the same leaf cell twice"
    return None
