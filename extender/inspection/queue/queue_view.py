"""The place of a gang in the queue as JSON: its rank, what that adds up from, the gang ahead.

Times are those of the order: `rank` is when the gang would have asked to be where it is by age
alone, so two ranks can be compared, and their difference is how much the one behind lacks.
"""

from extender.inspection.json_views import JsonObject, if_any
from extender.queue.order.explanation import (
    OTHERS,
    explain_ahead,
    explain_bound,
    explain_standing,
)
from extender.queue.order.listing import ListedGang, Ranked
from extender.queue.order.standing import RankPart
from policy.queues.queues import QueueLevel, Queues
from policy.wording import moment


def show_standing(
    listed: ListedGang, queues: Queues, *, awaits_quota: bool, viewer: str | None = None
) -> JsonObject:
    """Show level, rank and the gang ahead; a viewer with a name sees no other user's gang."""
    facts, standing = listed.facts, listed.standing
    sentences = explain_standing(standing, facts, queues, viewer=viewer)
    if listed.ahead is not None:
        name = _name_of(listed.ahead, viewer)
        sentences.append(explain_ahead(standing, listed.ahead[1], name=name))
    return {
        "level": standing.level_name,
        **({"ownLevel": standing.own_level_name} if standing.is_promoted else {}),
        "levelPlace": listed.level_place,
        "pool": {
            **if_any("vc", listed.pool.vc),
            **if_any("leafType", listed.pool.leaf_type),
            **if_any("pinnedCell", listed.pool.pinned),
        },
        "poolPlace": listed.pool_place,
        "rank": moment(standing.rank),
        "creditSeconds": round(standing.credit),
        "parts": list(map(_show_part, standing.parts)),
        **if_any("promotedAt", _moment_or_none(standing.next_promotion)),
        **if_any("ahead", _show_ahead(listed, viewer)),
        **if_any("swap", _show_swap(listed, viewer)),
        "explanation": sentences,
        "bound": explain_bound(standing, facts, queues, awaits_quota=awaits_quota),
    }


def show_listed(
    listed: ListedGang, queues: Queues, *, awaits_quota: bool, viewer: str | None = None
) -> JsonObject:
    """Show a gang that waits, as `/v1/queue` lists it."""
    facts = listed.facts
    return {
        "gang": str(facts.gang),
        "user": facts.user,
        **if_any("group", facts.group),
        "vc": facts.vc,
        "class": facts.class_name,
        "leafCells": facts.leaf_cells,
        "asked": moment(facts.asked),
        **if_any("startBy", None if facts.start_by is None else moment(facts.start_by)),
        "place": listed.place,
        "of": listed.length,
        **show_standing(listed, queues, awaits_quota=awaits_quota, viewer=viewer),
    }


def show_level(level: QueueLevel, *, gangs: int) -> JsonObject:
    """Show a level of the document in force."""
    promoted = level.promote_after
    return {
        "name": level.name,
        "strategy": level.strategy,
        **if_any("formula", None if level.formula is None else str(level.formula)),
        "worthSeconds": {str(name): round(seconds) for name, seconds in level.worth.items()},
        "horizonSeconds": round(level.horizon),
        **if_any("promoteAfterSeconds", None if promoted is None else round(promoted)),
        "gangs": gangs,
    }


def _show_part(part: RankPart) -> JsonObject:
    return {
        "factor": part.factor,
        "value": round(part.value, 4),
        "worthSeconds": round(part.worth),
        "seconds": round(part.seconds),
        **if_any("failure", part.failure or None),
        **if_any("factors", {name: round(value, 4) for name, value in part.factors} or None),
    }


def _show_ahead(listed: ListedGang, viewer: str | None) -> JsonObject | None:
    if listed.ahead is None:
        return None
    facts, standing = listed.ahead
    is_shown = viewer in (None, facts.user)
    is_same_level = listed.standing.level == standing.level  # ranks of levels are not compared
    return {
        **({"gang": str(facts.gang)} if is_shown else {}),
        "level": standing.level_name,
        **({"bySeconds": round(listed.standing.rank - standing.rank)} if is_same_level else {}),
    }


def _show_swap(listed: ListedGang, viewer: str | None) -> JsonObject | None:
    """Show with which gang a gang was swapped; a viewer sees no other user's gang."""
    swap = listed.standing.swap
    if swap is None:
        return None
    is_shown = viewer in (None, listed.standing.place_of(listed.facts).user)
    return {
        **({"gang": str(swap.request.other)} if is_shown else {}),
        "user": swap.request.user,
        "role": swap.request.role,
        "at": moment(swap.request.at),
        "inForce": swap.place is not None,
        **if_any("whyNot", swap.why_not or None),
    }


def _name_of(ahead: Ranked, viewer: str | None) -> str:
    facts = ahead[0]
    return str(facts.gang) if viewer in (None, facts.user) else OTHERS


def _moment_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else moment(seconds)
