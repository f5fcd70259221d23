"""Facts about one run of a gang: request, grant, times, nodes and end. Pure.

Services know different facts at different times: the webhook knows the request, the extender knows
the start. Their rows arrive in any order, some of them twice. So facts are merged by rules for
which order and repetition do not matter: the earliest start, the latest end, all nodes, and of two
different texts the greater one. An unknown fact is None.

`merge` is the rule in Python; the query `merge_gang_history` is the same rule in SQL.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from state.database.column_values import to_text


@dataclass(frozen=True, slots=True, kw_only=True)
class GangFacts:
    """Known facts about one run of a gang; another run may have the same gang name."""

    run: str
    """The id of the run: that of the decision that admitted the gang."""
    gang: str
    user_name: str | None = None
    group_name: str | None = None
    """The group that was charged."""
    vc: str | None = None
    requested_class: str | None = None
    granted_class: str | None = None
    leaf_type: str | None = None
    leaf_count: int | None = None
    """Leaf cells of the whole gang."""
    member_count: int | None = None
    asked_at: datetime | None = None
    started_at: datetime | None = None
    """When the last member needed for a start was bound; leaf-cell-hours count from then."""
    ended_at: datetime | None = None
    nodes: tuple[str, ...] = ()
    """The nodes that it ran on, sorted."""
    outcome: str | None = None
    """How it ended: succeeded, failed, preempted, refused, deleted …"""
    reason: str | None = None
    preempted_for: str | None = None
    """The gang that preempted it."""


def _union(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*one, *other}))


_RULES: Final[dict[str, Callable[..., Any]]] = {"asked_at": min, "started_at": min, "nodes": _union}
_NAMES: Final = [field.name for field in fields(GangFacts)]


def merge(one: GangFacts, other: GangFacts) -> GangFacts:
    """Return the facts of two sources about one run."""
    return GangFacts(
        **{name: _merge_value(name, getattr(one, name), getattr(other, name)) for name in _NAMES}
    )


def merge_all(facts: Iterable[GangFacts]) -> list[GangFacts]:
    """Merge facts about the same run; sorted by run, so that two writers cannot deadlock."""
    merged: dict[str, GangFacts] = {}
    for fact in facts:
        known = merged.get(fact.run)
        merged[fact.run] = fact if known is None else merge(known, fact)
    return [merged[run] for run in sorted(merged)]


def _merge_value(name: str, one: Any, other: Any) -> Any:  # noqa: ANN401 - of any field
    if one is None or other is None:
        return other if one is None else one
    return _RULES.get(name, max)(one, other)


def to_storable_facts(facts: GangFacts) -> GangFacts:
    """Return the facts as Postgres would store them."""
    return GangFacts(**{name: _to_column(getattr(facts, name)) for name in _NAMES})


def _to_column(value: Any) -> Any:  # noqa: ANN401 - of any field
    match value:
        case str():
            return to_text(value)
        case tuple():
            return tuple(sorted({to_text(item) for item in value}))
        case _:
            return value
