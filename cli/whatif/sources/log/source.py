"""Reads arrivals from a database, or from an exported file without any database."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import UUID

from cli.log.progress import Progress
from cli.log.wanted import POOL, check_exists
from cli.whatif.sources.log.arrivals import ArrivalBuilder, Span, notes_of
from cli.whatif.sources.log.file_runs import FileRuns
from cli.whatif.sources.log.joined import join
from cli.whatif.sources.log.observed import Observed
from cli.whatif.sources.log.run_times import RunTimes
from cli.whatif.sources.log.runs import RecordedRun, as_past, of_facts, without_repeats
from cli.whatif.sources.log.submissions import Asked, read_submission, without_retries
from cli.whatif.sources.played import Played
from extender.cluster.journal import SERVICE as EXTENDER
from extender.forecasts.past_runs import read_past_runs
from policy.classes import NO_CLASSES, Classes
from policy.errors import SettingsError, SpecError
from policy.store import build_policy
from policy.wording import moment
from state.database.database import open_database
from state.database.migrator import check_schema
from state.history.predictions import PastRun
from state.history.runs import PostgresHistory, RunFilter
from state.log.archive.reader import Archive
from state.log.archive.transfer import check_archive
from state.log.positions import Position
from state.log.postgres import PostgresDecisions
from state.log.records import DecisionRecord, RowKind
from state.log.stretches import Wanted
from state.nodes.postgres import PostgresSeenNodes

_PAGE: Final = 1000
_OBSERVED: Final = (RowKind.NODE, RowKind.DOCUMENT)


class _Collected:
    """What was read, whatever it was read from."""

    def __init__(self) -> None:
        self.observed = Observed()
        self.submissions: list[Asked] = []
        self.unreadable = 0
        """Refusals that do not say what was asked for."""

    def note(self, record: DecisionRecord) -> None:
        self.observed.note(record)
        asked = read_submission(record)
        if asked is not None:
            self.submissions.append(asked)

    def classes(self) -> Classes:
        with suppress(SpecError):  # told when the policies are built
            return build_policy(self.observed.texts()).classes
        return NO_CLASSES


async def read_database(url: str, wanted: Wanted, progress: Progress) -> Played:
    """Read a stretch of the log and the history of runs in it."""
    check_exists(url)
    async with open_database(url, application_name="cellgate what-if", settings=POOL) as database:
        await check_schema(database.pool)
        log, history = PostgresDecisions(database.pool), PostgresHistory(database.pool)
        collected = _Collected()
        await _read_webhook(log, wanted, collected, progress)
        if not await _read_extender(log, wanted, collected):
            collected.observed.use(await PostgresSeenNodes(database.pool).present())
        for one in collected.observed.wanted_documents:
            document = await log.document(one)
            if document is not None:
                collected.observed.documents[one] = document
        runs = await _read_runs(history, wanted, progress)
        past = await read_past_runs(history)
    return _played("decision log", wanted, collected, runs=runs, past=past)


async def _read_webhook(
    log: PostgresDecisions, wanted: Wanted, collected: _Collected, progress: Progress
) -> None:
    after = Position(wanted.since, UUID(int=0))
    while page := await log.beside_epochs(EXTENDER, wanted, after=after, limit=_PAGE):
        for record in page:
            collected.note(record)
        after = Position.of(page[-1])
        progress(f"reading submissions of {page[-1].at:%Y-%m-%d %H:%M}")


async def _read_extender(log: PostgresDecisions, wanted: Wanted, collected: _Collected) -> bool:
    """Read what the last leader of the time observed: at first it was told of all nodes.

    Returns False if the log does not have its first rows any more.
    """
    epochs = await log.epochs(EXTENDER, wanted)
    if not epochs:
        return False
    last = epochs[-1]
    first = 1
    while page := await log.of_kinds(
        EXTENDER, _OBSERVED, epoch=last.epoch, first=first, last=last.last, limit=_PAGE
    ):
        for record in page:
            collected.observed.note(record)
        first = (page[-1].sequence or 0) + 1
    return last.first == 1


async def _read_runs(
    history: PostgresHistory, wanted: Wanted, progress: Progress
) -> list[RecordedRun]:
    found: list[RecordedRun] = []
    asked = RunFilter(since=wanted.since, until=wanted.until)
    page = await history.find(asked, _PAGE)
    while page:
        runs = (of_facts(one.facts) for one in page)
        found += [run for run in runs if run is not None]
        progress(f"reading runs of {moment(page[-1].position.asked_at)}")
        page = await history.find(asked, _PAGE, before=page[-1].position)
    return found


async def read_file(path: Path, wanted: Wanted, progress: Progress) -> Played:
    """Read an exported file. Raises SettingsError if it is damaged or something else."""
    collected, runs, archive = _Collected(), FileRuns(), Archive(path)
    if archive.header().is_masked:
        raise SettingsError(
            f"{path} is masked: its rules, labels and leaf types cannot be read; use a file that "
            "was exported without --mask"
        )

    def note(record: DecisionRecord) -> None:
        if record.at > wanted.until:
            return
        runs.note(record)
        collected.note(record)

    contents = await check_archive(archive, on_progress=progress, on_row=note)
    since = contents.header.since
    if since is not None:
        wanted = _later(wanted, datetime.fromisoformat(since))
    found = list(runs.runs(collected.classes()))
    past = [one for one in map(as_past, found) if one is not None]
    return _played(str(path), wanted, collected, runs=found, past=past)


def _later(wanted: Wanted, since: datetime) -> Wanted:
    return Wanted(since=max(wanted.since, since), until=wanted.until)


def _played(
    source: str,
    wanted: Wanted,
    collected: _Collected,
    *,
    runs: Sequence[RecordedRun],
    past: Sequence[PastRun],
) -> Played:
    span = Span(since=wanted.since.timestamp(), until=wanted.until.timestamp())
    submissions = without_retries(collected.submissions)
    builder = ArrivalBuilder(span, RunTimes(past))
    arrivals = builder.build(join(submissions, without_repeats(runs)))
    if not arrivals:
        raise SettingsError(f"{source}: no gang was submitted in that time")
    observed, waits = collected.observed, builder.counts.waits
    begin = max(span.since, arrivals[0].submitted)
    return Played(
        source=f"{source}, {moment(begin)} to {moment(_end(wanted))}",
        arrivals=arrivals,
        texts=observed.texts(),
        nodes=[observed.nodes[name] for name in sorted(observed.nodes)],
        notes=(*notes_of(builder.counts), *_notes(observed)),
        mean_wait=sum(waits) / len(waits) if waits else None,
    )


def _end(wanted: Wanted) -> float:
    return min(wanted.until, datetime.now(UTC)).timestamp()


def _notes(observed: Observed) -> Iterator[str]:
    if len(observed.policies) > 1:
        versions = f"{len(observed.policies)} versions of the policies were in force"
        yield f"{versions}: all gangs are played under the last one."
    if not observed.nodes:
        return
    nodes = f"The cluster has the {len(observed.nodes):,} nodes of the end"
    yield f"{nodes}: none fails, joins or leaves."
    unhealthy = sum(not node.is_healthy for node in observed.nodes.values())
    if unhealthy:
        yield f"{unhealthy:,} of them were not healthy then, and are not used."
