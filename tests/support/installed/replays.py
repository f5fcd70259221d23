"""The log that a real control plane has written, decided again."""

from collections import Counter

from extender.cluster.journal import SERVICE
from extender.cluster.replay import Report, replay_epoch
from state.database.database import open_database
from state.log.postgres import PostgresDecisions
from state.log.stretches import Wanted

_NAME = "replay"


async def check_replays(database_url: str) -> Counter[str]:
    """Decide the whole log again: all must be identical. Returns the decisions by kind."""
    async with open_database(database_url, application_name=_NAME) as database:
        reader = PostgresDecisions(database.pool)
        terms = await reader.epochs(SERVICE, Wanted())
        reports = [await replay_epoch(reader, epoch=one.epoch) for one in terms]
    assert [told for report in reports for told in _told(report)] == []
    return sum((report.of_kind for report in reports), Counter[str]())


def _told(report: Report) -> list[str]:
    """Say what is wrong with an epoch, shortly."""
    told = [f"epoch {report.epoch}: {one}" for one in report.missing]
    if report.stopped is not None:
        told.append(f"epoch {report.epoch}: {report.stopped}")
    for one in report.differences[:1]:
        inputs = dict(one.record.inputs)
        told.append(
            f"epoch {report.epoch}, row {one.sequence}, {one.record.kind} of {one.subject}: "
            f"logged {one.logged}, replayed {one.replayed}, by {inputs}"
        )
    return told
