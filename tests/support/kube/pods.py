"""Pods for tests, said in one line. A test states only what matters to it.

    a_pod("bert-0").with_gpus(8).in_gang("bert", size=4)

A builder is the object itself, a plain dict; each step returns a changed copy.
"""

from copy import deepcopy
from typing import Any, Self

from kube import marks
from kube.hived.spec import HivedSpec, format_spec
from kube.placement_annotations import format_placement
from kube.read.submitters import format_submitter_groups
from policy.placement import Placement
from policy.submission import VcName
from tests.support.kube.objects import NVIDIA, ObjectBuilder


def a_pod(name: str = "bert-0", *, namespace: str = "lab") -> "PodBuilder":
    """Start with a pending pod that asks for nothing."""
    return PodBuilder(
        apiVersion="v1",
        kind="Pod",
        metadata={
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "resourceVersion": "1",
            "labels": {},
            "annotations": {},
        },
        spec={
            "schedulerName": marks.SCHEDULER_NAME,
            "containers": [{"name": "main", "image": "train:1"}],
        },
        status={"phase": "Pending"},
    )


def a_new_pod(name: str, *, namespace: str | None = None) -> "PodBuilder":
    """Start with a pod as a user submits it."""
    return PodBuilder(
        apiVersion="v1",
        kind="Pod",
        metadata={"name": name, **({"namespace": namespace} if namespace else {})},
        spec={"containers": [{"name": "main", "image": "any"}]},
    )


def a_hived_pod(
    name: str, *, priority: int, gpus: int = 8, vc: str = "lab", is_lazy: bool = False
) -> "PodBuilder":
    """Start with a pod of one member whose priority is in HiveD's annotation."""
    spec = HivedSpec(vc=VcName(vc), priority=priority, leaf_count=gpus, lazy_preemption=is_lazy)
    return a_pod(name).with_gpus(gpus).with_hived_spec(spec)


class PodBuilder(ObjectBuilder):
    """A pod, as the API server's JSON."""

    def with_gpus(self, count: object, *, resource: str = NVIDIA) -> Self:
        """Let the first container ask for devices."""
        return self._with_limit(resource, str(count))

    def defaulted(self) -> Self:
        """Let its containers request what they are limited to, as the API server does."""
        pod = deepcopy(self)
        for container in pod["spec"]["containers"]:
            if "resources" in container:
                container["resources"]["requests"] = dict(container["resources"]["limits"])
        return pod

    def with_cpu(self, quantity: str) -> Self:
        """Let the first container ask for CPU time."""
        return self._with_limit("cpu", quantity)

    def for_hived(self) -> Self:
        """Let it ask for HiveD's enable resource."""
        return self._with_limit(marks.HIVED_ENABLE_RESOURCE, "1")

    def with_hived_spec(self, spec: HivedSpec | str) -> Self:
        """Give it HiveD's annotation."""
        text = spec if isinstance(spec, str) else format_spec(spec)
        return self.annotated(marks.HIVED_SPEC_ANNOTATION, text)

    def with_container(self, limits: dict[str, Any], **fields: object) -> Self:
        """Add one more container."""
        return self._with_container("containers", limits, fields)

    def with_init_container(self, limits: dict[str, Any], **fields: object) -> Self:
        """Add an init container."""
        return self._with_container("initContainers", limits, fields)

    def with_sidecar(self, limits: dict[str, Any]) -> Self:
        """Add an init container that goes on running."""
        return self.with_init_container(limits, restartPolicy="Always")

    def in_gang(self, name: str, *, size: int, min_size: int | None = None) -> Self:
        """Make it a member of a gang, by our own labels."""
        pod = self.labelled(marks.GANG_LABEL, name).labelled(marks.GANG_SIZE_LABEL, str(size))
        return pod if min_size is None else pod.labelled(marks.GANG_MIN_LABEL, str(min_size))

    def in_native_gang(self, name: str) -> Self:
        """Make it a member of a PodGroup of Kubernetes."""
        return self._changed("spec", schedulingGroup={"podGroupName": name})

    def in_vc(self, vc: str) -> Self:
        """Let it use a VC."""
        return self.labelled(marks.VC_LABEL, vc)

    def wanting(self, leaf_type: str) -> Self:
        """Let it want one leaf type."""
        return self.labelled(marks.LEAF_TYPE_LABEL, leaf_type)

    def of_class(self, name: str, *, priority: int | None = None) -> Self:
        """Give it a priority class."""
        pod = self._changed("spec", priorityClassName=name)
        return pod if priority is None else pod._changed("spec", priority=priority)

    def submitted_by(self, user: str, *groups: str) -> Self:
        """Stamp its submitter on it."""
        return self.annotated(marks.SUBMITTER_ANNOTATION, user).annotated(
            marks.SUBMITTER_GROUPS_ANNOTATION, format_submitter_groups(groups)
        )

    def charged_to(self, group: str) -> Self:
        """Say which quota group pays."""
        return self.labelled(marks.GROUP_LABEL, group)

    def gated(self) -> Self:
        """Let the planner hold it."""
        return self._changed("spec", schedulingGates=[{"name": marks.QUEUED_GATE}])

    def placed(self, placement: Placement) -> Self:
        """Write a placement on it."""
        return self.annotated(marks.PLACEMENT_ANNOTATION, format_placement(placement))

    def bound_to(self, node: str) -> Self:
        """Bind it, and let it run."""
        return self._changed("spec", nodeName=node).in_phase("Running")

    def created_at(self, text: str) -> Self:
        """Say when it was created."""
        return self._changed("metadata", creationTimestamp=text)

    def in_phase(self, phase: str) -> Self:
        """Set how far it is."""
        return self.with_status(phase=phase)

    def with_status(self, **fields: object) -> Self:
        """Set fields of its status."""
        return self._changed("status", **fields)

    def being_deleted(self, *, grace_seconds: int = 30) -> Self:
        """Let it end."""
        return self._changed(
            "metadata",
            deletionTimestamp="2026-01-01T00:00:00Z",
            deletionGracePeriodSeconds=grace_seconds,
        )

    def ending_at_once(self) -> Self:
        """Let it end without a grace period."""
        return self.with_spec(terminationGracePeriodSeconds=0)

    def unnamed(self, prefix: str) -> Self:
        """Make it a pod that is being admitted and will be named later."""
        pod = self._changed("metadata", generateName=prefix)
        for key in ("name", "uid", "resourceVersion"):
            del pod["metadata"][key]
        return pod

    def _with_limit(self, resource: str, quantity: str) -> Self:
        pod = deepcopy(self)
        resources = pod["spec"]["containers"][0].setdefault("resources", {})
        resources.setdefault("limits", {})[resource] = quantity
        return pod

    def _with_container(self, key: str, limits: dict[str, Any], fields: dict[str, object]) -> Self:
        containers = self["spec"].get(key, [])
        container = {"name": f"{key}-{len(containers)}", "resources": {"limits": limits}, **fields}
        return self._changed("spec", **{key: [*containers, container]})
