"""Pods of our kube-scheduler that ask for no leaf cells: filter passes them, bind binds them."""

from typing import Final

from policy.submission import PodUid
from service.memory import BoundedMap

_MOST_PODS: Final = 10_000
"""More pods than kube-scheduler has between filter and bind."""


class UnmanagedPods:
    """The pods that filter has passed last. A binding of any other pod needs a lease."""

    def __init__(self) -> None:
        self._passed: BoundedMap[PodUid, None] = BoundedMap(_MOST_PODS)

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._passed

    def put(self, uid: PodUid) -> None:
        """Note that filter has passed a pod."""
        self._passed[uid] = None

    def remove(self, uid: PodUid) -> None:
        """Note that a pod is managed."""
        self._passed.pop(uid, None)
