"""The simulated kube-scheduler: one pod at a time, highest priority first.

It reads and writes the store directly, like an informer that is never behind. A node fits by free
extended resources, node selector, readiness and cordon; CPU, memory, taints, affinity and
preemption are not simulated. Gated pods are ignored.

A pod is bound in the background: its room counts as used meanwhile, and other pods are tried.

A pod that fits no node waits until the cluster changes, for 0.5 s to 30 s. A pod whose attempt
failed waits for its backoff, which grows from 1 s to 10 s.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from simulation.extender_calls import Extender, ExtenderError
from simulation.objects import pods
from simulation.objects.fields import Object, clone, key_of, set_condition, version_of
from simulation.objects.resources import NODES, PODS
from simulation.objects.status import ApiError
from simulation.objects.store import Change, Store

logger = logging.getLogger(__name__)

CELLGATE_SCHEDULER = "cellgate-scheduler"
_SERVED = (CELLGATE_SCHEDULER, "default-scheduler")
_BACKOFF_FIRST_SECONDS = 1.0
_BACKOFF_MOST_SECONDS = 10.0
_PAUSE_SECONDS = 0.5
_FLUSH_SECONDS = 30.0


class UnschedulableError(Exception):
    """No node fits the pod; the message is the same as long as the reasons are."""


@dataclass(slots=True, kw_only=True)
class Backoff:
    """When a pod is tried again, and the earliest time if the cluster changes before."""

    attempts: int
    until: float
    earliest: float


class Scheduler:
    """Schedules the pods of a store; only pods for `cellgate-scheduler` go to the extender."""

    def __init__(self, store: Store, extender: Extender, *, now: Callable[[], float]) -> None:
        self._store = store
        self._extender = extender
        self._now = now
        self._waits: dict[str, Backoff] = {}
        self._assumed: dict[str, Object] = {}
        """Pods that are being bound, with their nodes."""
        self._bindings: set[asyncio.Task[None]] = set()
        self._seen = 0

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            while True:
                reached = self._store.revision
                if not await self.schedule_next():
                    await self._sleep(reached)
        finally:
            for task in self._bindings:
                task.cancel()
            await asyncio.gather(*self._bindings, return_exceptions=True)

    async def schedule_next(self) -> bool:
        """Try the first pod that is due; False if there is none."""
        self._end_waits()
        due = [pod for pod in self._pending() if not self._is_waiting(pod)]
        if not due:
            return False
        pod = min(due, key=_queue_position)
        try:
            self._start_binding(pod, await self._choose(pod))
        except UnschedulableError as exc:
            self._put_back(pod, reason="Unschedulable", message=str(exc))
        except (ExtenderError, ApiError) as exc:
            self._put_back(pod, reason="SchedulerError", message=str(exc))
        await asyncio.sleep(0)  # a binding that can be made at once is made before the next pod
        return True

    def _start_binding(self, pod: Object, node: str) -> None:
        """Bind in the background, as kube-scheduler does: an extender may hold the answer."""
        assumed = clone(pod)
        assumed["spec"]["nodeName"] = node
        self._assumed[pod["metadata"]["uid"]] = assumed
        task = asyncio.create_task(self._bind(pod, node))
        self._bindings.add(task)
        task.add_done_callback(self._bindings.discard)

    async def _bind(self, pod: Object, node: str) -> None:
        uid = pod["metadata"]["uid"]
        try:
            if self._asks_extender(pod):
                await self._extender.bind(pod, node)
            else:
                bound = pods.bind(pod, {"target": {"name": node}}, now=self._now())
                self._store.update(PODS, bound, expected=version_of(pod))
            self._waits.pop(uid, None)
        except (ExtenderError, ApiError) as exc:
            self._put_back(pod, reason="SchedulerError", message=str(exc))
        finally:
            self._assumed.pop(uid, None)

    async def _sleep(self, reached: int) -> None:
        until = min((wait.until for wait in self._waits.values()), default=None)
        patience = None if until is None else max(0.0, until - self._now())
        if self._bindings:
            patience = min(_PAUSE_SECONDS, patience or _PAUSE_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._store.wait_for_change(reached)

    def _pending(self) -> list[Object]:
        waiting = (pod for pod in self._store.list(PODS) if _is_pending(pod))
        return [pod for pod in waiting if pod["metadata"]["uid"] not in self._assumed]

    def _is_waiting(self, pod: Object) -> bool:
        wait = self._waits.get(pod["metadata"]["uid"])
        return wait is not None and wait.until > self._now()

    def _end_waits(self) -> None:
        """Drop pods that have ended; retry rejected pods if the cluster has changed."""
        pending = {pod["metadata"]["uid"] for pod in self._pending()}
        self._waits = {uid: wait for uid, wait in self._waits.items() if uid in pending}
        try:
            changed = any(map(_is_news, self._store.changes(since=self._seen)))
        except ApiError:
            changed = True
        self._seen = self._store.revision
        for wait in self._waits.values():
            if changed:
                wait.until = min(wait.until, wait.earliest)

    def _asks_extender(self, pod: Object) -> bool:
        return bool(pod["spec"]["schedulerName"] == CELLGATE_SCHEDULER)

    async def _choose(self, pod: Object) -> str:
        """Return the nominated node if it passes the filter, or else the best node of all."""
        fitting = self._fitting(pod)
        if not self._asks_extender(pod):
            return fitting[0]
        nominated = pod["status"].get("nominatedNodeName")
        if nominated in fitting and (await self._extender.filter(pod, [nominated])).nodes:
            return str(nominated)
        filtered = await self._extender.filter(pod, fitting)
        if not filtered.nodes:
            refused = {name: filtered.failed.get(name, "no reason given") for name in fitting}
            raise UnschedulableError(self._explain(Counter(refused.values()), fitting))
        if len(filtered.nodes) == 1:
            return filtered.nodes[0]
        scores = await self._extender.prioritize(pod, filtered.nodes)
        return max(filtered.nodes, key=lambda name: scores.get(name, 0))

    def _fitting(self, pod: Object) -> Sequence[str]:
        """Return the names of the candidate nodes; UnschedulableError if there are none."""
        others = (pod for pod in self._store.list(PODS) if not pod["spec"].get("nodeName"))
        used = _used([*self._store.list(PODS), *self._assumed_of(others)])
        nodes = self._store.list(NODES)
        fitting = [node["metadata"]["name"] for node in nodes if _fits(pod, node, used=used)]
        if not fitting:
            raise UnschedulableError(self._explain(Counter(), fitting))
        return fitting

    def _assumed_of(self, unbound: Iterable[Object]) -> list[Object]:
        """Return the unbound pods that are being bound, on their nodes."""
        uids = (pod["metadata"]["uid"] for pod in unbound)
        return [self._assumed[uid] for uid in uids if uid in self._assumed]

    def _explain(self, reasons: Counter[str], fitting: Sequence[str]) -> str:
        total = len(self._store.list(NODES))
        if total > len(fitting):
            reasons["Insufficient resources or not eligible"] = total - len(fitting)
        parts = sorted(f"{count} {reason}" for reason, count in reasons.items())
        return f"0/{total} nodes are available: {', '.join(parts)}."

    def _put_back(self, pod: Object, *, reason: str, message: str) -> None:
        uid = pod["metadata"]["uid"]
        attempts = self._waits[uid].attempts + 1 if uid in self._waits else 1
        backoff = min(_BACKOFF_FIRST_SECONDS * 2 ** (attempts - 1), _BACKOFF_MOST_SECONDS)
        rejected, now = reason == "Unschedulable", self._now()
        self._waits[uid] = Backoff(
            attempts=attempts,
            until=now + (_FLUSH_SECONDS if rejected else backoff),
            earliest=now + (_PAUSE_SECONDS if rejected else backoff),
        )
        logger.debug("pod not scheduled", extra={"pod_uid": uid, "reason": message})
        self._tell(pod, reason=reason, message=message)

    def _tell(self, pod: Object, *, reason: str, message: str) -> None:
        """Set the condition and clear the nomination, as kube-scheduler does after a failure."""
        current = self._store.find(PODS, key_of(pod))
        if current is None or current["spec"].get("nodeName"):
            return
        changed = clone(current)
        changed["status"].pop("nominatedNodeName", None)
        condition = {"type": "PodScheduled", "status": "False", "reason": reason}
        set_condition(changed["status"], {**condition, "message": message}, now=self._now())
        self._store.update(PODS, changed, expected=version_of(current))


def _is_pending(pod: Object) -> bool:
    spec, metadata = pod["spec"], pod["metadata"]
    taken = spec.get("nodeName") or spec.get("schedulingGates") or metadata.get("deletionTimestamp")
    return not taken and spec["schedulerName"] in _SERVED and pod["status"]["phase"] == "Pending"


def _queue_position(pod: Object) -> tuple[int, str, str]:
    metadata = pod["metadata"]
    return -pod["spec"].get("priority", 0), metadata["creationTimestamp"], metadata["name"]


def _is_news(change: Change) -> bool:
    """Tell whether a rejected pod may fit after a change.

    Most changes of a pod's status do not count: the scheduler's own conditions would wake it again.
    """
    before, after = change.before, change.after
    if change.resource is not PODS or before is None or after is None:
        return change.resource in (PODS, NODES)
    ended = after["status"]["phase"] in pods.FINISHED
    metadata = {**before["metadata"], "resourceVersion": version_of(after)}
    steered = metadata != after["metadata"] or before["spec"] != after["spec"]
    return ended or steered or bool(after["status"].get("nominatedNodeName"))


def _used(all_pods: Sequence[Object]) -> Counter[tuple[str, str]]:
    """Return the use of each extended resource on each node."""
    used: Counter[tuple[str, str]] = Counter()
    for pod in all_pods:
        node = pod["spec"].get("nodeName")
        if node and pod["status"]["phase"] not in pods.FINISHED:
            for name, amount in _requests(pod).items():
                used[node, name] += amount
    return used


def _requests(pod: Object) -> Mapping[str, int]:
    """Return the extended resources of a pod: the sum of its containers, or the largest init
    container if that is more."""
    total: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        total.update(_extended(container))
    for container in pod["spec"].get("initContainers") or ():
        total |= _extended(container)
    return total


def _extended(container: Object) -> Counter[str]:
    requests = (container.get("resources") or {}).get("requests") or {}
    return Counter({name: _amount(value) for name, value in requests.items() if "/" in name})


def _amount(value: object) -> int:
    """Return the amount of an extended resource; 0 if it is not a whole number."""
    return int(str(value)) if str(value).isdigit() else 0


def _fits(pod: Object, node: Object, *, used: Mapping[tuple[str, str], int]) -> bool:
    name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    free = node["status"].get("allocatable") or {}
    conditions = {one["type"]: one["status"] for one in node["status"].get("conditions") or ()}
    return (
        not node.get("spec", {}).get("unschedulable")
        and conditions.get("Ready", "True") == "True"
        and all(labels.get(key) == value for key, value in selector.items())
        and all(
            used[name, resource] + amount <= _amount(free.get(resource, 0))
            for resource, amount in _requests(pod).items()
        )
    )
