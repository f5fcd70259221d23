"""`cellgate replay --file`: what it prints, and that an engine that decides otherwise is found."""

import asyncio
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from cli.log import progress as progress_of_work
from cli.main import main
from extender.cells.decide.decider import Decider
from extender.cells.engine import Engine
from extender.cells.state.ranking import Ranking
from extender.cluster.journal import SERVICE
from extender.cluster.replay import replay_rows
from service.exit_codes import Exit
from state.log.archive.transfer import export_log
from state.log.records import DecisionRecord, LoggedDocument
from state.log.stretches import Wanted, read_epoch
from tests.support.extender.logged_load import a_log
from tests.support.twins.log import MemoryDecisions


def write(
    path: Path, *, change: Callable[[MemoryDecisions], None] = lambda _: None, **load: Any
) -> Path:
    """Write a log of two epochs to a file, changed before it is written."""

    async def export() -> None:
        store = (await a_log(**load)).store
        change(store)
        await export_log(store, path, service=SERVICE, wanted=Wanted(), on_progress=lambda *_: None)

    asyncio.run(export())
    return path


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine even short work takes long enough to show progress."""
    monkeypatch.setattr(progress_of_work, "_FIRST_SECONDS", 3600.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "log")


def _replay(*arguments: Path | str) -> Exit:
    return main(["replay", *map(str, arguments)], {"XDG_DATA_HOME": "/none"})


def test_a_log_is_decided_as_it_was(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _replay("--file", path) is Exit.OK
    told, progress = capsys.readouterr()
    first, second, *rest = told.splitlines()
    assert first.startswith("epoch 1, ")
    assert first.endswith(" decisions: identical")
    assert second.startswith("epoch 2, ")
    assert rest[0].startswith("admission, ")
    assert rest[0].endswith(": 2 rows, 0 decisions: not decided again")
    assert rest[1] == "  2 rows not decided again (written by an earlier version)"
    assert rest[2].startswith("identical: ")
    assert rest[3:] == [
        "not decided again yet: which gang is planned next, when reservations are looked at, and "
        "why they end"
    ]
    assert progress == ""


def _first_place(store: MemoryDecisions, *, epoch: int = 2) -> tuple[int, DecisionRecord]:
    return next(
        (index, record)
        for index, record in enumerate(store.records)
        if record.epoch == epoch and record.details.get("decision", {}).get("is") == "place"
    )


def _tamper(store: MemoryDecisions) -> None:
    index, record = _first_place(store)
    decision = {**record.details["decision"], "leafCells": [99]}
    store.records[index] = replace(record, details={**record.details, "decision": decision})


def test_the_first_difference_is_shown_with_what_it_depended_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _replay("--file", write(tmp_path / "log", change=_tamper)) is Exit.FAILED
    told = capsys.readouterr().out
    assert " decisions: identical\n" in told
    assert " decisions: 1 differ\n" in told
    assert "\n  first difference: row " in told
    assert '\n    logged:   place {"node":"node-' in told
    assert '"leafCells":[99]' in told
    assert "\n    unequal: leafCells\n" in told
    assert '\n      request: {"member":"gang-' in told
    assert "\n      candidates: " in told
    assert "\n      cluster document: " in told
    assert ", put in force by row " in told
    assert "\n      known: 8 nodes, " in told
    assert "\nnot identical: 1 of " in told


def _lose(store: MemoryDecisions) -> None:
    store.records[:] = [
        one for one in store.records if (one.epoch, one.sequence) not in {(1, 30), (1, 31)}
    ]


def test_missing_rows_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _replay("--file", write(tmp_path / "log", change=_lose)) is Exit.FAILED
    told = capsys.readouterr().out
    gap = "  rows 30 to 31 are missing: later decisions may differ for that reason alone\n"
    assert gap in told
    assert "2 rows missing" in told


def _lose_document(store: MemoryDecisions) -> None:
    store.documents.clear()


def _break(store: MemoryDecisions) -> None:
    index, record = _first_place(store)
    store.records[index] = replace(record, inputs={**record.inputs, "now": "soon"})


def _bloat(store: MemoryDecisions) -> None:
    index, record = _first_place(store)
    request = {**record.inputs["request"], "gangLeafCounts": [[1, 10**12]]}
    store.records[index] = replace(record, inputs={**record.inputs, "request": request})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_lose_document, "ValueError: the log does not have document"),
        (_break, "TypeError: "),
        (_bloat, "ValueError: a gang has more than 1,000,000 members"),
    ],
)
def test_a_row_that_cannot_be_replayed_is_told_and_is_no_crash(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[MemoryDecisions], None],
    why: str,
) -> None:
    assert _replay("--file", write(tmp_path / "log", change=change)) is Exit.FAILED
    told = " ".join(capsys.readouterr().out.split())
    assert f"cannot be replayed: {why}" in told
    assert "not replayed to the end" in told


def test_json_has_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log", change=_tamper)
    assert _replay("--file", path, "--json") is Exit.FAILED
    told = json.loads(capsys.readouterr().out)
    assert told["identical"] is False
    assert [(one["epoch"], one["identical"]) for one in told["epochs"]] == [(1, True), (2, False)]
    (difference,) = told["epochs"][1]["differences"]
    assert difference["logged"]["leafCells"] == [99]
    assert difference["replayed"]["leafCells"] != [99]
    assert difference["known"]["nodes"] == 8
    assert len(difference["known"]["document"]) == 64
    assert len(told["notDecidedAgain"]) == 2


def test_of_one_gang_its_epochs_and_its_decisions_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subjects: list[str] = []

    def change(store: MemoryDecisions) -> None:
        _tamper(store)
        subjects.append(_first_place(store)[1].subject)

    path = write(tmp_path / "log", change=change)
    assert _replay("--file", path, "--subject", subjects[0]) is Exit.FAILED
    assert f"  {subjects[0]}: " in capsys.readouterr().out
    assert _replay("--file", path, "--subject", "lab/nobody") is Exit.USAGE
    assert capsys.readouterr().err == (
        "cellgate: the log has no decisions about lab/nobody in that time\n"
    )


def test_an_epoch_that_began_earlier_is_decided_from_its_first_row_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times: list[Any] = []

    def note(store: MemoryDecisions) -> None:
        times.extend(record.at for record in store.records if record.epoch == 2)

    path = write(tmp_path / "log", change=note)
    middle = times[len(times) // 2]
    assert _replay("--file", path, "--from", middle.isoformat()) is Exit.OK
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("epoch 2, ")
    assert f" {len(times):,} rows" in first
    assert second == "  it began before --from, so it was decided from its first row on"
    assert _replay("--file", path, "--to", middle.isoformat()) is Exit.OK
    told = capsys.readouterr().out
    assert f" {len(times):,} rows" not in told
    assert told.startswith("epoch 1, ")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "--database-url or --file is required"),
        (["--file", "/none"], "cannot read /none: there is no such file"),
        (["--file", "LOG", "--from", "soon"], "--from must be a time such as"),
        (["--file", "LOG", "--from", "1h", "--to", "2h"], "--from is later than --to"),
        (["--file", "LOG", "--to", "2000-01-01"], "the log has no decisions in that time"),
        (["--database-url", "embedded:/none"], "there is no database in /none"),
    ],
)
def test_a_wrong_call_is_one_line(
    path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    assert _replay(*[str(path) if one == "LOG" else one for one in arguments]) is Exit.USAGE
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("cellgate: ")
    assert why in told.err
    assert told.err.count("\n") == 1


def test_a_damaged_file_is_refused_before_anything_is_decided(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:-200]))
    assert _replay("--file", path) is Exit.USAGE
    told = capsys.readouterr()
    assert told.out == ""
    assert "is incomplete" in told.err


def _anywhere(self: Decider, ask: Any, _: Any) -> Any:
    return self._chains.fit_in_any(ask)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _no_candidates(*_: Any, **__: Any) -> list[Any]:
    return []


WRONG: dict[str, tuple[type, str, Any]] = {
    "late members are placed anywhere": (Decider, "_fit_near", _anywhere),
    "rankings are not kept": (Ranking, "put", _nothing),
    "leases never end": (Engine, "expire", _no_candidates),
    "no gang is ending": (Engine, "observe_ending", lambda *_: False),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_engine_that_decides_otherwise_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    owner, attribute, wrong = WRONG[name]
    path = write(tmp_path / "log", steps=800, is_changing=False)
    assert _replay("--file", path) is Exit.OK
    with patch.object(owner, attribute, wrong):
        assert _replay("--file", path) is Exit.FAILED
    assert "not identical" in capsys.readouterr().out


async def test_no_row_is_kept_while_an_epoch_is_replayed() -> None:
    """Memory does not grow with the epoch: a row is read, used, and gone."""
    store = (await a_log()).store
    pages: list[int] = []

    class Reader(MemoryDecisions):
        async def of_epoch(
            self, service: str, *, epoch: int, first: int = 1, limit: int = 1000
        ) -> list[DecisionRecord]:
            pages.append(first)
            return await store.of_epoch(service, epoch=epoch, first=first, limit=10)

        async def document(self, document_hash: str) -> LoggedDocument | None:
            return await store.document(document_hash)

    report = await replay_rows(read_epoch(Reader(), SERVICE, epoch=1), epoch=1)
    assert report.is_identical
    assert pages == [*range(1, report.rows + 1, 10), report.rows + 1]
