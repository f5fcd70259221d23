"""PodGroups of Kubernetes, and pods of their gangs."""

from typing import Self

from tests.support.kube.objects import ObjectBuilder
from tests.support.kube.pods import PodBuilder, a_pod


def a_pod_group(name: str = "bert", *, size: int = 4, namespace: str = "lab") -> "PodGroupBuilder":
    """Start with a gang of so many members that names no class."""
    return PodGroupBuilder(
        apiVersion="scheduling.k8s.io/v1beta1",
        kind="PodGroup",
        metadata={"name": name, "namespace": namespace, "resourceVersion": "1"},
        spec={"schedulingPolicy": {"gang": {"minCount": size}}},
    )


def a_coscheduling_group(name: str, *, size: int | None = None) -> ObjectBuilder:
    """A PodGroup of the coscheduling plugin, with or without a size."""
    return ObjectBuilder(
        metadata={"name": name, "namespace": "lab", "resourceVersion": "1"},
        spec={} if size is None else {"minMember": size},
    )


class PodGroupBuilder(ObjectBuilder):
    """A PodGroup, as the API server's JSON."""

    def of_class(self, name: str) -> Self:
        """Give it a priority class, and the priority that the API server resolved."""
        return self._changed("spec", priorityClassName=name, priority=1000)

    def without_gang(self) -> Self:
        """Let its pods be scheduled one by one."""
        return self._changed("spec", schedulingPolicy={"basic": {}})


def a_group_member(name: str = "bert-0", *, gpus: int = 1, group: str = "bert") -> PodBuilder:
    """A pod of a PodGroup's gang."""
    return a_pod(name).with_gpus(gpus).in_native_gang(group)
