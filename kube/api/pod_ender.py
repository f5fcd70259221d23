"""Ends a pod gracefully, with a condition that says that it was preempted, as kube-scheduler does.

This takes two writes, and before each of them the owner or a new leader may delete the pod, or its
end may no longer be needed. So the pod is read first, and both writes name its resource version.
Only a pod that is not ending yet is written to.

A process that dies between the two writes leaves the condition on a pod that keeps running. The
next attempt for the same reason removes the condition or deletes the pod; otherwise
kube-controller-manager resets the condition after two minutes. Until then a Job that ignores
disruptions would not count one failure of the pod.

A condition of another author, such as a taint or an eviction, stays as it is: it tells the
controller the same, and its author relies on it.
"""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Final

from kube.api.binder import PodRef
from kube.api.client import STRATEGIC_PATCH, KubeClient, KubeError, Object
from kube.read.pods import has_finished
from policy.errors import BackendError
from service.clock import Clock

_CONDITION: Final = "DisruptionTarget"
_REASON: Final = "PreemptionByScheduler"
_SCHEDULERS_WORDS: Final = ": preempting to accommodate a higher priority pod"
"""How a message of kube-scheduler ends, after the name of the scheduler."""
_TRIES: Final = 3


class Ended(StrEnum):
    """When a pod was deleted, and by which process."""

    NOW = "now, by us"
    BEFORE = "before, for the same reason: by us, or by the leader before us"
    BY_OTHERS = "by others, or it has ended by itself"


class PodEnder:
    """Ends pods through the API server."""

    def __init__(
        self, client: KubeClient, *, check_leading: Callable[[], None], clock: Clock
    ) -> None:
        """`check_leading` raises BackendError when another replica may lead."""
        self._client = client
        self._clock = clock
        self._check_leading = check_leading
        self._unanswered: set[str] = set()
        """UIDs of pods whose deletion was sent, and got no answer."""

    async def end(self, pod: PodRef, *, why: str, is_wanted: Callable[[], bool]) -> Ended:
        """End a pod after its own grace period, unless it is ending already.

        The condition tells its controller that the pod did not fail. A pod that need not end any
        more is left running, also between the two writes: then the condition is removed.
        BackendError if the pod was left running, or if the API server failed.
        """
        tries_left = _TRIES
        while True:
            tries_left -= 1
            try:
                return await self._end(pod, why, is_wanted)
            except KubeError as exc:
                if exc.is_missing:
                    return self._found_ended(pod, Ended.BY_OTHERS)
                if not exc.is_conflict or not tries_left:
                    raise

    async def _end(self, pod: PodRef, why: str, is_wanted: Callable[[], bool]) -> Ended:
        """End the pod as it is now; a conflict if it changes before that is done."""
        now = await self._client.request("GET", pod.path)
        if now["metadata"]["uid"] != pod.uid or has_finished(now):
            return self._found_ended(pod, Ended.BY_OTHERS)
        if now["metadata"].get("deletionTimestamp"):
            is_ours = _has_condition(now, why)
            return self._found_ended(pod, Ended.BEFORE if is_ours else Ended.BY_OTHERS)
        self._check_leading()
        if is_wanted() and not _has_condition(now, why) and not _is_told_by_others(now):
            now = await self._put_condition(pod, now, _disrupted(why, now=self._clock.now()))
            self._check_leading()  # this process may have been suspended
        if not is_wanted():
            if _has_condition(now, why):
                await self._put_condition(pod, now, {"type": _CONDITION, "$patch": "delete"})
            raise BackendError(f"pod {pod.namespace}/{pod.name} need not end any more")
        preconditions = {"uid": pod.uid, "resourceVersion": now["metadata"]["resourceVersion"]}
        await self._delete(pod, preconditions)
        return Ended.NOW

    async def _delete(self, pod: PodRef, preconditions: Object) -> None:
        self._unanswered.add(pod.uid)
        try:
            await self._client.request("DELETE", pod.path, body={"preconditions": preconditions})
        except KubeError as exc:
            if 400 <= exc.status < 500:
                self._unanswered.discard(pod.uid)  # refused: it was not deleted by this
            raise
        self._unanswered.discard(pod.uid)

    def _found_ended(self, pod: PodRef, otherwise: Ended) -> Ended:
        """Say which process has ended a pod: this one, if its deletion only got no answer."""
        if pod.uid in self._unanswered:
            self._unanswered.discard(pod.uid)
            return Ended.NOW
        return otherwise

    async def _put_condition(self, pod: PodRef, now: Object, condition: Object) -> Object:
        """Write a condition, unless the pod has changed; return the pod as written."""
        version = {"resourceVersion": now["metadata"]["resourceVersion"]}
        return await self._client.request(
            "PATCH",
            f"{pod.path}/status",
            body={"metadata": version, "status": {"conditions": [condition]}},
            content_type=STRATEGIC_PATCH,
        )


def _has_condition(pod: Object, why: str) -> bool:
    """Whether a pod has our condition with exactly this message."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(
        one["type"] == _CONDITION and one["status"] == "True" and one.get("message") == why
        for one in conditions
    )


def _is_told_by_others(pod: Object) -> bool:
    """Whether another author's condition says that a pod is disrupted."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(
        one["type"] == _CONDITION and one["status"] == "True" and not _is_ours(one)
        for one in conditions
    )


def _is_ours(condition: Object) -> bool:
    """Whether this program wrote a condition: the reason is the one that kube-scheduler uses."""
    message = str(condition.get("message") or "")
    return condition.get("reason") == _REASON and _SCHEDULERS_WORDS not in message


def _disrupted(why: str, *, now: datetime) -> Object:
    return {
        "type": _CONDITION,
        "status": "True",
        "reason": _REASON,
        "message": why,
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
