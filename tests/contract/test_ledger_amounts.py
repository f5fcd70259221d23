"""CPU and memory in the ledger, and the leaf-cell-time of all time."""

from datetime import timedelta

import pytest

from policy.quotas.charge import CpuAndMemory
from policy.quotas.limits import Measure
from policy.quotas.usage import HeldSums
from policy.submission import ClassName, LeafType
from state.ledger.ledger import Charged, Held, LeaderTerm, Ledger, Refused
from tests.support.clocks import FrozenTime
from tests.support.state.charges import VISION, a_charge, at_most, gang_key

TERM = LeaderTerm(leadership="cellgate-extender", epoch=1)
GIB = 2**30
AMOUNTS = {"cpu_millis": 4000, "memory_bytes": 16 * GIB}


async def _held(ledger: Ledger) -> tuple[int, int]:
    usage = await ledger.usage(VISION)
    return usage.cpu_millis, usage.memory_bytes // GIB


async def test_cpu_and_memory_are_held_and_released(ledger: Ledger) -> None:
    answer = await ledger.charge(a_charge("a", **AMOUNTS))
    assert isinstance(answer, Charged)
    assert [one.cpu_millis for one in answer.usage] == [4000] * 3
    await ledger.charge(a_charge("b", cpu_millis=500))
    assert await _held(ledger) == (4500, 16)
    await ledger.release([gang_key("a")], term=TERM)
    assert await _held(ledger) == (500, 0)


@pytest.mark.parametrize(
    ("measure", "most", "used", "asked"),
    [
        (Measure.CPU_MILLIS, 7999, 4000, 4000),
        (Measure.MEMORY_BYTES, 31 * GIB, 16 * GIB, 16 * GIB),
    ],
)
async def test_a_limit_counts_them(
    ledger: Ledger, measure: Measure, most: float, used: int, asked: int
) -> None:
    limit = at_most(most, measure, VISION)
    assert isinstance(await ledger.charge(a_charge("a", **AMOUNTS), limits=[limit]), Charged)
    answer = await ledger.charge(a_charge("b", **AMOUNTS), limits=[limit])
    assert isinstance(answer, Refused)
    [exceeded] = answer.exceeded
    assert (exceeded.used, exceeded.asked) == (used, asked)
    small = a_charge("c", cpu_millis=1, memory_bytes=1)
    assert isinstance(await ledger.charge(small, limits=[limit]), Charged)


async def test_they_grow_with_the_leaf_cells(ledger: Ledger) -> None:
    charge = a_charge("a", **AMOUNTS, places=0)
    await ledger.charge(charge)
    answer = await ledger.resize(charge, 6)
    assert isinstance(answer, Charged)
    assert answer.live.charge.cpu_millis == 6000
    assert await _held(ledger) == (6000, 24)
    limit = at_most(7000, Measure.CPU_MILLIS, VISION)
    refused = await ledger.join(answer.live.charge, 2, limits=[limit])
    assert isinstance(refused, Refused)
    assert [(one.used, one.asked) for one in refused.exceeded] == [(0, 8000)]
    assert isinstance(await ledger.join(answer.live.charge, 1, limits=[limit]), Charged)
    assert await _held(ledger) == (7000, 28)


async def test_a_member_that_requests_more_is_added(ledger: Ledger, clock: FrozenTime) -> None:
    charge = a_charge("a", **AMOUNTS)
    await ledger.charge(charge)
    charged_at = clock()
    clock.advance(seconds=5)
    limit = at_most(10_000, Measure.CPU_MILLIS, VISION)
    more = CpuAndMemory(cpu_millis=6000, memory_bytes=GIB)
    # Two members at once: each has seen the first charge, and both count.
    assert isinstance(await ledger.add(charge, CpuAndMemory(cpu_millis=3000)), Charged)
    answer = await ledger.add(charge, CpuAndMemory(cpu_millis=3000), limits=[limit])
    assert isinstance(answer, Charged)
    assert answer.live.charged_at == charged_at
    assert (answer.live.charge.cpu_millis, answer.live.charge.leaf_count) == (10_000, 4)
    refused = await ledger.add(charge, more, limits=[limit])
    assert isinstance(refused, Refused)
    assert [(one.used, one.asked) for one in refused.exceeded] == [(0, 16_000)]
    assert await _held(ledger) == (10_000, 16)
    assert isinstance(await ledger.add(charge, more), Charged)
    assert await _held(ledger) == (16_000, 17)
    other = a_charge("a", cpu_millis=1)
    assert isinstance(await ledger.add(other, more), Held)
    await ledger.release([gang_key("a")], term=TERM)
    again = await ledger.add(charge, more, limits=[limit])
    assert isinstance(again, Charged)
    assert await _held(ledger) == (10_000, 17)


async def test_a_gang_grows_by_members_like_its_first_one(ledger: Ledger) -> None:
    each = CpuAndMemory(cpu_millis=1000, memory_bytes=4 * GIB)
    charge = a_charge("a", **AMOUNTS, places=0, each=each)
    await ledger.charge(charge)
    await ledger.add(charge, CpuAndMemory(cpu_millis=9000))
    grown = await ledger.resize(charge, 5)
    assert isinstance(grown, Charged)
    assert (grown.live.charge.cpu_millis, grown.live.charge.each) == (14_000, each)
    joined = await ledger.join(grown.live.charge, 2)
    assert isinstance(joined, Charged)
    assert await _held(ledger) == (16_000, 28)
    assert isinstance(await ledger.resize(joined.live.charge, 1), Charged)
    assert await _held(ledger) == (16_000 // 7, 4)


async def test_overflow_uses_up_no_limit_of_them(ledger: Ledger) -> None:
    beyond = a_charge("a", **AMOUNTS, rises_to=ClassName("prod"))
    await ledger.charge(beyond)
    usage = await ledger.usage(VISION)
    assert usage.overflow == HeldSums(
        leaf_cells=4, leaf_cells_high=4, gangs=1, by_leaf_type={LeafType("A100"): 4}, **AMOUNTS
    )
    assert usage.used(Measure.CPU_MILLIS) == 0
    limit = at_most(4000, Measure.CPU_MILLIS, VISION)
    assert isinstance(await ledger.charge(a_charge("b", **AMOUNTS), limits=[limit]), Charged)


async def test_the_leader_counts_the_pods(ledger: Ledger, clock: FrozenTime) -> None:
    charge, other = a_charge("a", **AMOUNTS), a_charge("b")
    await ledger.charge(charge)
    await ledger.charge(other)
    clock.advance(seconds=60)
    counted = a_charge("a", decision=charge.decision, cpu_millis=3000, memory_bytes=GIB)
    changed = a_charge("b", decision=other.decision, leaf_count=2, cpu_millis=9)
    assert await ledger.recount([counted, changed], term=TERM) == 1
    assert await _held(ledger) == (3000, 1)
    assert (await ledger.usage(VISION)).day_micros == 8 * 60_000_000
    assert [live.charged_at for live in await ledger.charges()] == [
        clock() - timedelta(seconds=60)
    ] * 2


async def test_hours_in_total_are_never_forgotten(ledger: Ledger, clock: FrozenTime) -> None:
    await ledger.charge(a_charge("a"))
    await ledger.confirm([gang_key("a")], term=TERM)
    clock.advance(days=40)
    await ledger.release([gang_key("a")], term=TERM)
    clock.advance(days=400)
    limit = at_most(3840, Measure.HOURS_TOTAL, VISION)
    answer = await ledger.charge(a_charge("b"), limits=[limit])
    assert isinstance(answer, Refused)
    assert [one.used for one in answer.exceeded] == [3840.0]
    more = at_most(3841, Measure.HOURS_TOTAL, VISION)
    assert isinstance(await ledger.charge(a_charge("b"), limits=[more]), Charged)
