"""What only this process counts: through any outage, in bounded memory, and never twice."""

from dataclasses import replace

from policy.quotas.usage import ScopeUsage
from policy.submission import GroupName, LeafType
from state.ledger.assumed_charges import AssumedCharges
from tests.support.state.charges import ALICE, VISION, a_charge, gang_key


def _held(assumed: AssumedCharges) -> tuple[int, int, int]:
    usage = assumed.add_to(ScopeUsage(scope=ALICE))
    return usage.leaf_cells, usage.leaf_cells_high, usage.gangs


def test_it_counts_in_all_its_scopes_and_by_leaf_type() -> None:
    assumed = AssumedCharges()
    assumed.add(a_charge("a", leaf_count=4), now=0)
    assumed.add(a_charge("b", leaf_count=2, is_high=False), now=0)
    known = ScopeUsage(scope=VISION, leaf_cells=1, by_leaf_type={LeafType("A100"): 1})
    usage = assumed.add_to(known)
    assert (usage.leaf_cells, usage.leaf_cells_high, usage.gangs) == (7, 4, 2)
    assert usage.by_leaf_type == {"A100": 7}
    assumed.forget(gang_key("a"))
    assumed.forget(gang_key("b"))
    assert assumed.add_to(known) == known


def test_one_that_the_ledger_counts_in_part_counts_for_the_rest() -> None:
    assumed = AssumedCharges()
    charge = a_charge(leaf_count=6)
    assumed.add(charge, held=replace(charge, leaf_count=4), now=0)
    assert _held(assumed) == (2, 2, 0)
    assumed.add(replace(charge, leaf_count=9), held=charge, now=0)
    assert _held(assumed) == (5, 5, 0)
    assert assumed.find(charge.gang) == replace(charge, leaf_count=9)


def test_it_is_told_once_and_again_if_it_has_grown_meanwhile() -> None:
    assumed = AssumedCharges()
    first, second = a_charge("a"), a_charge("b")
    for charge in (first, second):
        assumed.add(charge, now=0)
    sending = assumed.unsent(10)
    assumed.add(replace(second, leaf_count=9), now=0)
    assumed.note_sent(sending)
    assert assumed.unsent(10) == [replace(second, leaf_count=9)]
    assert assumed.expected(10) == [first.gang, second.gang]


def test_one_that_has_grown_is_not_expected_before_that_was_told() -> None:
    assumed = AssumedCharges()
    grown = a_charge(leaf_count=9)
    assumed.add(grown, held=replace(grown, leaf_count=4), now=0)
    assert assumed.expected(10) == []
    assumed.note_sent([grown])
    assert assumed.expected(10) == [grown.gang]


def test_memory_is_bounded_and_what_is_forgotten_still_counts() -> None:
    assumed = AssumedCharges(most=10)
    for number in range(1000):
        assumed.add(a_charge(f"g{number}", leaf_count=2), now=number)
    assert len(assumed) == 10
    assert _held(assumed) == (2000, 2000, 1000)
    assumed.drop_older(989.5)  # the youngest of those without a name is that old
    assert _held(assumed) == (20, 20, 10)
    assumed.drop_older(1000)
    assert (_held(assumed), len(assumed)) == ((0, 0, 0), 0)


def test_memory_is_bounded_by_scopes_too() -> None:
    assumed = AssumedCharges(most=10)
    for number in range(1000):
        charge = a_charge(f"g{number}", group=GroupName(f"group-{number}"))
        assumed.add(charge, now=number)
    kept = [
        assumed.add_to(ScopeUsage(scope=charge.scopes[2])).gangs for charge in assumed.unsent(99)
    ]
    assert kept == [1] * 10


def test_what_has_more_cpu_than_the_ledger_counts_counts_for_the_rest() -> None:
    assumed = AssumedCharges()
    held = a_charge(cpu_millis=1000)
    assumed.add(replace(held, cpu_millis=9000), held=held, now=0)
    usage = assumed.add_to(ScopeUsage(scope=ALICE))
    assert (usage.cpu_millis, usage.leaf_cells, usage.gangs) == (8000, 0, 0)
    assumed.forget(held.gang)
    assert assumed.add_to(ScopeUsage(scope=ALICE)) == ScopeUsage(scope=ALICE)
