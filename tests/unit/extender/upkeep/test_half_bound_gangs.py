"""Gangs that were half bound when the leader before us died."""

from collections.abc import Callable

from extender.cells.model import MemberRequest
from extender.upkeep.half_bound_gangs import HalfBoundGangs
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError
from policy.submission import NodeName, PodUid
from tests.support.extender.gang_pods import bound, member
from tests.support.extender.shell import Shell


class Ended(list[tuple[str, str]]):
    """Keeps the pods that are to end, and why."""

    def start(self, pod: ManagedPod, *, why: str, is_wanted: Callable[[], bool]) -> None:
        assert is_wanted()
        self.append((pod.name, why))


def halves(shell: Shell, ended: Ended, *, room: tuple[str, ...] | None = None) -> HalfBoundGangs:
    nodes = shell.cluster.nodes if room is None else map(NodeName, room)
    fitting = dict.fromkeys(nodes)
    return HalfBoundGangs(
        cluster=shell.cluster,
        pods=shell.pods,
        to_request=shell.to_request,
        nodes_for=lambda _: fitting,
        evictions=ended,  # type: ignore[arg-type] # all that it uses
        outcomes=shell.outcomes,
        clock=shell.clock,
    )


def test_a_half_bound_gang_whose_class_is_gone_is_looked_after_all_the_same() -> None:
    shell, ended = Shell(), Ended()
    shell.pods.replace([bound("a", "node-00"), member("b")])
    shell.recover()
    looked_after = halves(shell, ended)
    looked_after.complete()

    def refuse(_: ManagedPod) -> MemberRequest:
        raise RequestError.at("spec.priorityClassName", "is not listed")

    looked_after._to_request = refuse
    looked_after.look(now=301)
    assert [name for name, _ in ended] == ["a"]


def test_a_half_bound_gang_gets_its_places_before_anybody_else_can_ask() -> None:
    shell, ended = Shell(), Ended()
    shell.pods.replace([bound("a", "node-00"), member("b"), member("alone", gang="other")])
    shell.recover()
    looked_after = halves(shell, ended)
    looked_after.complete()

    assert shell.cluster.has_place(PodUid("uid-of-b"))
    assert not shell.cluster.has_place(PodUid("uid-of-alone"))
    shell.pods.upsert(bound("b", "node-01"))
    looked_after.look(now=10_000)
    assert ended == []


def test_a_half_bound_gang_is_completed_on_nodes_with_room_beside_leaf_cells() -> None:
    shell, ended = Shell(), Ended()
    shell.pods.replace([bound("a", "node-00"), member("b")])
    shell.recover()
    halves(shell, ended, room=()).complete()
    assert not shell.cluster.has_place(PodUid("uid-of-b"))
    halves(shell, ended, room=("node-03",)).complete()
    placement = shell.cluster.placement(PodUid("uid-of-b"))
    assert placement is not None
    assert placement.node == "node-03"


def test_a_gang_that_cannot_be_completed_is_ended_after_a_while() -> None:
    shell, ended = Shell(), Ended()
    for index in range(1, 4):
        shell.node(f"node-{index:02}", is_healthy=False)
    shell.pods.replace([bound("a", "node-00"), member("b")])
    shell.recover()
    looked_after = halves(shell, ended)
    looked_after.complete()
    looked_after.look(now=299)
    assert ended == []
    looked_after.look(now=301)
    ((name, why),) = ended
    assert name == "a"
    assert "gang lab/g was half bound when the leader changed, and only 1 of 2 members" in why
    looked_after.look(now=9_999)
    assert len(ended) == 1


def test_nobody_is_ended_for_members_whose_work_is_done() -> None:
    """Of three members one has finished: the two that are left are all there will ever be."""
    shell, ended = Shell(), Ended()
    done = bound("c", "node-02", size=3).in_phase("Succeeded")
    shell.pods.replace([bound("a", "node-00", size=3), member("b", size=3), done])
    shell.recover()
    looked_after = halves(shell, ended)
    looked_after.complete()
    shell.pods.upsert(bound("b", "node-01", size=3))
    looked_after.look(now=301)
    assert ended == []


def test_no_victims_are_ended_on_nodes_that_kube_scheduler_has_not_offered() -> None:
    """A pod that is said to wait for victims gets them after some seconds, asked for or not."""
    shell, ended = Shell(), Ended()
    others = [bound(f"o{index}", f"node-{index:02}", gang="o", size=3) for index in range(1, 4)]
    shell.pods.replace([bound("a", "node-00"), member("b"), *others])
    shell.recover()
    halves(shell, ended).complete()
    assert not shell.cluster.has_place(PodUid("uid-of-b"))
    assert list(shell.waiting) == []
