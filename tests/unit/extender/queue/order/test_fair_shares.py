"""Recent use of users and groups."""

from math import log

import pytest

from extender.cells.views.listings import run_to_end
from extender.queue.order.fair_shares import FairShares
from policy.queues.queues import FairShareRules
from policy.submission import GangKey
from tests.support.queue.orders import DAY, HOUR

_HALF_LIFE = 7 * DAY


def _full(leaf_cells: float) -> float:
    """What tends to be used by a user that always holds so many leaf cells."""
    return leaf_cells * _HALF_LIFE / log(2)


def _shares(weights: dict[str, float] | None = None, entry: str = "predicted") -> FairShares:
    shares = FairShares()
    shares.configure(
        FairShareRules(half_life=_HALF_LIFE, weights=weights or {}, entry=entry)  # type: ignore[arg-type]
    )
    shares.observe_capacity(100)
    return shares


def test_no_recent_use_is_1_and_exactly_the_share_is_a_half() -> None:
    shares = _shares()
    shares.add("alice", "vision", leaf_cell_seconds=_full(50), at=0.0)
    shares.add("bob", "speech", leaf_cell_seconds=_full(50), at=0.0)
    run_to_end(shares.refresh(now=0.0))
    assert shares.factor("alice", "vision") == 0.5
    assert shares.factor("carol", "vision") == 1.0


def test_use_is_halved_each_half_life() -> None:
    shares = _shares()
    shares.add("alice", "vision", leaf_cell_seconds=_full(100), at=0.0)
    run_to_end(shares.refresh(now=0.0))
    assert shares.factor("alice", "vision") == 0.5
    assert run_to_end(shares.refresh(now=_HALF_LIFE)) == [("vision", "alice")]
    assert shares.factor("alice", "vision") == 0.75
    assert run_to_end(shares.refresh(now=_HALF_LIFE)) == []


def test_old_use_that_is_told_late_counts_by_its_age() -> None:
    shares = _shares()
    shares.add("alice", None, leaf_cell_seconds=0.0, at=_HALF_LIFE)
    shares.add("alice", None, leaf_cell_seconds=_full(100), at=0.0)
    run_to_end(shares.refresh(now=_HALF_LIFE))
    assert shares.factor("alice", None) == 0.75


def test_weights_entitle_to_more() -> None:
    shares = _shares({"vision": 3.0})
    for group in ("vision", "speech"):
        shares.add("alice", group, leaf_cell_seconds=_full(37.5), at=0.0)
    run_to_end(shares.refresh(now=0.0))
    assert shares.factor("alice", "vision") == 0.75
    assert shares.factor("alice", "speech") == 0.25


def test_users_share_what_their_group_is_entitled_to() -> None:
    shares = _shares()
    shares.add("alice", "vision", leaf_cell_seconds=_full(50), at=0.0)
    shares.add("bob", "vision", leaf_cell_seconds=_full(0.001), at=0.0)
    run_to_end(shares.refresh(now=0.0))
    assert shares.factor("alice", "vision") == pytest.approx((0.75 + 0.5) / 2, abs=0.01)
    assert shares.factor("bob", "vision") == pytest.approx((0.75 + 1.0) / 2, abs=0.01)


def test_a_gang_that_starts_counts_at_once_with_its_expected_use() -> None:
    shares, account, gang = _shares(), ("vision", "alice"), GangKey("ns", "bert")
    assert shares.enter(gang, account, leaf_cells=100, ends=7 * DAY)
    assert not shares.enter(gang, account, leaf_cells=100, ends=7 * DAY)
    assert shares.refresh_group("vision", now=0.0) == [account]
    assert shares.factor("alice", "vision") == pytest.approx(1 - log(2) / 2, abs=0.002)
    shares.refresh_group("vision", now=3.5 * DAY)
    assert shares.factor("alice", "vision") == pytest.approx(1 - log(2) / 4, abs=0.002)
    shares.leave(gang)
    assert run_to_end(shares.refresh(now=3.5 * DAY)) == [account]
    assert shares.factor("alice", "vision") == 1.0


def test_entries_do_not_count_if_the_document_says_so() -> None:
    shares = _shares(entry="none")
    assert not shares.enter(GangKey("ns", "b"), ("g", "u"), leaf_cells=8, ends=HOUR)


def test_accounts_without_use_are_forgotten() -> None:
    shares = _shares()
    shares.add("alice", "vision", leaf_cell_seconds=HOUR, at=0.0)
    shares.add("bob", "speech", leaf_cell_seconds=_full(100), at=99 * _HALF_LIFE)
    run_to_end(shares.refresh(now=100 * _HALF_LIFE))
    assert shares.factor("bob", "speech") == 0.75, "the only group with recent use"
