"""Ranks of gangs as JSON, and back: what a rank depends on, and what follows."""

from collections.abc import Mapping
from typing import Any, Final

from extender.cluster.rows import Row, encode_gang
from extender.queue.forecast.model import RunTime
from extender.queue.order.facts import QueueFacts
from extender.queue.order.gang_order import BY_VC, GangOrder, VcSize
from extender.queue.order.rank_changes import OrderChange, RankChange
from extender.queue.order.standing import Standing
from policy.queues.factors import FactorName
from policy.submission import GangKey

_FACTS: Final = {
    "user": "user",
    "group": "group",
    "class_name": "class",
    "leaf_type": "leafType",
    "pinned": "pinned",
    "start_by": "startBy",
}
"""Facts that are often missing, and their names in rows."""


def encode_rank(change: RankChange, order: GangOrder) -> Row:
    """Encode what the rank of a gang depends on."""
    place, standing = change.place, change.standing
    row: Row = {"gang": encode_gang(change.gang), "facts": encode_facts(place), "now": change.now}
    if place.gang != change.gang:
        row["placeOf"] = encode_gang(place.gang)
    if change.behind is not None:
        row["behind"] = change.behind
    if order.depends(standing, FactorName.FAIR_SHARE):
        row["share"] = order.shares.factor(place.user, place.group)
    if order.depends(standing, *BY_VC):
        row["vc"] = encode_size(order.size(place.vc))
        row["leafCells"] = order.leaf_cells
    return row


def encode_facts(facts: QueueFacts) -> Row:
    """Encode what the order knows of a gang, without its name."""
    row: Row = {"vc": facts.vc, "leafCells": facts.leaf_cells, "asked": facts.asked}
    for name, stored in _FACTS.items():
        if value := getattr(facts, name):
            row[stored] = value
    if facts.priority:
        row["priority"] = facts.priority
    for stored, seconds in (("median", facts.run_time.median), ("limit", facts.run_time.limit)):
        if seconds is not None:
            row[stored] = seconds
    return row


def decode_facts(gang: GangKey, row: Mapping[str, Any]) -> QueueFacts:
    """Read what `encode_facts` wrote."""
    optional = {name: row[stored] for name, stored in _FACTS.items() if stored in row}
    return QueueFacts(
        gang=gang,
        vc=row["vc"],
        leaf_cells=row["leafCells"],
        asked=row["asked"],
        priority=row.get("priority", 0),
        run_time=RunTime(median=row.get("median"), limit=row.get("limit")),
        **{"user": "", **optional},
    )


def encode_size(size: VcSize) -> list[int]:
    """Encode how large a VC is, and how much of it is in use."""
    return [size.promised, size.used]


def decode_size(row: list[int]) -> VcSize:
    """Read what `encode_size` wrote."""
    promised, used = row
    return VcSize(promised, used)


def encode_standing(standing: Standing, rank: float) -> Row:
    """Encode the place of a gang: its level, its rank and what that adds up from."""
    row: Row = {
        "is": "rank",
        "level": standing.level,
        "levelName": standing.level_name,
        "rank": rank,
        "parts": {str(part.factor): [part.value, part.worth] for part in standing.parts},
    }
    if standing.is_promoted:
        row["ownLevel"] = standing.own_level_name
    if standing.next_promotion is not None:
        row["nextPromotion"] = standing.next_promotion
    failures = [part.failure for part in standing.parts if part.failure]
    return row | ({"failure": failures[0]} if failures else {})


def encode_order(change: OrderChange, order: GangOrder) -> Row:
    """Encode the numbers by which many gangs are ranked anew."""
    row: Row = {"now": change.now, "leafCells": order.leaf_cells}
    if order.queues.uses(FactorName.FAIR_SHARE):
        row["shares"] = [
            [group, user, order.shares.factor(user, group)] for group, user in change.accounts
        ]
    if any(map(order.queues.uses, BY_VC)):
        row["vcs"] = {vc: encode_size(order.size(vc)) for vc in change.vcs}
    return row | ({"all": True} if change.is_all else {})


def encode_sum(gangs: int, checksum: int) -> Row:
    """Encode the ranks of all gangs: how many there are, and a checksum over them."""
    return {"is": "order", "gangs": gangs, "checksum": checksum}
