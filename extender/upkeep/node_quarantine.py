"""Nodes on which members of several workloads fail at start are left out for a while.

Every replica notes the failures that pods report; `policy.quarantine` decides which nodes are to
blame. The leader writes the decision on the node as an annotation, from which all replicas read
that the node is not healthy; so a new leader knows it, too. The leader removes its own annotation
when its time is over. An admin ends a quarantine by removing the annotation, begins one with an
annotation of any other text, and exempts a node with the text `never`.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final, NoReturn, Protocol

import orjson

from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from kube.api.events import Event, EventWriter
from kube.read.managed_pod import ManagedPod
from kube.read.nodes import KubeNode
from kube.read.workloads import Workload
from policy.errors import BackendError
from policy.quarantine import BlamedNode, QuarantineRule, StartFailure, find_bad_nodes
from policy.submission import NodeName, PodUid
from policy.wording import count_of, listing, moment
from service.clock import Clock
from service.memory import BoundedMap, ExpiringMap

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 2.0
_MOST_FAILURES: Final = 20_000
_LISTED: Final = 8
_SEEN_SECONDS: Final = 30.0


class MarkNodes(Protocol):
    """What a quarantine needs of Kubernetes."""

    async def mark_quarantine(self, node: NodeName, text: str | None) -> None:
        """Write the annotation, or remove it; BackendError if that failed."""


class NodeQuarantine:
    """Begins and ends quarantines; without a rule it only ends them."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        rule: Callable[[], QuarantineRule | None],
        writer: MarkNodes,
        events: EventWriter,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._rule = rule
        self._writer = writer
        self._events = events
        self._clock = clock
        self._failures: BoundedMap[tuple[PodUid, float], StartFailure] = BoundedMap(_MOST_FAILURES)
        self._quarantined: dict[NodeName, None] = {}
        """Nodes that were quarantined at the last look."""
        self._ended: BoundedMap[NodeName, float] = BoundedMap(_MOST_FAILURES)
        """When the last quarantine of a node ended: what happened before counts no more."""
        self._marked: ExpiringMap[NodeName, None] = ExpiringMap(
            _MOST_FAILURES, seconds=_SEEN_SECONDS, monotonic=clock.monotonic
        )
        """Nodes that were marked just now, which their feed may not show yet."""
        pods.on_failure.append(self._note)

    def _note(self, pod: ManagedPod, failure: StartFailure) -> None:
        self._failures[pod.uid, failure.at] = failure

    async def run(self) -> NoReturn:
        """Look at failures and quarantines until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_EVERY_SECONDS)

    async def look(self) -> None:
        """End the quarantines whose time is over, and begin those that the failures call for."""
        now = self._clock.now().timestamp()
        nodes = {name: node for name, node in self._cluster.nodes.items() if node.is_quarantined}
        for name in self._quarantined:
            if name not in nodes:
                self._ended[name] = now
        self._quarantined = dict.fromkeys(nodes)
        for node in nodes.values():
            if (until := read_until(node)) is not None and until <= now:
                await self._end(node.name)
        rule = self._rule()
        if rule is not None and self._failures:
            for blamed in self._find(rule, now):
                await self._begin(blamed, rule, now)

    def _find(self, rule: QuarantineRule, now: float) -> list[BlamedNode]:
        exempt = [name for name, node in self._cluster.nodes.items() if node.quarantine is not None]
        known = {name: node.leaf_type for name, node in self._cluster.nodes.items()}
        counted = (one for one in self._failures.values() if one.at > self._ended.get(one.node, 0))
        found = find_bad_nodes(counted, rule, now=now, nodes=known, quarantined=exempt)
        return [blamed for blamed in found if blamed.node not in self._marked]

    async def _begin(self, blamed: BlamedNode, rule: QuarantineRule, now: float) -> None:
        until = moment(now + rule.for_seconds)
        workloads = [_show_workload(one) for one in blamed.workloads[:_LISTED]]
        told = {"until": until, "workloads": workloads}
        if await self._mark(blamed.node, orjson.dumps(told).decode()):
            count = count_of(len(blamed.workloads), "different workload")
            submitters = count_of(len(blamed.submitters), "submitter")
            message = (
                f"no gang is placed here until {until}: members of {count} of {submitters} failed "
                f"at start within {rule.within_seconds:.0f} seconds ({listing(workloads)}); "
                "remove the annotation cellgate.io/quarantine to use the node again"
            )
            self._tell(blamed.node, "Quarantined", message, is_warning=True)

    async def _end(self, node: NodeName) -> None:
        if await self._mark(node, None):
            message = "the quarantine is over: gangs are placed here again"
            self._tell(node, "QuarantineEnded", message, is_warning=False)

    async def _mark(self, node: NodeName, text: str | None) -> bool:
        try:
            await self._writer.mark_quarantine(node, text)
        except BackendError as exc:
            logger.warning("node not marked, will retry", extra={"node": node, "error": str(exc)})
            return False
        if text is not None:
            self._marked[node] = None
        logger.info("quarantine changed", extra={"node": node, "quarantine": text})
        return True

    def _tell(self, node: NodeName, reason: str, message: str, *, is_warning: bool) -> None:
        # Kubernetes shows the Events of a node whose UID is its name.
        self._events.write(
            Event(
                namespace="default",
                api_version="v1",
                kind="Node",
                name=node,
                uid=node,
                reason=reason,
                message=message,
                is_warning=is_warning,
            )
        )


def read_until(node: KubeNode) -> float | None:
    """Return when a quarantine of ours ends; None for one that an admin began."""
    try:
        told = orjson.loads(node.quarantine or "")
        until = datetime.fromisoformat(told["until"])
    except (ValueError, KeyError, TypeError):
        return None
    return until.timestamp() if until.tzinfo is not None else None


def _show_workload(workload: str) -> str:
    """Write the key of a workload for people: `Job lab/bert`; that of a gang as it is."""
    namespace, _, mark = workload.partition("/")
    found = Workload.parse(mark)
    return f"{found.kind} {namespace}/{found.name}" if found else workload
