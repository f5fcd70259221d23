"""kube-scheduler's extender protocol: arguments and answers.

The Go types have no JSON tags: keys are Go's field names, capitalised, and lists may be null. A
refusal is a 200 with `Error` or with named nodes, because kube-scheduler ignores the body of
anything else. Equal states give equal reasons, byte for byte: a reason that varies makes
kube-scheduler retry without end.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache, cached_property
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from policy.submission import NodeName, PodUid
from service.bodies import Body

_HIGHEST_SCORE = 10


class _GoBody(Body):
    """A body as Go reads it: keys in any case, the exact name first."""

    @model_validator(mode="before")
    @classmethod
    def _ignore_case(cls, content: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        if not isinstance(content, dict):
            return content
        names = _go_names(cls)
        named = {names.get(key.lower(), key): value for key, value in content.items()}
        return named | {name: content[name] for name in names.values() if name in content}


@cache
def _go_names(model: type[Body]) -> Mapping[str, str]:
    """Return the name of each field as Go writes it, by its name in lower case."""
    own = [field.alias for field in model.model_fields.values() if field.alias]
    return {name.lower(): name for name in own}


class _Metadata(Body):
    model_config = ConfigDict(extra="allow")

    name: str


class _Node(Body):
    model_config = ConfigDict(extra="allow")  # sent back as it came

    metadata: _Metadata


class _NodeList(Body):
    items: list[_Node] | None = None


class FilterArguments(_GoBody):
    """Arguments of filter and prioritize: a pod, and the nodes left for it."""

    pod: dict[str, Any] = Field(alias="Pod")
    nodes: _NodeList | None = Field(default=None, alias="Nodes")
    node_names: list[str] | None = Field(default=None, alias="NodeNames")

    @cached_property
    def candidate_nodes(self) -> dict[NodeName, None]:
        """The nodes offered, in the order of the request; a dict for fast lookups."""
        if self.node_names is not None:
            return dict.fromkeys(map(NodeName, self.node_names))
        items = (self.nodes.items if self.nodes else None) or ()
        return dict.fromkeys(NodeName(node.metadata.name) for node in items)


class _MetaPod(_GoBody):
    uid: str = Field(alias="UID")


class _MetaVictims(_GoBody):
    pods: list[_MetaPod] | None = Field(default=None, alias="Pods")
    pdb_violations: int = Field(default=0, alias="NumPDBViolations")


class _VictimPod(Body):
    metadata: dict[str, Any]


class _Victims(_GoBody):
    pods: list[_VictimPod] | None = Field(default=None, alias="Pods")
    pdb_violations: int = Field(default=0, alias="NumPDBViolations")


class PreemptArguments(_GoBody):
    """Arguments of preempt: a pod, and the victims that kube-scheduler found on each node."""

    pod: dict[str, Any] = Field(alias="Pod")
    meta: dict[str, _MetaVictims | None] | None = Field(default=None, alias="NodeNameToMetaVictims")
    full: dict[str, _Victims | None] | None = Field(default=None, alias="NodeNameToVictims")

    @property
    def candidate_nodes(self) -> list[NodeName]:
        """The nodes with victims, in the order of the request."""
        return list(map(NodeName, self.meta if self.meta is not None else self.full or ()))


class BindArguments(_GoBody):
    """Arguments of bind: a pod, and the node that was chosen for it."""

    name: str = Field(alias="PodName")
    namespace: str = Field(alias="PodNamespace")
    uid: str = Field(alias="PodUID")
    node: str = Field(alias="Node")


def chosen_answer(node: NodeName, arguments: FilterArguments) -> dict[str, Any]:
    """Leave only the node that was chosen."""
    return _nodes_answer(arguments, {node: None})


def wait_answer(reason: str, arguments: FilterArguments) -> dict[str, Any]:
    """Leave no node, and say why.

    The protocol calls that "unresolvable": kube-scheduler's own preemption cannot help, because it
    does not ask an extender whether its victims would. A node that is not listed counts as
    unresolvable, so the reason is given for one node only: for thousands it would be a megabyte.
    """
    reasons = dict.fromkeys(list(arguments.candidate_nodes)[:1], reason)
    return {**_nodes_answer(arguments, {}), "FailedAndUnresolvableNodes": reasons}


def pass_answer(arguments: FilterArguments) -> dict[str, Any]:
    """Leave all nodes: Cellgate does not manage the pod."""
    return _nodes_answer(arguments, arguments.candidate_nodes)


def error_answer(message: str) -> dict[str, Any]:
    """Report an error in the form that filter and bind share."""
    return {"Error": message}


def _nodes_answer(arguments: FilterArguments, kept: Collection[NodeName]) -> dict[str, Any]:
    """List the nodes that are left as the request does: names, or whole nodes."""
    answer: dict[str, Any] = {"FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": ""}
    if arguments.node_names is not None:
        return {**answer, "NodeNames": list(kept)}
    items = (arguments.nodes.items if arguments.nodes else None) or ()
    left = [node.model_dump() for node in items if node.metadata.name in kept]
    return {**answer, "Nodes": {"items": left}}


def prioritize_answer(
    candidate_nodes: Collection[NodeName], chosen: NodeName | None
) -> list[Mapping[str, str | int]]:
    """Give the chosen node the highest score, and all others none."""
    return [
        {"Host": node, "Score": _HIGHEST_SCORE if node == chosen else 0} for node in candidate_nodes
    ]


def victims_answer(node: NodeName, victims: Iterable[PodUid]) -> dict[str, Any]:
    """Name the pods that kube-scheduler is to end on one node."""
    pods = [{"UID": uid} for uid in victims]
    return {"NodeNameToMetaVictims": {node: {"Pods": pods, "NumPDBViolations": 0}}}


def unchanged_answer(arguments: PreemptArguments) -> dict[str, Any]:
    """Leave all victims as kube-scheduler found them: Cellgate does not manage the pod."""
    if arguments.meta is not None:
        told = {
            node: ([pod.uid for pod in victims.pods or ()], victims.pdb_violations)
            for node, victims in arguments.meta.items()
            if victims is not None
        }
    else:
        told = {
            node: ([str(pod.metadata.get("uid")) for pod in full.pods or ()], full.pdb_violations)
            for node, full in (arguments.full or {}).items()
            if full is not None
        }
    named = {
        node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
        for node, (uids, violations) in told.items()
    }
    return {"NodeNameToMetaVictims": named}


def veto_answer() -> dict[str, Any]:
    """Name no node: kube-scheduler ends no pod."""
    return {"NodeNameToMetaVictims": {}}
