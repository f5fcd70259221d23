"""A masked file replays as the log does, and depends on names only by their order."""

import gzip
import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from state.log.archive.reader import Archive
from tests.support.extender.logged_load import a_log
from tests.support.extender.mixed_load import MixedLoad
from tests.support.extender.renamed_log import masked, renamed, replayed
from tests.support.policy.cluster_texts import derived_text, hived_text
from tests.support.queue.logged_history import LoggedHistory
from tests.support.twins.log import MemoryDecisions
from tests.support.webhook.logged_admissions import LoggedAdmissions
from webhook.records.replay import AdmissionReplay

_OWN_WORDS = ["node", "gang", "vc", "default", "type", "unknown", "namespace-0001", "replay", "-"]
# In HiveD's configuration a dot separates the types of cells.
_ENDS = st.one_of(st.sampled_from(_OWN_WORDS), st.text("abnode019-", max_size=8))


async def _load(seed: int, text: str, *, steps: int = 250, **kinds: bool) -> MemoryDecisions:
    load = MixedLoad(seed, text, **kinds)  # type: ignore[arg-type]  # flags
    for step in range(steps):
        if step == steps * 3 // 5:
            load.start()
        load.step()
    await load.log.flush()
    return load.store


_LOADS = {
    "derived": (derived_text(a=4, b=3), {"has_grace": True, "is_polite": True}),
    "listed": (hived_text(racks=2, nodes=4, a=4, b=3), {"has_grace": True}),
    "short": (derived_text(a=4, b=3), {"is_short": True}),
}


@pytest.mark.parametrize("load", _LOADS)
@pytest.mark.parametrize("seed", range(2))
async def test_a_masked_file_is_decided_as_the_log_was(
    load: str, seed: int, tmp_path: Path
) -> None:
    text, kinds = _LOADS[load]
    store = await _load(seed, text, **kinds)
    done, twin = await masked(store, tmp_path / "log")
    assert done.left_out == {}
    assert done.rows == len(store.records)
    reports = await replayed(twin)
    assert [report.is_identical for report in reports] == [True, True]
    assert sum(report.decisions for report in reports) > 20
    logged = [row.details["decision"] for row in store.records if "decision" in row.details]
    again = [row.details["decision"] for row in twin.records if "decision" in row.details]
    assert [one["is"] for one in again] == [one["is"] for one in logged]
    assert all(one.get("reason") for one in again if one["is"] != "place")


async def test_masked_ranks_and_reservations_are_decided_as_they_were(tmp_path: Path) -> None:
    history = LoggedHistory(1)
    history.play(50)
    await history.log.flush()
    done, twin = await masked(history.store, tmp_path / "log")
    assert done.left_out == {}
    reports = await replayed(twin)
    assert all(report.is_identical for report in reports)
    kinds = {row.kind for row in twin.records if "decision" in row.details}
    assert {"ordering", "reservation", "release"} <= kinds
    text = gzip.decompress((tmp_path / "log").read_bytes()).decode()
    assert re.findall(r"\b(?:alice|bob|dana|gold|silver|fast|rest|demo|urgent|A100)\b", text) == []


async def test_a_log_without_a_cluster_document_is_masked(tmp_path: Path) -> None:
    store = await _load(3, derived_text(a=4, b=3))
    store.records = [row for row in store.records if row.kind != "document" or row.sequence == 1]
    await masked(store, tmp_path / "log")


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(load=st.sampled_from(sorted(_LOADS)), end=_ENDS)
@example(load="derived", end="node")
async def test_names_make_no_difference_but_by_their_order(load: str, end: str) -> None:
    text, kinds = _LOADS[load]
    store = await _load(1, text, steps=120, **kinds)
    plain, hostile = await renamed(store, "plain"), await renamed(store, end)
    assert all(report.is_identical for report in await replayed(hostile))
    with TemporaryDirectory() as folder:
        for name, one in (("plain", plain), ("hostile", hostile)):
            done, _ = await masked(one, Path(folder) / name)
            assert done.left_out == {}
        texts = [gzip.decompress((Path(folder) / one).read_bytes()) for one in ("plain", "hostile")]
    assert texts[0] == texts[1]


async def test_a_decision_that_differs_also_differs_masked(tmp_path: Path) -> None:
    store = (await a_log()).store
    places = [
        row
        for row in store.records
        if row.details.get("decision", {}).get("others", {}).get("nodes")
    ]
    places[0].details["decision"]["others"]["checksum"] += 1
    _, twin = await masked(store, tmp_path / "log")
    reports = await replayed(twin)
    assert [one.sequence for report in reports for one in report.differences] == [
        places[0].sequence
    ]


async def test_masked_admissions_are_decided_as_they_were(tmp_path: Path) -> None:
    store = await LoggedAdmissions(seed=3).run()
    done, twin = await masked(store, tmp_path / "log")
    assert done.left_out == {}
    replay = AdmissionReplay()
    for record in Archive(tmp_path / "log").rows():
        replay.feed(record)
    assert replay.report.differences == []
    assert replay.report.masked == replay.report.decisions > 100
    assert all(row.reason for row in twin.records)
    text = gzip.decompress((tmp_path / "log").read_bytes()).decode()
    names = (
        r"alice|bob|carol|erin|mallory|vision|speech|guests|robots|A100|prod|oppo|gold|night|"
        r"beyond forty"
    )
    assert re.findall(rf"\b({names})", text) == []


async def test_an_admission_that_differs_also_differs_masked(tmp_path: Path) -> None:
    store = await LoggedAdmissions(seed=3).run(60)
    index, row = next(
        (index, row) for index, row in enumerate(store.records) if row.details["class"] == "oppo"
    )
    store.records[index] = replace(row, details={**row.details, "class": "prod"})
    await masked(store, tmp_path / "log")
    replay = AdmissionReplay()
    for record in Archive(tmp_path / "log").rows():
        replay.feed(record)
    (difference,) = replay.report.differences
    assert difference.unequal == ["reason", "class"]
