"""The annotation `cellgate.io/placement`: where a pod was put. Recovery rebuilds the cells from it.

Compact JSON with keys in a fixed order, for example

    {"node":"gpu-7","leafCells":[0,1],"vcCell":"lab/0","chain":"DGX2-V100-NODE"}
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from kube import marks
from kube.read import size_limits
from kube.read.fields import Fields, Problems
from kube.read.texts import FREE_TEXT, OBJECT_NAME, show
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName

PATH: Final = f"metadata.annotations[{marks.PLACEMENT_ANNOTATION}]"


def format_placement(placement: Placement) -> str:
    """Write the annotation; equal placements give equal texts."""
    fields: dict[str, Any] = {
        "node": placement.node,
        "leafCells": placement.leaf_cells,
        "vcCell": placement.vc_cell,
        "vcCellType": placement.vc_cell_type,
        "chain": placement.chain,
    }
    return orjson.dumps({key: value for key, value in fields.items() if value is not None}).decode()


def parse_placement(text: str) -> Placement:
    """Read the annotation; raise RequestError with every problem and its path.

    Unknown fields are ignored: a newer version may have written them.
    """
    problems = Problems()
    try:
        value = orjson.loads(text)
    except ValueError as exc:
        raise RequestError.at(PATH, "must be valid JSON") from exc
    if not isinstance(value, dict):
        raise RequestError.at(PATH, f"must be a mapping, not {show(value)}")
    placement = _read_placement(Fields(value, key=PATH, parent=None, problems=problems))
    problems.check()
    return placement


def leaf_cells_problem(leaf_cells: Sequence[int]) -> str | None:
    """Say why these cannot be the leaf cells of a pod, or None."""
    if not 1 <= len(leaf_cells) <= size_limits.MAX_LEAF_COUNT:
        return f"must have 1 to {size_limits.MAX_LEAF_COUNT} leaf cells, not {len(leaf_cells)}"
    if len(set(leaf_cells)) < len(leaf_cells):
        return "must not have the same leaf cell twice"
    return None


def _read_placement(fields: Fields) -> Placement:
    return Placement(
        node=NodeName(fields.required_text("node", OBJECT_NAME)),
        leaf_cells=_read_leaf_cells(fields),
        vc_cell=fields.text("vcCell", FREE_TEXT) or None,
        vc_cell_type=CellTypeName(fields.text("vcCellType", FREE_TEXT)) or None,
        chain=ChainName(fields.text("chain", FREE_TEXT)) or None,
    )


def _read_leaf_cells(fields: Fields) -> tuple[int, ...]:
    leaf_cells = fields.numbers("leafCells", minimum=0, maximum=size_limits.MAX_LEAF_INDEX)
    problem = leaf_cells_problem(leaf_cells) if leaf_cells is not None else None
    if problem:
        fields.note("leafCells", problem)
    return leaf_cells or ()
