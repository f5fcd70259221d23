"""A run of a gang, as the history or the rows of an exported file tell it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from cli.whatif.sources.played import divide
from extender.queue.forecast.keys import RunKeys, name_pattern
from state.history.facts import GangFacts
from state.history.predictions import WHOLE_OUTCOMES, PastRun

_CUT: Final = ("preempted", "evicted")
_AGAIN_SECONDS: Final = 900.0
"""A controller creates the pods of a gang that was preempted again within some minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One run; what is not known is empty. Times in seconds since 1970."""

    gang: str
    """`namespace/name`."""
    run: str
    owner: str = ""
    """The UID of its workload."""
    asked: float
    started: float | None = None
    ended: float | None = None
    outcome: str | None = None
    sizes: tuple[int, ...]
    user: str = ""
    group: str | None = None
    vc: str = ""
    requested_class: str = ""
    leaf_type: str | None = None
    gang_min: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    workload: str | None = None
    image: str | None = None
    limit_seconds: float | None = None
    expected_seconds: float | None = None
    checkpoint_cost: int | None = None
    asked_again: float | None = None
    """When its last run was submitted, if it was preempted or evicted before."""
    began_again: float | None = None
    """When its last run started, if it was preempted or evicted before."""

    @property
    def keys(self) -> RunKeys:
        """By what it is compared with other runs."""
        return RunKeys(
            user=self.user,
            name=name_pattern((self.workload or self.gang).rpartition("/")[2]),
            image=self.image or "",
            vc=self.vc,
            leaf_cells=sum(self.sizes),
        )

    @property
    def running_since(self) -> float | None:
        """When its last run started; None if that has not."""
        return self.started if self.asked_again is None else self.began_again

    @property
    def is_whole(self) -> bool:
        """Whether it ended by itself, or by its owner, after it had started."""
        return None not in (self.started, self.ended) and self.outcome in WHOLE_OUTCOMES

    @property
    def was_cut(self) -> bool:
        """Whether it was ended for another gang, or with its node."""
        return self.ended is not None and self.outcome in _CUT


def of_facts(facts: GangFacts) -> RecordedRun | None:
    """Return a run of the history; None for one without leaf cells."""
    leaf_cells = facts.leaf_count or 0
    if not leaf_cells or facts.asked_at is None:
        return None
    return RecordedRun(
        gang=facts.gang,
        run=facts.run,
        owner=facts.workload_uid or "",
        asked=facts.asked_at.timestamp(),
        started=_seconds(facts.started_at),
        ended=_seconds(facts.ended_at),
        outcome=facts.outcome,
        sizes=_sizes(facts, leaf_cells),
        user=facts.user_name or "",
        group=facts.group_name,
        vc=facts.vc or "",
        requested_class=facts.requested_class or "",
        leaf_type=facts.leaf_type,
        labels=facts.labels,
        workload=facts.workload,
        image=facts.image,
        limit_seconds=facts.limit_seconds,
        expected_seconds=facts.estimate_seconds,
    )


def _sizes(facts: GangFacts, leaf_cells: int) -> tuple[int, ...]:
    """Return the leaf cells of each member; pods that were replaced do not count twice."""
    told = sorted((int(one.get("leafCells") or 0) for one in facts.members.values()), reverse=True)
    if sum(told) == leaf_cells:
        return tuple(size for size in told if size)
    return divide(leaf_cells, members=min(facts.member_count or 1, leaf_cells))


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def as_past(run: RecordedRun) -> PastRun | None:
    """Return a run as predictions are made from it; None if it has not run and ended."""
    if run.running_since is None or run.ended is None:
        return None
    return PastRun(
        run=run.run,
        gang=run.gang,
        user_name=run.user or None,
        vc=run.vc or None,
        workload=run.workload,
        image=run.image,
        leaf_count=sum(run.sizes),
        outcome=run.outcome,
        started_at=datetime.fromtimestamp(run.running_since, UTC),
        ended_at=datetime.fromtimestamp(run.ended, UTC),
        start=None,
    )


def without_repeats(runs: Iterable[RecordedRun]) -> list[RecordedRun]:
    """Return one run for each gang that was cut and began again, in the order of submission.

    It has the submission and the first start of the first run, and the rest of the last one.
    """
    done: list[RecordedRun] = []
    open_: dict[tuple[str, str], RecordedRun] = {}
    for run in sorted(runs, key=lambda one: (one.asked, one.run)):
        key = run.gang, run.owner
        before = open_.pop(key, None)
        if before is not None and _goes_on(before, run):
            run = _joined(before, run)
        elif before is not None:
            done.append(before)
        open_[key] = run
    return sorted([*done, *open_.values()], key=lambda one: (one.asked, one.run))


def _goes_on(before: RecordedRun, run: RecordedRun) -> bool:
    return before.was_cut and run.asked - (before.ended or 0.0) <= _AGAIN_SECONDS


def _joined(before: RecordedRun, run: RecordedRun) -> RecordedRun:
    return replace(
        run,
        asked=before.asked,
        started=run.started if before.started is None else before.started,
        asked_again=run.asked,
        began_again=run.started,
    )
