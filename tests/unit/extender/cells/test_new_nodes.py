"""For which waiting gangs an autoscaler is asked for nodes."""

import pytest

from extender.cells.model import Argument, Reason, ReasonCode
from extender.cells.new_nodes import MOST_AT_ONCE, WaitingGang, choose_for_new_nodes, lacks_nodes
from policy.submission import GangKey


def a_reason(code: ReasonCode, **arguments: Argument) -> Reason:
    return Reason(code=code, arguments=arguments, text="", change="")


def waiting(name: str, *, priority: int = 10, seconds: float = 60) -> WaitingGang:
    return WaitingGang(
        gang=GangKey("ml", name),
        reason=a_reason(ReasonCode.NO_ROOM),
        priority=priority,
        waited_seconds=seconds,
    )


@pytest.mark.parametrize(
    ("reason", "lacks"),
    [
        (a_reason(ReasonCode.NO_ROOM), True),
        (a_reason(ReasonCode.NODE_NOT_OFFERED), True),
        (a_reason(ReasonCode.BAD_CELLS), True),
        (a_reason(ReasonCode.VC_FULL, vc="lab"), False),
        (a_reason(ReasonCode.VC_FULL, vc="lab", shortfall=(8, 4)), True),
        (a_reason(ReasonCode.TOO_LARGE, vc="lab", needs=()), False),
        (a_reason(ReasonCode.TOO_LARGE, vc="lab", needs=(), shortfall=(8, 4)), True),
        (a_reason(ReasonCode.TOO_LARGE, needs=()), True),
        (a_reason(ReasonCode.TOO_LARGE, member=16), False),
        (a_reason(ReasonCode.QUOTA), False),
        (a_reason(ReasonCode.PREEMPTING), False),
        (a_reason(ReasonCode.GATHERING), False),
    ],
)
def test_only_gangs_that_lack_nodes_are_asked_for(reason: Reason, *, lacks: bool) -> None:
    assert lacks_nodes(reason, is_open=False) is lacks


def test_without_a_cluster_document_every_new_node_helps() -> None:
    assert lacks_nodes(a_reason(ReasonCode.TOO_LARGE, vc="default", needs=()), is_open=True)
    assert lacks_nodes(a_reason(ReasonCode.VC_FULL, vc="default", needs=()), is_open=True)
    assert not lacks_nodes(a_reason(ReasonCode.TOO_LARGE, member=16), is_open=True)


def test_gangs_of_a_higher_priority_and_those_that_wait_longer_come_first() -> None:
    gangs = [waiting("young"), waiting("old", seconds=90), waiting("high", priority=100)]
    chosen = choose_for_new_nodes(gangs, is_open=False)
    assert [gang.name for gang in chosen] == ["high", "old", "young"]


def test_no_node_is_asked_for_opportunistic_gangs_or_for_those_that_have_just_come() -> None:
    gangs = [waiting("oppo", priority=-1), waiting("new", seconds=5)]
    assert choose_for_new_nodes(gangs, is_open=False) == ()


def test_the_number_of_requests_is_bounded() -> None:
    gangs = [waiting(f"gang-{number}") for number in range(3 * MOST_AT_ONCE)]
    assert len(choose_for_new_nodes(gangs, is_open=False)) == MOST_AT_ONCE
