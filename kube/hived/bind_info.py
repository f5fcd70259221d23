"""HiveD's placement annotations: `pod-bind-info` and `pod-leaf-cell-isolation`.

HiveD recovers from the first; containers read the second into `NVIDIA_VISIBLE_DEVICES`. We write
both beside our own, and read them on pods that HiveD bound before us.
"""

from dataclasses import dataclass
from typing import Any, Final

from kube import marks
from kube.hived.spec import modernise
from kube.hived.yaml_fields import YamlFields
from kube.hived.yaml_tree import YamlError, format_yaml, parse_yaml
from kube.read import size_limits
from kube.read.fields import Problems
from kube.read.placements import Placement, format_placement, leaf_cells_problem
from kube.read.texts import FREE_TEXT, OBJECT_NAME
from policy.errors import RequestError
from policy.submission import NodeName

PATH: Final = f"metadata.annotations[{marks.HIVED_BIND_INFO_ANNOTATION}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlacement:
    """Where one member of the gang is."""

    node: NodeName
    leaf_cells: tuple[int, ...]
    vc_cell_types: tuple[str, ...] = ()
    """Type of the preassigned cell of each leaf cell; empty texts for an opportunistic gang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HivedBindInfo:
    """A pod's own placement and that of its whole gang, one entry per distinct leaf count."""

    node: NodeName
    leaf_cells: tuple[int, ...]
    chain: str = ""
    gang: tuple[tuple[MemberPlacement, ...], ...] = ()

    def to_placement(self) -> Placement:
        """Translate the pod's own part; HiveD records no address of the VC's cell."""
        own = (m.vc_cell_types for part in self.gang for m in part if self._is_own(m))
        types = next(own, ())
        return Placement(
            node=self.node,
            leaf_cells=self.leaf_cells,
            vc_cell_type=(types[0] if types else "") or None,
            chain=self.chain or None,
        )

    def _is_own(self, member: MemberPlacement) -> bool:
        return (member.node, member.leaf_cells) == (self.node, self.leaf_cells)


def parse_bind_info(text: str) -> HivedBindInfo:
    """Read the annotation; raise RequestError with every problem and its path."""
    problems = Problems()
    try:
        tree = parse_yaml(modernise(text), max_length=size_limits.MAX_BIND_INFO_LENGTH)
    except YamlError as exc:
        raise RequestError.at(PATH, f"must be {exc}") from exc
    info = _read_bind_info(YamlFields(tree, path=PATH, problems=problems))
    problems.check()
    return info


def format_bind_info(info: HivedBindInfo) -> str:
    """Write the annotation, so that HiveD could read it."""
    fields: dict[str, Any] = {
        "node": info.node,
        "leafCellIsolation": info.leaf_cells,
        "cellChain": info.chain,
        "affinityGroupBindInfo": [
            {"podPlacements": [_format_member(member) for member in part]} for part in info.gang
        ],
    }
    return format_yaml(fields)


def format_isolation(leaf_cells: tuple[int, ...]) -> str:
    """Write the isolation annotation: device numbers in placement order, `1,3,0`."""
    return ",".join(map(str, leaf_cells))


def placement_annotations(
    placement: Placement, *, gang: tuple[tuple[MemberPlacement, ...], ...] | None = None
) -> dict[str, str]:
    """Build every annotation that says where a pod was put: ours and HiveD's.

    `gang` is the placement of the whole gang, one entry per distinct leaf count; without it HiveD's
    record has the pod alone. It grows with the square of the gang over all its pods.
    """
    own = MemberPlacement(
        node=placement.node,
        leaf_cells=placement.leaf_cells,
        vc_cell_types=(placement.vc_cell_type or "",) * len(placement.leaf_cells),
    )
    info = HivedBindInfo(
        node=placement.node,
        leaf_cells=placement.leaf_cells,
        chain=placement.chain or "",
        gang=((own,),) if gang is None else gang,
    )
    return {
        marks.PLACEMENT_ANNOTATION: format_placement(placement),
        marks.HIVED_BIND_INFO_ANNOTATION: format_bind_info(info),
        marks.HIVED_ISOLATION_ANNOTATION: format_isolation(placement.leaf_cells),
    }


def _format_member(member: MemberPlacement) -> dict[str, Any]:
    return {
        "physicalNode": member.node,
        "physicalLeafCellIndices": member.leaf_cells,
        "preassignedCellTypes": member.vc_cell_types,
    }


def _read_bind_info(fields: YamlFields) -> HivedBindInfo:
    return HivedBindInfo(
        node=NodeName(fields.required_text("node", OBJECT_NAME)),
        leaf_cells=_read_leaf_cells(fields, "leafCellIsolation"),
        chain=fields.text("cellChain", FREE_TEXT),
        gang=tuple(
            tuple(_read_member(member) for member in part.items("podPlacements"))
            for part in fields.items("affinityGroupBindInfo")
        ),
    )


def _read_member(fields: YamlFields) -> MemberPlacement:
    return MemberPlacement(
        node=NodeName(fields.required_text("physicalNode", OBJECT_NAME)),
        leaf_cells=_read_leaf_cells(fields, "physicalLeafCellIndices"),
        vc_cell_types=fields.words("preassignedCellTypes", FREE_TEXT),
    )


def _read_leaf_cells(fields: YamlFields, key: str) -> tuple[int, ...]:
    leaf_cells = fields.numbers(key, minimum=0, maximum=size_limits.MAX_LEAF_INDEX)
    problem = leaf_cells_problem(leaf_cells) if leaf_cells is not None else None
    if problem:
        fields.note(key, problem)
    return leaf_cells or ()
