"""Why a gang is not planned, or is ended, where the planner knows it and the engine does not."""

from extender.cells.answers import disagreement
from extender.cells.model import MemberRequest, Reason, ReasonCode, Reject
from extender.cells.wording import explain
from extender.queue.model import QueuedPod
from extender.queue.queued_gang import QueuedGang, gang_terms
from policy.submission import GangKey


def gathering(gang: QueuedGang) -> Reason:
    """Say how many members are missing."""
    told = {"members": len(gang.pods), "needed": gang.least, "size": gang.size}
    return explain(ReasonCode.GATHERING, gang=str(gang.key), **told)


def preempted(victim: GangKey, *, by: MemberRequest) -> Reason:
    """Say to a victim for which gang it ends, and by which right."""
    return explain(
        ReasonCode.PREEMPTED,
        gang=str(victim),
        preemptor=str(by.gang),
        priority=by.priority,
        vc=by.vc,
    )


def mismatch(gang: QueuedGang, stranger: QueuedPod) -> Reject:
    """Say in what a member does not agree with its gang."""
    first, own = gang_terms(gang.first), gang_terms(stranger)
    return disagreement(stranger.request, first=first, own=own)
