"""The place of a gang in the queue as JSON: its rank, what that adds up from, the gang ahead.

Times are those of the order: `rank` is when the gang would have asked to be where it is by age
alone, so two ranks can be compared, and their difference is how much the one behind lacks.
"""

from datetime import UTC, datetime

from extender.inspection.json_views import JsonObject, if_any
from extender.queue.order.explanation import explain_ahead, explain_bound, explain_standing
from extender.queue.order.listing import ListedGang, Ranked
from extender.queue.order.standing import RankPart
from policy.queues.queues import QueueLevel, Queues

_OTHERS = "a gang of another user"


def show_standing(listed: ListedGang, queues: Queues, *, viewer: str | None = None) -> JsonObject:
    """Show level, rank and the gang ahead; a viewer with a name sees no other user's gang."""
    facts, standing = listed.facts, listed.standing
    sentences = explain_standing(standing, facts, queues)
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
        "rank": _moment(standing.rank),
        "creditSeconds": round(standing.credit),
        "parts": list(map(_show_part, standing.parts)),
        **if_any("promotedAt", _moment_or_none(standing.next_promotion)),
        **if_any("ahead", _show_ahead(listed, viewer)),
        "explanation": sentences,
        "bound": explain_bound(standing, facts, queues),
    }


def show_listed(listed: ListedGang, queues: Queues, *, viewer: str | None = None) -> JsonObject:
    """Show a gang that waits, as `/v1/queue` lists it."""
    facts = listed.facts
    return {
        "gang": str(facts.gang),
        "user": facts.user,
        **if_any("group", facts.group),
        "vc": facts.vc,
        "class": facts.class_name,
        "leafCells": facts.leaf_cells,
        "asked": _moment(facts.asked),
        "place": listed.place,
        "of": listed.length,
        **show_standing(listed, queues, viewer=viewer),
    }


def show_level(level: QueueLevel, *, gangs: int) -> JsonObject:
    """Show a level of the document in force."""
    return {
        "name": level.name,
        "strategy": level.strategy,
        "worthSeconds": {str(name): round(seconds) for name, seconds in level.worth.items()},
        "horizonSeconds": round(level.horizon),
        **if_any("promoteAfterSeconds", level.promote_after),
        "gangs": gangs,
    }


def _show_part(part: RankPart) -> JsonObject:
    return {
        "factor": part.factor,
        "value": round(part.value, 4),
        "worthSeconds": round(part.worth),
        "seconds": round(part.seconds),
    }


def _show_ahead(listed: ListedGang, viewer: str | None) -> JsonObject | None:
    if listed.ahead is None:
        return None
    facts, standing = listed.ahead
    is_shown = viewer in (None, facts.user)
    return {
        **({"gang": str(facts.gang)} if is_shown else {}),
        "level": standing.level_name,
        "bySeconds": round(listed.standing.rank - standing.rank),
    }


def _name_of(ahead: Ranked, viewer: str | None) -> str:
    facts = ahead[0]
    return str(facts.gang) if viewer in (None, facts.user) else _OTHERS


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _moment_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else _moment(seconds)
