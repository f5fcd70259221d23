"""`cellgate replay --file` on admission decisions: what it prints, and which rows it counts."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cli.log import progress as progress_of_work
from cli.main import main
from extender.cluster.journal import SERVICE
from service.exit_codes import Exit
from state.log.archive.transfer import export_log
from state.log.stretches import Wanted
from tests.support.twins.log import MemoryDecisions
from tests.support.webhook.logged_admissions import LoggedAdmissions


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine even short work takes long enough to show progress."""
    monkeypatch.setattr(progress_of_work, "_FIRST_SECONDS", 3600.0)


def _write(path: Path, change: Callable[[MemoryDecisions], None] = lambda _: None) -> Path:
    async def export() -> None:
        store = await LoggedAdmissions().run(60)
        change(store)
        await export_log(store, path, service=SERVICE, wanted=Wanted(), on_progress=lambda *_: None)

    asyncio.run(export())
    return path


def _replay(*arguments: Path | str) -> Exit:
    return main(["replay", *map(str, arguments)], {})


def _tamper(store: MemoryDecisions) -> None:
    """Change what the submitter of the third gang is said to have held."""
    record = store.records[2]
    store.records[2] = replace(record, inputs={**record.inputs, "usage": [77, 0]})


def test_a_log_without_any_epoch_is_decided_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _replay("--file", _write(tmp_path / "log")) is Exit.OK
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("admission, 2026-05-31T22:")
    assert first.endswith(" decisions: identical")
    assert second.startswith("identical: ")


def test_a_difference_is_shown_with_both_sides_and_what_it_depended_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _replay("--file", _write(tmp_path / "log", _tamper)) is Exit.FAILED
    told = capsys.readouterr().out
    assert " decisions: 1 differ\n" in told
    assert "\n  first difference: lab/gang-" in told
    assert "\n    logged:   admitted: " in told
    assert "\n    replayed: " in told
    assert " holds 77 leaf cells, 0 of them" in " ".join(told.split())
    assert "\n    unequal: reason" in told
    assert "\n      user: " in told
    assert "\n      usage: [77,0]\n" in told
    assert "\nnot identical: 1 of " in told


def test_json_has_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _replay("--file", _write(tmp_path / "log", _tamper), "--json") is Exit.FAILED
    told = json.loads(capsys.readouterr().out)
    assert (told["identical"], told["epochs"]) == (False, [])
    admissions = told["admissions"]
    assert (admissions["identical"], admissions["different"]) == (False, 1)
    (difference,) = admissions["differences"]
    assert difference["logged"]["outcome"] == "admitted"
    assert "77 leaf cells" in difference["replayed"]["reason"]
    assert difference["inputs"]["usage"] == [77, 0]
    assert difference["details"]["user"]


def test_only_wanted_decisions_are_made_again_by_the_policy_of_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subjects: list[str] = []
    path = _write(tmp_path / "log", lambda store: subjects.append(store.records[9].subject))
    assert _replay("--file", path, "--subject", subjects[0], "--json") is Exit.OK
    admissions = json.loads(capsys.readouterr().out)["admissions"]
    assert admissions["rows"] == admissions["decisions"] == 1
    assert _replay("--file", path, "--subject", "lab/none") is Exit.USAGE


def _lose_policy(store: MemoryDecisions) -> None:
    store.documents.clear()


def test_decisions_without_their_policy_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _replay("--file", _write(tmp_path / "log", _lose_policy)) is Exit.FAILED
    told = capsys.readouterr().out
    assert "whose policy is not in the log, or cannot be read by this release" in told
