"""Decisions that say no, each with its reason: to wait, to refuse, to preempt."""

from collections.abc import Collection, Mapping, Sequence

from extender.cells.model import (
    Argument,
    MemberRequest,
    Preempt,
    Reason,
    ReasonCode,
    Reject,
    Seat,
    Wait,
)
from extender.cells.wording import LISTED, count_sizes, explain
from policy.submission import GangKey

Arguments = Mapping[str, Argument | None]


def wait(request: MemberRequest, code: ReasonCode, **arguments: Argument | None) -> Wait:
    """Decide to wait; an argument that is None is left out."""
    return Wait(request=request, reason=_reason(request, code, arguments))


def reject(request: MemberRequest, code: ReasonCode, **arguments: Argument | None) -> Reject:
    """Decide to refuse; an argument that is None is left out."""
    return Reject(request=request, reason=_reason(request, code, arguments))


def preempt(
    request: MemberRequest,
    *,
    victims: Sequence[GangKey],
    seats: tuple[Seat, ...] = (),
    cancelled: tuple[GangKey, ...] = (),
) -> Preempt:
    """Decide that others have to end first."""
    named = listed("victims", list(map(str, victims)))
    told: Arguments = {"priority": request.priority, "vc": request.vc, **named}
    return Preempt(
        request=request,
        reason=_reason(request, ReasonCode.PREEMPTING, told),
        victims=tuple(victims),
        seats=seats,
        cancelled=cancelled,
    )


Terms = Mapping[str, int | str]
"""What all members of a gang must say alike, by the words that users know."""


def terms(request: MemberRequest) -> dict[str, int | str]:
    """What a request says of its gang, sizes aside."""
    return {
        "VC": request.vc,
        "priority": request.priority,
        "leaf type": request.leaf_type or "any",
        "pinned cell": request.pinned or "none",
        "gang minimum": request.gang_min or "none",
    }


def disagreement(request: MemberRequest, *, first: Terms, own: Terms) -> Reject:
    """Refuse a member that says something else of its gang than the gang's first member does."""
    different = [(name, first[name], own[name]) for name in first if own[name] != first[name]]
    return reject(request, ReasonCode.GANG_MISMATCH, differences=tuple(different))


def _reason(request: MemberRequest, code: ReasonCode, arguments: Arguments) -> Reason:
    told = {name: value for name, value in arguments.items() if value is not None}
    return explain(code, gang=str(request.gang), **told)


def listed(name: str, values: Sequence[str]) -> dict[str, Argument]:
    """The first of some names as an argument, and how many there are."""
    return {name: tuple(values[:LISTED]), "count": len(values)}


def counted(sizes: Collection[int]) -> dict[str, Argument]:
    """Members by their leaf cells, the largest first, as arguments."""
    return {"needs": count_sizes(sizes), "members": len(sizes)}


def needed(request: MemberRequest, sizes: Collection[int]) -> dict[str, Argument | None]:
    """What so many members of a gang need, as arguments."""
    return {**counted(sizes), "leaf_type": request.leaf_type}


def owner(request: MemberRequest) -> dict[str, Argument | None]:
    """Whose cells a gang counts on, as arguments; an opportunistic one on no VC's."""
    return {"vc": request.vc, "pinned": request.pinned} if request.priority >= 0 else {}
