"""What the webhook knows of the cluster: a copy of each kind of object, kept by a feed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube import marks
from kube.api.feed import Sink
from kube.follow import priority_classes
from kube.follow.namespaces import NamespaceSink
from kube.follow.pod_groups import PodGroupFollower
from kube.follow.policies import PolicySink
from kube.follow.priority_classes import PrioritySink


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where objects come from, and where they go."""

    path: str
    sink: Sink
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Policies, and the other objects that decisions depend on."""

    policies: PolicySink
    pod_groups: PodGroupFollower
    namespaces: NamespaceSink = field(default_factory=NamespaceSink)
    priorities: PrioritySink = field(default_factory=PrioritySink)

    def sources(self, namespace: str) -> dict[str, Source]:
        """Say what to follow beside PodGroups; policy documents are in `namespace`."""
        return {
            "policies": Source(
                path=f"/api/v1/namespaces/{namespace}/configmaps",
                sink=self.policies,
                query={"labelSelector": marks.POLICY_LABEL},
            ),
            "priority classes": Source(path=priority_classes.PATH, sink=self.priorities),
            "namespaces": Source(path="/api/v1/namespaces", sink=self.namespaces),
        }
