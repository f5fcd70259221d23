"""Pods from their feed, passed on to the engine once the engine has recovered.

Nothing is decided here. A pod that is not valid is logged and left out, except that its devices
count as used; it never stops the feed.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from extender.cells.model import PlacedMember
from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from extender.feeds.effective_classes import EffectiveClasses
from extender.feeds.finished_members import FinishedMembers
from extender.feeds.helper_pods import HelperPods
from extender.feeds.invalid_pods import InvalidPod, read_invalid_pod
from extender.feeds.mixed_gangs import MixedGangs
from extender.feeds.used_alternatives import UsedAlternatives
from extender.feeds.workload_pods import WorkloadPods
from kube import marks
from kube.api.client import Object
from kube.api.feed import is_at_least
from kube.follow.namespaces import NamespaceSink
from kube.read.managed_pod import ManagedPod
from kube.read.pods import has_finished, read_pod
from kube.read.start_failures import read_start_failures
from kube.read.workloads import WorkloadKey
from policy.errors import RequestError
from policy.placement import Placement
from policy.quarantine import StartFailure
from policy.queues.alternatives import read_used
from policy.submission import GangKey, PodUid, UserName, VcName
from service.memory import BoundedMap

logger = logging.getLogger(__name__)

ToBound = Callable[[ManagedPod], PlacedMember]

_MOST_ENDED = 10_000
_LONGEST_GRACE_SECONDS = 300
"""A pod that ends with a longer grace period counts as running: no gang should wait for it."""


class PodSink:
    """Managed pods by UID and by gang. Until `recover` was called, the engine is told nothing."""

    def __init__(self, cluster: Cluster, *, namespaces: NamespaceSink, to_bound: ToBound) -> None:
        self._cluster = cluster
        self._namespaces = namespaces
        self._to_bound = to_bound
        self._pods: dict[PodUid, ManagedPod] = {}
        self._invalid: dict[PodUid, InvalidPod] = {}
        self._of_gang: dict[GangKey, dict[PodUid, None]] = {}
        self.helpers = HelperPods()
        """Members without leaf cells: only `get` and `has_ended` know them, too."""
        self._ended: BoundedMap[PodUid, None] = BoundedMap(_MOST_ENDED)
        self._is_live = False
        self._mixed = MixedGangs()
        self.finished = FinishedMembers()
        namespaces.on_label.append(self._note_namespace)
        self.on_appear: list[Callable[[ManagedPod], None]] = []
        """Callbacks that run before the engine is told of a pod that appeared or changed."""
        self.on_end: list[Callable[[ManagedPod], None]] = []
        """Callbacks that run after a pod ended or left its gang."""
        self.on_change: list[Callable[[ManagedPod], None]] = []
        """Callbacks that run after the engine was told of a pod that appeared or changed."""
        self.on_failure: list[Callable[[ManagedPod, StartFailure], None]] = []
        """Callbacks that run for each failure that a pod on a node reports, also repeatedly."""
        self.on_seen: list[Callable[[ManagedPod, Object], None]] = []
        """Callbacks that run last for each valid pod that appeared or changed, also ended ones."""
        self.on_gone: list[Callable[[Object], None]] = []
        """Callbacks that run for each pod that was deleted, with what it said last."""
        self.on_listed: list[Callable[[Collection[PodUid]], None]] = []
        """Callbacks that run with the pods that exist, after all of them were listed."""
        self.effective = EffectiveClasses()
        """The classes of gangs that were raised; pods of such a gang are given with its class."""
        self.on_raise: list[Callable[[ManagedPod], None]] = []
        """Callbacks that run when a pod is the first of its gang that states a raised class."""
        self._used = UsedAlternatives()
        self.workloads = WorkloadPods()
        self.on_appear.append(self.workloads.see)
        self.on_end.append(self.workloads.forget)

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[ManagedPod]:
        return iter(self._pods.values())

    def get(self, uid: PodUid) -> ManagedPod | None:
        """Return the pod as last seen, if it is managed and has not ended."""
        return self._pods.get(uid) or self.helpers.pods.get(uid)

    def note_version(self, uid: PodUid, version: str) -> None:
        """Note the version of a pod after our own write, which the feed may report only later.

        A binding that named the version before would be refused by the API server.
        """
        for pods in (self._pods, self.helpers.pods):
            pod = pods.get(uid)
            if pod is not None and is_at_least(version, pod.resource_version):
                pods[uid] = replace(pod, resource_version=version)

    def knows(self, uid: PodUid) -> bool:
        """Whether a pod exists and uses, or may use, devices."""
        invalid = self._invalid.get(uid)
        return uid in self._pods or (invalid is not None and invalid.use is not None)

    @property
    def invalid(self) -> Iterable[InvalidPod]:
        """Pods that ask for leaf cells and are not valid."""
        return self._invalid.values()

    def of_gang(self, gang: GangKey) -> list[ManagedPod]:
        """Return the members of a gang that exist, by the name that the pods state."""
        return [self._pods[uid] for uid in self._of_gang.get(gang, ())]

    def runs_of(self, gang: GangKey) -> list[GangKey]:
        """Return the gangs that have pods and the same name, whatever their workloads."""
        same = (gang.namespace, gang.name)
        return sorted(key for key in self._of_gang if (key.namespace, key.name) == same)

    def has_ended(self, uid: PodUid) -> bool:
        """Whether a pod has ended: a late request about it must change nothing."""
        return uid in self._ended

    def note_first_asked(self, workload: WorkloadKey, asked: float, *, submitter: UserName) -> None:
        """A workload has asked for its cells since then: its pods may be ranked again."""
        self.workloads.note_first_asked(workload, asked, submitter=submitter)
        for pod in self.workloads.of(workload):
            for tell in self.on_change:
                tell(pod)

    def note_gang_asked(self, gang: GangKey, asked: float, *, submitter: UserName) -> None:
        """A gang has asked for its cells since then: its pods may be ranked again."""
        self.workloads.note_gang_asked(gang, asked, submitter=submitter)
        for pod in self.of_gang(gang):
            for tell in self.on_change:
                tell(pod)

    def use_alternative(self, gang: GangKey, number: int) -> None:
        """A gang is placed by one of its alternatives, or, with 0, as it asked."""
        if self._used.use(gang, number):
            self._reform_gang(gang)

    def _reform_gang(self, gang: GangKey) -> None:
        """Give all members of a gang the form in which it is placed."""
        for pod in self.of_gang(gang):
            self._pods[pod.uid] = formed = self._used.apply(pod)
            for tell in self.on_change:
                tell(formed)

    def recover(self, *, now: float) -> Stepwise[None]:
        """Give the engine all pods that run or were released; from now on it gets every change.

        In steps; no pod may change meanwhile.
        """
        running, released, ending = [], [], []
        for pod in self:
            if pod.node is not None:
                running.append(self._to_bound(pod))
                ending += [pod.uid] if _is_ending(pod) else []
            elif _is_on_its_way(pod):
                released.append(self._to_bound(pod))
            yield
        running += [pod.use for pod in self.invalid if pod.use is not None]
        yield from self._cluster.recover_stepwise(running, released=released, now=now)
        for uid in ending:
            self._cluster.observe_ending(uid)
            yield
        self._is_live = True

    def replace(self, objects: Sequence[Object]) -> None:
        """Take all pods there are, in the order of their creation; any other is gone."""
        there = {obj["metadata"]["uid"] for obj in objects}
        known = [*self._pods, *self._invalid, *self.helpers.pods, *self.finished]
        for uid in [uid for uid in known if uid not in there]:
            self._forget(uid)
            self.finished.remove(uid)
        for obj in sorted(objects, key=_created):
            self.upsert(obj)
        for tell in self.on_listed:
            tell(there)

    def upsert(self, obj: Object) -> None:
        """A pod appeared or changed."""
        try:
            pod = self.read(obj)
        except RequestError as exc:
            self._observe_invalid(obj, exc)
            return
        if pod is None:
            self.helpers.remove(PodUid(obj["metadata"]["uid"]))  # its labels were removed
            return
        for failure in read_start_failures(pod, obj):
            for report in self.on_failure:
                report(pod, failure)
        if pod.is_finished or (pod.is_deleting and pod.node is None):
            self._forget(pod.uid)
            self.finished.put(pod)
        elif pod.is_helper:
            self._invalid.pop(pod.uid, None)
            self._ended.pop(pod.uid, None)
            self.finished.observe(pod)
            self.helpers.put(pod)
        else:
            self._take(self._mixed.joined(pod, before=self._pods.get(pod.uid)))
        for tell in self.on_seen:
            tell(self._pods.get(pod.uid, pod), obj)

    def remove(self, obj: Object) -> None:
        """A pod is gone."""
        uid = PodUid(obj["metadata"]["uid"])
        self._forget(uid)
        self.finished.remove(uid)
        for tell in self.on_gone:
            tell(obj)

    def read(self, obj: Object) -> ManagedPod | None:
        """Read a pod; None if it is not managed. Raises RequestError if it is not valid."""
        namespace = (obj.get("metadata") or {}).get("namespace") or marks.DEFAULT_NAMESPACE
        pod = read_pod(obj, namespace_labels=self._namespaces.labels(str(namespace)))
        return pod if pod is None else pod.in_form(read_used(pod.alternative))

    def _note_namespace(self, namespace: str) -> None:
        """Give waiting pods the VC that their namespace names since a moment ago.

        Two feeds have no order: a pod may be seen before the label of its namespace.
        """
        vc = VcName(self._namespaces.labels(namespace)[marks.VC_LABEL])
        waiting = [
            pod
            for pod in self._pods.values()
            if pod.namespace == namespace
            and pod.is_gated
            and pod.inherits_vc
            and pod.in_form(0).vc != vc
        ]
        for pod in waiting:
            self._take(replace(pod.in_form(0), vc=vc))

    def _take(self, pod: ManagedPod) -> None:
        """Note a pod that appeared or changed, and the members that join its gang with it."""
        is_marked_first = self._mixed.is_new(pod)
        self._observe(pod)
        for tell in self.on_change:
            tell(self._pods[pod.uid])
        others = self.of_gang(replace(pod.gang.key, owner="")) if is_marked_first else ()
        for other in others:
            joined = self._mixed.joined(other, before=other)
            if joined != other:
                self._take(joined)

    def _observe(self, pod: ManagedPod) -> None:
        before, is_raised = self._pods.get(pod.uid), self.effective.note(pod)
        is_formed = self._used.note(pod)
        pod = self._used.apply(self.effective.apply(pod))
        self._invalid.pop(pod.uid, None)
        self._ended.pop(pod.uid, None)  # it was not valid for a while
        self._pods[pod.uid] = pod
        if before is not None and before.gang.key != pod.gang.key:
            self._leave_gang(before)
        self._of_gang.setdefault(pod.gang.key, {})[pod.uid] = None
        self.finished.observe(pod)
        if before is not None and pod.node is None and _asks_otherwise(before, pod):
            self._cluster.touch()
        for tell in self.on_appear:
            tell(pod)
        if is_raised:
            self._raise_gang(pod)
        if is_formed:
            self._reform_gang(pod.gang.key)
        if self._is_live and pod.node is not None and (before is None or before.node != pod.node):
            self._observe_placed(pod)
        if self._is_live and _is_ending(pod):
            self._cluster.observe_ending(pod.uid)

    def _raise_gang(self, pod: ManagedPod) -> None:
        """Give the other members of a gang the class that one of them states."""
        for other in self.of_gang(pod.gang.key):
            self._pods[other.uid] = self.effective.apply(other)
        for tell in self.on_raise:
            tell(pod)
        for other in self.of_gang(pod.gang.key):
            for tell in self.on_change:
                tell(other)

    def _observe_placed(self, pod: ManagedPod) -> None:
        """Tell the engine where a pod runs, unless `bind` told it already."""
        bound = self._to_bound(pod)
        known = self._cluster.members.get(pod.uid)
        if known is None or not known.is_bound or not _is_same(known.placement, bound.placement):
            self._cluster.observe_bound(bound)

    def _observe_invalid(self, obj: Object, error: RequestError) -> None:
        """Note a pod that is not valid; if it runs, its devices are not free."""
        uid = PodUid(obj["metadata"]["uid"])
        known, before = self._pods.get(uid), self._invalid.get(uid)
        if known is not None and known.node is not None and not has_finished(obj):
            return  # its labels or annotations were changed: it runs where it ran
        invalid = read_invalid_pod(obj, error)
        if invalid is None or invalid.use is None or known is not None:
            self._forget(uid)
        if invalid is None:
            return
        self._invalid[uid] = invalid
        if invalid.use is not None and (before is None or before.use is None):
            logger.warning("pod is not valid", extra={"pod_uid": uid, "error": str(error)})
            if self._is_live:
                self._cluster.observe_bound(invalid.use)

    def _forget(self, uid: PodUid) -> None:
        if self.helpers.remove(uid):
            self._ended[uid] = None
            return
        pod = self._pods.pop(uid, None)
        invalid = self._invalid.pop(uid, None)
        if pod is None and invalid is None and not self._cluster.has_place(uid):
            return
        self._ended[uid] = None
        if self._is_live:
            self._cluster.forget_member(uid)
        if pod is not None:
            self._leave_gang(pod)

    def _leave_gang(self, pod: ManagedPod) -> None:
        members = self._of_gang[pod.gang.key]
        del members[pod.uid]
        if not members:
            del self._of_gang[pod.gang.key]
            self._mixed.forget(pod)
            self._used.forget(pod.gang.key)
        self.effective.forget(pod, is_last=not members or pod.is_charged_alone)
        for tell in self.on_end:
            tell(pod)


def _created(obj: Object) -> str:
    """Return when a pod was created; as texts, such times sort as they should."""
    return str(obj["metadata"].get("creationTimestamp"))


def _is_ending(pod: ManagedPod) -> bool:
    """Whether a pod is in its grace period and frees its leaf cells soon."""
    is_soon = pod.grace_seconds <= _LONGEST_GRACE_SECONDS
    return pod.is_deleting and pod.node is not None and is_soon


def _is_on_its_way(pod: ManagedPod) -> bool:
    """Whether a pod was released with a valid placement and is not bound yet."""
    return pod.placement is not None and pod.is_released


def _asks_otherwise(before: ManagedPod, now: ManagedPod) -> bool:
    """Whether a waiting pod changed in what it asks for: its old refusal no longer holds."""
    return replace(before, resource_version=now.resource_version) != now


def _is_same(known: Placement, told: Placement) -> bool:
    return (known.node, known.leaf_cells) == (told.node, told.leaf_cells)
