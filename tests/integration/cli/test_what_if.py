"""`cellgate what-if` on a real database."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from cli.commands import build_parser
from cli.log.progress import Progress
from cli.whatif.sources.log.source import read_database
from policy.cluster.document import LiveNode
from policy.store import build_policy
from service.exit_codes import Exit
from service.process import Stop
from state.database.database import open_database
from state.log.postgres import PostgresDecisions
from state.log.stretches import Wanted
from state.nodes.postgres import PostgresSeenNodes
from tests.support.extender.mixed_load import NODES, node_of
from tests.support.extender.recorded_day import MORNING, RecordedDay
from tests.support.policy.cluster_texts import derived_text
from tests.support.policy.documents import HEAD
from tests.support.state.charges import TERM

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


async def test_nodes_whose_rows_are_deleted_are_those_that_are_there(database_url: str) -> None:
    await _record(database_url)
    async with open_database(database_url, application_name="tests") as database:
        await database.pool.execute("DELETE FROM decisions WHERE epoch = 2 AND sequence < 6")
        here = [
            LiveNode(name=name, labels=(node := node_of(name)).labels, leaf_counts=node.leaf_counts)
            for name in NODES[:7]
        ]
        await PostgresSeenNodes(database.pool).observe(here, gone=[], term=TERM)
    wanted = Wanted(since=MORNING, until=MORNING + timedelta(hours=2))
    found = await read_database(database_url, wanted, Progress())
    assert [(node.name, node.labels) for node in found.nodes] == [
        (node.name, node.labels) for node in here
    ]


async def test_rules_that_differ_are_tried_on_a_recorded_day(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _record(database_url)
    rules, html = tmp_path / "rules.yaml", tmp_path / "report.html"
    rules.write_text(f"{HEAD}Rules\nrules: [{{user: '^alice$', then: fail}}]\n")
    flags = ["--policy", str(rules), "--html", str(html), "--json"]
    arguments = ["what-if", "--database-url", database_url, *flags]
    options = build_parser({}).parse_args(arguments)
    assert await options.command(options, Stop()) is Exit.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["before"]["refused"], found["after"]["refused"]) == (0, 1)
    (refused,) = [one for one in found["others"] if one["kind"] == "refused"]
    assert (refused["gang"], refused["user"]) == ("lab/bert", "alice")
    assert "rule 1" in refused["after"]
    assert "lab/bert" in html.read_text()
