"""No gang waits longer than its bound, whatever arrives: the theorem of `reserve.reservations`.

`make starvation` plays 1,000 histories of each strategy, CI a tenth of that: they are long.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cells.model import Place, Preempt
from extender.queue.reserve.model import entry_key
from policy.queues.queues import Queues, ReservationRules
from tests.support.cells.builders import GangBuilder, a_gang
from tests.support.examples import at_most_in_ci
from tests.support.queue.adversary import Adversary
from tests.support.queue.orders import queues
from tests.support.queue.timed_world import TimedWorld

_HISTORIES = at_most_in_ci(100)
_RULES = "reservation: {after: 1s}\nrunTime: {cap: 60s, longest: {default: 60s}, enforce: true}"
_LEVELS = {
    "fifo": "[{name: all, strategy: fifo}]",
    "priority": "[{name: all, strategy: priority, worth: {class: 20s}}]",
    "fair-share": "[{name: all, strategy: fair-share, worth: {fairShare: 20s}}]",
    "shortest-first": "[{name: all, strategy: shortest-first, worth: {shortRun: 20s}}]",
    "formula": "[{name: all, strategy: formula, worth: {class: 10s, shortRun: 10s}, "
    "formula: 'worth.class * class + worth.shortRun * shortRun'}]",
    "two levels": "[{name: first, who: {when: 'leafCells < 4'}, strategy: fifo}, "
    "{name: second, strategy: shortest-first, worth: {shortRun: 10s}, promoteAfter: 20s}]",
}


def _queues(strategy: str) -> Queues:
    return queues(f"levels: {_LEVELS[strategy]}\n{_RULES}")


@pytest.mark.parametrize("strategy", _LEVELS)
@settings(max_examples=_HISTORIES)
@given(seed=st.integers(0, 2**32))
def test_no_gang_waits_longer_than_its_bound(strategy: str, seed: int) -> None:
    waited, bound = Adversary(seed, _queues(strategy)).play()
    assert waited <= bound


@pytest.mark.parametrize("strategy", ["fifo", "shortest-first", "two levels"])
@settings(max_examples=_HISTORIES // 2)
@given(seed=st.integers(0, 2**32))
def test_gangs_of_other_pools_keep_none_from_its_bound(strategy: str, seed: int) -> None:
    waited, bound = Adversary(seed, _queues(strategy), has_pools=True).play()
    assert waited <= bound


@pytest.mark.parametrize("strategy", ["fifo", "shortest-first", "two levels"])
@settings(max_examples=_HISTORIES // 5)  # each is long
@given(seed=st.integers(0, 2**32))
def test_guests_on_reserved_cells_keep_none_from_its_bound(strategy: str, seed: int) -> None:
    waited, bound = Adversary(seed, _queues(strategy), has_guests=True, has_pools=True).play()
    assert waited <= bound


@pytest.mark.parametrize("strategy", ["fifo", "two levels"])
@settings(max_examples=_HISTORIES)
@given(seed=st.integers(0, 2**32))
def test_windows_add_no_more_than_their_length_and_one_start_each(strategy: str, seed: int) -> None:
    history = Adversary(seed, _queues(strategy), has_windows=True)
    waited, bound = history.play()
    assert waited <= bound
    for gang, started in history.world.started.items():
        for window in history.queues.maintenance:
            if window.begins <= started < window.ends:
                assert not set(history.world.nodes_of(gang)) & set(window.nodes)


def _has_room(world: TimedWorld, gang: GangBuilder) -> bool:
    """Whether the cells and the promise of its VC have room for a gang, whatever is reserved."""
    decision = world.engine.plan(gang.members()[0], candidate_nodes=world.nodes, now=world.now)
    return isinstance(decision, Place | Preempt)


@pytest.mark.parametrize("seed", range(100))  # docs/limits.md: a reservation keeps no promise
def test_a_gang_that_an_entry_names_starts_at_once_in_its_time(seed: int) -> None:
    history = Adversary(seed, _queues("fifo"), has_windows=True)
    world = history.world
    for entry in history.queues.reservations:
        while world.now <= entry.begins:
            history._attack(1)
            world.advance(2.0)
        kept = world.planner.reservations.find(entry_key(entry.name))
        if kept is None or world.cells.view_seats(kept.domain, kept.kept).holders:
            continue  # no room beside other windows, or a gang is late: that is a slip
        gang = a_gang(f"named-{entry.name}").times(entry.members, entry.leaf_cells)
        if not _has_room(world, gang):
            continue  # the entry's cells are free, but gangs use all of the promise elsewhere
        # Without a limit it may meet a maintenance window that begins after the entry.
        assert world.submit(gang, runs=1.0, limit=1.0, user="named") in world.started
    world.check()


def test_without_reservations_a_large_gang_starves() -> None:
    none = replace(_queues("fifo"), reservation=ReservationRules(per_pool=0))
    starved = [seed for seed in range(10) if Adversary(seed, none).play()[0] == float("inf")]
    assert len(starved) > 5
