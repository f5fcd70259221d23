"""Facts about one run of a gang: request, grant, times, pods and end. Pure.

The extender's leader describes a run whenever it changes, with those of its pods that changed. Its
records arrive in any order, some of them twice, some from a leader that does not lead any more. So
they are merged by rules for which order and repetition do not matter:

- Of two descriptions the one counts that knows of a later pod (`extent`), since a run may go on
  after its end; then a known end before a presumed end, that before none; then the later
  observation (`stamp`). Descriptions of older releases have no extent, and are compared without.
- The earliest of each time counts, except that of the end, which belongs to the description.
- Of each kind of prediction the one with the least stamp counts: the first.
- All nodes and all pods count; of two descriptions of a pod the greater pair counts, too. Why
  Cellgate ended a pod (`told`) is kept, whichever description says so.

A description belongs to the run that has one of its pods, whatever that run is called: two leaders
may call it differently if the second could not read what the first had recorded.

`merge` and `RunTable` are these rules in Python; the functions `merge_runs` and `record_runs` are
the same rules in SQL. A contract test compares them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import IntEnum
from typing import Any, Final

import orjson

from state.database.column_values import to_json


class Certainty(IntEnum):
    """How well the end of a run or of a pod is known."""

    NO_END = 0
    PRESUMED = 1
    """It was gone when a leader looked; no leader saw how it ended."""
    KNOWN = 2


Member = Mapping[str, Any]
"""What is known of a pod, as JSON: `certainty` and `stamp`, and what `/v1/runs` shows."""

Prediction = Mapping[str, Any]
"""A prediction, as JSON: `stamp`, and what was predicted, in seconds."""

RUN_TIME: Final = "runTime"
"""The kind of predictions that say how long a run takes."""
START: Final = "start"
"""The kind of predictions that say after how long a gang starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangFacts:
    """Known facts about one run of a gang; another run may have the same gang name.

    The names of the fields are those of the columns of `gang_history`.
    """

    run: str
    """The id of the run: the UID of the pod of it that was seen first."""
    gang: str
    user_name: str | None = None
    group_name: str | None = None
    """The group that was charged."""
    vc: str | None = None
    requested_class: str | None = None
    granted_class: str | None = None
    leaf_type: str | None = None
    leaf_count: int | None = None
    """The most leaf cells that its members had at one time."""
    member_count: int | None = None
    asked_at: datetime | None = None
    started_at: datetime | None = None
    """When the last member that is needed for a start was bound."""
    ended_at: datetime | None = None
    nodes: tuple[str, ...] = ()
    """The nodes that it ran on, sorted."""
    outcome: str | None = None
    """How it ended: succeeded, failed, preempted, evicted or deleted."""
    reason: str | None = None
    preempted_for: str | None = None
    """The gang that preempted it."""
    workload: str | None = None
    """Kind and name of the topmost controller of its pods."""
    workload_uid: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    estimate_seconds: int | None = None
    limit_seconds: int | None = None
    admitted_at: datetime | None = None
    released_at: datetime | None = None
    held_from: datetime | None = None
    """When its first member was bound; leaf-cell-hours are counted for each pod."""
    running_at: datetime | None = None
    """When the containers of the last member that is needed for a start ran."""
    restarts: int | None = None
    """Restarts of containers, and pods that were created for others that had ended."""
    members: Mapping[str, Member] = field(default_factory=dict)
    """Its pods, by UID; of a description that is told, only those that changed."""
    certainty: Certainty = Certainty.NO_END
    stamp: str = ""
    """The leadership term and the time of the observation, as a text that sorts like them."""
    predictions: Mapping[str, Prediction] = field(default_factory=dict)
    """What was predicted, by kind; each with the stamp of the leader that made it."""
    extent: str = ""
    """When its last pod was created, and how many pods it has had, as a text that sorts like
    them."""


_EARLIEST: Final = (
    "asked_at", "admitted_at", "released_at", "held_from", "started_at", "running_at",
)  # fmt: skip
_TIMES: Final = (*_EARLIEST, "ended_at")
_NAMES: Final = [one.name for one in fields(GangFacts)]
_OLD_NAMES: Final = _NAMES[: _NAMES.index("preempted_for") + 1]
"""The fields that a spool of an older release has, by position."""


def merge(one: GangFacts, other: GangFacts) -> GangFacts:
    """Return the facts of two descriptions of one run, under the name of the first."""
    newer = other if _is_newer(other, one) else one
    earliest: dict[str, Any] = {
        name: _earlier(getattr(one, name), getattr(other, name)) for name in _EARLIEST
    }
    return replace(
        newer,
        run=one.run,
        nodes=tuple(sorted({*one.nodes, *other.nodes})),
        members=_merge_members(one.members, other.members),
        predictions=_merge_predictions(one.predictions, other.predictions),
        extent=max(one.extent, other.extent),
        **earliest,
    )


def _is_newer(one: GangFacts, other: GangFacts) -> bool:
    mine, theirs = ((facts.certainty, facts.stamp) for facts in (one, other))
    if one.extent and other.extent:
        return (one.extent, *mine) > (other.extent, *theirs)
    return mine > theirs


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((time for time in (one, other) if time is not None), default=None)


def _merge_members(one: Mapping[str, Member], other: Mapping[str, Member]) -> dict[str, Member]:
    merged = dict(one)
    for uid, member in other.items():
        known = merged.get(uid, member)
        told = max(known.get("told") or "", member.get("told") or "")
        chosen: Member = max(known, member, key=_member_rank)
        merged[uid] = {**chosen, **({"told": told} if told else {})}
    return merged


def _merge_predictions(
    one: Mapping[str, Prediction], other: Mapping[str, Prediction]
) -> dict[str, Prediction]:
    merged = dict(one)
    for kind, prediction in other.items():
        known = merged.get(kind, prediction)
        merged[kind] = min(known, prediction, key=lambda told: str(told["stamp"]))
    return merged


def _member_rank(member: Member) -> tuple[int, str]:
    return member["certainty"], member["stamp"]


class RunTable(dict[str, GangFacts]):
    """Runs by name, as the table `gang_history` has them."""

    def __init__(self) -> None:
        super().__init__()
        self.run_of: dict[str, str] = {}
        """The run of each pod."""

    def record(self, told: GangFacts) -> None:
        """Store a description of a run, as `record_runs` does."""
        found = sorted({self.run_of[uid] for uid in told.members if uid in self.run_of})
        told = replace(told, run=found[0] if found else told.run)
        for twin in found[1:]:
            self._put(replace(self.pop(twin), run=told.run))
        self._put(told)

    def _put(self, told: GangFacts) -> None:
        known = self.get(told.run)
        self[told.run] = told if known is None else merge(known, told)
        self.run_of |= dict.fromkeys(told.members, told.run)


def format_facts(facts: Iterable[GangFacts]) -> str:
    """Return facts as a JSON list, for the database."""
    return "[" + ",".join(map(encode_facts, facts)) + "]"


def encode_facts(facts: GangFacts) -> str:
    """Return facts as JSON, in a form that Postgres can store."""
    return to_json({name: getattr(facts, name) for name in _NAMES})


def decode_facts(told: Mapping[str, Any] | list[Any]) -> GangFacts:
    """Return facts that were encoded here, or by an older release: those have no names."""
    if isinstance(told, list):
        told = dict(zip(_OLD_NAMES, told, strict=True))
    values = {name: told[name] for name in _NAMES if name in told}
    for name in _TIMES:
        if isinstance(values.get(name), str):
            values[name] = datetime.fromisoformat(values[name])
    values["nodes"] = tuple(sorted(set(values["nodes"])))
    values["certainty"] = Certainty(values.get("certainty", Certainty.NO_END))
    return GangFacts(**values)


def to_storable_facts(facts: GangFacts) -> GangFacts:
    """Return the facts as Postgres would store them."""
    return decode_facts(orjson.loads(encode_facts(facts)))
