"""The alternatives by which gangs are placed: one for a gang, from the first pod that states it.

The leader writes the alternative on each pod with its placement, one after the other. It counts for
the whole gang from the moment at which the first of these writes begins: kube-scheduler may see a
pod before our own feed does.
"""

from kube.read.managed_pod import ManagedPod
from policy.queues.alternatives import read_used
from policy.submission import GangKey


class UsedAlternatives:
    """The alternatives that gangs use, by number."""

    def __init__(self) -> None:
        self._by_gang: dict[GangKey, int] = {}

    def apply(self, pod: ManagedPod) -> ManagedPod:
        """Return a pod in the form of its gang, whether or not it states that form."""
        number = self._by_gang.get(pod.gang.key, 0)
        return pod if not pod.alternatives else pod.in_form(number)

    def note(self, pod: ManagedPod) -> bool:
        """Note what a pod states; return whether its gang has another form by that."""
        return pod.alternative != "" and self.use(pod.gang.key, read_used(pod.alternative))

    def use(self, gang: GangKey, number: int) -> bool:
        """Note by which alternative a gang is placed, 0 for none; return whether that is new."""
        if self._by_gang.get(gang, 0) == number:
            return False
        if number:
            self._by_gang[gang] = number
        else:
            del self._by_gang[gang]
        return True

    def forget(self, gang: GangKey) -> None:
        """Forget a gang whose last pod has ended."""
        self._by_gang.pop(gang, None)
