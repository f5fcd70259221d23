"""Which nodes a pod may use, by its selector, affinity and tolerations, as kube-scheduler decides.

The planner places gangs before kube-scheduler sees them, and must not choose a node that
kube-scheduler would refuse. This module checks what does not change while a pod waits; CPU and
memory are read by `pod_resources`.

Pods and nodes come from the API server, which has validated them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from policy.submission import NodeName

POD_FIELDS: Final = ("nodeSelector", "affinity", "tolerations")
"""The fields of a pod's spec that say which nodes it may use."""
_KEEPS_AWAY = ("NoSchedule", "NoExecute")
_CORDON_TAINT = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class NodeRequirement:
    """One condition on a label of a node, or on its name."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    is_field: bool = False

    def is_met_by(self, node: "NodeTraits") -> bool:
        """Whether a node meets it; a missing label meets NotIn, as in Kubernetes."""
        found = node.name if self.is_field else node.labels.get(self.key)
        match self.operator:
            case "In":
                return found in self.values
            case "NotIn":
                return found not in self.values
            case "Exists":
                return found is not None
            case "DoesNotExist":
                return found is None
            case "Gt" | "Lt":
                return self._compare(found)
        return False

    def _compare(self, found: str | None) -> bool:
        if not self.values or not _is_number(found) or not _is_number(self.values[0]):
            return False
        mine, limit = int(found or 0), int(self.values[0])
        return mine > limit if self.operator == "Gt" else mine < limit


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node that keeps pods away."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod; empty fields match all."""

    key: str
    operator: str
    value: str
    effect: str

    def covers(self, taint: Taint) -> bool:
        """Whether the pod tolerates this taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or self.value == taint.value


@dataclass(frozen=True, slots=True)
class NodeWish:
    """The conditions of a pod on its node. Equal wishes suit the same nodes."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[tuple[NodeRequirement, ...], ...] | None = None
    """Required affinity: one of the terms must be met, with all its requirements."""
    tolerations: tuple[Toleration, ...] = ()

    def suits(self, node: "NodeTraits") -> bool:
        """Whether a pod with this wish may run there."""
        return (
            all(node.labels.get(key) == value for key, value in self.selector)
            and self._is_attracted(node)
            and all(any(one.covers(taint) for one in self.tolerations) for taint in node.taints)
        )

    def _is_attracted(self, node: "NodeTraits") -> bool:
        if self.terms is None:
            return True
        return any(term and all(one.is_met_by(node) for one in term) for term in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTraits:
    """The properties of a node that wishes refer to."""

    name: NodeName
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()


def read_wish(spec: Mapping[str, Any]) -> NodeWish:
    """Read the conditions of a pod on its node from its spec."""
    return NodeWish(
        selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
        terms=_read_terms(spec),
        tolerations=tuple(map(_read_toleration, spec.get("tolerations") or ())),
    )


def read_traits(node: Mapping[str, Any]) -> NodeTraits:
    """Read the properties of a node that wishes refer to; a cordon counts as a taint."""
    metadata, spec = node["metadata"], node.get("spec") or {}
    taints = [
        Taint(one["key"], one.get("value") or "", one["effect"])
        for one in spec.get("taints") or ()
        if one["effect"] in _KEEPS_AWAY
    ]
    if spec.get("unschedulable"):
        taints.append(Taint(_CORDON_TAINT, "", "NoSchedule"))
    return NodeTraits(
        name=NodeName(metadata["name"]),
        labels=metadata.get("labels") or {},
        taints=tuple(dict.fromkeys(taints)),
    )


def _read_terms(spec: Mapping[str, Any]) -> tuple[tuple[NodeRequirement, ...], ...] | None:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return None
    return tuple(_read_term(term) for term in required.get("nodeSelectorTerms") or ())


def _read_term(term: Mapping[str, Any]) -> tuple[NodeRequirement, ...]:
    labels = [_read_requirement(one, False) for one in term.get("matchExpressions") or ()]
    fields = [_read_requirement(one, True) for one in term.get("matchFields") or ()]
    return (*labels, *fields)


def _read_requirement(one: Mapping[str, Any], is_field: bool) -> NodeRequirement:
    return NodeRequirement(one["key"], one["operator"], tuple(one.get("values") or ()), is_field)


def _read_toleration(one: Mapping[str, Any]) -> Toleration:
    return Toleration(
        one.get("key") or "",
        one.get("operator") or "Equal",
        one.get("value") or "",
        one.get("effect") or "",
    )


def _is_number(text: str | None) -> bool:
    return text is not None and text.removeprefix("-").isdecimal()
