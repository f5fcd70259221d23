"""Helpers: members of gangs that ask for no leaf cells, such as launchers.

The engine, the ledger and the reconciler do not know them. The planner counts them as members,
releases them with their gang, and holds their bindings with those of the others.
"""

from collections.abc import Callable

from kube.read.managed_pod import ManagedPod
from policy.submission import GangKey, PodUid


class HelperPods:
    """Helpers by UID and by gang."""

    def __init__(self) -> None:
        self.pods: dict[PodUid, ManagedPod] = {}
        self._of_gang: dict[GangKey, dict[PodUid, None]] = {}
        self.on_change: list[Callable[[ManagedPod], None]] = []
        """Callbacks that run after a helper appeared or changed."""
        self.on_end: list[Callable[[ManagedPod], None]] = []
        """Callbacks that run after a helper ended or left its gang."""

    def of_gang(self, gang: GangKey) -> list[ManagedPod]:
        """Return the helpers of a gang that exist."""
        return [self.pods[uid] for uid in self._of_gang.get(gang, ())]

    def put(self, pod: ManagedPod) -> None:
        """A helper appeared or changed."""
        before = self.pods.get(pod.uid)
        if before is not None and before.gang.key != pod.gang.key:
            self.remove(pod.uid)
        self.pods[pod.uid] = pod
        self._of_gang.setdefault(pod.gang.key, {})[pod.uid] = None
        for tell in self.on_change:
            tell(pod)

    def remove(self, uid: PodUid) -> bool:
        """A helper ended, or is none any more; False if it was not known."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return False
        members = self._of_gang[pod.gang.key]
        del members[uid]
        if not members:
            del self._of_gang[pod.gang.key]
        for tell in self.on_end:
            tell(pod)
        return True
