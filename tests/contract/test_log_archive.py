"""Export and import of the log, on Postgres and on its twin in memory."""

import gzip
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from extender.cluster.journal import SERVICE
from extender.cluster.replay import Report, replay_epoch
from policy.errors import SettingsError
from state.history.runs import RunFilter
from state.log.archive.reader import Archive
from state.log.archive.transfer import Exported, Imported, export_log, import_log
from state.log.postgres import PostgresDecisions
from state.log.records import DecisionRecord, LoggedDocument, RowKind
from state.log.stretches import EpochStretch, Wanted
from tests.support.extender.logged_load import POLICY, a_log
from tests.support.state.histories import HOUR, NOON, Stores, some_facts, stores
from tests.support.state.records import a_decision
from tests.support.twins.log import MemoryDecisions

__all__ = ["stores"]

Store = MemoryDecisions | PostgresDecisions


def _row(number: int, *, epoch: int = 5, hours: float = 0, **fields: object) -> DecisionRecord:
    return a_decision(
        fields.pop("subject", "n1"),  # type: ignore[arg-type]  # a text
        service=SERVICE,
        epoch=epoch,
        sequence=number,
        at=NOON + hours * HOUR,
        kind=RowKind.NODE,
        **fields,
    )


async def _export(store: Store, path: Path, wanted: Wanted | None = None) -> Exported:
    return await export_log(
        store, path, service=SERVICE, wanted=wanted or Wanted(), on_progress=lambda *_: None
    )


async def _import(store: Store, path: Path) -> Imported:
    return await import_log(store, Archive(path), on_progress=lambda *_: None)


async def _all(store: Store) -> list[DecisionRecord]:
    return await store.recent(100_000, with_observations=True)


async def _decide_again(store: Store) -> list[Report]:
    found = await store.epochs(SERVICE, Wanted())
    return [await replay_epoch(store, epoch=one.epoch, last=one.last) for one in found]


async def test_what_was_exported_and_imported_is_decided_as_it_was(
    stores: Stores, tmp_path: Path
) -> None:
    load = await a_log()
    exported = await _export(load.store, tmp_path / "log")
    assert exported.rows == len(load.store.records)
    done = await _import(stores.decisions, tmp_path / "log")
    assert done == Imported(rows=exported.rows, new=exported.rows, refused=0)
    assert await _all(stores.decisions) == await _all(load.store)
    reports = await _decide_again(stores.decisions)
    assert [report.is_identical for report in reports] == [True, True]
    assert sum(report.decisions for report in reports) > 20
    assert await stores.decisions.document(POLICY.hash) == POLICY


async def test_the_same_file_twice_changes_nothing(stores: Stores, tmp_path: Path) -> None:
    load = await a_log(steps=60)
    await _export(load.store, tmp_path / "log")
    await _import(stores.decisions, tmp_path / "log")
    before = await _all(stores.decisions), await stores.decisions.terms()
    done = await _import(stores.decisions, tmp_path / "log")
    assert (done.rows, done.new, done.refused) == (len(load.store.records), 0, 0)
    assert (await _all(stores.decisions), await stores.decisions.terms()) == before
    # And the same rows are the same file.
    for name in ("again", "once-more"):
        await _export(stores.decisions, tmp_path / name)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "once-more").read_bytes()
    assert [*Archive(tmp_path / "again").rows()] == [*Archive(tmp_path / "log").rows()]


async def test_an_epoch_that_began_earlier_is_exported_from_its_first_row_on(
    stores: Stores, tmp_path: Path
) -> None:
    rows = [
        *(_row(number, hours=number) for number in (1, 2, 3)),
        *(_row(number, epoch=6, hours=3 + number) for number in (1, 2)),
        *(_row(number, epoch=7, hours=6 + number) for number in (1, 2)),
    ]
    await stores.decisions.insert(rows)
    wanted = Wanted(since=NOON + 2 * HOUR, until=NOON + 4 * HOUR)
    done = await _export(stores.decisions, tmp_path / "log", wanted)
    assert done.epochs == [
        EpochStretch(epoch=5, first=1, last=3, began_at=NOON + HOUR),
        EpochStretch(epoch=6, first=1, last=1, began_at=NOON + 4 * HOUR),
    ]
    assert [*Archive(tmp_path / "log").rows()] == rows[:4]


async def test_of_a_gang_there_are_the_epochs_that_it_was_in(
    stores: Stores, tmp_path: Path
) -> None:
    rows = [
        _row(1, hours=1),
        _row(1, epoch=6, hours=2),
        _row(2, epoch=6, hours=3, subject="team-a/bert"),
        _row(3, epoch=6, hours=4),
        a_decision("team-a/bert", at=NOON + HOUR),
        a_decision("team-a/other", at=NOON + HOUR),
    ]
    await stores.decisions.insert(rows)
    done = await _export(stores.decisions, tmp_path / "log", Wanted(subject="team-a/bert"))
    assert [(one.epoch, one.last) for one in done.epochs] == [(6, 2)]
    assert [*Archive(tmp_path / "log").rows()] == [rows[1], rows[2], rows[4]]


async def test_rows_without_an_epoch_are_those_of_the_time(stores: Stores, tmp_path: Path) -> None:
    document = {"inputs": {"policy": POLICY.hash}}
    rows = [
        a_decision(f"a/{hour}", at=NOON + hour * HOUR, documents=(POLICY,), **document)
        for hour in range(5)
    ]
    await stores.decisions.insert(rows)
    done = await _export(
        stores.decisions, tmp_path / "log", Wanted(since=rows[1].at, until=rows[3].at)
    )
    told = [*Archive(tmp_path / "log").rows()]
    assert [one.subject for one in told] == ["a/1", "a/2", "a/3"]
    assert [len(one.documents) for one in told] == [1, 0, 0], "the policy is in the file once"
    assert (done.rows, done.lacks_documents) == (3, 0)


async def test_a_document_that_is_gone_is_counted(stores: Stores, tmp_path: Path) -> None:
    await stores.decisions.insert([_row(1, inputs={"document": POLICY.hash})])
    done = await _export(stores.decisions, tmp_path / "log")
    assert (done.rows, done.lacks_documents) == (1, 1)


async def test_a_file_of_another_log_is_refused_and_changes_nothing(
    stores: Stores, tmp_path: Path
) -> None:
    other = MemoryDecisions()
    await other.insert([_row(1, epoch=9), a_decision("team-b/x")])
    await _export(other, tmp_path / "log")
    own = [_row(1, epoch=5), _row(2, epoch=5)]
    await stores.decisions.insert(own)
    with pytest.raises(SettingsError, match="is of another log than this database: it has epoch 9"):
        await _import(stores.decisions, tmp_path / "log")
    assert await _all(stores.decisions) == own[::-1]
    # The leader of the database still writes.
    assert await stores.decisions.insert([_row(3, epoch=5, hours=99)]) == []


async def test_an_epoch_of_the_same_number_that_began_at_another_time_is_refused(
    stores: Stores, tmp_path: Path
) -> None:
    other = MemoryDecisions()
    await other.insert([_row(1, hours=1)])
    await _export(other, tmp_path / "log")
    await stores.decisions.insert([_row(1)])
    with pytest.raises(SettingsError, match="is of another log"):
        await _import(stores.decisions, tmp_path / "log")


async def test_rows_that_a_log_lost_come_back_beside_its_own(
    stores: Stores, tmp_path: Path
) -> None:
    rows = [_row(number, hours=number) for number in (1, 2, 3)]
    complete = MemoryDecisions()
    await complete.insert(rows)
    await _export(complete, tmp_path / "log")
    await stores.decisions.insert([rows[0], rows[2]])
    done = await _import(stores.decisions, tmp_path / "log")
    assert (done.rows, done.new) == (3, 1)
    assert await stores.decisions.of_epoch(SERVICE, epoch=5) == rows


async def test_after_an_import_fencing_is_as_it_was(stores: Stores, tmp_path: Path) -> None:
    other = MemoryDecisions()
    await other.insert([_row(1, epoch=5, hours=1), _row(1, epoch=6, hours=2)])
    await _export(other, tmp_path / "log", Wanted(since=NOON + 2 * HOUR))
    await _import(stores.decisions, tmp_path / "log")
    late = [_row(1, epoch=5, hours=1), _row(2, epoch=5, hours=3)]
    assert await stores.decisions.insert(late) == late[1:]
    assert await stores.decisions.insert([_row(1, epoch=7, hours=4)]) == []


async def test_an_import_tells_the_history_nothing(stores: Stores, tmp_path: Path) -> None:
    other = MemoryDecisions()
    await other.insert([replace(_row(1), facts=some_facts())])
    await _export(other, tmp_path / "log")
    await _import(stores.decisions, tmp_path / "log")
    assert await stores.history.find(RunFilter(), 10) == []


async def test_a_damaged_file_changes_nothing(stores: Stores, tmp_path: Path) -> None:
    load = await a_log(steps=30)
    await _export(load.store, tmp_path / "log")
    text = gzip.decompress((tmp_path / "log").read_bytes())
    (tmp_path / "log").write_bytes(gzip.compress(text.replace(b"gang-2", b"gang-3", 1)))
    with pytest.raises(SettingsError, match="its checksum does not fit its rows"):
        await _import(stores.decisions, tmp_path / "log")
    assert await stores.decisions.is_empty()


async def test_an_export_of_nothing_can_be_imported(stores: Stores, tmp_path: Path) -> None:
    done = await _export(stores.decisions, tmp_path / "log")
    assert (done.rows, done.epochs) == (0, [])
    assert await _import(stores.decisions, tmp_path / "log") == Imported()


async def test_texts_of_every_kind_survive(stores: Stores, tmp_path: Path) -> None:
    document = LoggedDocument(kind="Cluster", content="a: 'ü\n\u2028\"'\n")
    row = _row(
        1,
        subject='ünï/\\"',
        reason="line\nline",
        details={"nested": {"ü": [None, 0.1, -0.0, 10**18]}},
        inputs={"document": document.hash},
        latency_seconds=0.123456789,
        documents=(document,),
    )
    await stores.decisions.insert([row])
    await _export(stores.decisions, tmp_path / "log")
    assert [*Archive(tmp_path / "log").rows()] == [row]
    first, *_ = gzip.decompress((tmp_path / "log").read_bytes()).splitlines()
    assert orjson.loads(first)["version"] == 1


async def test_many_pages_are_written_and_read(stores: Stores, tmp_path: Path) -> None:
    rows = [
        a_decision(f"a/{number}", at=NOON + timedelta(seconds=number // 7))
        for number in range(2500)
    ]
    await stores.decisions.insert(rows)
    done = await _export(stores.decisions, tmp_path / "log")
    assert done.rows == 2500
    keys = [one.key for one in Archive(tmp_path / "log").rows()]
    assert sorted(keys) == sorted(one.key for one in rows)
