"""All kubelets of the simulated cluster: bound pods run for their time, deleted pods end.

It also removes finished pods and old events, as garbage collection does, so that memory is bounded.
"""

import asyncio
import contextlib
from collections.abc import Callable

from simulation.objects.fields import (
    Object,
    clone,
    format_time,
    key_of,
    parse_time,
    set_condition,
    version_of,
)
from simulation.objects.pods import FINISHED
from simulation.objects.resources import EVENTS, NEW_EVENTS, PODS, Resource
from simulation.objects.store import Store

RUN_SECONDS = "simulation.cellgate.io/run-seconds"
"""Annotation: how long a pod runs before it succeeds; without it, a pod runs until deleted."""


class Kubelet:
    """Starts, completes and removes pods."""

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], float],
        finished_seconds: float = 30.0,
        event_seconds: float = 600.0,
    ) -> None:
        self._store = store
        self._now = now
        self._finished_seconds = finished_seconds
        self._event_seconds = event_seconds
        self._since: dict[str, float] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            reached = self._store.revision
            due = self.step()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.05, min(due - self._now(), 30.0))):
                    await self._store.wait_for_change(reached)

    def step(self) -> float:
        """Do what is due; return when the next step is due if nothing changes before."""
        all_pods = self._store.list(PODS)
        known = {pod["metadata"]["uid"] for pod in all_pods}
        self._since = {uid: since for uid, since in self._since.items() if uid in known}
        self._forget_events(EVENTS)
        self._forget_events(NEW_EVENTS)
        return min((self._advance(pod) for pod in all_pods), default=float("inf"))

    def _advance(self, pod: Object) -> float:
        """Take the next step of a pod if it is due; return when the next one is due."""
        if not pod["spec"].get("nodeName"):
            return float("inf")
        if pod["metadata"].get("deletionTimestamp"):
            return self._remove(pod)
        since = self._since.setdefault(pod["metadata"]["uid"], self._now())
        match pod["status"]["phase"]:
            case "Pending":
                return self._enter(pod, "Running")
            case "Running":
                due = since + _run_seconds(pod)
                return self._enter(pod, "Succeeded") if due <= self._now() else due
        due = since + self._finished_seconds
        return self._remove(pod) if due <= self._now() else due

    def _remove(self, pod: Object) -> float:
        self._store.remove(PODS, key_of(pod))
        return float("inf")

    def _enter(self, pod: Object, phase: str) -> float:
        now = self._now()
        changed = clone(pod)
        status, is_ready = changed["status"], phase not in FINISHED
        status["phase"] = phase
        if is_ready:
            # Any address: no pod is ever called.
            address = f"10.0.{self._store.revision // 250 % 250}.{self._store.revision % 250 + 1}"
            status |= {"podIP": address, "podIPs": [{"ip": address}], "startTime": format_time(now)}
        for kind in ("Initialized", "ContainersReady", "Ready"):
            value = "True" if is_ready or kind == "Initialized" else "False"
            set_condition(status, {"type": kind, "status": value}, now=now)
        self._store.update(PODS, changed, expected=version_of(pod))
        self._since[pod["metadata"]["uid"]] = now
        return now

    def _forget_events(self, resource: Resource) -> None:
        oldest = self._now() - self._event_seconds
        for event in self._store.list(resource):
            if parse_time(event["metadata"]["creationTimestamp"]) < oldest:
                self._store.remove(resource, key_of(event))


def _run_seconds(pod: Object) -> float:
    """Return the run time of a pod; without end if the annotation is not a number."""
    try:
        return float((pod["metadata"].get("annotations") or {})[RUN_SECONDS])
    except (KeyError, ValueError):
        return float("inf")
