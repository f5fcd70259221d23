"""How a pod ended, and how its run ended.

A pod's own words count first, then the condition that the program which ended it has written, then
what Cellgate did itself. A pod that is gone without any of these was deleted.

A run ended as its last pods did; pods that others replaced do not count, except those that have
succeeded. If they ended in different ways, the first of this list counts: preempted, evicted,
failed, succeeded, deleted. A controller deletes the workers of a launcher that has succeeded, and
the other members of a gang that has failed: those deletions are no reason.
"""

import re
from collections.abc import Iterable
from typing import Final

from extender.runs.model import Ending, HowEnded, Run, RunPod
from policy.pod_life import PodLife

_PREEMPTED: Final = "PreemptionByScheduler"
_EVICTED: Final = frozenset(
    {"Evicted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated", "Preempting", "Preempted"}
)
"""Reasons in the status of a pod that its kubelet ended, not the pod itself."""
_PREEMPTOR: Final = re.compile(r"(?: is preempted by|, and) gang (\S+) ")
"""In the sentences about preempted and reclaimed gangs of `extender.cells.wording`."""
GONE: Final = "its pod was gone, and no leader saw how it ended"
_ORDER: Final = (
    Ending.PREEMPTED,
    Ending.EVICTED,
    Ending.FAILED,
    Ending.SUCCEEDED,
    Ending.DELETED,
)


def how_pod_ended(pod: RunPod) -> HowEnded | None:
    """Return how a pod ended; None if it has not."""
    life = pod.seen.life
    if pod.ended is None:
        return None
    if life.has_succeeded and (pod.finished_first or not _was_told(pod)):
        return HowEnded(ending=Ending.SUCCEEDED)
    if life.disruption is not None:
        return _disrupted(life.disruption.reason, life.disruption.message)
    if pod.cause is not None:
        return _preempted(pod.cause.why)
    if life.status_reason in _EVICTED:
        return HowEnded(ending=Ending.EVICTED, why=life.status_reason)
    if life.has_failed and (pod.finished_first or not _was_told(pod)):
        return HowEnded(ending=Ending.FAILED, why=_failure(life))
    return HowEnded(ending=Ending.DELETED, why=GONE if pod.is_presumed else "")


def _was_told(pod: RunPod) -> bool:
    return pod.cause is not None or pod.seen.life.asked_to_end is not None


def _disrupted(reason: str, message: str) -> HowEnded:
    if reason == _PREEMPTED:
        return _preempted(message)
    why = f"{reason}: {message}" if message else reason
    return HowEnded(ending=Ending.EVICTED, why=why)


def _preempted(why: str) -> HowEnded:
    """Tell preemptions from other ends of whole gangs, by the sentence that was written."""
    found = _PREEMPTOR.search(why)
    if found is None and "preempt" not in why:
        return HowEnded(ending=Ending.EVICTED, why=why)
    return HowEnded(ending=Ending.PREEMPTED, why=why, preemptor=found[1] if found else None)


def _failure(life: PodLife) -> str:
    parts = [part for part in (life.status_reason, life.failure) if part]
    return ": ".join(parts)


def is_taken_down(pod: RunPod) -> bool:
    """Whether a pod was ended, or is being ended, together with all pods of its gang."""
    life = pod.seen.life
    is_told = life.asked_to_end is not None or pod.ended is not None
    is_marked = life.disruption is not None and life.disruption.reason == _PREEMPTED and is_told
    return (pod.cause is not None or is_marked) and not pod.finished_first


def how_run_ended(run: Run) -> HowEnded | None:
    """Return how a run ended; None if it has not."""
    if not run.has_ended:
        return None
    last_created = max(pod.seen.life.created for pod in run.pods.values())
    ends = []
    for pod in run.pods.values():
        how = how_pod_ended(pod)
        assert how is not None, "a run has ended when all its pods have"
        is_last = pod.left > last_created
        if is_last or how.ending in (Ending.SUCCEEDED, Ending.PREEMPTED):
            ends.append(how)
    how = choose(ends or [end for pod in run.pods.values() if (end := how_pod_ended(pod))])
    if how.ending is Ending.PREEMPTED and how.preemptor is None:
        return HowEnded(ending=how.ending, why=how.why, preemptor=run.preemptor)
    return how


def choose(ends: Iterable[HowEnded]) -> HowEnded:
    """Return the end of a pod that is the end of its run; of equal ones a defined one."""
    return min(ends, key=lambda how: (_ORDER.index(how.ending), how.preemptor is None, how.why))


def is_presumed(run: Run) -> bool:
    """Whether the end of a run is only a guess: pods were gone that might have said otherwise."""
    how = how_run_ended(run)
    is_guess = any(pod.is_presumed for pod in run.pods.values())
    return how is not None and how.ending is Ending.DELETED and is_guess


def presume_pod_end(told_why: str | None) -> HowEnded:
    """Return how a pod ended that is gone; `told_why` is why Cellgate was ending it, if it was."""
    if told_why is not None:
        return _preempted(told_why)
    return HowEnded(ending=Ending.DELETED, why=GONE)
