"""The runs of an exported file, which has no history: from the extender's rows about pods.

A run is a gang from its first bound pod until its last one has ended. Who submitted it, and how
long its owner expected it to run, is not in these rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from cli.whatif.sources.log.runs import RecordedRun
from extender.cells.model import MemberRequest
from extender.cluster import rows
from extender.cluster.journal import SERVICE as EXTENDER
from policy.classes import Classes
from policy.submission import GangKey, PodUid
from state.history.predictions import WHOLE_OUTCOMES
from state.log.records import DecisionRecord, RowKind


@dataclass(slots=True, kw_only=True)
class _Run:
    request: MemberRequest
    first: PodUid
    asked: float
    bound: dict[PodUid, float] = field(default_factory=dict)
    open: dict[PodUid, None] = field(default_factory=dict)
    """The pods that have not ended."""
    ended: float | None = None
    outcome: str | None = None


class FileRuns:
    """Follows the pods of all gangs."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._last: dict[GangKey, _Run] = {}
        self._named: dict[str, _Run] = {}
        """The last run of each `namespace/name`."""
        self._of_pod: dict[PodUid, _Run] = {}
        """The run of each pod that has not ended."""
        self._found: dict[PodUid, None] | None = None
        """The pods that a new leader has found so far."""

    def note(self, record: DecisionRecord) -> None:
        """Take in a row."""
        if record.service != EXTENDER:
            return
        at = record.at.timestamp()
        if record.kind == RowKind.RUN:
            run = self._named.get(record.subject)
            if run is not None:
                run.outcome = record.outcome
        elif record.kind == RowKind.DOCUMENT and record.outcome == "begun":
            self._found = {}
        elif record.kind == RowKind.POD:
            self._note_pod(record, at)

    def _note_pod(self, record: DecisionRecord, at: float) -> None:
        match record.outcome:
            case "runs" | "found":
                request = rows.decode_request(record.inputs["request"])
                if self._found is not None:
                    self._found[request.member] = None
                self._bind(request, at)
            case "recovered":
                gone = [pod for pod in self._of_pod if pod not in (self._found or {})]
                for pod in gone:
                    self._end(pod, at)
                self._found = None
            case "ended" if record.pod_uid is not None:
                self._end(PodUid(record.pod_uid), at)

    def _bind(self, request: MemberRequest, at: float) -> None:
        if request.member in self._of_pod:
            return
        run = self._last.get(request.gang)
        if run is None or not run.open:
            asked = min(request.created or at, at)
            run = _Run(request=request, first=request.member, asked=asked)
            self._runs.append(run)
            self._last[request.gang] = self._named[str(request.gang)] = run
        run.bound[request.member] = at
        run.open[request.member] = None
        run.ended = None
        self._of_pod[request.member] = run

    def _end(self, pod: PodUid, at: float) -> None:
        run = self._of_pod.pop(pod, None)
        if run is None:
            return
        del run.open[pod]
        if not run.open:
            run.ended = at

    def runs(self, classes: Classes) -> Iterator[RecordedRun]:
        """Yield all runs; the class is that with the cell priority of the gang."""
        by_priority = {one.cell_priority: one.name for one in reversed(classes.entries)}
        for run in self._runs:
            request = run.request
            yield RecordedRun(
                gang=str(request.gang),
                run=run.first,
                owner=request.gang.owner,
                asked=run.asked,
                started=_started(run),
                ended=run.ended,
                outcome=_outcome(run),
                sizes=tuple(size for size in request.gang_leaf_counts if size),
                vc=request.vc,
                requested_class=by_priority.get(request.priority, classes.default),
                leaf_type=request.leaf_type,
                gang_min=request.gang_min,
                checkpoint_cost=request.checkpoint_cost,
            )


def _started(run: _Run) -> float | None:
    """Return when the last member that is needed for a start was bound."""
    needed = run.request.gang_min or len(run.request.gang_leaf_counts)
    bound = sorted(run.bound.values())
    return bound[needed - 1] if len(bound) >= needed else None


def _outcome(run: _Run) -> str | None:
    """Return how it ended; by itself, if no row says otherwise."""
    if run.ended is None:
        return None
    return run.outcome if run.outcome not in (None, "running", "waiting") else WHOLE_OUTCOMES[0]
