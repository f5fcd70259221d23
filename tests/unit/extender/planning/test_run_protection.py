"""The engine learns whose minimum run is under way, and waiting gangs when it is over."""

from datetime import UTC, datetime, timedelta

import pytest

from extender.cells.freed_cells import FreedCells
from extender.cells.views.listings import run_to_end
from extender.planning.run_protection import RunProtection
from policy.queues.queues import PreemptionRules
from policy.submission import GangKey
from service.clock import Clock
from tests.support.background import background
from tests.support.eventually import eventually
from tests.support.extender.gang_pods import bound
from tests.support.extender.shell import Shell

GANG = GangKey("lab", "g")
NOON = datetime(2026, 5, 31, 12, 0, tzinfo=UTC)


class Protected:
    """A gang of two pods, and what the engine knows of its minimum run."""

    def __init__(self, *, minimum: float = 1800) -> None:
        self.shell = Shell()
        self.rules = PreemptionRules(minimum_run=minimum)
        self.clock = Clock(monotonic=lambda: self.shell.now, now=lambda: self.utc)
        self.utc = NOON
        self.protection = RunProtection(
            cluster=self.shell.cluster,
            pods=self.shell.pods,
            rules=lambda: self.rules,
            clock=self.clock,
        )
        self.freed: list[FreedCells | None] = []
        self.shell.cluster.on_room.append(self.freed.append)

    def bind(self, name: str, node: str, *, ago: float = 0) -> None:
        at = (self.utc - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
        self.shell.pods.upsert(bound(name, node).with_status(conditions=[condition]))

    def wait(self, seconds: float) -> None:
        self.shell.now += seconds
        self.utc += timedelta(seconds=seconds)
        self.look()

    def look(self) -> None:
        run_to_end(self.protection.update())

    @property
    def minimum_run(self) -> int:
        return self.shell.cluster._engine._table.gangs[GANG].minimum_run


@pytest.fixture
def world() -> Protected:
    world = Protected()
    world.shell.recover()
    return world


def test_a_gang_is_protected_once_it_is_bound_and_until_its_minimum_is_over(
    world: Protected,
) -> None:
    world.bind("a", "node-00")
    assert world.minimum_run == 1800
    world.wait(1000)
    world.bind("b", "node-01")
    world.wait(799)
    assert world.minimum_run == 1800
    assert not world.freed
    world.wait(1)
    assert world.minimum_run == 0
    assert [one and one.vc for one in world.freed] == ["lab"], "gangs of the VC are planned again"


def test_a_new_leader_counts_from_when_the_pods_were_bound() -> None:
    world = Protected()
    world.bind("a", "node-00", ago=1000)
    world.shell.recover()
    assert world.minimum_run == 1800
    world.wait(800)
    assert world.minimum_run == 0


def test_a_clock_that_is_ahead_or_jumps_back_protects_for_no_longer(world: Protected) -> None:
    world.bind("a", "node-00", ago=-500)  # by the clock of the API server
    world.utc -= timedelta(days=1)
    world.wait(1800)
    assert world.minimum_run == 0


def test_another_document_counts_at_once(world: Protected) -> None:
    world.bind("a", "node-00")
    world.wait(100)
    world.rules = PreemptionRules(minimum_run=60)
    world.look()
    assert world.minimum_run == 0
    world.rules = PreemptionRules(minimum_run=3600)
    world.look()
    assert world.minimum_run == 3600
    world.rules = PreemptionRules()
    world.look()
    assert world.minimum_run == 0


def test_a_gang_that_starts_again_begins_another_minimum_run(world: Protected) -> None:
    world.bind("a", "node-00")
    world.wait(1800)
    assert world.minimum_run == 0
    world.shell.pods.remove(bound("a", "node-00"))
    world.bind("a2", "node-00")
    assert world.minimum_run == 1800


async def test_the_end_of_a_minimum_run_is_a_timer(world: Protected) -> None:
    world.rules = PreemptionRules(minimum_run=0.05)
    async with background(world.protection.run()):
        world.protection.note_rules()
        world.bind("a", "node-00")
        world.rules = PreemptionRules(minimum_run=3600)
        world.protection.note_rules()
        await eventually(lambda: world.minimum_run == 3600)
        world.shell.now += 3600
        world.rules = PreemptionRules(minimum_run=3599)
        world.protection.note_rules()
        await eventually(lambda: world.minimum_run == 0)
