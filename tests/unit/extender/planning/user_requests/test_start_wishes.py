"""A wished start raises the rank within what the owner is worth; owners are told of misses."""

from datetime import UTC, datetime, timedelta

import pytest

from extender.outcomes.pod_events import PodEvents
from extender.planning.user_requests.start_wishes import StartWishes
from extender.queue.order.gang_order import GangOrder
from kube import marks
from kube.lives.start_wishes import read_start_by
from policy.queues.queues import Queues
from policy.submission import GangKey
from service.clock import Clock
from tests.support.extender.planning import Planning, planning
from tests.support.extender.shell import Shell
from tests.support.kube.events import KeptEvents
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.queue.orders import CLASSES, HOUR, facts, one_level, queues

START = datetime(2026, 11, 18, 12, tzinfo=UTC)
LEVELS = """levels: [{name: all, strategy: formula, worth: {startBy: 12h}}]
userLevels: {gold: [alice], silver: [bob]}"""


@pytest.mark.parametrize(
    ("document", "user", "hours", "worth"),
    [
        (one_level("formula", startBy="12h"), "carol", 0, 12),
        (one_level("formula", startBy="12h"), "carol", -5, 12),
        (one_level("formula", startBy="12h"), "carol", 12, 6),
        (one_level("formula", startBy="12h"), "carol", 100, 0),
        (one_level("fifo"), "carol", 0, 0),
        (queues(LEVELS), "alice", 0, 12),
        (queues(LEVELS), "bob", 0, 6),
        (queues(LEVELS), "carol", 0, 0),
    ],
)
def test_a_wished_start_is_worth_something_to_its_owner(
    document: Queues, user: str, hours: float, worth: float
) -> None:
    order = GangOrder(document, CLASSES)
    gang = facts(asked=1000 * HOUR, user=user, start_by=(1000 + hours) * HOUR)
    for later in (0.0, 500 * HOUR):
        standing = order.standing(gang, now=gang.asked + later)
        assert standing.credit == pytest.approx(worth * HOUR), "it does not move with time"
    assert order.standing(facts(asked=1000 * HOUR, user=user), now=gang.asked).credit == 0


class _Timed(Shell):
    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock(
            monotonic=lambda: self.now, now=lambda: START + timedelta(seconds=self.now)
        )


def _pod(name: str, start_by: str) -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_vc("lab").gated().submitted_by("alice")
    return pod.annotated(marks.START_BY_ANNOTATION, start_by)


def _wishes(plans: Planning, expected: dict[str, float], events: KeptEvents) -> StartWishes:
    def at(gang: GangKey) -> float | None:
        late = expected.get(gang.name)
        return None if late is None else START.timestamp() + late

    return StartWishes(
        plans.shell.pods,
        waiting=plans.planner.ranking.in_order,
        expected=at,
        journal=plans.shell.cluster.journal,
        events=PodEvents(events),
        clock=plans.shell.clock,
    )


async def test_owners_are_told_once_that_a_start_is_unlikely_or_missed() -> None:
    async with planning(shell=_Timed()) as plans:
        events = KeptEvents()
        wishes = _wishes(plans, {"late": 7200.0, "early": 60.0}, events)
        for name in ("late", "early", "unknown"):
            plans.pods.upsert(_pod(name, "2026-11-18T13:00:00Z"))
        await plans.looked()
        for _ in range(2):
            wishes.update()
        assert [(one.name, one.reason, one.message) for one in events.written] == [
            (
                "late",
                "StartByUnlikely",
                "gang lab/late is expected to start about 2026-11-18T14:00:00Z, after "
                "2026-11-18T13:00:00Z, its wished start",
            )
        ]
        plans.shell.now = 3600.0
        for _ in range(2):
            wishes.update()
        assert [(one.name, one.reason) for one in events.written[1:]] == [
            ("early", "StartByMissed"),
            ("late", "StartByMissed"),
            ("unknown", "StartByMissed"),
        ]


@pytest.mark.parametrize("text", ["soon", "2026-11-20", "2026-11-20T08:00:00", "", "9"])
def test_other_texts_are_no_wish(text: str) -> None:
    assert read_start_by({marks.START_BY_ANNOTATION: text}) is None
