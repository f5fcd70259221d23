"""One node: what it offers beside leaf cells, and what its pods use of it.

kube-scheduler refuses a pod only for what the pod requests: a pod that requests no memory may run
on a node whose memory is used up. A resource that the node does not name counts as used up, except
CPU, memory and pods, which every kubelet reports: without them the node is not described yet.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policy.pod_resources import PODS, NodePod, PodResources
from policy.submission import PodUid

_ALWAYS_REPORTED: Final = frozenset({"cpu", "memory", PODS})
DISTANCE: Final = "distance to other pods (anti-affinity)"


@dataclass(frozen=True, slots=True)
class Lack:
    """What a node lacks for a pod."""

    resource: str
    asked: int = 0
    free: int = 0
    total: int = 0


class NodeRoom:
    """The room on one node."""

    __slots__ = ("_special", "_used", "capacity", "endable", "pods")

    def __init__(self) -> None:
        self.capacity: Mapping[str, int] | None = None
        """None while the node itself is not known: then nothing is lacking."""
        self.pods: dict[PodUid, NodePod] = {}
        self.endable: dict[PodUid, None] = {}
        """Pods here that Cellgate may end for another gang."""
        self._used: dict[str, int] = {}
        self._special: dict[PodUid, NodePod] = {}
        """Pods with host ports or anti-affinity."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of the node."""
        return self.capacity is None and not self.pods

    def used(self, resource: str) -> int:
        """Return how much of a resource the pods here request."""
        return self._used.get(resource, 0)

    def add(self, uid: PodUid, pod: NodePod, *, is_endable: bool) -> None:
        """Note a pod here, in place of what was known of it."""
        self.remove(uid)
        self.pods[uid] = pod
        if is_endable:
            self.endable[uid] = None
        if pod.resources.is_special:
            self._special[uid] = pod
        for name, amount in pod.resources.amounts:
            self._used[name] = self._used.get(name, 0) + amount

    def remove(self, uid: PodUid) -> None:
        """Forget a pod, if it is here."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        self.endable.pop(uid, None)
        self._special.pop(uid, None)
        for name, amount in pod.resources.amounts:
            self._used[name] -= amount

    def lack(
        self, wanted: Sequence[PodResources], *, ending: Collection[PodUid] = ()
    ) -> Lack | None:
        """Return the first thing that the node lacks for some more pods, without some of its pods.

        Anti-affinity of the pods that are here is not looked at: see `ClusterRoom.closed_to`.
        """
        if self.capacity is None:
            return None
        if len(wanted) == 1 and not ending and not wanted[0].is_special:
            return self._lack_of_plain(wanted[0])
        freed = [self.pods[uid] for uid in ending if uid in self.pods]
        return (
            self._lack_of_amounts(wanted, freed)
            or self._lack_of_ports(wanted, ending)
            or self._lack_of_distance(wanted, ending)
        )

    def _lack_of_plain(self, wanted: PodResources) -> Lack | None:
        """The most frequent case, without detours."""
        for name, amount in wanted.amounts:
            lack = self._lack_of(name, amount, self._used.get(name, 0))
            if lack is not None:
                return lack
        return self._lack_of(PODS, 1, len(self.pods))

    def _lack_of_amounts(
        self, wanted: Sequence[PodResources], freed: Sequence[NodePod]
    ) -> Lack | None:
        assert self.capacity is not None
        asked = _sums(wanted) if len(wanted) > 1 else dict(wanted[0].amounts)
        back = _sums(pod.resources for pod in freed)
        for name, amount in asked.items():
            lack = self._lack_of(name, amount, self._used.get(name, 0) - back.get(name, 0))
            if lack is not None:
                return lack
        return self._lack_of(PODS, len(wanted), len(self.pods) - len(freed))

    def _lack_of(self, name: str, amount: int, used: int) -> Lack | None:
        assert self.capacity is not None
        total = self.capacity.get(name)
        if total is None and name in _ALWAYS_REPORTED:
            return None
        free = max((total or 0) - used, 0)
        return None if amount <= free else Lack(name, amount, free, total or 0)

    def _lack_of_ports(
        self, wanted: Sequence[PodResources], ending: Collection[PodUid]
    ) -> Lack | None:
        mine = [port for one in wanted for port in one.ports]
        if not mine:
            return None
        taken = [
            port
            for uid, pod in self._special.items()
            if uid not in ending
            for port in pod.resources.ports
        ]
        for index, port in enumerate(mine):
            if any(port.collides(other) for other in (*taken, *mine[:index])):
                return Lack(f"host port {port.port}")
        return None

    def _lack_of_distance(
        self, wanted: Sequence[PodResources], ending: Collection[PodUid]
    ) -> Lack | None:
        selectors = dict.fromkeys(one for each in wanted for one in each.keeps_off)
        for uid, pod in self.pods.items() if selectors else ():
            if uid not in ending and any(one.selects(pod) for one in selectors):
                return Lack(DISTANCE)
        return None


def _sums(wanted: Iterable[PodResources]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for one in wanted:
        for name, amount in one.amounts:
            sums[name] = sums.get(name, 0) + amount
    return sums
