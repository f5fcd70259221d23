"""`cellgate replay`: decides the epochs of a time again, and prints whether all is the same."""

from argparse import Namespace
from collections.abc import Sequence

import orjson

from cli.log import report as reports
from cli.log.progress import Progress
from cli.log.report import EpochResult
from cli.log.sources import RowSource, open_source
from cli.log.wanted import read_wanted
from extender.cluster.replay import Difference, replay_rows
from policy.errors import SettingsError
from service.exit_codes import Exit
from service.garbage import settle_collector
from service.process import Stop
from state.log.records import DecisionRecord
from state.log.stretches import EpochStretch, Wanted


async def replay(options: Namespace, _: Stop) -> Exit:
    """Replay each epoch of the wanted time; exit code 1 if one of them is not identical."""
    wanted, progress = read_wanted(options), Progress()
    results: list[EpochResult] = []
    settle_collector()
    async with open_source(options, progress) as source:
        for stretch in await _find_epochs(source, wanted):
            results.append(await _replay_one(source, stretch, wanted, progress))
            progress.clear()
            if not options.json:
                print("\n".join(reports.format_epoch(results[-1])), flush=True)
    if options.json:
        print(orjson.dumps(reports.to_json(results), option=orjson.OPT_INDENT_2).decode())
    else:
        print("\n".join(reports.format_summary(results)))
    return Exit.OK if all(one.report.is_identical for one in results) else Exit.FAILED


async def _find_epochs(source: RowSource, wanted: Wanted) -> Sequence[EpochStretch]:
    found = await source.epochs(wanted)
    if not found:
        about = f" about {wanted.subject}" if wanted.subject is not None else ""
        raise SettingsError(f"the log has no rows of the extender{about} in that time")
    return found


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
