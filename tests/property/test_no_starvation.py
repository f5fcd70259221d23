"""No gang waits longer than its bound, whatever arrives: the theorem of `reserve.reservations`.

`make starvation` plays 1,000 histories of each strategy.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.queues.queues import Queues, ReservationRules
from tests.support.queue.adversary import Adversary
from tests.support.queue.orders import queues

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
@given(seed=st.integers(0, 2**32))
def test_no_gang_waits_longer_than_its_bound(strategy: str, seed: int) -> None:
    waited, bound = Adversary(seed, _queues(strategy)).play()
    assert waited <= bound


def test_without_reservations_a_large_gang_starves() -> None:
    none = replace(_queues("fifo"), reservation=ReservationRules(per_pool=0))
    starved = [seed for seed in range(10) if Adversary(seed, none).play()[0] == float("inf")]
    assert len(starved) > 5
