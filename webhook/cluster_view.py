"""What the webhook knows of the cluster: a copy of each kind of object, kept by a feed."""

from dataclasses import dataclass, field

from kube.api.feed import FeedSource
from kube.follow import priority_classes
from kube.follow.namespaces import NamespaceSink
from kube.follow.pod_groups import PodGroupFollower
from kube.follow.policies import PolicySink
from kube.follow.priority_classes import PriorityClassSink


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Policies, and the other objects that decisions depend on."""

    policies: PolicySink
    pod_groups: PodGroupFollower
    namespaces: NamespaceSink = field(default_factory=NamespaceSink)
    priorities: PriorityClassSink = field(default_factory=PriorityClassSink)

    def sources(self, namespace: str) -> dict[str, FeedSource]:
        """Say what to follow beside PodGroups; policy documents are in `namespace`."""
        return {
            "policies": self.policies.source(namespace),
            "priority classes": FeedSource(path=priority_classes.PATH, sink=self.priorities),
            "namespaces": FeedSource(path="/api/v1/namespaces", sink=self.namespaces),
        }
