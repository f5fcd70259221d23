"""Gangs that users hold: the planner leaves them out until the hold is lifted.

Any member that states a hold holds its whole gang, until the annotation is removed, its time comes,
or the gang that it names has no pods any more. A gang that has its places is not held: its pods are
about to run. Held time does not count as waiting.
"""

import heapq
from collections.abc import Callable, Iterator
from itertools import chain

from extender.cells.model import Reason, ReasonCode
from extender.cells.wording import explain
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import single_gang
from kube.lives.pod_holds import PodHold
from kube.read.managed_pod import ManagedPod
from policy.queues.holds import HoldRole, describe_holder, format_time
from policy.submission import GangKey, PodUid
from service.clock import Clock

_Name = tuple[str, str]
"""Namespace and name of a gang, whatever its workload."""


class UserHolds:
    """The holds of all gangs whose pods exist."""

    def __init__(self, pods: PodSink, *, has_place: Callable[[PodUid], bool], clock: Clock) -> None:
        self._pods = pods
        self._has_place = has_place
        self._clock = clock
        self._members: dict[GangKey, dict[PodUid, ManagedPod]] = {}
        """Members that are or were held, by gang."""
        self._in_force: dict[GangKey, ManagedPod] = {}
        """The member whose hold counts, of each gang that is held."""
        self._due: list[tuple[float, GangKey]] = []
        self._watched: dict[_Name, set[PodUid]] = {}
        """The pods of gangs whose end lifts a hold."""
        self._ended: dict[_Name, float] = {}
        self._to_review: set[GangKey] = set()
        self.on_change: list[Callable[[ManagedPod], None]] = []
        """Callbacks that run with each pod of a gang that is held or released."""
        self.on_lifted: list[Callable[[GangKey, str], None]] = []
        """Callbacks that run when a hold is lifted by its time or another gang's end, and why."""
        pods.workloads.held_seconds = self.seconds
        pods.on_appear.append(self._see)
        pods.on_end.append(self._forget)
        pods.helpers.on_change.append(self._see)
        pods.helpers.on_end.append(self._forget)

    # -- what is held

    def is_held(self, pod: ManagedPod) -> bool:
        """Whether the gang of a pod is held."""
        return _gang_of(pod) in self._in_force

    def reason(self, pod: ManagedPod) -> Reason | None:
        """Explain who holds the gang of a pod, if it is held and has no places."""
        stated = self._in_force.get(_gang_of(pod))
        if stated is None or stated.hold is None or self._has_begun(pod):
            return None
        return _explain(_gang_of(pod), stated, stated.hold)

    def _has_begun(self, pod: ManagedPod) -> bool:
        members = self._pods.of_gang(pod.gang.key) if pod.is_helper else (pod,)
        return any(one.is_released or self._has_place(one.uid) for one in members)

    def seconds(self, pod: ManagedPod) -> float:
        """Return for how long the gang of a pod was held so far."""
        members = self._members.get(_gang_of(pod))
        if members is None:
            return 0.0
        stated = [members[pod.uid]] if pod.uid in members else members.values()
        return max(map(self._seconds_of, stated))

    def _seconds_of(self, pod: ManagedPod) -> float:
        hold, now = pod.hold, self._clock.now().timestamp()
        if hold is None or (not pod.is_gated and hold.hold.is_open):
            return pod.held_seconds  # an open hold of a pod that started came too late
        after = hold.hold.after
        end = now if after is None or self._watched.get(after) else self._ended.get(after, 0.0)
        return pod.held_seconds + hold.seconds(end)

    # -- what happens

    def _see(self, pod: ManagedPod) -> None:
        gang, watched = _gang_of(pod), self._watched.get(_name_of(pod))
        if watched is not None and pod.uid not in watched:
            watched.add(pod.uid)
            self._review_waiters(_name_of(pod))
        known = self._members.get(gang, {}).get(pod.uid)
        if _stated(known) == _stated(pod):
            return
        if _stated(pod) is None:
            self._drop(gang, pod.uid)
        else:
            self._members.setdefault(gang, {})[pod.uid] = pod
        if pod.hold is not None and pod.hold.hold.until is not None:
            heapq.heappush(self._due, (pod.hold.hold.until, gang))
        if pod.hold is not None and pod.hold.hold.after is not None:
            self._watch(pod.hold.hold.after)
        self._review(gang, pod)

    def _forget(self, pod: ManagedPod) -> None:
        gang, name = _gang_of(pod), _name_of(pod)
        if self._drop(gang, pod.uid):
            self._to_review.add(gang)
        watched = self._watched.get(name)
        if watched is not None:
            watched.discard(pod.uid)
            if not watched:
                self._ended[name] = self._clock.now().timestamp()
                self._to_review.update(self._waiters(name))

    def _drop(self, gang: GangKey, uid: PodUid) -> bool:
        members = self._members.get(gang, {})
        found = members.pop(uid, None)
        if found is not None and not members:
            del self._members[gang]
        return found is not None

    def _watch(self, name: _Name) -> None:
        if name not in self._watched:
            gangs = self._pods.runs_of(GangKey(*name))
            pods = chain.from_iterable(map(self._pods.of_gang, gangs))
            self._watched[name] = {pod.uid for pod in pods}

    def _waiters(self, name: _Name) -> list[GangKey]:
        return [
            gang
            for gang, members in self._members.items()
            if any(pod.hold and pod.hold.hold.after == name for pod in members.values())
        ]

    def _review_waiters(self, name: _Name) -> None:
        """Hold gangs again that wait for the end of one that has pods now."""
        for gang in self._waiters(name):
            self._review(gang, next(iter(self._members[gang].values())))

    def update(self) -> None:
        """Release the gangs whose holds are lifted by now; the leader calls it."""
        now = self._clock.now().timestamp()
        while self._due and self._due[0][0] <= now:
            self._to_review.add(heapq.heappop(self._due)[1])
        due, self._to_review = sorted(self._to_review), set()
        for gang in due:
            was = self._in_force.get(gang)
            if was is not None:
                self._review(gang, was)
                self._tell_lifted(gang, was)
        for name in [name for name in self._watched if name in self._ended]:
            if not self._watched[name] and not self._waiters(name):
                del self._watched[name], self._ended[name]

    def _tell_lifted(self, gang: GangKey, was: ManagedPod) -> None:
        if gang in self._in_force or gang not in self._members or was.hold is None:
            return
        hold = was.hold.hold
        by = f"gang {'/'.join(hold.after)} has ended" if hold.after else "its time has come"
        for tell in self.on_lifted:
            tell(gang, f"the hold of {describe_holder(was.hold.holder)} is lifted: {by}")

    def _review(self, gang: GangKey, pod: ManagedPod) -> None:
        """Find the hold that counts; tell of each pod of the gang if it is another one."""
        before = self._in_force.get(gang)
        held = [one for one in self._members.get(gang, {}).values() if self._is_in_force(one)]
        if held:
            self._in_force[gang] = max(held, key=_strength)
        elif before is not None:
            del self._in_force[gang]
        counts = self._in_force.get(gang)
        if (before and before.hold) == (counts and counts.hold):
            return
        for member in self._pods_of(gang, pod):
            for tell in self.on_change:
                tell(member)

    def _is_in_force(self, pod: ManagedPod) -> bool:
        hold = pod.hold.hold if pod.hold is not None and pod.is_gated else None
        if hold is None:
            return False
        if hold.after is not None:
            return hold.after != _name_of(pod) and bool(self._watched.get(hold.after))
        return hold.until is None or self._clock.now().timestamp() < hold.until

    def _pods_of(self, gang: GangKey, pod: ManagedPod) -> Iterator[ManagedPod]:
        """Yield the pods of a gang that exist; `pod` is or was one of them."""
        key = pod.gang.key
        members = [*self._pods.of_gang(key), *self._pods.helpers.of_gang(key)]
        return (one for one in members if _gang_of(one) == gang)


def _gang_of(pod: ManagedPod) -> GangKey:
    return single_gang(pod) if pod.is_charged_alone else pod.gang.key


def _name_of(pod: ManagedPod) -> _Name:
    return pod.gang.key.namespace, pod.gang.key.name


def _stated(pod: ManagedPod | None) -> tuple[PodHold | None, bool, float] | None:
    """Return what a pod states of holds; None if that is nothing."""
    if pod is None or (pod.hold is None and not pod.held_seconds):
        return None
    return pod.hold, pod.is_gated, pod.held_seconds


def _strength(pod: ManagedPod) -> tuple[int, float, PodUid]:
    """Rank holds: the stronger holder counts, then the earlier hold."""
    assert pod.hold is not None
    return pod.hold.holder.strength, -pod.hold.since, pod.uid


def _explain(gang: GangKey, pod: ManagedPod, stated: PodHold) -> Reason:
    is_admin = stated.holder.role is not HoldRole.OWNER
    code = ReasonCode.HELD_BY_ADMIN if is_admin else ReasonCode.HELD_BY_USER
    hold = stated.hold
    return explain(
        code,
        gang=str(gang),
        why=hold.reason,
        role=stated.holder.role,
        user=stated.holder.user or pod.charged_user,
        **({"until": format_time(hold.until)} if hold.until is not None else {}),
        **({"after": "/".join(hold.after)} if hold.after is not None else {}),
    )
