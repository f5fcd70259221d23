"""The history of gangs in memory, for tests. `tests/contract` runs one suite on both stores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import exp, log
from statistics import median

from policy.errors import BackendError
from state.history.facts import RUN_TIME, START, Certainty, GangFacts, Prediction, RunTable
from state.history.predictions import WHOLE_OUTCOMES, PastRun, PredictionError
from state.history.runs import KEEP_DAYS, Hours, RecordedPod, RunFilter, RunPosition, StoredRun

_SECONDS_PER_HOUR = 3600
_FIELDS = ("user_name", "group_name", "vc", "gang", "outcome")

Hold = tuple[datetime, datetime | None, int, str | None]
"""From when, until when, how many leaf cells, of which type."""


class MemoryHistory:
    """The queries of `PostgresHistory`; `is_away` makes it fail like an unavailable database."""

    def __init__(self, runs: RunTable | None = None) -> None:
        self.runs = RunTable() if runs is None else runs
        self.is_away = False
        self.keep_days = KEEP_DAYS

    async def find(
        self, wanted: RunFilter, limit: int, *, before: RunPosition | None = None
    ) -> list[StoredRun]:
        """Return runs, the newest first."""
        self._check_available()
        found = [facts for facts in self.runs.values() if _is_wanted(facts, wanted)]
        found = [facts for facts in found if before is None or _order(facts) < _key(before)]
        found.sort(key=_order, reverse=True)
        return [self._stored(facts) for facts in found[:limit]]

    def _stored(self, facts: GangFacts) -> StoredRun:
        same = (facts.gang, facts.workload_uid)
        earlier = [
            one
            for one in self.runs.values()
            if (one.gang, one.workload_uid) == same and _order(one) <= _order(facts)
        ]
        now = datetime.now(UTC)
        hours = sum(
            _hours_of(hold, datetime.min.replace(tzinfo=UTC), now) for hold in _holds(facts)
        )
        return StoredRun(facts=facts, attempt=len(earlier), leaf_cell_hours=hours)

    async def open_runs(self, limit: int, *, after: str = "") -> list[GangFacts]:
        """Return runs that have not ended, sorted by name, after a name."""
        self._check_available()
        names = sorted(name for name, run in self.runs.items() if run.ended_at is None)
        return [self.runs[name] for name in names if name > after][:limit]

    async def recorded(self, pod_uids: Sequence[str]) -> Mapping[str, RecordedPod]:
        """Return the pods, among those given, that are recorded."""
        self._check_available()
        found = {}
        for uid in pod_uids:
            run = self.runs.get(self.runs.run_of.get(uid, ""))
            if run is not None:
                member = run.members[uid]
                found[uid] = RecordedPod(
                    certainty=Certainty(member["certainty"]),
                    has_run_ended=run.ended_at is not None,
                    told=member.get("told"),
                    extent=run.extent,
                )
        return found

    async def hours_between(
        self,
        since: datetime,
        until: datetime,
        *,
        user_name: str | None = None,
        group_name: str | None = None,
    ) -> list[Hours]:
        """Sum the leaf-cell-hours between two moments, and count the gangs that ran then."""
        self._check_available()
        sums: dict[tuple[str | None, ...], Hours] = {}
        wanted = RunFilter(user_name=user_name, group_name=group_name)
        for facts in (one for one in self.runs.values() if _is_wanted(one, wanted)):
            for leaf_type, hours in _hours_by_type(facts, since, until).items():
                names = (facts.user_name, facts.group_name, facts.vc, facts.granted_class)
                whose = tuple(name or None for name in (*names, leaf_type))
                known = sums.get(whose) or _no_hours(whose)
                sums[whose] = replace(
                    known,
                    leaf_cell_hours=known.leaf_cell_hours + hours,
                    gangs=known.gangs + 1,
                )
        return [sums[whose] for whose in sorted(sums, key=_nulls_last)]

    async def past_runs(self, limit: int, *, before: PastRun | None = None) -> list[PastRun]:
        """Return runs that had begun and have ended, the last end first, before another one."""
        self._check_available()
        found = sorted(filter(None, map(_past_run, self.runs.values())), key=_end, reverse=True)
        return [run for run in found if before is None or _end(run) < _end(before)][:limit]

    async def prediction_errors(
        self, since: datetime, until: datetime, *, user_name: str | None = None
    ) -> list[PredictionError]:
        """Compare predictions with outcomes that came between two moments."""
        self._check_available()
        errors: dict[tuple[str, str, int], list[tuple[float, bool | None]]] = {}
        for facts in self.runs.values():
            if user_name in (None, facts.user_name):
                for kind, told, actual in _outcomes(facts, since, until):
                    error = abs(log(max(actual, 1) / max(told["median"], 1)))
                    key = (kind, told["key"], told["size"])
                    is_covered = told["low"] <= actual <= told["high"]
                    was_told = told.get("told") is not False
                    errors.setdefault(key, []).append((error, is_covered if was_told else None))
        return [_error(*key, found) for key, found in sorted(errors.items())]

    def _check_available(self) -> None:
        if self.is_away:
            raise BackendError("the store is unavailable")


def _is_wanted(facts: GangFacts, wanted: RunFilter) -> bool:
    has_ended = facts.ended_at is not None
    return (
        all(getattr(wanted, name) in (None, getattr(facts, name)) for name in _FIELDS)
        and wanted.has_ended in (None, has_ended)
        and (wanted.since is None or facts.ended_at is None or facts.ended_at > wanted.since)
        and (wanted.until is None or _order(facts)[0] < wanted.until)
    )


def _end(run: PastRun) -> tuple[datetime, str]:
    return run.ended_at, run.run


def _outcomes(
    facts: GangFacts, since: datetime, until: datetime
) -> Iterator[tuple[str, Prediction, float]]:
    started, ended, told = facts.started_at, facts.ended_at, facts.predictions
    if started is None:
        return
    is_whole = ended is not None and facts.outcome in WHOLE_OUTCOMES
    if ended is not None and is_whole and since <= ended < until and RUN_TIME in told:
        yield RUN_TIME, told[RUN_TIME], (ended - started).total_seconds()
    if since <= started < until and START in told:
        yield START, told[START], started.timestamp() - told[START]["at"]


def _error(
    kind: str, key: str, size: int, found: list[tuple[float, bool | None]]
) -> PredictionError:
    errors = [error for error, _ in found]
    covered = [is_covered for _, is_covered in found if is_covered is not None]
    return PredictionError(
        kind=kind,
        key=key,
        size=size,
        runs=len(found),
        median_factor=exp(median(errors)),
        within_twice=sum(error <= log(2) for error in errors) / len(found),
        covered=sum(covered) / len(covered) if covered else None,
    )


def _order(facts: GangFacts) -> tuple[datetime, str]:
    assert facts.asked_at is not None, "a run is recorded with its submission"
    return facts.asked_at, facts.run


def _key(position: RunPosition) -> tuple[datetime, str]:
    return position.asked_at, position.run


def _holds(facts: GangFacts) -> Iterator[Hold]:
    if not facts.members and facts.started_at is not None:
        yield facts.started_at, facts.ended_at, facts.leaf_count or 0, facts.leaf_type
    for member in facts.members.values():
        if "bound" in member:
            ended = member.get("ended")
            yield (
                datetime.fromisoformat(member["bound"]),
                datetime.fromisoformat(ended) if ended else facts.ended_at,
                member["leafCells"],
                member.get("leafType") or facts.leaf_type,
            )


def _hours_by_type(facts: GangFacts, since: datetime, until: datetime) -> dict[str | None, float]:
    found: dict[str | None, float] = {}
    for hold in _holds(facts):
        hours = _hours_of(hold, since, until)
        if hours > 0:
            found[hold[3]] = found.get(hold[3], 0.0) + hours
    return found


def _hours_of(hold: Hold, since: datetime, until: datetime) -> float:
    begin, end, leaf_count, _ = hold
    stop = min(end or datetime.now(UTC), until)
    return max(0.0, leaf_count * (stop - max(begin, since)).total_seconds() / _SECONDS_PER_HOUR)


def _no_hours(whose: tuple[str | None, ...]) -> Hours:
    user, group, vc, class_name, leaf_type = whose
    return Hours(
        user_name=user,
        group_name=group,
        vc=vc,
        class_name=class_name,
        leaf_type=leaf_type,
        leaf_cell_hours=0.0,
        gangs=0,
    )


def _nulls_last(values: tuple[str | None, ...]) -> list[tuple[bool, str]]:
    return [(value is None, value or "") for value in values]


def _past_run(facts: GangFacts) -> PastRun | None:
    """Return what predictions need of a run; None if it has not begun and ended."""
    if facts.started_at is None or facts.ended_at is None:
        return None
    return PastRun(
        run=facts.run,
        gang=facts.gang,
        user_name=facts.user_name,
        vc=facts.vc,
        workload=facts.workload,
        image=facts.image,
        leaf_count=facts.leaf_count,
        outcome=facts.outcome,
        started_at=facts.started_at,
        ended_at=facts.ended_at,
        start=facts.predictions.get("start"),
    )
