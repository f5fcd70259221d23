"""Decisions without a place, each with its reason: wait, reject, preempt."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace

from extender.cells.model import (
    Argument,
    Decision,
    MemberRequest,
    Place,
    Preempt,
    Reason,
    ReasonCode,
    Reject,
    Seat,
    TriedForms,
    Wait,
    WaitFacts,
    Withheld,
)
from extender.cells.phrases import LISTED, count_sizes
from extender.cells.wording import explain
from policy.pod_resources import Shortage
from policy.queues.alternatives import AS_ASKED
from policy.submission import GangKey, NodeName

Arguments = Mapping[str, Argument | None]


def wait(request: MemberRequest, code: ReasonCode, **arguments: Argument | None) -> Wait:
    """Build a decision to wait; arguments that are None are left out."""
    return Wait(request=request, reason=_reason(request.gang, code, arguments))


def reject(request: MemberRequest, code: ReasonCode, **arguments: Argument | None) -> Reject:
    """Build a rejection; arguments that are None are left out."""
    return Reject(request=request, reason=_reason(request.gang, code, arguments))


def preempt(
    request: MemberRequest,
    *,
    victims: Sequence[GangKey],
    seats: tuple[Seat, ...] = (),
    nodes: tuple[NodeName, ...] = (),
    cancelled: tuple[GangKey, ...] = (),
) -> Preempt:
    """Build a decision that victims must end first."""
    named = listed("victims", list(map(str, victims)))
    told: Arguments = {"priority": request.priority, "vc": request.vc, **named}
    return Preempt(
        request=request,
        reason=_reason(request.gang, ReasonCode.PREEMPTING, told),
        victims=tuple(victims),
        seats=seats,
        nodes=nodes,
        cancelled=cancelled,
    )


def for_lack(decision: Decision, shortage: Shortage | None) -> Decision:
    """Explain a decision to wait by what nodes lack beside leaf cells."""
    if shortage is None or not isinstance(decision, Wait):
        return decision
    request = decision.request
    told = {**needed(request, request.gang_leaf_counts), **asdict(shortage)}
    reason = _reason(request.gang, ReasonCode.LACKS_RESOURCES, told)
    return replace(decision, reason=reason)


def for_reservation(decision: Decision, reserved_for: Withheld | None) -> Decision:
    """Say that a gang waits only because cells are reserved for another one, or for a window."""
    if reserved_for is None or not isinstance(decision, Wait):
        return decision
    request = decision.request
    told = needed(request, request.gang_leaf_counts)
    if isinstance(reserved_for, GangKey):
        code = ReasonCode.RESERVED
        told["reserved_for"] = str(reserved_for)
    else:
        code = ReasonCode.MAINTENANCE if reserved_for.node else ReasonCode.RESERVED_AHEAD
        told |= {"window": reserved_for.name, "node": reserved_for.node or None}
        told |= {"begins": reserved_for.begins, "ends": reserved_for.ends}
    lacks_own = decision.reason.code is ReasonCode.VC_FULL
    return replace(decision, reason=_reason(request.gang, code, told), lacks_own=lacks_own)


def with_facts(decision: Decision, facts: WaitFacts) -> Decision:
    """Complete the reason of a decision by what the engine does not know."""
    explained = for_reservation(for_lack(decision, facts.shortage), facts.reserved_for)
    return for_forms(explained, facts.tried)


def for_forms(decision: Decision, tried: TriedForms | None) -> Decision:
    """Name all forms of a gang that were tried, if it has no place in any."""
    if tried is None or isinstance(decision, Place):
        return decision
    reason = decision.reason
    own = "" if tried.form == AS_ASKED else f" ({tried.form})"
    others = "".join(f"; {form}: {why}" for form, why in tried.refused)
    told = {**reason.arguments, "form": tried.form, "refused": tried.refused}
    named = replace(reason, arguments=told, text=f"{reason.text}{own}{others}")
    return replace(decision, reason=named)


def fact_of(reason: Reason) -> str:
    """Return a reason without what would change it."""
    return reason.text.removesuffix(f"; {reason.change}")


def preempted(
    victim: GangKey, *, by: MemberRequest, own: int | None, is_foreign: bool = False
) -> Reason:
    """Return the reason why a victim is ended for another gang, and by which rule.

    `own` is the priority at which it counts as a victim; None if that is not known any more.
    """
    told: Arguments = {"preemptor": str(by.gang), "priority": by.priority, "vc": by.vc}
    rule = {"rule": "foreign: reclaim"} if is_foreign else {"own": own}
    return _reason(victim, ReasonCode.PREEMPTED, {**told, **rule})


def moved(victim: GangKey, *, by: MemberRequest) -> Reason:
    """Return the reason why an opportunistic gang is ended that fits elsewhere."""
    return _reason(victim, ReasonCode.PREEMPTED, {"moved_for": str(by.gang)})


Terms = Mapping[str, int | str | None]
"""Values that must be equal in all members of a gang, by the names that users know."""


def terms(request: MemberRequest) -> dict[str, int | str | None]:
    """Return the values of a request that must be equal in all members, except sizes."""
    return {
        "VC": request.vc,
        "priority": request.priority,
        "leaf type": request.leaf_type,
        "pinned cell": request.pinned,
        "gang minimum": request.gang_min,
    }


def disagreement(request: MemberRequest, *, first: Terms, own: Terms) -> Reject:
    """Reject a member whose values differ from those of the gang's first member."""
    different = [name for name in first if own[name] != first[name]]
    shown = [(name, _shown(name, first[name]), _shown(name, own[name])) for name in different]
    return reject(request, ReasonCode.GANG_MISMATCH, differences=tuple(shown))


def _shown(name: str, value: int | str | None) -> int | str:
    if value is None:
        return "any" if name == "leaf type" else "none"
    return value


def _reason(gang: GangKey, code: ReasonCode, arguments: Arguments) -> Reason:
    told = {name: value for name, value in arguments.items() if value is not None}
    return explain(code, gang=str(gang), **told)


def listed(name: str, values: Sequence[str]) -> dict[str, Argument]:
    """Return the first of some names, and their number, as arguments."""
    return {name: tuple(values[:LISTED]), "count": len(values)}


def counted(sizes: Collection[int]) -> dict[str, Argument]:
    """Return members by their leaf cells, the largest first, as arguments."""
    return {"needs": count_sizes(sizes), "members": len(sizes)}


def needed(request: MemberRequest, sizes: Collection[int]) -> dict[str, Argument | None]:
    """Return what members of a gang need, as arguments."""
    return {**counted(sizes), "leaf_type": request.leaf_type}


def owner(request: MemberRequest) -> dict[str, Argument | None]:
    """Return the VC and pinned cell that a gang counts on, as arguments; none if opportunistic."""
    return {"vc": request.vc, "pinned": request.pinned} if request.priority >= 0 else {}
