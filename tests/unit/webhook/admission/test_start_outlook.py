"""When a gang is expected to start, as its submitter is told."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from policy.submission import ClassName
from service.clock import Clock
from state.outlook.outlook import Outlook, OutlookEntry
from tests.support.kube.pods import a_pod
from tests.support.kube.workloads import a_template, a_workload
from tests.support.twins.outlook import MemoryOutlook
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.admission.start_outlook import StartOutlook

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
SMALL = OutlookEntry(
    vc="lab",
    leaf_type="A100",
    class_name="prod",
    leaf_cells=8,
    level="batch",
    place=7,
    low=NOON.timestamp() + 7800,
    high=NOON.timestamp() + 16_800,
)
LARGE = replace(SMALL, leaf_cells=16, low=0.0, high=0.0, unknown="no history for gangs that run")


class _World:
    def __init__(self, *entries: OutlookEntry) -> None:
        self.now = NOON
        self.store = MemoryOutlook(outlook=Outlook(computed_at=NOON, entries=list(entries)))
        self.starts = StartOutlook(
            self.store, clock=Clock(monotonic=lambda: 0.0, now=lambda: self.now)
        )

    def warn(
        self, leaf_cells: int = 8, *, vc: str = "lab", leaf_type: str | None = None
    ) -> tuple[str, ...]:
        return self.starts.warn(
            vc=vc, leaf_type=leaf_type, class_name=ClassName("prod"), leaf_cells=leaf_cells
        )


async def test_a_submitter_is_told_when_the_gang_starts() -> None:
    world = _World(LARGE, SMALL)
    assert world.warn() == ()
    await world.starts.refresh()
    told = "cellgate: expected to start between 14:10 and 16:40 UTC, place 7 in level batch"
    assert world.warn(8) == world.warn(3) == world.warn(1, leaf_type="A100") == (told,)


async def test_a_submitter_is_told_that_a_wished_start_is_unlikely() -> None:
    world = _World(LARGE, SMALL)
    await world.starts.refresh()

    def told(start_by: float, leaf_cells: int = 8) -> list[str]:
        lines = world.starts.warn(
            vc="lab",
            leaf_type=None,
            class_name=ClassName("prod"),
            leaf_cells=leaf_cells,
            start_by=NOON.timestamp() + start_by,
        )
        return [line for line in lines if "wished" in line]

    assert told(3600.0) == [
        "cellgate: it will probably not start by 2026-11-18T13:00:00Z, its wished start"
    ]
    assert told(18_000.0) == told(3600.0, leaf_cells=9) == []


async def test_a_submitter_is_told_why_the_start_is_unknown() -> None:
    world = _World(LARGE, SMALL)
    await world.starts.refresh()
    assert world.warn(9) == (
        "cellgate: place 7 in level batch; when it starts is unknown: no history for gangs that "
        "run",
    )


async def test_a_gang_that_starts_at_once_is_not_told_the_start_of_a_larger_one() -> None:
    world = _World(SMALL, replace(SMALL, leaf_cells=2, starts_at_once=True))
    await world.starts.refresh()
    assert world.warn(1) == world.warn(2) == ()
    assert world.warn(3)


async def test_a_gang_of_any_leaf_type_starts_at_once_if_it_does_on_one_of_them() -> None:
    world = _World(SMALL, replace(SMALL, leaf_type="V100", leaf_cells=16, starts_at_once=True))
    await world.starts.refresh()
    assert world.warn(8) == ()
    assert world.warn(8, leaf_type="A100")


async def test_of_a_start_that_is_days_away_the_day_is_told() -> None:
    world = _World(replace(SMALL, high=NOON.timestamp() + 200_000))
    await world.starts.refresh()
    assert "between 2026-11-18 14:10 and 2026-11-20 19:33 UTC" in world.warn()[0]


@pytest.mark.parametrize(
    ("leaf_cells", "vc", "leaf_type"),
    [(17, "lab", None), (8, "other", None), (8, "lab", "H100")],
    ids=["too large", "another VC", "another leaf type"],
)
async def test_of_other_gangs_nothing_is_told(
    leaf_cells: int, vc: str, leaf_type: str | None
) -> None:
    world = _World(SMALL, LARGE)
    await world.starts.refresh()
    assert world.warn(leaf_cells, vc=vc, leaf_type=leaf_type) == ()


async def test_without_a_leader_nothing_is_told_after_a_while() -> None:
    world = _World(SMALL)
    await world.starts.refresh()
    world.now = NOON + timedelta(minutes=2)
    assert world.warn()
    world.now = NOON + timedelta(minutes=4)
    assert world.warn() == ()


async def test_while_the_database_is_away_the_last_outlook_counts() -> None:
    world = _World(SMALL)
    await world.starts.refresh()
    world.store.fails = True
    await world.starts.refresh()
    assert world.warn()


async def test_the_warning_is_part_of_the_answers_about_pods_and_workloads() -> None:
    now = datetime.now(UTC)
    entries = [
        replace(SMALL, vc=vc, class_name=name, high=now.timestamp() + 7200)
        for vc in ("default", "lab")
        for name in ("prod", "batch", "oppo", "default", "test")
    ]
    store = MemoryOutlook(outlook=Outlook(computed_at=now, entries=entries))
    webhook = Webhook(outlook=store)
    await webhook.starts.refresh()
    pod = a_pod("bert").with_gpus(1)
    answers = [
        await webhook.pods.mutate(a_review(pod, user="alice")),
        await webhook.templates.mutate(a_review(a_workload("Job", template=a_template()))),
    ]
    for answer in answers:
        assert answer.is_allowed
        assert any("expected to start between" in line for line in answer.warnings), answer
