"""Drift, half-bound gangs, counts: what is looked after while nobody asks."""

from extender.cells.model import MemberRequest
from extender.feeds.requests import to_bound
from extender.inspection.census import Census
from extender.outcomes.waiting_pods import Refusals, Waiting, WaitingPods
from extender.upkeep.half_bound_gangs import HalfBoundGangs
from extender.upkeep.reconciler import Reconciler
from kube.read.pods import ManagedPod
from policy.classes import NO_CLASSES
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid, VcName
from policy.topology import CellTypeName, ChainName
from service.clock import Clock
from tests.support.extender_shell import NoSizes, Shell
from tests.support.kube_objects import PodBuilder, a_pod
from tests.support.records import a_decision


def member(name: str, *, gang: str = "g", size: int = 2) -> PodBuilder:
    return a_pod(name).with_gpus(8).in_vc("lab").in_gang(gang, size=size)


def bound(name: str, node: str, **fields: object) -> PodBuilder:
    placement = Placement(
        node=NodeName(node),
        leaf_cells=tuple(range(8)),
        chain=ChainName("rack"),
        vc_cell_type=CellTypeName("node"),
    )
    return member(name, **fields).placed(placement).bound_to(node)  # type: ignore[arg-type]


def a_waiting_pod(uid: str, *, code: str = "no-room") -> Waiting:
    return Waiting(
        uid=PodUid(uid),
        namespace="lab",
        name=uid,
        gang=GangKey("lab", uid),
        vc=VcName("lab"),
        code=code,
        reason=f"because {code}",
        change="",
        since=a_decision().at,
        offered=(),
    )


def reconciler(shell: Shell) -> Reconciler:
    return Reconciler(
        cluster=shell.cluster,
        pods=shell.pods,
        waiting=shell.waiting,
        to_bound=lambda pod: to_bound(pod, classes=NO_CLASSES, sizes=NoSizes()),
        metrics=shell.metrics,
    )


def test_what_the_engine_missed_is_found_and_mended() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(bound("a", "node-00"))
    shell.pods.upsert(bound("b", "node-01"))
    mending = reconciler(shell)
    list(mending.reconcile())
    assert (shell.drift("missing"), shell.drift("ghost")) == (0, 0)

    shell.cluster.forget_member(PodUid("uid-of-a"))
    shell.pods._pods.pop(PodUid("uid-of-b"))
    list(mending.reconcile())
    assert (shell.drift("missing"), shell.drift("ghost")) == (1, 0)
    list(mending.reconcile())  # whoever is unknown twice does not come any more
    assert (shell.drift("missing"), shell.drift("ghost")) == (1, 1)
    assert shell.cluster.has_place(PodUid("uid-of-a"))
    assert not shell.cluster.has_place(PodUid("uid-of-b"))
    shell.cluster._engine.check()


def test_a_binding_in_doubt_that_was_not_made_is_given_up_after_a_while() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(member("a", size=1))
    bound_by_us = shell.pods.read(bound("a", "node-00", size=1))
    assert bound_by_us is not None
    shell.cluster.observe_bound(to_bound(bound_by_us, classes=NO_CLASSES, sizes=NoSizes()))
    mending = reconciler(shell)
    for _ in range(3):
        list(mending.reconcile())
    assert shell.cluster.has_place(PodUid("uid-of-a"))
    list(mending.reconcile())
    assert not shell.cluster.has_place(PodUid("uid-of-a"))
    assert shell.drift("unbound") == 1


def test_nobody_counts_on_the_end_of_a_pod_that_is_stuck_in_it() -> None:
    shell = Shell()
    shell.recover()
    stuck = bound("a", "node-00", size=1).being_deleted(grace_seconds=30)
    shell.pods.upsert(stuck)
    told: list[GangKey] = []
    shell.cluster.on_overdue.append(told.append)
    mending = reconciler(shell)
    for _ in range(3):
        list(mending.reconcile())
    assert told == [], "its grace period, and a minute"
    for _ in range(3):
        list(mending.reconcile())
        shell.pods.upsert(stuck)
    assert told == [GangKey("lab", "g")], "once, whatever is seen of it since"
    (gang,) = shell.cluster._engine._table.gangs.values()
    assert not gang.is_ending
    shell.cluster._engine.check()


def test_nobody_waits_who_does_not_exist() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(member("there"))
    for name in ("there", "gone"):
        shell.waiting.put(a_waiting_pod(f"uid-of-{name}"))
    mending = reconciler(shell)
    list(mending.reconcile())
    assert len(shell.waiting) == 2
    list(mending.reconcile())
    assert [pod.uid for pod in shell.waiting] == ["uid-of-there"]


class Released(list[tuple[list[str], str]]):
    def __call__(self, pods: list[ManagedPod], why: str) -> None:
        self.append(([pod.name for pod in pods], why))


def test_a_half_bound_gang_whose_class_is_gone_is_looked_after_all_the_same() -> None:
    shell, released = Shell(), Released()
    shell.pods.replace([bound("a", "node-00"), member("b")])
    shell.recover()
    looked_after = halves(shell, released)
    looked_after.complete()

    def refuse(_: ManagedPod) -> MemberRequest:
        raise RequestError.at("spec.priorityClassName", "is not listed")

    looked_after._to_request = refuse
    looked_after.look(now=301)
    assert [names for names, _ in released] == [["a"]]


def halves(shell: Shell, released: Released) -> HalfBoundGangs:
    return HalfBoundGangs(
        cluster=shell.cluster,
        pods=shell.pods,
        to_request=shell.to_request,
        release=released,
        clock=Clock(monotonic=lambda: 0.0),
    )


def test_a_half_bound_gang_gets_its_places_before_anybody_else_can_ask() -> None:
    shell, released = Shell(), Released()
    shell.pods.replace([bound("a", "node-00"), member("b"), member("alone", gang="other")])
    shell.recover()
    looked_after = halves(shell, released)
    looked_after.complete()

    assert shell.cluster.has_place(PodUid("uid-of-b"))
    assert not shell.cluster.has_place(PodUid("uid-of-alone"))
    shell.pods.upsert(bound("b", "node-01"))
    looked_after.look(now=10_000)
    assert released == []


def test_a_gang_that_cannot_be_completed_is_released_after_a_while() -> None:
    shell, released = Shell(), Released()
    for index in range(1, 4):
        shell.node(f"node-{index:02}", is_healthy=False)
    shell.pods.replace([bound("a", "node-00"), member("b")])
    shell.recover()
    looked_after = halves(shell, released)
    looked_after.complete()
    looked_after.look(now=299)
    assert released == []
    looked_after.look(now=301)
    assert released == [(["a"], "gang lab/g was interrupted half bound and cannot be completed")]
    looked_after.look(now=9_999)
    assert len(released) == 1


def test_nobody_is_ended_for_members_whose_work_is_done() -> None:
    """Of three members one has finished: the two that are left are all there will ever be."""
    shell, released = Shell(), Released()
    done = bound("c", "node-02", size=3).in_phase("Succeeded")
    shell.pods.replace([bound("a", "node-00", size=3), member("b", size=3), done])
    shell.recover()
    looked_after = halves(shell, released)
    looked_after.complete()
    shell.pods.upsert(bound("b", "node-01", size=3))
    looked_after.look(now=301)
    assert released == []


def test_leaf_cells_are_counted_by_vc_and_state() -> None:
    shell = Shell()
    shell.node("node-03", is_healthy=False)
    shell.recover()
    shell.pods.upsert(bound("a", "node-00", gang="one", size=1))
    shell.pods.upsert(a_pod("foreign").with_gpus(3).in_vc("lab").bound_to("node-01"))
    shell.pods.upsert(
        a_pod("misfit").with_gpus(1).labelled("cellgate.io/vc", "?").bound_to("node-01")
    )
    census = Census(shell.cluster)
    list(census.count())

    assert dict(census.leaf_cells) == {
        ("", "free"): 12,
        ("", "bad"): 8,
        ("lab", "used"): 8,
        ("", "foreign"): 4,
    }
    assert dict(census.cells) == {("lab", "node", "free"): 3, ("lab", "node", "used"): 1}
    assert (census.gangs, census.leases) == (3, 0)
    assert census.fragmentation == 4 / 12


def test_an_answer_is_given_again_until_the_cluster_changes() -> None:
    refusals = Refusals()
    refusals.put(b"question", b"no", version=7)
    assert refusals.repeat(b"question", version=7) == b"no"
    assert refusals.repeat(b"another", version=7) is None
    assert refusals.repeat(b"question", version=8) is None


def test_a_pod_that_waits_for_another_reason_is_news() -> None:
    waiting = WaitingPods()

    def put(code: str) -> bool:
        return waiting.put(a_waiting_pod("u", code=code))

    assert [put("no-room"), put("no-room"), put("vc-full")] == [True, False, True]
    waiting.remove(PodUid("u"))
    assert len(waiting) == 0
