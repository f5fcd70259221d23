"""The words of kube-scheduler's extender protocol, and how ours become them and back.

The Go types have no JSON tags: keys are Go's field names, capitalised, and lists may be null. A
refusal is a 200 with `Error` or with named nodes: kube-scheduler throws the body of anything else
away. Reasons are byte-stable and the same for all nodes: one that varies makes kube-scheduler retry
without end.
"""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from pydantic import ConfigDict, Field

from extender.cells.model import Decision, MemberRequest, Place, Placement, ReleaseMode
from kube import placements
from kube.bind_info import placement_annotations
from kube.pods import ManagedPod
from policy.submission import GangKey, NodeName
from policy.topology import CellTypeName, ChainName, PinnedCellId
from service.bodies import Body

_HIGHEST_SCORE = 10


class _Metadata(Body):
    model_config = ConfigDict(extra="allow")

    name: str


class _Node(Body):
    model_config = ConfigDict(extra="allow")  # sent back as it came

    metadata: _Metadata


class _NodeList(Body):
    items: list[_Node] | None = None


class FilterArguments(Body):
    """What filter and prioritize are asked: a pod, and the nodes left for it."""

    pod: dict[str, Any] = Field(alias="Pod")
    nodes: _NodeList | None = Field(default=None, alias="Nodes")
    node_names: list[str] | None = Field(default=None, alias="NodeNames")

    @cached_property
    def candidate_nodes(self) -> dict[NodeName, None]:
        """The nodes offered, in the order of the request; a dict, for quick membership."""
        if self.node_names is not None:
            return dict.fromkeys(map(NodeName, self.node_names))
        items = (self.nodes.items if self.nodes else None) or ()
        return dict.fromkeys(NodeName(node.metadata.name) for node in items)


class PreemptArguments(Body):
    """What preempt is asked; its candidates are not read yet, since all are vetoed."""

    pod: dict[str, Any] = Field(alias="Pod")


class BindArguments(Body):
    """What bind is asked: a pod to be put on the node that was chosen."""

    name: str = Field(alias="PodName")
    namespace: str = Field(alias="PodNamespace")
    uid: str = Field(alias="PodUID")
    node: str = Field(alias="Node")


def to_member_request(pod: ManagedPod) -> MemberRequest:
    """Say what a pod asks of the engine."""
    return MemberRequest(
        member=pod.uid,
        gang=_engine_gang(pod),
        leaf_count=pod.leaf_count,
        gang_leaf_counts=_gang_leaf_counts(pod),
        gang_min=pod.gang.min_size,
        leaf_type=pod.leaf_type,
        vc=pod.vc,
        created=pod.created,
        **_hived_wishes(pod),
    )


def _hived_wishes(pod: ManagedPod) -> dict[str, Any]:
    """What only HiveD's annotation can say."""
    if pod.hived is None:
        return {}
    return {
        "priority": pod.hived.priority,
        "pinned": PinnedCellId(pod.hived.pinned_cell) if pod.hived.pinned_cell else None,
        "is_lazy": pod.hived.lazy_preemption,
        "ignores_candidates": pod.hived.ignore_candidate_nodes,
        # HiveD keeps a gang's cells until its last pod has ended, whatever the flag says.
        "release": ReleaseMode.WHOLE,
    }


def _engine_gang(pod: ManagedPod) -> GangKey:
    """The gang's key; a gang whose size only a PodGroup object tells is placed member by member."""
    if pod.gang.size is None:
        return GangKey(pod.namespace, f"{pod.gang.key.name}/{pod.name}")
    return pod.gang.key


def _gang_leaf_counts(pod: ManagedPod) -> tuple[int, ...]:
    """HiveD's annotation tells what each member asks for; elsewhere all are like this one."""
    if pod.hived and pod.hived.gang:
        groups = pod.hived.gang.members
        return tuple(group.leaf_count for group in groups for _ in range(group.pod_count))
    return (pod.leaf_count,) * (pod.gang.size or 1)


def to_annotations(placement: Placement) -> dict[str, str]:
    """What a bound pod carries: our own annotation, and HiveD's beside it."""
    return placement_annotations(
        placements.Placement(
            node=placement.node,
            leaf_cells=placement.leaf_cells,
            vc_cell=placement.vc_cell,
            vc_cell_type=placement.vc_cell_type,
            chain=placement.chain,
        )
    )


def to_placement(pod: ManagedPod) -> Placement | None:
    """What a bound pod says of its placement; None if we did not place it, or it cannot be true."""
    told = pod.placement
    if told is None or told.node != pod.node or len(told.leaf_cells) != pod.leaf_count:
        return None
    return Placement(
        node=told.node,
        leaf_cells=told.leaf_cells,
        chain=ChainName(told.chain) if told.chain else None,
        vc_cell=told.vc_cell,
        vc_cell_type=CellTypeName(told.vc_cell_type) if told.vc_cell_type else None,
    )


def filter_answer(decision: Decision, arguments: FilterArguments) -> dict[str, Any]:
    """Name the chosen node, or say at every node why the pod waits.

    Waiting is "unresolvable" in the words of the protocol: kube-scheduler's own preemption cannot
    help, since it does not ask an extender whether its victims would.
    """
    if isinstance(decision, Place):
        return _nodes_answer(arguments, {decision.placement.node: None})
    return {
        **_nodes_answer(arguments, {}),
        "FailedAndUnresolvableNodes": dict.fromkeys(arguments.candidate_nodes, decision.reason),
    }


def pass_answer(arguments: FilterArguments) -> dict[str, Any]:
    """Leave all nodes: the pod is none of ours."""
    return _nodes_answer(arguments, arguments.candidate_nodes)


def error_answer(message: str) -> dict[str, Any]:
    """Refuse in the form that filter and bind share."""
    return {"Error": message}


def _nodes_answer(arguments: FilterArguments, kept: Collection[NodeName]) -> dict[str, Any]:
    """Name the nodes that are left, in the form of the question: names, or whole nodes."""
    answer: dict[str, Any] = {"FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": ""}
    if arguments.node_names is not None:
        return {**answer, "NodeNames": list(kept)}
    items = (arguments.nodes.items if arguments.nodes else None) or ()
    left = [node.model_dump() for node in items if node.metadata.name in kept]
    return {**answer, "Nodes": {"items": left}}


def prioritize_answer(
    candidate_nodes: Collection[NodeName], chosen: NodeName | None
) -> list[Mapping[str, str | int]]:
    """Prefer the chosen node to all others; scores are whole numbers."""
    return [
        {"Host": node, "Score": _HIGHEST_SCORE if node == chosen else 0} for node in candidate_nodes
    ]


def veto_answer() -> dict[str, Any]:
    """Name no node for preemption: nobody is ended."""
    return {"NodeNameToMetaVictims": {}}
