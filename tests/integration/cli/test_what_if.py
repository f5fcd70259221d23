"""`cellgate what-if` on a real database."""

from datetime import timedelta

from cli.log.progress import Progress
from cli.whatif.sources.log.source import read_database
from policy.store import build_policy
from state.database.database import open_database
from state.log.postgres import PostgresDecisions
from state.log.stretches import Wanted
from tests.support.extender.mixed_load import NODES
from tests.support.extender.recorded_day import MORNING, RecordedDay
from tests.support.policy.cluster_texts import derived_text

_T = MORNING.timestamp()


async def _record(url: str) -> None:
    """Write rows, documents and facts, as the services do."""
    async with open_database(url, application_name="tests") as database:
        log = PostgresDecisions(database.pool)
        day = RecordedDay(cluster=derived_text(a=4, b=3), database=log)
        day.submit("early", 8, user="carol", vc="b")
        day.start("early", 0)
        day.time.advance(seconds=60)
        day.submit("bert", 8, 4)
        day.time.advance(seconds=30)
        day.start("bert", 1, 2)
        day.refuse("big", 8, 8)
        day.lead()
        day.time.advance(seconds=600)
        day.end("bert")
        day.end("early")
        await day.log.flush()


async def test_a_day_is_read_from_log_and_history(database_url: str) -> None:
    await _record(database_url)
    wanted = Wanted(since=MORNING + timedelta(seconds=50), until=MORNING + timedelta(hours=2))
    found = await read_database(database_url, wanted, Progress())
    early, bert, big = found.arrivals
    assert (early.gang.name, early.submitted, early.is_counted) == ("early", _T, False)
    assert (early.user, early.vc, early.run_seconds) == ("carol", "b", 690.0)
    assert (bert.submitted, bert.run_seconds, bert.sizes) == (_T + 60.0, 600.0, (8, 4))
    assert (bert.groups, bert.is_predicted) == (("staff",), False)
    assert (big.user, big.sizes, big.is_predicted) == ("bob", (8, 8), True)
    assert big.run_seconds > 0.0
    assert [node.name for node in found.nodes] == NODES
    cluster = build_policy(found.texts).cluster
    assert cluster is not None
    assert cluster.vc_names == ("a", "b")
    assert found.mean_wait == 30.0
