"""An exported file: nodes, documents and runs from its rows alone."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from cli.log.progress import Progress
from cli.whatif.sources.log.source import read_file
from cli.whatif.sources.played import Played
from policy.errors import SettingsError
from policy.parser import DocumentKind
from policy.store import PolicyText, build_policy
from state.log.archive.reader import Archive
from state.log.records import LoggedDocument
from state.log.stretches import Wanted
from tests.support.extender.mixed_load import NODES
from tests.support.extender.recorded_day import MORNING, RecordedDay
from tests.support.policy.cluster_texts import derived_text
from tests.support.policy.documents import HEAD

_T = MORNING.timestamp()
_UNTIL = MORNING + timedelta(hours=2)
_QUOTAS = f"{HEAD}Quotas\ngroups: [{{name: G, users: [{{name: alice}}]}}]\n"


async def _read(day: RecordedDay, path: Path, wanted: Wanted | None = None) -> Played:
    await day.export(path)
    return await read_file(path, wanted or Wanted(until=_UNTIL), Progress())


async def test_a_day_is_read_from_a_file(tmp_path: Path) -> None:
    day = RecordedDay()
    day.submit("bert", 8, 4)
    day.time.advance(seconds=30)
    day.start("bert", 0, 1)
    day.refuse("big", 8, 8)
    day.time.advance(seconds=600)
    day.end("bert")
    day.submit("late", 8, class_name="prod")
    day.start("late", 0)
    found = await _read(day, tmp_path / "log")
    bert, big, late = found.arrivals
    assert (bert.submitted, bert.run_seconds, bert.sizes) == (_T, 600.0, (8, 4))
    assert (bert.user, bert.requested_class, bert.groups) == ("alice", "test", ("staff",))
    assert (big.user, big.sizes, big.is_predicted) == ("bob", (8, 8), True)
    assert (late.requested_class, late.is_predicted) == ("prod", True)
    assert [node.name for node in found.nodes] == NODES
    assert found.mean_wait == 15.0
    assert build_policy(found.texts).classes.names == ("prod", "test", "oppo")
    assert found.source.endswith("log, 2026-03-02T08:00:00Z to 2026-03-02T10:00:00Z")


async def test_the_documents_in_force_last_count(tmp_path: Path) -> None:
    cluster = derived_text(a=4, b=3)
    day = RecordedDay(cluster=derived_text(a=8))
    day.submit("bert", 8)
    day.use(PolicyText(kind=DocumentKind.QUOTAS, source="q", text=_QUOTAS))
    day.journal.change_document(cluster)
    day.journal.forget_node(NODES[3])
    day.submit("next", 8)
    found = await _read(day, tmp_path / "log")
    policy = build_policy(found.texts)
    assert [group.name for group in policy.quotas.groups] == ["G"]
    assert policy.cluster is not None
    assert policy.cluster.vc_names == ("a", "b")
    assert len(found.nodes) == len(NODES) - 1
    assert any(note.startswith("2 versions of the policies") for note in found.notes)


async def test_a_run_goes_on_under_the_next_leader(tmp_path: Path) -> None:
    day = RecordedDay()
    for name in ("stays", "goes"):
        day.submit(name, 8)
    day.start("stays", 0)
    day.start("goes", 1)
    day.time.advance(seconds=100)
    del day._placed["goes"]  # it ended while nobody led
    day.lead()
    day.time.advance(seconds=100)
    day.end("stays")
    found = await _read(day, tmp_path / "log")
    assert {one.gang.name: one.run_seconds for one in found.arrivals} == {
        "goes": 100.0,
        "stays": 200.0,
    }


async def test_what_ran_before_the_stretch_fills_its_cells(tmp_path: Path) -> None:
    day = RecordedDay()
    day.submit("early", 8, class_name="prod")
    day.start("early", 0)
    day.time.advance(seconds=100)
    day.submit("bert", 8)
    day.time.advance(seconds=100)
    day.end("early")
    wanted = Wanted(since=MORNING + timedelta(seconds=50), until=_UNTIL)
    early, bert = (await _read(day, tmp_path / "log", wanted)).arrivals
    assert (early.gang.name, early.is_counted, early.submitted) == ("early", False, _T)
    assert (early.user, early.requested_class) == ("alice", "prod")
    assert bert.is_counted


async def test_a_policy_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    day = RecordedDay()
    day._policy = LoggedDocument(kind="policy", content='{"Novelty": {}}')
    day.submit("bert", 8)
    with pytest.raises(SettingsError, match="this release cannot read the policy in the log"):
        await _read(day, tmp_path / "log")


async def test_a_time_without_gangs_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no gang was submitted in that time"):
        await _read(RecordedDay(), tmp_path / "log")


async def test_a_masked_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = RecordedDay()
    day.submit("bert", 8)
    header = Archive.header
    monkeypatch.setattr(Archive, "header", lambda self: replace(header(self), is_masked=True))
    with pytest.raises(SettingsError, match="is masked: its rules, labels and leaf types cannot"):
        await _read(day, tmp_path / "log")
