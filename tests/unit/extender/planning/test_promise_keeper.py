"""The promise ledger: what owners are told, and what the next leader knows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from extender.cells.model import Seat
from extender.outcomes.pod_events import PodEvents
from extender.planning.promise_keeper import PromiseKeeper
from extender.planning.promise_rows import from_row, to_row
from extender.queue.model import StepResult
from extender.queue.reserve.model import (
    Reservation,
    ReservationEnd,
    ReservationStep,
    Slip,
    SlipCause,
)
from extender.queue.reserve.reservations import Reservations
from policy.queues.pools import Pool
from policy.submission import GangKey, NodeName, VcName
from policy.topology import CellAddress, ChainName
from tests.support.cells.builders import a_cluster
from tests.support.extender.shell import Shell
from tests.support.kube.pods import a_pod
from tests.support.queue.timed_world import TimedWorld
from tests.support.state.charges import TERM
from tests.support.twins.promises import MemoryPromises

LARGE = GangKey("lab", "large")
MADE = Reservation(
    gang=LARGE,
    pool=Pool(VcName("lab"), None),
    domain=VcName("lab"),
    priority=0,
    seats=(
        Seat(
            chain=ChainName("rack"),
            leaves=(CellAddress("r0/n0/0"), CellAddress("r0/n0/1")),
            claim=CellAddress("r0/n0"),
        ),
    ),
    drained=(Seat(chain=ChainName("rack"), leaves=(CellAddress("r0/n1/0"),)),),
    nodes=(NodeName("node-00"),),
    made_at=1000.0,
    first_promised=5000.0,
    promised=5000.0,
    deadline=5000.0,
    waits_for=GangKey("lab", "old"),
)
SLIP = Slip(
    at=5001.0, before=5000.0, promised=6000.0, cause=SlipCause.OVERRUN, gang=GangKey("lab", "old")
)
SLIPPED = replace(MADE, promised=6000.0, slips=(SLIP,))
ENDED = replace(SLIPPED, end=ReservationEnd.STARTED, ended_at=5900.0)


@pytest.mark.parametrize("one", [MADE, SLIPPED, ENDED, replace(MADE, domain=None, promised=None)])
def test_a_promise_is_read_as_it_was_written(one: Reservation) -> None:
    assert from_row(to_row(one)) == one


class World:
    """A shell with a pod of the large gang, and a keeper."""

    def __init__(self, store: MemoryPromises | None = None) -> None:
        self.shell = Shell()
        self.shell.pods.upsert(a_pod("large-0").with_gpus(8).in_gang("large", size=1))
        self.reservations: Reservations = TimedWorld(
            a_cluster("2 nodes x 4").promising("a", node=2).build()
        ).planner.reservations
        self.store = store or MemoryPromises()
        self.keeper = PromiseKeeper(
            reservations=self.reservations,
            pods=self.shell.pods,
            events=PodEvents(self.shell.events),  # type: ignore[arg-type] # all that it uses
            metrics=self.shell.metrics,
            term=lambda: TERM,
            clock=self.shell.clock,
        )
        self.keeper.use(self.store)

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.keeper.run())
        await asyncio.sleep(0.01)
        yield
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_each_slip_is_written_with_its_cause() -> None:
    world = World()
    async with world.leading():
        for one in (MADE, SLIPPED, ENDED):
            world.keeper.report([one], [])
            await asyncio.sleep(0.01)
    (row,) = world.store.rows.values()
    assert from_row(row) == ENDED
    assert world.keeper.find(LARGE) == ENDED


async def test_the_next_leader_takes_over_what_was_promised() -> None:
    world = World()
    async with world.leading():
        world.keeper.report([SLIPPED], [])
    after = World(world.store)
    assert not after.reservations.is_open
    async with after.leading():
        assert after.reservations.in_force() == [SLIPPED]
        assert after.reservations.is_open


async def test_without_a_database_reservations_are_made_and_written_later() -> None:
    world = World(MemoryPromises(fails=True))
    async with world.leading():
        assert world.reservations.is_open
        world.keeper.report([MADE], [])
        assert world.keeper.find(LARGE) is None  # it is the planner's
    assert world.store.rows == {}


async def test_a_row_of_another_version_is_passed_over() -> None:
    store = MemoryPromises()
    row = to_row(MADE)
    store.rows[row.gang, row.made_at] = replace(row, body={"pool": 1})
    world = World(store)
    async with world.leading():
        assert world.reservations.in_force() == []
        assert world.reservations.is_open


def test_owners_are_told_when_it_is_made_and_when_it_slips() -> None:
    world = World()
    world.keeper.report([MADE], [])
    world.keeper.report([SLIPPED], [])
    ((_, made),) = world.shell.events.said("Reserved")
    assert made == (
        "leaf cells on 1 node (node-00) are reserved for gang lab/large; its start is promised for "
        "1970-01-01T01:23:20Z, when gang lab/old is expected to have ended; gangs that may still "
        "run at 1970-01-01T01:23:20Z do not use them"
    )
    ((_, slipped),) = world.shell.events.said("ReservationSlipped")
    assert slipped == (
        "the promised start was put off from 1970-01-01T01:23:20Z to 1970-01-01T01:40:00Z: gang "
        "lab/old runs longer than expected"
    )


async def test_a_promise_that_another_one_replaced_ends_in_the_ledger() -> None:
    """A leader without the database makes reservations anew; the old ones must not come back."""
    world = World(MemoryPromises(fails=True))
    old = to_row(MADE)
    world.store.rows[old.gang, old.made_at] = old
    new = replace(MADE, made_at=3000.0)
    async with world.leading():
        world.reservations.put(new, ReservationStep.MADE)
        world.keeper.report([new], [])
        world.store.fails = False
        assert await world.keeper._read()
        await world.keeper._write()
    assert world.reservations.in_force() == [new]
    (row,) = [row for row in world.store.rows.values() if row.made_at == old.made_at]
    assert from_row(row).end is ReservationEnd.REPLACED
    assert row.ended_at is not None


async def test_a_promise_that_ended_before_the_ledger_was_read_is_reported() -> None:
    world = World()
    world.reservations.put(MADE, ReservationStep.MADE)
    world.reservations.note_gone(LARGE)
    async with world.leading():
        step = StepResult()
        world.reservations.update(step)
        world.keeper.report(step.reservations, [])
    (row,) = world.store.rows.values()
    assert from_row(row).end is ReservationEnd.GONE


def test_an_owner_is_told_why_a_reservation_ended() -> None:
    world = World()
    world.keeper.report([MADE], [])
    world.keeper.report([replace(MADE, end=ReservationEnd.UNUSED, ended_at=5900.0)], [])
    ((_, told),) = world.shell.events.said("ReservationEnded")
    assert told == (
        "the reservation ended: its leaf cells are free, but the gang waits for something else"
    )


def test_an_owner_whose_gang_starts_needs_no_word_about_its_reservation() -> None:
    world = World()
    world.keeper.report([MADE], [])
    world.keeper.report([ENDED], [])
    assert world.shell.events.said("ReservationEnded") == []
