"""Pods and nodes from their feeds, passed on to the engine once it has recovered.

Nothing is decided here. An object that cannot be understood is logged and left out, but for the
devices that it holds; it never stops a feed.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from extender.cells.model import Placement
from extender.cells.observe.bound_pods import PlacedMember
from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from extender.feeds.misfits import Misfit, ToForeignUse, read_misfit
from kube import marks
from kube.api.client import Object
from kube.follow.namespaces import NamespaceSink
from kube.read.node_choice import NodeChoice, read_traits
from kube.read.nodes import read_node
from kube.read.pods import ManagedPod, has_finished, read_pod
from policy.errors import RequestError
from policy.submission import GangKey, NodeName, PodUid

logger = logging.getLogger(__name__)

ToBound = Callable[[ManagedPod], PlacedMember]

_MOST_ENDED = 10_000
_LONGEST_GRACE_SECONDS = 300
"""Who was given more to end counts like one that was not told to: nobody should wait for it."""


class NodeSink:
    """Nodes → cells, and which pods may use them."""

    def __init__(self, cluster: Cluster, choice: NodeChoice) -> None:
        self._cluster = cluster
        self._choice = choice

    def replace(self, objects: Sequence[Object]) -> None:
        """Take a whole list: what is not in it is gone."""
        there = {obj["metadata"]["name"] for obj in objects}
        for name in [name for name in self._cluster.nodes if name not in there]:
            self._forget(name)
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """Take note of a node that joined or changed."""
        is_new_to_wishes = self._choice.upsert(read_traits(obj))
        self._cluster.observe_node(read_node(obj))
        if is_new_to_wishes:
            self._cluster.tell_of_room()  # a taint is gone, perhaps, of which cells know nothing

    def remove(self, obj: Object) -> None:
        """Take note of a node that left."""
        self._forget(NodeName(obj["metadata"]["name"]))

    def _forget(self, name: NodeName) -> None:
        self._choice.remove(name)
        self._cluster.forget_node(name)


class PodSink:
    """Pods → members of gangs. Until `recover` was called they are only remembered."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespaces: NamespaceSink,
        to_bound: ToBound,
        to_foreign_use: ToForeignUse,
    ) -> None:
        self._cluster = cluster
        self._namespaces = namespaces
        self._to_bound = to_bound
        self._to_foreign_use = to_foreign_use
        self._pods: dict[PodUid, ManagedPod] = {}
        self._misfits: dict[PodUid, Misfit] = {}
        self._of_gang: dict[GangKey, dict[PodUid, None]] = {}
        self._ended: OrderedDict[PodUid, None] = OrderedDict()
        self._is_live = False
        self.on_appear: list[Callable[[ManagedPod], None]] = []
        """Who wants to know of pods that appeared or changed."""
        self.on_end: list[Callable[[ManagedPod], None]] = []
        """Who wants to know of pods that are gone, or have left their gang."""
        self.on_change: list[Callable[[ManagedPod], None]] = []
        """Who wants to know of pods that appeared or changed."""

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[ManagedPod]:
        return iter(self._pods.values())

    def get(self, uid: PodUid) -> ManagedPod | None:
        """The pod as it was last seen, if it is managed and alive."""
        return self._pods.get(uid)

    def note_version(self, uid: PodUid, version: str) -> None:
        """A pod was written by ourselves: a binding that comes before the feed's news names this
        version, and not the one before, which the API server would refuse."""
        pod = self._pods.get(uid)
        if pod is not None and _is_newer(version, than=pod.resource_version):
            self._pods[uid] = replace(pod, resource_version=version)

    def knows(self, uid: PodUid) -> bool:
        """Whether a pod exists and holds, or may hold, devices."""
        misfit = self._misfits.get(uid)
        return uid in self._pods or (misfit is not None and misfit.use is not None)

    @property
    def misfits(self) -> Iterable[Misfit]:
        """Pods that ask for leaf cells in a way that makes no sense."""
        return self._misfits.values()

    def of_gang(self, gang: GangKey) -> list[ManagedPod]:
        """The members of a gang that exist, by the gang's name as pods tell it."""
        return [self._pods[uid] for uid in self._of_gang.get(gang, ())]

    def has_ended(self, uid: PodUid) -> bool:
        """Whether a pod is known to be gone: a late question about it changes nothing."""
        return uid in self._ended

    def recover(self, *, now: float) -> Stepwise[None]:
        """Let the engine take in all that runs or will, and from now on every change.

        Bit by bit; no pod may change meanwhile.
        """
        running, released, ending = [], [], []
        for pod in self:
            if pod.node is not None:
                running.append(self._to_bound(pod))
                ending += [pod.uid] if _is_ending(pod) else []
            elif _is_on_its_way(pod):
                released.append(self._to_bound(pod))
            yield
        running += [misfit.use for misfit in self.misfits if misfit.use is not None]
        yield from self._cluster.recovering(running, released=released, now=now)
        for uid in ending:
            self._cluster.observe_ending(uid)
            yield
        self._is_live = True

    def replace(self, objects: Sequence[Object]) -> None:
        """Take a whole list: what is not in it is gone."""
        there = {obj["metadata"]["uid"] for obj in objects}
        known = [*self._pods, *self._misfits]
        for uid in [uid for uid in known if uid not in there]:
            self._forget(uid)
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """Take note of a pod that appeared or changed."""
        try:
            pod = self.read(obj)
        except RequestError as exc:
            self._observe_misfit(obj, exc)
            return
        if pod is None:
            return
        if pod.is_finished or (pod.is_deleting and pod.node is None):
            self._forget(pod.uid)
        else:
            self._observe(pod)
            for tell in self.on_change:
                tell(pod)

    def remove(self, obj: Object) -> None:
        """Take note of a pod that is gone."""
        self._forget(PodUid(obj["metadata"]["uid"]))

    def read(self, obj: Object) -> ManagedPod | None:
        """Understand a pod; RequestError if it makes no sense."""
        namespace = (obj.get("metadata") or {}).get("namespace") or marks.DEFAULT_NAMESPACE
        return read_pod(obj, namespace_labels=self._namespaces.labels(str(namespace)))

    def _observe(self, pod: ManagedPod) -> None:
        before = self._pods.get(pod.uid)
        self._misfits.pop(pod.uid, None)
        self._ended.pop(pod.uid, None)  # it made no sense for a while
        self._pods[pod.uid] = pod
        if before is not None and before.gang.key != pod.gang.key:
            # For its old gang it is gone.
            self._leave_gang(before)
        self._of_gang.setdefault(pod.gang.key, {})[pod.uid] = None
        if before is not None and pod.node is None and _asks_otherwise(before, pod):
            self._cluster.touch()
        for tell in self.on_appear:
            tell(pod)
        if self._is_live and pod.node is not None and (before is None or before.node != pod.node):
            self._observe_placed(pod)
        if self._is_live and _is_ending(pod):
            self._cluster.observe_ending(pod.uid)

    def _observe_placed(self, pod: ManagedPod) -> None:
        """Tell the engine, unless it knows: bind has told it before the feed could."""
        bound = self._to_bound(pod)
        known = self._cluster.members.get(pod.uid)
        if known is None or not known.is_bound or not _is_same(known.placement, bound.placement):
            self._cluster.observe_bound(bound)

    def _observe_misfit(self, obj: Object, error: RequestError) -> None:
        """A pod that makes no sense to us may still run: then its devices are not ours to give."""
        uid = PodUid(obj["metadata"]["uid"])
        known, before = self._pods.get(uid), self._misfits.get(uid)
        if known is not None and known.node is not None and not has_finished(obj):
            return  # Whatever was done to its texts since: it runs where it ran.
        misfit = read_misfit(obj, error, self._to_foreign_use)
        if misfit is None or misfit.use is None or known is not None:
            self._forget(uid)
        if misfit is None:
            return
        self._misfits[uid] = misfit
        if misfit.use is not None and (before is None or before.use is None):
            logger.warning("pod not understood", extra={"pod_uid": uid, "error": str(error)})
            if self._is_live:
                self._cluster.observe_bound(misfit.use)

    def _forget(self, uid: PodUid) -> None:
        pod = self._pods.pop(uid, None)
        misfit = self._misfits.pop(uid, None)
        if pod is None and misfit is None and not self._cluster.has_member(uid):
            return
        self._note_end(uid)
        if self._is_live:
            self._cluster.forget_member(uid)
        if pod is not None:
            self._leave_gang(pod)

    def _leave_gang(self, pod: ManagedPod) -> None:
        members = self._of_gang[pod.gang.key]
        del members[pod.uid]
        if not members:
            del self._of_gang[pod.gang.key]
        for tell in self.on_end:
            tell(pod)

    def _note_end(self, uid: PodUid) -> None:
        self._ended[uid] = None
        if len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)


def _is_ending(pod: ManagedPod) -> bool:
    """In its grace period: it holds its leaf cells, and will not for long."""
    is_soon = pod.grace_seconds <= _LONGEST_GRACE_SECONDS
    return pod.is_deleting and pod.node is not None and is_soon


def _is_on_its_way(pod: ManagedPod) -> bool:
    """Released with a placement of ours that makes sense; it is not bound yet."""
    return pod.placement is not None and pod.is_released


def _is_newer(version: str, *, than: str) -> bool:
    """Compare resource versions; those that are no numbers are left as they are."""
    return version.isdecimal() and than.isdecimal() and int(version) > int(than)


def _asks_otherwise(before: ManagedPod, now: ManagedPod) -> bool:
    """Whether a pod that waits means something else than before: old refusals do not count."""
    return replace(before, resource_version=now.resource_version) != now


def _is_same(known: Placement, told: Placement) -> bool:
    return (known.node, known.leaf_cells) == (told.node, told.leaf_cells)
