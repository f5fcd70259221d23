"""The classes of gangs that were raised: one for a gang, from the first pod that states it.

The leader writes the effective class on every pod of a gang, one after the other. All members of a
gang agree, so from the first one on it is the class of all of them, also of those that do not state
it yet.
"""

from dataclasses import replace

from kube.read.managed_pod import ManagedPod, charged_gang
from policy.submission import ClassName, GangKey, PodUid


class EffectiveClasses:
    """The effective classes that pods state, by gang."""

    def __init__(self) -> None:
        self._by_gang: dict[GangKey, ClassName] = {}
        self._unmarked: set[PodUid] = set()

    def apply(self, pod: ManagedPod) -> ManagedPod:
        """Return a pod in the class of its gang, whether or not it states that class."""
        effective = self._by_gang.get(charged_gang(pod))
        if effective in (None, pod.class_name, pod.effective_class):
            return pod
        self._unmarked.add(pod.uid)
        return replace(pod, effective_class=effective)

    def note(self, pod: ManagedPod) -> bool:
        """Note what a pod states; return whether its gang has another class by that."""
        self._unmarked.discard(pod.uid)
        gang = charged_gang(pod)
        if pod.effective_class in (None, self._by_gang.get(gang)):
            return False
        assert pod.effective_class is not None
        self._by_gang[gang] = pod.effective_class
        return True

    def is_stated(self, pod: ManagedPod, class_name: ClassName) -> bool:
        """Whether a pod states that it has a class, or has it anyway."""
        states = pod.effective_class == class_name and pod.uid not in self._unmarked
        return pod.class_name == class_name or states

    def forget(self, pod: ManagedPod, *, is_last: bool) -> None:
        """Forget a pod that ended, and with the last one its gang."""
        self._unmarked.discard(pod.uid)
        if is_last:
            self._by_gang.pop(charged_gang(pod), None)
