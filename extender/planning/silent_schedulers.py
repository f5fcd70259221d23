"""Schedulers that pods name and that ask nothing: gangs get no leaf cells for them in vain.

A lease that ends although its members were released, while no scheduler of that name has asked
about any pod, shows that the scheduler does not run, or does not call this extender. Its pods are
then held. They are planned again when the scheduler asks, and tried again from time to time: a
scheduler sees only pods without a gate, so that it might have nothing to ask about.
"""

from collections.abc import Callable
from typing import Final

from extender.cells.model import Reason, ReasonCode
from extender.cells.wording import explain
from extender.planning.held_pods import gang_of
from kube.read.managed_pod import ManagedPod
from service.memory import BoundedMap, ExpiringMap

_MOST: Final = 1000
"""Names of schedulers; users may write any name."""
_RETRY_SECONDS: Final = 300.0


class SilentSchedulers:
    """The schedulers that have asked, and those that have not when they should have."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._asked: BoundedMap[str, None] = BoundedMap(_MOST)
        self._silent: ExpiringMap[str, None] = ExpiringMap(
            _MOST, seconds=_RETRY_SECONDS, monotonic=monotonic
        )

    def note_asked(self, pod: ManagedPod) -> bool:
        """The scheduler of a pod asks; True if it was taken not to run."""
        self._asked[pod.scheduler_name] = None
        if pod.scheduler_name not in self._silent:
            return False
        self._silent.pop(pod.scheduler_name)
        return True

    def note_unused(self, pod: ManagedPod) -> bool:
        """The lease of a released pod has ended unused; True if its scheduler is silent now."""
        name = pod.scheduler_name
        is_new = name not in self._asked and name not in self._silent
        if is_new:
            self._silent[name] = None
        return is_new

    def reason(self, pod: ManagedPod) -> Reason | None:
        """Return why a pod is held: its scheduler is silent."""
        if pod.scheduler_name not in self._silent:
            return None
        told = {"gang": str(gang_of(pod)), "scheduler": pod.scheduler_name}
        return explain(ReasonCode.NO_SCHEDULER, **told)
