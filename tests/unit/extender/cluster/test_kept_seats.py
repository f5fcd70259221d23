"""Seats that are kept for other gangs are part of a decision's row, and of its replay."""

from dataclasses import replace

import pytest

from extender.cells.model import (
    NO_FACTS,
    MemberRequest,
    Place,
    ReasonCode,
    Seat,
    TriedForms,
    Wait,
    WaitFacts,
)
from extender.cluster.journal import DecisionContext
from extender.cluster.replay import replay_epoch
from extender.cluster.rows import decode_seat, encode_seat
from policy.submission import GangKey, PodUid, VcName
from policy.topology import CellAddress, ChainName
from state.log.records import RowKind
from tests.support.extender.mixed_load import NODES, MixedLoad
from tests.support.policy.cluster_texts import hived_text


@pytest.mark.parametrize(
    "seat",
    [
        Seat(
            chain=ChainName("rack"),
            leaves=(CellAddress("r0/n1/0/3"), CellAddress("r0/n1/1/0")),
            claim=CellAddress("r0/n1"),
        ),
        Seat(chain=ChainName("rack"), leaves=(CellAddress("r0/n1/0"),)),
        Seat(chain=ChainName("x"), leaves=(CellAddress("n1/1"), CellAddress("n1/10"))),
    ],
)
def test_a_seat_is_read_as_it_was_written(seat: Seat) -> None:
    assert decode_seat(encode_seat(seat)) == seat


async def test_a_replay_leaves_the_same_seats_alone() -> None:
    load = MixedLoad(1, hived_text(racks=2, nodes=4, a=8))
    large, small = _request("large", (8,) * 8), _request("small", (8,))
    nodes = dict.fromkeys(NODES)
    shadow = load.cluster.shadow(large, ends=[], candidate_nodes=nodes, now=0.0)
    assert shadow is not None
    context = DecisionContext(
        kind=RowKind.PLACEMENT, now=0.0, kept=shadow.seats, facts=WaitFacts(reserved_for=large.gang)
    )
    decision = load.cluster.decide(small, candidate_nodes=nodes, context=context)
    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.RESERVED
    assert "reserved for gang lab/large" in decision.reason.text
    kept = replace(context, kept=shadow.seats[:4], facts=NO_FACTS)
    assert isinstance(load.cluster.decide(small, candidate_nodes=nodes, context=kept), Place)
    await load.log.flush()

    report = await replay_epoch(load.store, epoch=1)

    assert report.differences == []
    assert report.is_identical


async def test_forms_that_were_tried_are_part_of_the_row_and_of_its_replay() -> None:
    load = MixedLoad(1, hived_text(racks=2, nodes=4, a=2))
    large, small = _request("large", (8,) * 4), _request("small", (8,))
    nodes = dict.fromkeys(NODES)
    tried = TriedForms(form="as asked", refused=(("alternative 1 of 1 (VC b)", "VC b is full"),))
    context = DecisionContext(kind=RowKind.PLACEMENT, now=0.0, facts=WaitFacts(tried=tried))
    waits = load.cluster.decide(large, candidate_nodes=nodes, context=context)
    assert not isinstance(waits, Place)
    assert waits.reason.text.endswith("; alternative 1 of 1 (VC b): VC b is full")
    used = replace(tried, form="alternative 1 of 1 (VC b)", refused=(("as asked", "no room"),))
    context = replace(context, facts=WaitFacts(tried=used))
    assert isinstance(load.cluster.decide(small, candidate_nodes=nodes, context=context), Place)
    await load.log.flush()

    placed = next(row for row in load.store.records if row.outcome == "placed")
    assert placed.reason.endswith(", alternative 1 of 1 (VC b): as asked: no room")
    report = await replay_epoch(load.store, epoch=1)
    assert report.decisions == 2
    assert report.is_identical


def _request(name: str, leaf_counts: tuple[int, ...]) -> MemberRequest:
    return MemberRequest(
        member=PodUid(name),
        gang=GangKey("lab", name),
        leaf_count=leaf_counts[0],
        gang_leaf_counts=leaf_counts,
        vc=VcName("a"),
    )
