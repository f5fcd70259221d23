"""What people are told about the planner's doings: stable sentences with names and numbers."""

from extender.cells.model import MemberRequest, Preempt, ReasonCode, Reject, Wait
from extender.queue.model import QueuedPod, Tell
from extender.queue.queued_gang import QueuedGang, disagreement
from policy.submission import GangKey

GATHERING = "gathering"
"""Code of the reason of a gang with too few members."""


def gathering(gang: QueuedGang) -> Tell:
    """Say how many members are missing."""
    change = "create the missing members or check `cellgate.io/gang-size`"
    exist = f"scheduled once {gang.least} members exist ({len(gang.pods)} so far)"
    reason = f"gang {gang.key} is {exist}; {change}"
    return Tell(gang=gang.key, uid=gang.first.uid, code=GATHERING, reason=reason, change=change)


def tell_of(gang: QueuedGang, decision: Wait | Reject | Preempt) -> Tell:
    """Say why a gang was not placed."""
    return Tell(
        gang=gang.key,
        uid=gang.first.uid,
        code=decision.code,
        reason=decision.reason,
        change=decision.change,
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
