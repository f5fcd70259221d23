"""What people are told about the planner's doings: stable sentences with names and numbers."""

from extender.cells.model import MemberRequest
from policy.submission import GangKey


def preemption_words(request: MemberRequest, victim: GangKey) -> str:
    """Say to a victim for whom it ends, and by which right."""
    return (
        f"gang {victim} is ended for gang {request.gang} at priority {request.priority} in VC "
        f"{request.vc}, which has a better claim to these leaf cells"
    )
