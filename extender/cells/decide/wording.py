"""What people are told: stable sentences with names and numbers, and what would have to change.

Equal states give equal texts. A text that varied would make kube-scheduler retry without end.
"""

from collections import Counter
from collections.abc import Sequence

from extender.cells.model import MemberRequest, Preempt, ReasonCode, Reject, Seat, Wait
from policy.submission import GangKey, NodeName


def counted(sizes: Sequence[int]) -> str:
    """`2 x 8 and 1 x 4`, the largest first."""
    counts = sorted(Counter(sizes).items(), reverse=True)
    return " and ".join(f"{count} x {size}" for size, count in counts)


def wanted(request: MemberRequest, sizes: Sequence[int]) -> str:
    """`2 x 8 and 1 x 4 leaf cells of type A100`."""
    kind = f" of type {request.leaf_type}" if request.leaf_type else ""
    return f"{counted(sizes)} leaf cells{kind}"


def number(count: int, noun: str) -> str:
    """`1 gang`, `2 gangs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _where(request: MemberRequest) -> str:
    """Whose cells a guaranteed gang counts on."""
    return f"pinned cell {request.pinned}" if request.pinned else f"VC {request.vc}"


def wait(request: MemberRequest, code: ReasonCode, fact: str, change: str) -> Wait:
    """A decision to wait."""
    return Wait(request=request, code=code, reason=f"{fact}; {change}", change=change)


def reject(request: MemberRequest, code: ReasonCode, fact: str, change: str) -> Reject:
    """A decision to refuse."""
    return Reject(request=request, code=code, reason=f"{fact}; {change}", change=change)


def mismatch(request: MemberRequest, differing: Sequence[tuple[str, str]], hint: str) -> Reject:
    """A pod that says something else of its gang than the gang's first member did."""
    theirs = ", ".join(gang for gang, _ in differing)
    mine = ", ".join(pod for _, pod in differing)
    return reject(
        request,
        ReasonCode.GANG_MISMATCH,
        f"gang {request.gang} runs with {theirs}, and this pod says {mine}",
        f"all members must say the same: correct this pod, or give it another gang{hint}",
    )


def not_offered(request: MemberRequest, node: NodeName) -> Wait:
    """Its place is on a node that kube-scheduler does not offer."""
    return wait(
        request,
        ReasonCode.NODE_NOT_OFFERED,
        f"gang {request.gang} has a place on node {node}, which kube-scheduler does not offer to "
        "this pod",
        "check the node's taints and the pod's node selector",
    )


def no_candidate(request: MemberRequest, sizes: Sequence[int]) -> Wait:
    """There is room, but only on nodes that kube-scheduler does not offer.

    How many it offers is not told: it offers a sample, and the text would vary.
    """
    return wait(
        request,
        ReasonCode.NODE_NOT_OFFERED,
        f"gang {request.gang} needs {wanted(request, sizes)}; there is room, but not on the nodes "
        "that kube-scheduler offers",
        "check taints, node selectors and what else runs there",
    )


def no_room(request: MemberRequest, sizes: Sequence[int], *, found: int) -> Wait:
    """Nothing idle holds it."""
    return wait(
        request,
        ReasonCode.NO_ROOM,
        f"gang {request.gang} needs {wanted(request, sizes)}, each member's on one node; "
        f"there is room for {found} of {number(len(sizes), 'member')} now",
        "it starts when enough of them are free",
    )


def vc_full(request: MemberRequest, sizes: Sequence[int], *, left: int, promised: int) -> Wait:
    """The VC's own share is in use."""
    kind = "node" if request.pinned else "cell"
    owner = "the pinned cell has" if request.pinned else "the VC was promised"
    return wait(
        request,
        ReasonCode.VC_FULL,
        f"gang {request.gang} needs {wanted(request, sizes)}, each member's in one {kind} of "
        f"{_where(request)}; of {promised} leaf cells that {owner} {left} are unused",
        f"it starts when gangs of VC {request.vc} end, or at a higher priority than theirs",
    )


def too_large(request: MemberRequest, sizes: Sequence[int], *, most: int) -> Wait:
    """More than it can have when nobody else runs."""
    is_borrowing = request.priority < 0
    has = "the cluster has" if is_borrowing else f"{_where(request)} has"
    kind = f" of type {request.leaf_type}" if request.leaf_type else ""
    return wait(
        request,
        ReasonCode.TOO_LARGE,
        f"gang {request.gang} needs {wanted(request, sizes)}, {sum(sizes)} in all; {has} {most}"
        f"{kind} that one gang can use",
        "it starts when it is made smaller, or when "
        + ("nodes are added" if is_borrowing else f"VC {request.vc} is promised more"),
    )


def too_wide(request: MemberRequest, *, widest: int) -> Wait:
    """A member that no node, or no cell of its VC, can hold."""
    is_borrowing = request.priority < 0
    largest = "node" if is_borrowing else f"cell of {_where(request)} inside one node"
    return wait(
        request,
        ReasonCode.TOO_LARGE,
        f"gang {request.gang} has a member of {max(request.gang_leaf_counts)} leaf cells, and the "
        f"largest {largest} has {widest}",
        "it starts when its members are made smaller, or when larger cells are "
        + ("added" if is_borrowing else "promised"),
    )


def bad_cells(request: MemberRequest, sizes: Sequence[int], *, bad: int) -> Wait:
    """It would fit, were it not for bad hardware."""
    return wait(
        request,
        ReasonCode.BAD_CELLS,
        f"gang {request.gang} needs {wanted(request, sizes)}; of the leaf cells where they could "
        f"be {bad} are bad",
        "it starts when nodes are healthy again or other gangs end",
    )


def search_ended(request: MemberRequest, sizes: Sequence[int]) -> Wait:
    """Nothing was found, but not everything was tried."""
    return wait(
        request,
        ReasonCode.SEARCH_ENDED,
        f"gang {request.gang} needs {wanted(request, sizes)}; no place was found within the steps "
        "that one decision may take, though there may be one",
        "it starts when more leaf cells are free" + _easier(sizes),
    )


def _easier(sizes: Sequence[int]) -> str:
    """Which other gang would be found a place in fewer steps."""
    if len(sizes) == 1:
        return ""
    is_equal = min(sizes) == max(sizes)
    equal = "" if is_equal else ", or one whose members are equal,"
    return f"; a smaller gang{equal} takes fewer steps"


def gang_full(request: MemberRequest) -> Wait:
    """All members are there already."""
    count = request.gang_leaf_counts.count(request.leaf_count)
    return wait(
        request,
        ReasonCode.GANG_FULL,
        f"gang {request.gang} has {number(count, 'member')} of {request.leaf_count} leaf cells, "
        "and all are there already",
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
        f"{number(len(victims), 'gang')}; {change}",
        change=change,
        victims=tuple(victims),
        seats=seats,
        cancelled=cancelled,
    )
