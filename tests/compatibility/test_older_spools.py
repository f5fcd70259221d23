"""The spools of an earlier commit that was killed while Postgres was away: nothing is lost."""

from pathlib import Path

import pytest

from cli.stores import open_log
from extender.cluster.replay import replay_epoch
from state.database.database import Database
from state.log.postgres import PostgresDecisions
from tests.compatibility.written import Written


@pytest.mark.parametrize(("service", "is_mirrored"), [("extender", False), ("webhook", True)])
async def test_a_spool_is_drained_into_the_database(
    older_database: Database,
    written: Written,
    tmp_path: Path,
    service: str,
    is_mirrored: bool,
) -> None:
    expected = written.answers["drained"][service]
    spool = written.copy_spool(service, tmp_path / service)
    async with open_log(older_database, spool=spool, is_mirrored=is_mirrored) as log:
        assert log.pending == len(expected)
        await log.flush()
        assert log.written == len(expected)
        assert not any(log.dropped_by_reason.values()), log.dropped_by_reason
    newest = await PostgresDecisions(older_database.pool).recent(
        len(expected), with_observations=True
    )
    assert [[str(one.key), one.subject, one.outcome] for one in reversed(newest)] == expected


async def test_an_epoch_whose_end_was_in_the_spool_is_decided_as_it_was(
    older_database: Database, written: Written, tmp_path: Path
) -> None:
    spool = written.copy_spool("extender", tmp_path / "extender")
    async with open_log(older_database, spool=spool) as log:
        await log.flush()
    epoch = written.last_epoch
    report = await replay_epoch(PostgresDecisions(older_database.pool), epoch=epoch)
    assert report.differences == []
    assert report.is_identical
    before = written.answers["replays"][str(epoch)]["rows"]
    assert report.rows == before + len(written.answers["drained"]["extender"])
