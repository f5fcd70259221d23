"""Cells for members that are created later, after a change of leaders."""

from dataclasses import replace

import pytest

from extender.cells.model import Place, Wait
from extender.cells.views.listings import run_to_end
from extender.cluster.journal import DecisionContext
from extender.upkeep.late_leases import LateLeases
from kube.marks import LATE_ANNOTATION
from policy.submission import NodeName, PodUid
from state.log.records import RowKind
from tests.support.extender.gang_pods import bound, member
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder

NODES = {NodeName(f"node-{index:02}"): None for index in range(4)}


def late(pod: PodBuilder, mark: str) -> PodBuilder:
    return pod.annotated(LATE_ANNOTATION, mark)


def taken_over(*pods: PodBuilder, room: dict[NodeName, None] = NODES) -> Shell:
    """What a leader knows after it has taken over; only nodes in `room` have room."""
    shell = Shell()
    shell.pods.replace(list(pods))
    shell.recover()
    leases = LateLeases(
        cluster=shell.cluster, pods=shell.pods, nodes_for=lambda _: room, clock=shell.clock
    )
    leases.grant()
    run_to_end(shell.cluster.check_stepwise())
    return shell


def ask(shell: Shell, pod: PodBuilder, *, leaves: int = 8) -> Place | Wait:
    shell.pods.upsert(pod.with_gpus(leaves))
    request = shell.to_request(shell.pod(pod["metadata"]["name"]))
    sizes = shell.cluster.known_sizes(request.gang)
    if sizes is not None:
        request = replace(request, gang_leaf_counts=sizes.leaf_counts)
    context = DecisionContext(kind=RowKind.PLACEMENT, now=1.0)
    decision = shell.cluster.decide(request, candidate_nodes=NODES, context=context)
    assert isinstance(decision, Place | Wait)
    return decision


def test_no_other_gang_gets_the_cells_of_late_members() -> None:
    shell = taken_over(late(bound("a", "node-00", size=3), "2"))
    rivals = [ask(shell, member(name, gang=name, size=1)) for name in ("r0", "r1")]
    assert [type(one) for one in rivals] == [Place, Wait]
    placed = [ask(shell, late(member(name, size=3), "2")) for name in ("b", "c")]
    nodes = {one.placement.node for one in [*placed, rivals[0]] if isinstance(one, Place)}
    assert nodes == {"node-01", "node-02", "node-03"}


def test_late_members_that_exist_get_no_second_lease() -> None:
    shell = taken_over(
        late(bound("a", "node-00", size=3), "2"), late(bound("b", "node-01", size=3), "2")
    )
    rivals = [ask(shell, member(name, gang=name, size=1)) for name in ("r0", "r1")]
    assert [type(one) for one in rivals] == [Place, Wait]


@pytest.mark.parametrize(("mark", "free"), [("1x3", 5), ("1x0", 8)], ids=["smaller", "helper"])
def test_late_members_may_be_of_another_size(mark: str, free: int) -> None:
    shell = taken_over(late(bound("a", "node-00"), mark))
    for index in (1, 2):
        assert isinstance(ask(shell, member(f"r{index}", gang=f"r{index}", size=1)), Place)
    assert isinstance(ask(shell, member("more", gang="more", size=1), leaves=free), Place)
    assert isinstance(ask(shell, member("last", gang="last", size=1), leaves=1), Wait)
    if free < 8:
        launcher = late(member("launcher"), mark)
        assert isinstance(ask(shell, launcher, leaves=8 - free), Place)


def test_nothing_is_leased_without_room_or_for_gangs_that_do_not_run() -> None:
    for pod, room in ((bound("a", "node-00"), {}), (member("a"), NODES)):
        shell = taken_over(late(pod, "1"), room=room)
        rivals = [ask(shell, member(f"r{index}", gang=f"r{index}", size=1)) for index in range(3)]
        assert all(isinstance(one, Place) for one in rivals)


def test_a_lease_that_is_not_renewed_expires() -> None:
    shell = taken_over(late(bound("a", "node-00"), "1"))
    gang = shell.pod("a").gang.key
    shell.cluster.renew(gang, now=50.0)
    assert shell.cluster.expire(now=100.0) == []
    assert shell.cluster.expire(now=111.0) == [gang]
    assert shell.cluster.has_place(PodUid("uid-of-a"))
