"""`cellgate log` and `cellgate replay` on a real database."""

import gzip
import re
from pathlib import Path

import orjson
import pytest

from cli.commands import build_parser
from extender.cluster.journal import SERVICE
from policy.errors import SettingsError
from service.exit_codes import Exit
from service.process import Stop
from state.database.database import open_database
from state.log.archive.reader import Archive
from state.log.archive.transfer import export_log, import_log
from state.log.postgres import PostgresDecisions
from state.log.stretches import Wanted
from tests.support.extender.logged_load import a_log
from tests.support.extender.mixed_load import MixedLoad
from tests.support.webhook.logged_admissions import LoggedAdmissions


async def _cellgate(*arguments: str | Path) -> Exit:
    options = build_parser({}).parse_args([*map(str, arguments)])
    code: Exit = await options.command(options, Stop())
    return code


async def _fill(url: str, path: Path) -> MixedLoad:
    load = await a_log()
    await export_log(
        load.store, path, service=SERVICE, wanted=Wanted(), on_progress=lambda *_: None
    )
    async with open_database(url, application_name="tests") as database:
        log = PostgresDecisions(database.pool)
        await import_log(log, Archive(path), on_progress=lambda *_: None)
    return load


async def test_a_database_is_replayed_exported_and_replayed_from_the_file(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = await _fill(database_url, tmp_path / "filled")
    assert await _cellgate("replay", "--database-url", database_url) is Exit.OK
    of_database = capsys.readouterr().out
    assert of_database.count(": identical\n") == 2
    file = tmp_path / "log.jsonl.gz"
    assert await _cellgate("log", "export", "--database-url", database_url, file) is Exit.OK
    rows = len(load.store.records)
    told = capsys.readouterr().out
    assert told.startswith(f"{file}: {rows:,} rows, 2 epochs of the extender, ")
    assert await _cellgate("replay", "--file", file) is Exit.OK
    assert capsys.readouterr().out == of_database


async def test_admissions_are_decided_again_from_the_database_and_from_a_file(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, file = await LoggedAdmissions().run(80), tmp_path / "made"
    await export_log(store, file, service=SERVICE, wanted=Wanted(), on_progress=lambda *_: None)
    async with open_database(database_url, application_name="tests") as database:
        log = PostgresDecisions(database.pool)
        await import_log(log, Archive(file), on_progress=lambda *_: None)
    assert await _cellgate("replay", "--database-url", database_url) is Exit.OK
    of_database = capsys.readouterr().out
    assert f"{len(store.records)} rows, {len(store.records)} decisions: identical\n" in of_database
    copied = tmp_path / "log"
    assert await _cellgate("log", "export", "--database-url", database_url, copied) is Exit.OK
    capsys.readouterr()
    assert await _cellgate("replay", "--file", copied) is Exit.OK
    assert capsys.readouterr().out == of_database


async def test_the_database_of_the_environment_is_no_obstacle_to_a_file(
    database_url: str, tmp_path: Path
) -> None:
    await _fill(database_url, tmp_path / "log")
    environment = {"CELLGATE_DATABASE_URL": "postgresql://nowhere.invalid/x"}
    options = build_parser(environment).parse_args(["replay", "--file", str(tmp_path / "log")])
    assert await options.command(options, Stop()) is Exit.OK


async def test_a_file_is_imported_into_a_database_without_tables(
    empty_database_url: str,
    database_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    load = await _fill(database_url, tmp_path / "log")
    rows = len(load.store.records)
    arguments = ("log", "import", "--database-url", empty_database_url, tmp_path / "log")
    for new in (rows, 0):
        assert await _cellgate(*arguments) is Exit.OK
        assert (
            capsys.readouterr().out == f"{tmp_path / 'log'}: {rows:,} rows, {new:,} of them new\n"
        )
    assert await _cellgate("replay", "--database-url", empty_database_url) is Exit.OK


async def test_an_epoch_that_began_before_is_told(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = await _fill(database_url, tmp_path / "filled")
    middle = load.store.records[30].at.isoformat()
    await _cellgate(
        "log", "export", "--database-url", database_url, "--from", middle, tmp_path / "log"
    )
    told = capsys.readouterr().out
    assert "epoch 1 began before --from: exported from its first row on\n" in told


@pytest.mark.parametrize("command", ["replay", "log export"])
async def test_a_database_without_tables_is_told(
    empty_database_url: str, tmp_path: Path, command: str
) -> None:
    arguments = [*command.split(), "--database-url", empty_database_url]
    if command == "log export":
        arguments.append(str(tmp_path / "log"))
    with pytest.raises(SettingsError, match="lacks tables of this release: check --database-url"):
        await _cellgate(*arguments)
    assert [*tmp_path.iterdir()] == []


async def test_reading_creates_no_database(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'none'}"
    with pytest.raises(SettingsError, match="there is no database in"):
        await _cellgate("replay", "--database-url", url)
    assert [*tmp_path.iterdir()] == []


async def test_a_missing_row_at_the_beginning_is_told(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _fill(database_url, tmp_path / "filled")
    async with open_database(database_url, application_name="tests") as database:
        await database.pool.execute("DELETE FROM decisions WHERE epoch = 1 AND sequence < 5")
    file = tmp_path / "log"
    assert await _cellgate("log", "export", "--database-url", database_url, file) is Exit.OK
    told = capsys.readouterr().out
    assert "epoch 1: the log has no rows before row 5, so the epoch cannot be replayed\n" in told
    assert await _cellgate("replay", "--file", file) is Exit.FAILED
    told = capsys.readouterr().out
    assert "  rows 1 to 4 are missing: later decisions may differ for that reason alone\n" in told


async def test_a_masked_file_replays_and_goes_into_an_empty_database_only(
    empty_database_url: str,
    database_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await _fill(database_url, tmp_path / "filled")
    file, key = tmp_path / "masked", tmp_path / "key"
    export = ("log", "export", "--database-url", database_url, "--mask", "--mask-key", key, file)
    assert await _cellgate(*export) is Exit.OK
    told = capsys.readouterr()
    assert f"{key}: the names behind " in told.out
    assert told.err == ""
    text = gzip.decompress(file.read_bytes()).decode()
    assert '"masked":true' in text
    assert not re.search(r"\blab\b|node-0|A100|rack-|nobody", text)
    names = orjson.loads(key.read_bytes())
    assert names["namespace"] == {"namespace-0001": "lab"}
    assert key.stat().st_mode & 0o777 == 0o600
    assert await _cellgate("replay", "--file", file) is Exit.OK
    capsys.readouterr()
    with pytest.raises(SettingsError, match="is masked: its rows would mix"):
        await _cellgate("log", "import", "--database-url", database_url, file)
    assert await _cellgate("log", "import", "--database-url", empty_database_url, file) is Exit.OK
    assert await _cellgate("replay", "--database-url", empty_database_url) is Exit.OK


async def test_a_key_without_a_masked_file_is_a_mistake(database_url: str, tmp_path: Path) -> None:
    export = ("log", "export", "--database-url", database_url, "--mask-key", tmp_path / "key")
    with pytest.raises(SettingsError, match="--mask-key needs --mask"):
        await _cellgate(*export, tmp_path / "log")
