"""What people are told: stable sentences with names and numbers, and what would have to change.

Equal states give equal texts. A text that varied would make kube-scheduler retry without end.
"""

from collections.abc import Sequence

from extender.cells.model import MemberRequest, Preempt, ReasonCode, Reject, Seat, Wait
from policy.submission import GangKey, NodeName


def wanted(request: MemberRequest, sizes: Sequence[int]) -> str:
    """`2 x 8 and 1 x 4 leaf cells of type A100`."""
    counts = " and ".join(
        f"{sizes.count(size)} x {size}" for size in sorted(set(sizes), reverse=True)
    )
    kind = f" of type {request.leaf_type}" if request.leaf_type else ""
    return f"{counts} leaf cells{kind}"


def wait(request: MemberRequest, code: ReasonCode, fact: str, change: str) -> Wait:
    """A decision to wait."""
    return Wait(request=request, code=code, reason=f"{fact}; {change}", change=change)


def reject(request: MemberRequest, code: ReasonCode, fact: str, change: str) -> Reject:
    """A decision to refuse."""
    return Reject(request=request, code=code, reason=f"{fact}; {change}", change=change)


def not_offered(request: MemberRequest, node: NodeName) -> Wait:
    """Its place is on a node that kube-scheduler does not offer."""
    return wait(
        request,
        ReasonCode.NODE_NOT_OFFERED,
        f"gang {request.gang} has a place on node {node}, which kube-scheduler does not offer to "
        "this pod",
        "check the node's taints and the pod's node selector",
    )


def no_candidate(request: MemberRequest) -> Wait:
    """There is room, but only on nodes that kube-scheduler does not offer."""
    return wait(
        request,
        ReasonCode.NODE_NOT_OFFERED,
        f"gang {request.gang} needs {wanted(request, request.gang_leaf_counts)}; there is room, "
        "but not on the nodes that kube-scheduler offers",
        "check taints, node selectors and what else runs there",
    )


def no_room(request: MemberRequest, sizes: Sequence[int], *, found: int) -> Wait:
    """Nothing idle holds it."""
    return wait(
        request,
        ReasonCode.NO_ROOM,
        f"gang {request.gang} needs {wanted(request, sizes)}, each member's on one node; "
        f"there is room for {found} of {len(sizes)} members now",
        "it starts when enough of them are free",
    )


def vc_full(request: MemberRequest, sizes: Sequence[int], *, left: int, promised: int) -> Wait:
    """The VC's own share is in use."""
    return wait(
        request,
        ReasonCode.VC_FULL,
        f"gang {request.gang} needs {wanted(request, sizes)}, each member's in one cell of VC "
        f"{request.vc}; of {promised} leaf cells that the VC was promised {left} are unused",
        "it starts when gangs of this VC end, or at a higher priority than theirs",
    )


def bad_cells(request: MemberRequest, sizes: Sequence[int], *, bad: int) -> Wait:
    """It would fit, were it not for bad hardware."""
    return wait(
        request,
        ReasonCode.BAD_CELLS,
        f"gang {request.gang} needs {wanted(request, sizes)}; {bad} leaf cells where they could be "
        "are bad",
        "it starts when nodes are healthy again or other gangs end",
    )


def gang_full(request: MemberRequest) -> Wait:
    """All members are there already."""
    number = request.gang_leaf_counts.count(request.leaf_count)
    return wait(
        request,
        ReasonCode.GANG_FULL,
        f"gang {request.gang} has {number} members of {request.leaf_count} leaf cells, and all are "
        "there already",
        "raise the gang's size, or end one of them",
    )


def other_gang(request: MemberRequest, known: GangKey) -> Reject:
    """The pod is a member of another gang already."""
    return reject(
        request,
        ReasonCode.GANG_MISMATCH,
        f"pod {request.member} asks for gang {request.gang} and is a member of gang {known}",
        "a pod belongs to one gang as long as it lives",
    )


def being_preempted(request: MemberRequest, by: Sequence[GangKey]) -> Wait:
    """A late member of a victim."""
    names = ", ".join(map(str, by))
    return wait(
        request,
        ReasonCode.BEING_PREEMPTED,
        f"gang {request.gang} is being preempted by {names}",
        "it goes on if that is withdrawn, else it starts again when there is room",
    )


def preempting(
    request: MemberRequest,
    *,
    victims: Sequence[GangKey],
    seats: tuple[Seat, ...] = (),
    cancelled: tuple[GangKey, ...] = (),
) -> Preempt:
    """Others have to end first."""
    names = ", ".join(map(str, victims))
    change = f"it starts when {names} ended"
    return Preempt(
        request=request,
        code=ReasonCode.PREEMPTING,
        reason=f"gang {request.gang} at priority {request.priority} in VC {request.vc} preempts "
        f"{len(victims)} gangs; {change}",
        change=change,
        victims=tuple(victims),
        seats=seats,
        cancelled=cancelled,
    )
