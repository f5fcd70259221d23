"""Admission decisions that an earlier commit has logged: all are made again, and are the same."""

from pathlib import Path

import pytest

from state.database.database import Database
from state.log.archive.reader import Archive
from state.log.postgres import PostgresDecisions
from state.log.stretches import with_documents
from tests.compatibility.written import Written
from webhook.records.replay import AdmissionReplay

_LOGS = sorted(Path(__file__).with_name("logs").glob("admissions-*.jsonl.gz"))


@pytest.mark.parametrize("path", _LOGS, ids=lambda path: path.name)
def test_every_decision_is_made_again(path: Path) -> None:
    replay = AdmissionReplay()
    for record in Archive(path).rows():
        replay.feed(record)
    told = "raise policy.admission.logged.WORDING if only a sentence has changed"
    assert replay.report.differences == [], told
    assert replay.report.decisions > 100


async def test_rows_that_lack_inputs_are_counted_and_are_no_differences(
    older_database: Database, written: Written
) -> None:
    store, replay = PostgresDecisions(older_database.pool), AdmissionReplay()
    for record in await store.recent(10_000):
        replay.feed(await with_documents(store, record))
    rows = [row for row in written.tables["decisions"] if row["service"] == "webhook"]
    admissions = [row for row in rows if row["kind"] == "admission"]
    assert replay.report.older == sum("policy" in row["inputs"] for row in admissions) > 10
    assert replay.report.older + replay.report.objects == len(admissions)
    assert replay.report.is_identical
