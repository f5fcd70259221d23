"""Each invariant is broken on purpose, and the check reports it."""

from collections.abc import Callable

import pytest

from extender.cells.engine import Engine
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.gang_slots import GangSlots
from extender.cells.state.placed_gangs import MemberSlot
from policy.errors import InvariantError
from policy.submission import GangKey, PodUid, VcName
from policy.topology import ChainName
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.cells.engine_calls import check
from tests.support.cells.engine_world import EngineWorld

RACK = ChainName("rack")


def an_engine_at_work() -> Engine:
    """Two racks; VC a uses one node of its two, VC b was promised a rack.

    In b's rack gang high waits for gang low, which borrows it.
    """
    cluster = a_cluster("2 racks x 2 nodes x 2").promising("a", node=2).promising("b", rack=1)
    world = EngineWorld(cluster)
    world.place(a_gang("g").of(2))
    world.place(a_gang("low").of(2, 2, 2).at(-1))
    world.apply(world.ask(a_gang("high").of(2, 2).in_vc("b")))
    return world.engine


def _hold_twice(table: AllocationTable) -> None:
    gang = table.gangs[GangKey("ns", "g")]
    first = next(iter(gang.slots))
    gang.slots.add(MemberSlot(first.leaves, 2, first.claim))


def _lose_a_holder(table: AllocationTable) -> None:
    next(iter(table.gangs[GangKey("ns", "g")].slots)).leaves[0].holder = None


def _miscount_idle(table: AllocationTable) -> None:
    table.trees[RACK].root.children[1].idle -= 1


def _miscount_claims(table: AllocationTable) -> None:
    table.trees[RACK].root.children[1].claims_below += 1


def _lose_a_preassigned_cell(table: AllocationTable) -> None:
    table.vcs[VcName("a")].unmapped[RACK, 2].pop()


def _forget_a_user(table: AllocationTable) -> None:
    next(iter(table.vcs[VcName("a")].claims.values())).users.clear()


def _list_a_used_cell_as_free(table: AllocationTable) -> None:
    cell = next(iter(table.vcs[VcName("a")].claims.values())).cell
    table.supplies[RACK]._free[2].append(cell.order)


def _promise_too_much(table: AllocationTable) -> None:
    table.vcs[VcName("b")].unmapped[RACK, 3].append(0)
    table.supplies[RACK].unused[3] += 1


def _take_the_promised_rack(table: AllocationTable) -> None:
    table.remove_reserved_slots(table.gangs[GangKey("ns", "high")])
    vc = table.vcs[VcName("a")]
    rack = next(top for top in table.trees[RACK].root.children if top.claims_below == 0)
    claim = table.map_cell(vc, rack.children[0])
    claim.users[GangKey("ns", "g")] = 1


def _misrank(table: AllocationTable) -> None:
    bin_ = table.trees[RACK].root.children[1].children[0]
    table.idle[RACK].put(bin_, 1)


def _lie_outside_of_its_cell(table: AllocationTable) -> None:
    slot = next(iter(table.gangs[GangKey("ns", "g")].slots))
    slot.claim = None


def _wait_for_a_foreign_gang(table: AllocationTable) -> None:
    gang = table.gangs[GangKey("ns", "low")]
    for slot in gang.slots:
        slot.is_foreign = True
    gang.slots = GangSlots(gang.slots)


def _put_a_member_into_two_gangs(table: AllocationTable) -> None:
    table.gangs[GangKey("ns", "high")].waiting_members[PodUid("g-0")] = 2


def _lack_a_leaf_unknown_to_all(table: AllocationTable) -> None:
    next(iter(table.gangs[GangKey("ns", "g")].slots)).missing_leaves = 1


def _change_a_standing(table: AllocationTable) -> None:
    table.gangs[GangKey("ns", "low")].is_guaranteed = True


def _hold_more_places_than_members(table: AllocationTable) -> None:
    gang = table.gangs[GangKey("ns", "g")]
    gang.slots.add(MemberSlot((), 2))


def _give_a_slot_to_another_member(table: AllocationTable) -> None:
    next(iter(table.gangs[GangKey("ns", "g")].slots)).member = None


def _miscount_contested_leaves(table: AllocationTable) -> None:
    table.gangs[GangKey("ns", "low")].contested_leaves += 1


BROKEN = {
    "reserved twice": _hold_twice,
    "its holder do not agree": _lose_a_holder,
    "idle": _miscount_idle,
    "claims": _miscount_claims,
    "lost or doubled": _lose_a_preassigned_cell,
    "users": _forget_a_user,
    "free list": _list_a_used_cell_as_free,
    "VC safety": _take_the_promised_rack,
    "VC safety: chain rack": _promise_too_much,
    "rankings": _misrank,
    "counts against no cell": _lie_outside_of_its_cell,
    "which it may not end": _wait_for_a_foreign_gang,
    "members and their gangs": _put_a_member_into_two_gangs,
    "missing leaves": _lack_a_leaf_unknown_to_all,
    "registered at another standing": _change_a_standing,
    "more slots than members": _hold_more_places_than_members,
    "index of its slots": _give_a_slot_to_another_member,
    "its slots do not agree": _miscount_contested_leaves,
}


@pytest.mark.parametrize(("words", "break_it"), BROKEN.items(), ids=BROKEN)
def test_a_broken_invariant_is_told(
    words: str, break_it: Callable[[AllocationTable], None]
) -> None:
    engine = an_engine_at_work()
    check(engine)

    break_it(engine._table)

    with pytest.raises((InvariantError, AssertionError)) as failure:
        check(engine)
    assert words in str(failure.value) or words == "rankings"
