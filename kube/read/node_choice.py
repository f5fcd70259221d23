"""Which nodes a pod may use, by its selector, affinity and tolerations, as kube-scheduler decides.

The planner places gangs before kube-scheduler sees them, and must not choose a node that
kube-scheduler would refuse. This module checks what does not change while a pod waits; CPU and
memory are read by `pod_resources`, and the volumes of claims by `kube.follow.volumes`.

Pods and nodes come from the API server, which has validated them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube.values.objects import items, mapping
from policy.pod_resources import meets
from policy.submission import NodeName

POD_FIELDS: Final = ("nodeSelector", "affinity", "tolerations", "volumes")
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
        is_number = self.operator in ("Gt", "Lt")
        return self._compare(found) if is_number else meets(found, self.operator, self.values)

    def _compare(self, found: str | None) -> bool:
        if not self.values or not _is_number(found) or not _is_number(self.values[0]):
            return False
        mine, limit = int(found or 0), int(self.values[0])
        return mine > limit if self.operator == "Gt" else mine < limit


NodeTerms = tuple[tuple[NodeRequirement, ...], ...]
"""Terms of which a node must meet one, with all its requirements."""


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
    terms: NodeTerms | None = None
    """Required affinity."""
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[NodeTerms, ...] = ()
    """Required affinity of the pod's volumes."""

    def suits(self, node: "NodeTraits") -> bool:
        """Whether a pod with this wish may run there."""
        return (
            all(node.labels.get(key) == value for key, value in self.selector)
            and (self.terms is None or _meets(node, self.terms))
            and all(_meets(node, terms) for terms in self.volumes)
            and all(any(one.covers(taint) for one in self.tolerations) for taint in node.taints)
        )


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
        terms=_read_affinity(spec),
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


def read_terms(selector: Mapping[str, Any]) -> NodeTerms:
    """Read the terms of a node selector."""
    return tuple(_read_term(term) for term in selector.get("nodeSelectorTerms") or ())


def _meets(node: NodeTraits, terms: NodeTerms) -> bool:
    """Whether a node meets one of the terms; an empty term is never met."""
    return any(term and all(one.is_met_by(node) for one in term) for term in terms)


def _read_affinity(spec: Mapping[str, Any]) -> NodeTerms | None:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else read_terms(required)


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


def read_claims(volumes: object, *, pod: str) -> tuple[str, ...]:
    """Return the names of the PersistentVolumeClaims that a pod uses.

    The claim of a generic ephemeral volume is named after the pod and the volume.
    """
    found: dict[str, None] = {}
    for volume in items(volumes):
        name = mapping(volume.get("persistentVolumeClaim")).get("claimName")
        if name:
            found[str(name)] = None
        elif volume.get("ephemeral"):
            found[f"{pod}-{volume.get('name')}"] = None
    return tuple(found)


def trim_volumes(volumes: object) -> list[dict[str, Any]]:
    """Keep of volumes what `read_claims` reads."""
    return [
        {
            "name": volume.get("name"),
            "persistentVolumeClaim": volume.get("persistentVolumeClaim"),
            "ephemeral": bool(volume.get("ephemeral")),
        }
        for volume in items(volumes)
        if volume.get("persistentVolumeClaim") or volume.get("ephemeral")
    ]
