"""Reasons that the planner gives by itself: incomplete gangs, disagreeing members, evictions."""

from extender.cells.answers import disagreement
from extender.cells.model import MemberRequest, Reason, ReasonCode, Reject
from extender.cells.wording import explain
from extender.queue.model import QueuedPod
from extender.queue.queued_gang import QueuedGang, gang_terms
from policy.submission import GangKey


def gathering(gang: QueuedGang) -> Reason:
    """A gang has too few members."""
    told = {"members": len(gang.pods), "needed": gang.least, "size": gang.size}
    return explain(ReasonCode.GATHERING, gang=str(gang.key), **told)


def preempted(victim: GangKey, *, by: MemberRequest) -> Reason:
    """A victim is ended for another gang."""
    return explain(
        ReasonCode.PREEMPTED,
        gang=str(victim),
        preemptor=str(by.gang),
        priority=by.priority,
        vc=by.vc,
    )


def mismatch(gang: QueuedGang, stranger: QueuedPod) -> Reject:
    """A member has other values for its gang than the first member."""
    first, own = gang_terms(gang.first), gang_terms(stranger)
    return disagreement(stranger.request, first=first, own=own)
