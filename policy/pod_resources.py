"""What a pod needs of its node beside leaf cells: resources, host ports, distance to other pods.

Amounts are whole numbers: thousandths of a CPU, bytes of memory and storage, pieces of anything
else. kube-scheduler counts in the same units.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
_BYTES: Final = (MEMORY, "ephemeral-storage")
_SUFFIXES: Final = ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))
_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - as Kubernetes writes it, nothing listens there

Amounts = tuple[tuple[str, int], ...]
"""How much of each resource, by name, without zeros."""
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a container uses."""

    port: int
    protocol: str = "TCP"
    address: str = _ANY_ADDRESS

    def collides(self, other: "HostPort") -> bool:
        """Whether the two ports cannot be used on the same node."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or _ANY_ADDRESS in (self.address, other.address)


@dataclass(frozen=True, slots=True)
class LabelRule:
    """One condition on a label of a pod."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def is_met_by(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it; a missing label meets NotIn, as in Kubernetes."""
        return meets(labels.get(self.key), self.operator, self.values)


def meets(found: str | None, operator: str, values: Collection[str]) -> bool:
    """Whether the value of a label, None if it is missing, meets a condition of Kubernetes."""
    match operator:
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
    return False  # an operator that no API server stores


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Selects pods by namespace and labels."""

    namespaces: tuple[str, ...] | None
    """None: all namespaces."""
    rules: tuple[LabelRule, ...] = ()

    def selects(self, pod: "NodePod") -> bool:
        """Whether a pod is selected."""
        if self.namespaces is not None and pod.namespace not in self.namespaces:
            return False
        labels = dict(pod.labels)
        return all(rule.is_met_by(labels) for rule in self.rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResources:
    """What a pod needs of its node, beside leaf cells. Equal needs fit the same nodes."""

    amounts: Amounts = ()
    ports: tuple[HostPort, ...] = ()
    keeps_off: tuple[PodSelector, ...] = ()
    """Required anti-affinity by host name: no such pod may be on the same node."""

    @property
    def is_special(self) -> bool:
        """Whether it needs more than amounts."""
        return bool(self.ports or self.keeps_off)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePod:
    """A pod as others on its node see it. Equal pods share one object: there are many."""

    resources: PodResources = PodResources()
    namespace: str = ""
    labels: Labels = ()

    def tolerates(self, other: "NodePod") -> bool:
        """Whether both may be on one node, as far as anti-affinity and host ports say."""
        if any(one.selects(other) for one in self.resources.keeps_off):
            return False
        if any(one.selects(self) for one in other.resources.keeps_off):
            return False
        return not any(
            mine.collides(its) for mine in self.resources.ports for its in other.resources.ports
        )


def show_amount(resource: str, amount: int) -> str:
    """Write an amount as people do: `1.5 CPUs`, `64Gi of memory`, `2 of rdma/hca`."""
    if resource == CPU:
        shown = f"{amount / 1000:g}"
        return f"{shown} CPU" if shown == "1" else f"{shown} CPUs"
    if resource == PODS:
        return f"{amount} pod" if amount == 1 else f"{amount} pods"
    if resource not in _BYTES:
        return f"{amount} of {resource}"
    for power, suffix in _SUFFIXES:
        if amount >= 1 << power:
            return f"{amount / (1 << power):.4g}{suffix} of {resource}"
    return f"{amount} bytes of {resource}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Why nodes that have leaf cells for a gang cannot take its members."""

    resource: str
    """What most of these nodes lack: the name of a resource, a host port, distance to others; empty
    if they have room for one member, and not for as many as have leaf cells there."""
    asked: int
    """How much of it a member requests; 0 if that is no amount."""
    short: int
    """The number of nodes that lack something."""
    nodes: int
    """The number of nodes that the gang may use."""
    node: str
    """One node that lacks the resource: the first by name."""
    free: int = 0
    total: int = 0
    """How much of the resource this node has."""


def shortage_texts(**facts: Any) -> tuple[str, str]:  # noqa: ANN401 - of a `Shortage`
    """Write what each member requests, and which nodes lack it, as parts of a sentence."""
    one = Shortage(**facts)
    what = one.resource or "room for as many members as they have leaf cells for"
    lack = f"{one.short} of the {one.nodes} nodes that it may use lack {what}, such as {one.node}"
    if not one.asked:
        return "", lack
    amounts = [show_amount(one.resource, amount) for amount in (one.asked, one.free, one.total)]
    asked, free, total = amounts
    return f" and {asked} for each member", f"{lack} with {free} free of {total}"
