"""The reviews of a webhook without HTTP, over a ledger in memory."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from kube.client import KubeClient, KubeError
from kube.events import Event, EventWriter
from kube.podgroups import PodGroupSink
from kube.policies import PolicySink
from service.clock import Clock
from state.log import DecisionLog
from state.memory import MemoryDecisions
from tests.unit.webhook.admission import World
from webhook.answers import AnswerSettings
from webhook.guarding import PodGuard
from webhook.metrics import WebhookMetrics
from webhook.namespaces import NamespaceSink
from webhook.notes import DecisionNotes
from webhook.podgroup_reviews import PodGroupReviews
from webhook.podgroups import PodGroups
from webhook.pods import PodReviews
from webhook.policy_watcher import PolicyWatcher
from webhook.templates import TemplateReviews
from webhook.told import ToldPods
from webhook.wire import ReviewRequest

CLASSES = """
apiVersion: cellgate.io/v1
kind: Classes
classes:
- {name: prod, cellPriority: 100, high: true}
- {name: test, cellPriority: 10, high: true}
- {name: oppo, cellPriority: -1}
default: test
"""


class NoCluster(KubeClient):
    """A cluster that has nothing."""

    def __init__(self) -> None:
        pass

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        raise KubeError(f"{method} {path}: not found", status=404)


class Events(EventWriter):
    """Keeps what would be written."""

    def __init__(self) -> None:
        self.written: list[Event] = []

    def write(self, event: Event) -> None:
        self.written.append(event)


@dataclass
class Webhook:
    """One webhook that has these policy documents."""

    policies: dict[str, str] = field(default_factory=dict)
    world: World = field(default_factory=World)
    settings: AnswerSettings = field(default_factory=AnswerSettings)

    def __post_init__(self) -> None:
        metrics = WebhookMetrics(CollectorRegistry())
        self.events = Events()
        watcher = PolicyWatcher(metrics, self.events, namespace="cellgate-system")
        self.sink = PolicySink(watcher.on_change)
        self.sink.replace(
            [config_map(kind, text) for kind, text in {"classes": CLASSES, **self.policies}.items()]
        )
        self.namespaces = NamespaceSink()
        self.log = DecisionLog(MemoryDecisions())
        self.told = ToldPods(self.events)
        self.guard = PodGuard(told=self.told, namespace="cellgate-system", admins=["root"])
        self.groups = PodGroupSink()
        self.pods = PodReviews(
            policies=self.sink,
            namespaces=self.namespaces,
            groups=PodGroups(self.groups, NoCluster()),
            admitter=self.world.replica(),
            notes=DecisionNotes(log=self.log, metrics=metrics, told=self.told, clock=Clock()),
            clock=Clock(),
            settings=self.settings,
        )
        groups = PodGroupReviews(
            policies=self.sink, namespaces=self.namespaces, admitter=self.world.replica()
        )
        self.templates = TemplateReviews(policies=self.sink, pods=self.pods, groups=groups)


def config_map(kind: str, text: str) -> dict[str, Any]:
    """Return the ConfigMap of a policy document."""
    labels = {"cellgate.io/policy": kind}
    return {"metadata": {"name": kind, "labels": labels}, "data": {"policy.yaml": text}}


def a_review(
    obj: dict[str, Any] | None,
    *,
    user: str = "alice",
    groups: Sequence[str] = (),
    old: dict[str, Any] | None = None,
    dry_run: bool = False,
    uid: str = "",
) -> ReviewRequest:
    """Return what the API server would ask about an object."""
    operation = "CREATE" if old is None else "UPDATE" if obj is not None else "DELETE"
    given = (obj or old or {}).get("metadata")
    metadata = given if isinstance(given, dict) else {}
    return ReviewRequest.model_validate(
        {
            "uid": uid or str(uuid.uuid4()),
            "operation": operation,
            "namespace": metadata.get("namespace", "lab"),
            "name": metadata.get("name", ""),
            "userInfo": {"username": user, "groups": list(groups)},
            "object": obj,
            "oldObject": old,
            "dryRun": dry_run,
        }
    )
