"""The worlds of both sides: from what the source recorded, and from given documents and nodes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cli.check import read_text
from cli.policy_files import CheckedFiles, build_from_files
from cli.whatif.request import NODE_LEAF_CELLS, FlatCluster, Request
from cli.whatif.sources.played import Played
from kube.marks import DEFAULT_LEAF_RESOURCES
from kube.read.nodes import KubeNode
from policy.cluster.document import LiveNode
from policy.errors import Problem, RequestError, SettingsError, SpecError
from policy.parser import DocumentKind
from policy.policy import Policy
from policy.submission import NodeName
from policy.wording import count_of
from timemachine.model import World
from timemachine.worlds import LEAF_TYPE_LABELS, AddedNodes, build_world

_RACK_NODES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Both worlds, and what differs between them."""

    before: World
    after: World
    changed: tuple[str, ...]
    """What differs, in words; empty if nothing does."""
    warnings: tuple[str, ...]
    nodes: Sequence[LiveNode]
    """The nodes of both sides, without those that are added."""

    def with_nodes(self, added: AddedNodes, number: int) -> World:
        """Return the second side with another number of added nodes."""
        more = (replace(added, number=number),) if number else ()
        return build_world(self.after.policy, self.nodes, title="after", added=more).world


def build_sides(request: Request, played: Played) -> Sides:
    """Build both worlds. Raises SpecError with all problems of documents."""
    before = build_from_files(_texts(request.before), base=played.texts)
    cluster = () if request.cluster is None else (request.cluster,)
    _check_cluster(cluster)
    after = build_from_files(_texts((*request.policies, *cluster)), base=before.texts)
    nodes = list(_nodes(request, played, before.policy))
    try:
        one = build_world(before.policy, nodes, title="before")
        other = build_world(after.policy, nodes, title="after", added=request.added)
    except RequestError as exc:
        raise SettingsError(f"--nodes: {exc.problems[0].message}") from exc
    warnings = (
        *(f"before: {warning}" for warning in (*before.warnings, *one.notes)),
        *(f"after: {warning}" for warning in (*after.warnings, *other.notes)),
    )
    return Sides(
        before=one.world,
        after=other.world,
        changed=tuple(_changed(request, before, after)),
        warnings=warnings,
        nodes=nodes,
    )


def _texts(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, read_text(name)) for name in names]


def _check_cluster(names: Sequence[str]) -> None:
    for name, text in _texts(names):
        if build_from_files([(name, text)]).kinds != (DocumentKind.CLUSTER,):
            raise SpecError([Problem(name, "must have a Cluster document, and no other")])


def _nodes(request: Request, played: Played, policy: Policy) -> Iterable[LiveNode]:
    """Return the nodes that were seen and healthy; for a trace, those of --leaf-cells."""
    if request.is_recorded:
        return map(_live, (node for node in played.nodes if node.is_healthy))
    cluster = policy.cluster
    if cluster is not None and not cluster.depends_on_nodes:
        return ()  # it lists its cells
    return _flat_nodes(request.flat)


def _live(node: KubeNode) -> LiveNode:
    return LiveNode(name=node.name, labels=node.labels, leaf_counts=node.leaf_counts)


def _flat_nodes(flat: FlatCluster) -> Iterator[LiveNode]:
    """Yield equal nodes, in racks as documents of the derived form expect them."""
    for number in range(flat.nodes):
        name = NodeName(f"node-{number:05}")
        labels = {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": "zone",
            "topology.kubernetes.io/rack": f"rack-{number // _RACK_NODES:04}",
            LEAF_TYPE_LABELS[0]: flat.leaf_type,
        }
        counts = {DEFAULT_LEAF_RESOURCES[0]: NODE_LEAF_CELLS}
        yield LiveNode(name=name, labels=labels, leaf_counts=counts)


def _changed(request: Request, before: CheckedFiles, after: CheckedFiles) -> Iterator[str]:
    if after.policy.version != before.policy.version:
        files = ", ".join(filter(None, (*request.policies, request.cluster)))
        yield f"{', '.join(after.kinds)} of {files}"
    for added in request.added:
        yield f"{count_of(added.number, 'more node')} of leaf type {added.leaf_type}"
