"""The log of an earlier commit: every row is read, and every epoch is decided as it was."""

from datetime import datetime
from typing import Any

from extender.cluster.journal import SERVICE
from extender.cluster.replay import replay_epoch
from state.database.database import Database
from state.log.positions import END, Position
from state.log.postgres import PostgresDecisions
from state.log.records import DecisionRecord
from tests.compatibility.written import Written

_MOST = 10_000


async def test_every_row_is_read_as_it_was_written(
    older_database: Database, written: Written
) -> None:
    store = PostgresDecisions(older_database.pool)
    read = await store.recent(_MOST, with_observations=True)
    assert [_shown(record) for record in reversed(read)] == [
        {**row, "at": datetime.fromisoformat(row["at"])} for row in written.tables["decisions"]
    ]


def _shown(record: DecisionRecord) -> dict[str, Any]:
    """The columns that the earlier commit had."""
    columns = (
        "at", "service", "kind", "subject", "pod_uid", "outcome", "reason", "policy_version",
        "epoch", "sequence", "latency_seconds", "details", "inputs",
    )  # fmt: skip
    return {"key": str(record.key), **{name: getattr(record, name) for name in columns}}


async def test_pages_hold_every_row_once(older_database: Database, written: Written) -> None:
    store = PostgresDecisions(older_database.pool)
    keys: list[str] = []
    before = END
    while page := await store.recent(50, with_observations=True, before=before):
        keys += [str(record.key) for record in page]
        before = Position.of(page[-1])
    assert keys[::-1] == [row["key"] for row in written.tables["decisions"]]


async def test_rows_are_found_by_gang_and_by_pod(
    older_database: Database, written: Written
) -> None:
    store = PostgresDecisions(older_database.pool)
    rows = written.tables["decisions"]
    [first, *_] = await store.recent(_MOST, subject="vision/bert")
    assert first.subject == "vision/bert"
    for uid in {row["pod_uid"] for row in rows if row["pod_uid"]}:
        told = await store.of_pod(uid, _MOST)
        assert len(told) == sum(row["pod_uid"] == uid for row in rows)


async def test_documents_that_rows_refer_to_are_found(
    older_database: Database, written: Written
) -> None:
    store = PostgresDecisions(older_database.pool)
    for row in written.tables["documents"]:
        document = await store.document(row["hash"])
        assert document is not None
        assert (document.hash, document.content) == (row["hash"], row["content"])


async def test_every_epoch_is_decided_as_it_was(older_database: Database, written: Written) -> None:
    store = PostgresDecisions(older_database.pool)
    for epoch, expected in written.answers["replays"].items():
        report = await replay_epoch(store, epoch=int(epoch))
        assert report.differences == []
        assert report.is_identical
        assert {"rows": report.rows, "decisions": report.decisions} == expected


async def test_the_history_covers_what_the_engine_can_decide(written: Written) -> None:
    """What the other tests of this file prove depends on it."""
    rows = [row for row in written.tables["decisions"] if row["service"] == SERVICE]
    outcomes = {row["outcome"] for row in rows}
    assert {"placed", "no-room", "vc-full", "too-large", "bad-cells", "node-not-offered"} < outcomes
    assert {"preempting", "gang-full", "gang-mismatch", "unknown-vc", "reranked"} < outcomes
    assert {"found", "released", "recovered", "ending", "overdue", "expired", "gone"} < outcomes
    decisions = [row["details"].get("decision") for row in rows]
    assert any(one["downgraded"] for one in decisions if one and one["is"] == "place")
