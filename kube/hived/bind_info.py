"""HiveD's placement annotations: `pod-bind-info` and `pod-leaf-cell-isolation`.

HiveD recovers from the first; containers read the second into `NVIDIA_VISIBLE_DEVICES`. We write
both beside our own, and read the first on pods that HiveD bound before us. It records the whole
gang of a pod; we write the pod alone, since all pods together would carry the square of the gang.
"""

from typing import Any, Final

from kube import marks
from kube.hived.spec import modernise
from kube.hived.yaml_fields import YamlFields
from kube.hived.yaml_tree import YamlError, format_yaml, parse_yaml
from kube.read import size_limits
from kube.read.fields import Problems
from kube.read.placements import format_placement, leaf_cells_problem
from kube.read.texts import FREE_TEXT, OBJECT_NAME
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName

PATH: Final = f"metadata.annotations[{marks.HIVED_BIND_INFO_ANNOTATION}]"


def placement_annotations(placement: Placement) -> dict[str, str]:
    """Build every annotation that says where a pod was put: ours and HiveD's."""
    return {
        marks.PLACEMENT_ANNOTATION: format_placement(placement),
        marks.HIVED_BIND_INFO_ANNOTATION: format_bind_info(placement),
        marks.HIVED_ISOLATION_ANNOTATION: ",".join(map(str, placement.leaf_cells)),
    }


def format_bind_info(placement: Placement) -> str:
    """Write the annotation, so that HiveD could read it."""
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
    """Read a pod's own part of the annotation; raise RequestError with every problem and its path.

    HiveD records no address of the VC's cell, only its type.
    """
    problems = Problems()
    try:
        tree = parse_yaml(modernise(text), max_length=size_limits.MAX_BIND_INFO_LENGTH)
    except YamlError as exc:
        raise RequestError.at(PATH, f"must be {exc}") from exc
    placement = _read_bind_info(YamlFields(tree, path=PATH, problems=problems))
    problems.check()
    return placement


def _read_bind_info(fields: YamlFields) -> Placement:
    node = NodeName(fields.required_text("node", OBJECT_NAME))
    leaf_cells = _read_leaf_cells(fields, "leafCellIsolation")
    chain = ChainName(fields.text("cellChain", FREE_TEXT)) or None
    gang = [
        _read_member(member, chain)
        for part in fields.items("affinityGroupBindInfo")
        for member in part.items("podPlacements")
    ]
    own = (member for member in gang if (member.node, member.leaf_cells) == (node, leaf_cells))
    return next(own, Placement(node=node, leaf_cells=leaf_cells, chain=chain))


def _read_member(fields: YamlFields, chain: ChainName | None) -> Placement:
    return Placement(
        node=NodeName(fields.required_text("physicalNode", OBJECT_NAME)),
        leaf_cells=_read_leaf_cells(fields, "physicalLeafCellIndices"),
        chain=chain,
        vc_cell_type=CellTypeName("".join(fields.words("preassignedCellTypes", FREE_TEXT)[:1]))
        or None,
    )


def _read_leaf_cells(fields: YamlFields, key: str) -> tuple[int, ...]:
    leaf_cells = fields.numbers(key, minimum=0, maximum=size_limits.MAX_LEAF_INDEX)
    problem = leaf_cells_problem(leaf_cells) if leaf_cells is not None else None
    if problem:
        fields.note(key, problem)
    return leaf_cells or ()
