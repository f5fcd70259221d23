"""What the webhook knows of the cluster, from memory: each kind followed by a feed of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube import marks
from kube.api.feed import Sink
from kube.follow import priority_classes
from kube.follow.namespaces import NamespaceSink
from kube.follow.policies import PolicySink
from kube.follow.priority_classes import PrioritySink
from kube.read import pod_groups as podgroups
from kube.read.gangs import GangForm
from kube.read.pod_groups import PodGroupSink


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where objects come from, and where they go."""

    path: str
    sink: Sink
    query: Mapping[str, str] = field(default_factory=dict)
    is_optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Policies, and the other objects that decisions depend on."""

    policies: PolicySink
    namespaces: NamespaceSink = field(default_factory=NamespaceSink)
    pod_groups: Mapping[GangForm, PodGroupSink] = field(
        default_factory=lambda: {form: PodGroupSink() for form in podgroups.APIS}
    )
    priorities: PrioritySink = field(default_factory=PrioritySink)

    def sources(self, namespace: str) -> dict[str, Source]:
        """Say what to follow; policy documents are in `namespace`."""
        return {
            "policies": Source(
                path=f"/api/v1/namespaces/{namespace}/configmaps",
                sink=self.policies,
                query={"labelSelector": marks.POLICY_LABEL},
            ),
            "priority classes": Source(path=priority_classes.PATH, sink=self.priorities),
            "namespaces": Source(path="/api/v1/namespaces", sink=self.namespaces),
            **{
                f"{form} pod groups": Source(
                    path=f"/apis/{podgroups.APIS[form]}/podgroups", sink=sink, is_optional=True
                )
                for form, sink in self.pod_groups.items()
            },
        }
