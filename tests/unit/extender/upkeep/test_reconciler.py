"""DriftKind between the engine and the pods that exist: found, corrected, counted."""

from extender.cells.answers import wait
from extender.cells.model import ReasonCode
from extender.feeds.requests import to_bound
from policy.classes import NO_CLASSES
from policy.submission import GangKey, PodUid
from tests.support.cells.engine_calls import check
from tests.support.extender.gang_pods import bound, member
from tests.support.extender.group_sizes import GroupSizes
from tests.support.extender.shell import Shell


def test_what_the_engine_missed_is_found_and_mended() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(bound("a", "node-00"))
    shell.pods.upsert(bound("b", "node-01"))
    mending = shell.reconciler()
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
    check(shell.cluster._engine)


def test_a_binding_in_doubt_that_was_not_made_is_given_up_after_a_while() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(member("a", size=1))
    bound_by_us = shell.pods.read(bound("a", "node-00", size=1))
    assert bound_by_us is not None
    shell.cluster.observe_bound(to_bound(bound_by_us, classes=NO_CLASSES, sizes=GroupSizes()))
    mending = shell.reconciler()
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
    mending = shell.reconciler()
    for _ in range(3):
        list(mending.reconcile())
    assert told == [], "its grace period, and a minute"
    for _ in range(3):
        list(mending.reconcile())
        shell.pods.upsert(stuck)
    assert told == [GangKey("lab", "g")], "once, whatever is seen of it since"
    (gang,) = shell.cluster._engine._table.gangs.values()
    assert not gang.is_ending
    check(shell.cluster._engine)


def test_nobody_waits_who_does_not_exist() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(member("there"))
    for name in ("there", "gone"):
        pod = shell.pods.read(member(name))
        assert pod is not None
        full = wait(shell.to_request(pod), ReasonCode.GANG_FULL, members=1, leaf_cells=8)
        shell.outcomes.pod_decided(pod, full, offered=())
    mending = shell.reconciler()
    list(mending.reconcile())
    assert len(shell.waiting) == 2
    list(mending.reconcile())
    assert [entry.pod.uid for entry in shell.waiting] == ["uid-of-there"]
