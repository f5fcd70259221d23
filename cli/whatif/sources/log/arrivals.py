"""Arrivals of submissions and runs, and what is not known about them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cli.whatif.sources.log.joined import SLACK_SECONDS, Joined
from cli.whatif.sources.log.run_times import RunTimes
from cli.whatif.sources.log.runs import RecordedRun
from cli.whatif.sources.log.submissions import Asked
from cli.whatif.sources.played import divide, in_order
from kube.marks import GROUP_LABEL
from policy.submission import (
    DEFAULT_VC,
    ClassName,
    GangKey,
    GroupName,
    LeafType,
    UserName,
    VcName,
)
from timemachine.model import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time that is asked for, in seconds since 1970."""

    since: float
    until: float


@dataclass(slots=True, kw_only=True)
class Counts:
    """How many gangs are not known well."""

    never_ran: int = 0
    running: int = 0
    cut: int = 0
    without_submission: int = 0
    retried: int = 0
    at_beginning: int = 0
    waits: list[float] = field(default_factory=list)
    """How long gangs that count waited in reality."""


class ArrivalBuilder:
    """Builds arrivals, and counts what is not known about them."""

    def __init__(self, span: Span, run_times: RunTimes) -> None:
        self._span = span
        self._run_times = run_times
        self.counts = Counts()

    def build(self, joined: Iterable[Joined]) -> list[Arrival]:
        """Return the arrivals, in the order of submission."""
        found = (self._build(one.asked, one.run) for one in joined)
        return in_order([one for one in found if one is not None])

    def _build(self, asked: Asked | None, run: RecordedRun | None) -> Arrival | None:
        if run is None:
            assert asked is not None
            if asked.at < self._span.since:
                return None
            run = _of_submission(asked)
        submitted = self._submitted(asked, run)
        if submitted is None:
            return None
        is_counted = submitted >= self._span.since and run.asked >= self._span.since - SLACK_SECONDS
        self._count(asked, run, is_counted=is_counted)
        seconds, is_predicted = self._seconds(run)
        namespace, _, name = run.gang.partition("/")
        groups = asked.groups if asked is not None else (run.group,) if run.group else ()
        labels = asked.labels if asked is not None else run.labels
        named = labels.get(GROUP_LABEL)
        return Arrival(
            gang=GangKey(namespace, name, run.owner),
            submitted=submitted,
            run_seconds=seconds,
            is_predicted=is_predicted,
            is_counted=is_counted,
            sizes=run.sizes,
            user=UserName(asked.user if asked is not None else run.user),
            requested_class=ClassName(
                asked.requested_class if asked is not None else run.requested_class
            ),
            gang_min=run.gang_min,
            groups=tuple(map(GroupName, groups)),
            charged_group=GroupName(named) if named else None,
            vc=VcName((asked.vc if asked is not None else run.vc) or DEFAULT_VC),
            leaf_type=_leaf_type(asked.leaf_type if asked is not None else run.leaf_type),
            labels=labels,
            cpu_millis=asked.cpu_millis if asked is not None else 0,
            memory_bytes=asked.memory_bytes if asked is not None else 0,
            limit_seconds=run.limit_seconds,
            expected_seconds=run.expected_seconds,
            checkpoint_cost=run.checkpoint_cost,
        )

    def _submitted(self, asked: Asked | None, run: RecordedRun) -> float | None:
        """Return when a gang arrives; None if it is not of the time that is asked for.

        A gang that ran at the beginning arrives when it started, so that its cells are in use. One
        that waited then arrives at the beginning: those that it waited for are not played.
        """
        since, until = self._span.since, self._span.until
        is_same = asked is not None and abs(asked.at - run.asked) <= SLACK_SECONDS
        moment = asked.at if asked is not None and is_same else run.asked
        if moment >= since:
            return moment if moment <= until else None
        started = run.running_since
        if started is None or started >= since:
            return since if run.ended is None or run.ended > since else None
        return started if run.ended is None or run.ended > since else None

    def _seconds(self, run: RecordedRun) -> tuple[float, bool]:
        """Return how long a gang runs, and whether that is predicted."""
        started = run.running_since
        if started is None:
            return self._run_times.predict(run), True
        if run.ended is None:
            return self._run_times.predict(run, elapsed=max(0.0, self._span.until - started)), True
        taken = max(0.0, run.ended - started)
        return (
            (self._run_times.predict(run, elapsed=taken), True) if run.was_cut else (taken, False)
        )

    def _count(self, asked: Asked | None, run: RecordedRun, *, is_counted: bool) -> None:
        counts = self.counts
        counts.at_beginning += not is_counted
        counts.never_ran += run.running_since is None
        counts.running += run.running_since is not None and run.ended is None
        counts.cut += run.was_cut
        counts.without_submission += asked is None
        counts.retried += asked is not None and asked.retries > 0
        if is_counted and run.started is not None:
            counts.waits.append(max(0.0, run.started - run.asked))


def _leaf_type(name: str | None) -> LeafType | None:
    return LeafType(name) if name else None


def _of_submission(asked: Asked) -> RecordedRun:
    """Return a run that has not begun, of a gang of which nothing else is known."""
    return RecordedRun(
        gang=asked.gang,
        run=f"{asked.at:.6f}",
        asked=asked.at,
        sizes=divide(asked.leaf_cells, members=min(asked.members, asked.leaf_cells)),
        user=asked.user,
        vc=asked.vc,
        requested_class=asked.requested_class,
        leaf_type=asked.leaf_type,
        labels=asked.labels,
    )


def notes_of(counts: Counts) -> Iterator[str]:
    """Say what is not known about recorded gangs, with numbers."""
    for number, what, so in (
        (counts.never_ran, "never ran", "they are played as if their owners had waited"),
        (counts.running, "still ran at the end", "their run times are predicted"),
        (
            counts.cut,
            "ended for other gangs or with their nodes, and did not begin again",
            "their run times are predicted",
        ),
        (
            counts.at_beginning,
            "ran or waited at the beginning",
            "they only fill the cluster and are in no figure",
        ),
        (
            counts.without_submission,
            "have no admission decision in the log",
            "of their users' groups only the one that was charged is known",
        ),
        (counts.retried, "were refused and submitted again", "each is played once"),
    ):
        if number:
            yield f"Gangs that {what}: {number:,}; {so}."
