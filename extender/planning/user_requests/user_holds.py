"""Gangs that users hold: the planner leaves them out until the hold is lifted.

Any member that states a hold holds its whole gang, until the annotation is removed, its time comes,
or the gang that it names has no pods any more. A gang that has its places is not held: its pods are
about to run. Held time does not count as waiting.

Holds that wait for each other's end stay in force, and say so: only a user can tell which of the
gangs is to go first.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from extender.cells.model import Reason, ReasonCode
from extender.cells.wording import explain
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import single_gang
from extender.planning.user_requests.kept_holds import KeptHolds
from kube.lives.pod_holds import PodHold
from kube.read.managed_pod import ManagedPod
from policy.queues.holds import HoldRole, describe_holder
from policy.submission import GangKey, PodUid
from policy.wording import moment
from service.clock import Clock

_Name = tuple[str, str]
"""Namespace and name of a gang, whatever its workload."""
_LONGEST_CIRCLE: Final = 16
_MOST_REVIEWED: Final = 200
"""Gangs whose holds are reviewed in one step: thousands may wait for one gang's end."""


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
        self._held_names: dict[_Name, dict[GangKey, ManagedPod]] = {}
        """The same members, by the names of their gangs."""
        self._naming: dict[_Name, dict[PodUid, GangKey]] = {}
        """The members whose holds are lifted by the end of a gang, by its name."""
        self._due: list[tuple[float, GangKey]] = []
        """A heap of moments at which holds are lifted; some are outdated."""
        self._tidy_at = _MOST_REVIEWED
        self._watched: dict[_Name, set[PodUid]] = {}
        """The pods of gangs whose end lifts a hold."""
        self._ended: dict[_Name, float] = {}
        self._to_review: set[GangKey] = set()
        self.kept = KeptHolds(pods.workloads.of)
        """Holds of admins whose pods have ended."""
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
        """Explain who holds the gang of a pod, if it is held and has no places.

        A pod that does not exist, which is simulated, holds its gang by what it states itself.
        """
        stated = self._in_force.get(_gang_of(pod))
        if stated is None and self._pods.get(pod.uid) is None and self._is_in_force(pod):
            stated = pod
        if stated is None or stated.hold is None or self._has_begun(pod):
            return None
        return _explain(_gang_of(pod), stated, stated.hold, circle=self._circle(stated))

    def _circle(self, pod: ManagedPod) -> list[_Name]:
        """Return the gangs that wait for each other's end, if the hold of a pod is one of them."""
        found = self._chain(pod)
        return found if found and found[-1] == _name_of(pod) else []

    def _chain(self, pod: ManagedPod) -> list[_Name]:
        """Return the gang whose end lifts the hold of a pod, the gang whose end lifts that, ..."""
        found: list[_Name] = []
        last: ManagedPod | None = pod
        while last is not None and last.hold is not None and last.hold.hold.after is not None:
            found.append(last.hold.hold.after)
            is_round = found[-1] == _name_of(pod) or found[-1] in found[:-1]
            is_last = is_round or len(found) >= _LONGEST_CIRCLE
            held = {} if is_last else self._held_names.get(found[-1], {})
            last = next(reversed(held.values()), None)
        return found

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

    def unwritten(self) -> list[tuple[ManagedPod, PodHold]]:
        """Return the pods that have a hold in force from another one and do not state it yet."""
        found = ((self._pods.get(uid), hold) for uid, hold in self.kept.unwritten.items())
        return [
            (pod, hold)
            for pod, hold in found
            if pod is not None
            and not pod.is_deleting
            and self._is_in_force(replace(pod, hold=hold))
        ]

    # -- what happens

    def _see(self, pod: ManagedPod) -> None:
        gang, watched = _gang_of(pod), self._watched.get(_name_of(pod))
        if watched is not None and pod.uid not in watched:
            is_first = not watched
            watched.add(pod.uid)
            if is_first:
                self._review_waiters(_name_of(pod))
        known = self._members.get(gang, {}).get(pod.uid)
        self.kept.note_change(known, pod)
        pod = self.kept.apply(pod)
        if _stated(known) == _stated(pod):
            return
        if _after(pod) is not None:
            self._watch(_after(pod), pod.uid, gang)
        if _stated(pod) is None:
            self._drop(gang, pod.uid)
        else:
            self._members.setdefault(gang, {})[pod.uid] = pod
            if _after(known) != _after(pod):
                self._unwatch(_after(known), pod.uid)
        self._review(gang, pod)

    def _tidy_due(self) -> None:
        """Drop moments of gangs that state no hold any more: they may be years away."""
        if len(self._due) > self._tidy_at:
            self._due = [one for one in dict.fromkeys(self._due) if one[1] in self._members]
            heapq.heapify(self._due)
            self._tidy_at = max(_MOST_REVIEWED, 2 * len(self._due))

    def _forget(self, pod: ManagedPod) -> None:
        gang, name = _gang_of(pod), _name_of(pod)
        was = self._members.get(gang, {}).get(pod.uid)
        is_kept = was is not None and self._is_in_force(was) and self.kept.keep(was)
        self.kept.forget(pod.uid)
        if self._drop(gang, pod.uid):
            self._to_review.add(gang)
            if gang not in self._members:  # a standby makes no steps and sees many gangs
                self._to_review.discard(gang)
                self._review(gang, pod)
        if is_kept:
            for member in [*self._pods_of(gang, pod)]:
                self._see(member)
        watched = self._watched.get(name)
        if watched is not None:
            watched.discard(pod.uid)
            if not watched:
                self._ended[name] = self._clock.now().timestamp()
                self._to_review.update(self._waiters(name))
                self._clean(name)

    def _drop(self, gang: GangKey, uid: PodUid) -> bool:
        members = self._members.get(gang, {})
        found = members.pop(uid, None)
        if found is not None and not members:
            del self._members[gang]
        self._unwatch(_after(found), uid)
        return found is not None

    def _watch(self, name: _Name | None, uid: PodUid, gang: GangKey) -> None:
        """The end of a gang lifts the hold of a member."""
        if name is None:
            return
        self._naming.setdefault(name, {})[uid] = gang
        if name not in self._watched:
            gangs = self._pods.runs_of(GangKey(*name))
            pods = chain.from_iterable(map(self._pods.of_gang, gangs))
            self._watched[name] = {pod.uid for pod in pods}

    def _unwatch(self, name: _Name | None, uid: PodUid) -> None:
        """The hold of a member does not name a gang any more."""
        if name is not None:
            self._naming.get(name, {}).pop(uid, None)
            self._clean(name)

    def _clean(self, name: _Name) -> None:
        """Forget a gang that has no pods, and that no hold names."""
        if not self._naming.get(name) and not self._watched.get(name):
            for known in (self._naming, self._watched, self._ended):
                known.pop(name, None)

    def _waiters(self, name: _Name) -> list[GangKey]:
        return list(dict.fromkeys(self._naming.get(name, {}).values()))

    def _review_waiters(self, name: _Name) -> None:
        """Hold gangs again that wait for the end of one that has pods now."""
        for gang in self._waiters(name):
            self._review(gang, next(iter(self._members[gang].values())))

    def update(self) -> None:
        """Release the gangs whose holds are lifted by now; the leader calls it."""
        now = self._clock.now().timestamp()
        while self._due and self._due[0][0] <= now:
            self._to_review.add(heapq.heappop(self._due)[1])
        due = heapq.nsmallest(_MOST_REVIEWED, self._to_review)
        self._to_review.difference_update(due)
        for gang in due:
            was = self._in_force.get(gang)
            if was is not None:
                self._review(gang, was)
                self._tell_lifted(gang, was)

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
        counts = max(held, key=_strength) if held else None
        self._put_in_force(gang, counts)
        if (before and before.hold) == (counts and counts.hold):
            return
        concerned = {gang: pod}
        for one in filter(None, (before, counts)):
            names = self._chain(one)  # they may wait for this gang, or have waited for it
            for name in names:
                concerned |= self._held_names.get(name, {})
        for key, one in concerned.items():
            for member in self._pods_of(key, one):
                for tell in self.on_change:
                    tell(member)

    def _put_in_force(self, gang: GangKey, counts: ManagedPod | None) -> None:
        before = self._in_force.pop(gang, None)
        if before is not None:
            named = self._held_names[_name_of(before)]
            del named[gang]
            if not named:
                del self._held_names[_name_of(before)]
        if counts is not None:
            hold = counts.hold.hold if counts.hold is not None else None
            if hold is not None and hold.until is not None:
                heapq.heappush(self._due, (hold.until, gang))
                self._tidy_due()
            self._in_force[gang] = counts
            self._held_names.setdefault(_name_of(counts), {})[gang] = counts

    def _is_in_force(self, pod: ManagedPod) -> bool:
        hold = pod.hold.hold if pod.hold is not None and pod.is_gated else None
        if hold is None:
            return False
        if hold.after is not None:
            return hold.after != _name_of(pod) and self._has_pods(hold.after)
        return hold.until is None or self._clock.now().timestamp() < hold.until

    def _has_pods(self, name: _Name) -> bool:
        watched = self._watched.get(name)
        return bool(self._pods.runs_of(GangKey(*name)) if watched is None else watched)

    def _pods_of(self, gang: GangKey, pod: ManagedPod) -> Iterator[ManagedPod]:
        """Yield the pods of a gang that exist; `pod` is or was one of them."""
        key = pod.gang.key
        members = [*self._pods.of_gang(key), *self._pods.helpers.of_gang(key)]
        return (one for one in members if _gang_of(one) == gang)


def _gang_of(pod: ManagedPod) -> GangKey:
    return single_gang(pod) if pod.is_charged_alone else pod.gang.key


def _name_of(pod: ManagedPod) -> _Name:
    return pod.gang.key.namespace, pod.gang.key.name


def _after(pod: ManagedPod | None) -> _Name | None:
    """Return the gang whose end lifts the hold of a pod."""
    return None if pod is None or pod.hold is None else pod.hold.hold.after


def _stated(pod: ManagedPod | None) -> tuple[PodHold | None, bool, float] | None:
    """Return what a pod states of holds; None if that is nothing."""
    if pod is None or (pod.hold is None and not pod.held_seconds):
        return None
    return pod.hold, pod.is_gated, pod.held_seconds


def _strength(pod: ManagedPod) -> tuple[int, float, PodUid]:
    """Rank holds: the stronger holder counts, then the earlier hold."""
    assert pod.hold is not None
    return pod.hold.holder.strength, -pod.hold.since, pod.uid


def _explain(gang: GangKey, pod: ManagedPod, stated: PodHold, *, circle: Sequence[_Name]) -> Reason:
    is_admin = stated.holder.role is not HoldRole.OWNER
    code = ReasonCode.HELD_BY_ADMIN if is_admin else ReasonCode.HELD_BY_USER
    hold = stated.hold
    return explain(
        code,
        gang=str(gang),
        why=hold.reason,
        role=stated.holder.role,
        user=stated.holder.user or pod.charged_user,
        **({"until": moment(hold.until)} if hold.until is not None else {}),
        **({"after": "/".join(hold.after)} if hold.after is not None else {}),
        **({"circle": " and ".join(map("/".join, circle[:-1]))} if circle else {}),
    )
