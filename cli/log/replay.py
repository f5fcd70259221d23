"""`cellgate replay`: decides the epochs of a time again, and prints whether all is the same."""

from argparse import Namespace
from collections.abc import Sequence

import orjson

from cli.log import report as reports
from cli.log.admissions import format_admissions
from cli.log.progress import Progress
from cli.log.report import EpochResult
from cli.log.sources import RowSource, is_wanted, open_source
from cli.log.wanted import read_wanted
from extender.cluster.replay import Difference, replay_rows
from policy.errors import SettingsError
from service.exit_codes import Exit
from service.garbage import settle_collector
from service.process import Stop
from state.log.records import DecisionRecord
from state.log.stretches import EpochStretch, Wanted
from webhook.records.replay import AdmissionReplay, AdmissionReport


async def replay(options: Namespace, _: Stop) -> Exit:
    """Replay the epochs and admissions of the wanted time; exit code 1 unless all are identical."""
    wanted, progress = read_wanted(options), Progress()
    results: list[EpochResult] = []
    settle_collector()
    async with open_source(options, progress) as source:
        for stretch in await source.epochs(wanted):
            results.append(await _replay_one(source, stretch, wanted, progress))
            progress.clear()
            if not options.json:
                print("\n".join(reports.format_epoch(results[-1])), flush=True)
        admissions = await _replay_admissions(source, wanted, progress)
        progress.clear()
    _check_any(results, admissions, wanted)
    if options.json:
        told = reports.to_json(results, admissions)
        print(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
    else:
        lines = (*format_admissions(admissions), *reports.format_summary(results, admissions))
        print("\n".join(lines))
    is_identical = all(one.report.is_identical for one in results) and admissions.is_identical
    return Exit.OK if is_identical else Exit.FAILED


def _check_any(results: Sequence[EpochResult], admissions: AdmissionReport, wanted: Wanted) -> None:
    if not results and not admissions.rows:
        about = f" about {wanted.subject}" if wanted.subject is not None else ""
        raise SettingsError(f"the log has no decisions{about} in that time")


async def _replay_admissions(
    source: RowSource, wanted: Wanted, progress: Progress
) -> AdmissionReport:
    """Decide wanted admissions again."""
    replay = AdmissionReplay()
    async for record in source.beside(wanted):
        if is_wanted(record, wanted):
            replay.feed(record)
        else:
            replay.learn(record)
        progress(f"replaying admissions of {record.at:%Y-%m-%d %H:%M}")
    return replay.report


async def _replay_one(
    source: RowSource, stretch: EpochStretch, wanted: Wanted, progress: Progress
) -> EpochResult:
    result = EpochResult(
        subject=wanted.subject, began_early=stretch.began_at < wanted.since, first=stretch.first
    )

    def note(record: DecisionRecord, difference: Difference | None) -> None:
        result.note(record, difference)
        part = (record.sequence or 0) / max(stretch.last, 1)
        progress(f"replaying epoch {stretch.epoch}", part)

    result.report = await replay_rows(source.rows(stretch), epoch=stretch.epoch, on_row=note)
    return result
