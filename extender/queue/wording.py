"""What people are told about the planner's doings: stable sentences with names and numbers."""

from extender.cells.model import MemberRequest, ReasonCode, Reject
from extender.queue.model import QueuedPod
from extender.queue.queued_gang import QueuedGang, disagreement
from policy.submission import GangKey

GATHERING = "gathering"
"""Code of the reason of a gang with too few members."""


def gathering_words(gang: QueuedGang) -> str:
    """Say how many members are missing."""
    return (
        f"gang {gang.key} has {len(gang.pods)} of the {gang.least} members that it needs to start; "
        "it is looked at when they exist: create them, or correct the gang's size"
    )


def preemption_words(request: MemberRequest, victim: GangKey) -> str:
    """Say to a victim for whom it ends, and by which right."""
    return (
        f"gang {victim} is ended for gang {request.gang} at priority {request.priority} in VC "
        f"{request.vc}, which has a better claim to these leaf cells"
    )


def mismatch(gang: QueuedGang, stranger: QueuedPod) -> Reject:
    """Say in what a member does not agree with its gang."""
    change = "all members of a gang must agree"
    return Reject(
        request=stranger.request,
        code=ReasonCode.GANG_MISMATCH,
        reason=f"a member of gang {gang.key} asks for {disagreement(gang, stranger)}; {change}",
        change=change,
    )
