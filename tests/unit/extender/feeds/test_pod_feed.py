"""Pods as their feed tells them: changed, broken and mended under way."""

import pytest

from extender.feeds.finished_members import FinishedMembers
from kube import marks
from kube.read.pods import read_pod
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid
from policy.topology import ChainName
from tests.support.cells.engine_calls import check, list_nodes
from tests.support.extender.shell import Shell
from tests.support.kube.objects import uid_of
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.kube.workloads import workload_mark

UID = PodUid("uid-of-a")


@pytest.fixture
def shell() -> Shell:
    shell = Shell()
    shell.recover()
    return shell


def a_running_hived_pod() -> PodBuilder:
    """It holds a whole node by HiveD's annotation alone."""
    placement = Placement(
        node=NodeName("node-00"), leaf_cells=tuple(range(8)), chain=ChainName("rack")
    )
    spec = "{virtualCluster: lab, priority: -1, leafCellNumber: 8}"
    return a_pod("a").for_hived().with_hived_spec(spec).placed(placement).bound_to("node-00")


def test_what_runs_is_taken_in_bit_by_bit() -> None:
    shell = Shell()
    for index in range(4):
        pod = a_pod(f"p{index}").with_gpus(1).bound_to("node-00")
        shell.pods.upsert(pod)
    bits = list(shell.pods.recover(now=0.0))
    assert len(bits) == 4 * len(("read", "written down", "seated", "registered"))
    assert all(shell.cluster.has_place(pod.uid) for pod in shell.pods)


def test_a_pod_that_changes_its_gang_leaves_the_old_one(shell: Shell) -> None:
    shell.pods.upsert(a_pod("a").with_gpus(1).in_gang("old", size=2))
    shell.pods.upsert(a_pod("a").with_gpus(1).in_gang("new", size=2))
    assert shell.pods.of_gang(GangKey("lab", "old")) == []
    assert [pod.uid for pod in shell.pods.of_gang(GangKey("lab", "new"))] == [UID]

    shell.pods.remove(a_pod("a"))
    assert shell.pods.of_gang(GangKey("lab", "new")) == []


def test_a_running_pod_keeps_its_leaf_cells_when_its_annotation_is_broken(shell: Shell) -> None:
    shell.pods.upsert(a_running_hived_pod())
    shell.pods.upsert(a_running_hived_pod().annotated(marks.HIVED_SPEC_ANNOTATION, "{{{"))
    placement = shell.cluster.placement(UID)
    assert placement is not None
    assert placement.leaf_cells == tuple(range(8))

    ended = a_running_hived_pod().annotated(marks.HIVED_SPEC_ANNOTATION, "{{{")
    shell.pods.upsert(ended.in_phase("Succeeded"))
    assert not shell.cluster.has_place(UID)
    assert shell.pods.get(UID) is None


def test_a_pod_that_is_mended_has_not_ended(shell: Shell) -> None:
    pod = a_pod("a").with_gpus(1)
    shell.pods.upsert(pod)
    shell.pods.upsert(pod.labelled(marks.VC_LABEL, "?"))
    assert shell.pods.get(UID) is None
    assert [pod.name for pod in shell.pods.invalid] == ["a"]

    shell.pods.upsert(pod)
    assert shell.pods.get(UID) is not None
    assert not shell.pods.has_ended(UID)
    assert list(shell.pods.invalid) == []


def test_an_invalid_pod_that_is_mended_is_counted_once(shell: Shell) -> None:
    pod = a_pod("a").with_gpus(3).bound_to("node-00")
    shell.pods.upsert(pod.labelled(marks.VC_LABEL, "?"))
    shell.pods.upsert(pod)
    held = {str(node.name): len(holders) for node, holders in list_nodes(shell.cluster._engine)}
    assert held["node-00"] == 3
    check(shell.cluster._engine)

    shell.pods.replace([])
    assert not shell.cluster.has_place(UID)


def test_what_a_waiting_pod_asks_otherwise_is_news_and_a_condition_is_not(shell: Shell) -> None:
    pod = a_pod("a").with_gpus(1)
    shell.pods.upsert(pod)
    version = shell.cluster.version
    touched = pod._changed("metadata", resourceVersion="2")
    shell.pods.upsert(touched)
    assert shell.cluster.version == version

    shell.pods.upsert(touched.labelled(marks.LEAF_TYPE_LABEL, "A100"))
    assert shell.cluster.version > version


@pytest.mark.parametrize(
    ("seen", "written", "known"),
    [("9", "10", "10"), ("10", "9", "10"), ("opaque", "10", "opaque")],
    ids=["our write is newer", "the feed is newer", "versions that are no numbers"],
)
def test_a_pod_is_known_by_its_newest_version(seen: str, written: str, known: str) -> None:
    shell, uid = Shell(), PodUid("bert-0-uid")
    limits = {"nvidia.com/gpu": "1"}
    shell.pods.upsert(
        {
            "metadata": {"name": "bert-0", "uid": uid, "resourceVersion": seen},
            "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
        }
    )
    shell.pods.note_version(uid, written)
    pod = shell.pods.get(uid)
    assert pod is not None
    assert pod.resource_version == known


def test_a_write_to_a_pod_that_is_gone_is_nothing_to_remember() -> None:
    shell = Shell()
    shell.pods.note_version(PodUid("gone"), "10")
    assert len(shell.pods) == 0


def is_ending(shell: Shell) -> bool:
    (gang,) = shell.cluster._engine._table.gangs.values()
    return gang.is_ending


def test_a_running_pod_that_is_deleted_is_ending_until_it_is_gone(shell: Shell) -> None:
    pod = a_running_hived_pod()
    shell.pods.upsert(pod)
    assert not is_ending(shell)

    shell.pods.upsert(pod.being_deleted())
    assert is_ending(shell)
    version = shell.cluster.version
    shell.pods.upsert(pod.being_deleted().labelled("changed", "again"))
    assert shell.cluster.version == version, "told again, nothing is new"
    assert shell.cluster.has_place(UID)

    shell.pods.remove(pod)
    assert not shell.cluster.has_place(UID)
    shell.pods.upsert(pod)
    assert not is_ending(shell), "a namesake starts anew"


def test_a_pod_that_takes_long_to_end_counts_like_any_other(shell: Shell) -> None:
    shell.pods.upsert(a_running_hived_pod().being_deleted(grace_seconds=3600))
    assert not is_ending(shell)


def test_pods_that_are_ending_already_are_known_after_a_take_over() -> None:
    shell = Shell()
    shell.pods.upsert(a_running_hived_pod().being_deleted())
    shell.recover()
    assert is_ending(shell)
    check(shell.cluster._engine)


def _a_member(name: str, *, index: int, job: str = "train", run: str = "") -> PodBuilder:
    pod = a_pod(name).with_gpus(1).in_gang("bert", size=3).controlled_by("Job", job)
    pod["metadata"]["ownerReferences"][0]["uid"] = uid_of(run or job)
    pod = pod.labelled(marks.JOB_INDEX_LABEL, str(index))
    return pod.annotated(marks.WORKLOAD_ANNOTATION, workload_mark("set", kind="JobSet"))


def test_members_that_have_succeeded_are_counted_by_index(shell: Shell) -> None:
    told: list[tuple[str, int]] = []
    shell.pods.finished.on_change.append(
        lambda gang, _, done: told.append((gang.name, sum(done.values())))
    )
    for name, index in (("a", 0), ("b", 1), ("b2", 1)):
        shell.pods.upsert(_a_member(name, index=index).in_phase("Succeeded"))
    shell.pods.upsert(_a_member("a", index=0).in_phase("Succeeded"))
    shell.pods.upsert(_a_member("c", index=2).in_phase("Failed"))
    assert told == [("bert", 1), ("bert", 2), ("bert", 2)]
    shell.pods.upsert(_a_member("d", index=0, job="another").in_phase("Succeeded"))
    assert told[-1] == ("bert", 3), "of another Job of the same workload"
    other = _a_member("e", index=2).annotated(marks.WORKLOAD_ANNOTATION, workload_mark("x"))
    shell.pods.upsert(other)
    assert sum(shell.pods.finished.of_gang(shell.pod("e")).values()) == 0


def test_a_member_that_has_succeeded_counts_after_its_pod_was_deleted(shell: Shell) -> None:
    for name, index in (("a", 0), ("b", 1)):
        shell.pods.upsert(_a_member(name, index=index).in_phase("Succeeded"))
    shell.pods.remove(_a_member("b", index=1))
    shell.pods.replace([_a_member("e", index=2)])
    assert sum(shell.pods.finished.of_gang(shell.pod("e")).values()) == 2
    shell.pods.upsert(_a_member("a2", index=0))
    assert sum(shell.pods.finished.of_gang(shell.pod("e")).values()) == 1, "it was created again"


def test_members_of_a_controller_that_was_replaced_do_not_count(shell: Shell) -> None:
    """As a JobSet that restarts deletes its Jobs and creates them again."""
    shell.pods.upsert(_a_member("a", index=0, run="first").in_phase("Succeeded"))
    shell.pods.replace([_a_member("b", index=1, run="second")])
    assert sum(shell.pods.finished.of_gang(shell.pod("b")).values()) == 0


def test_pods_of_a_replaced_controller_that_are_deleted_later_do_not_count(shell: Shell) -> None:
    told: list[int] = []
    shell.pods.finished.on_change.append(lambda _gang, _uid, done: told.append(sum(done.values())))
    shell.pods.upsert(_a_member("a", index=0, run="first").in_phase("Succeeded"))
    shell.pods.upsert(_a_member("b", index=0, run="second"))
    shell.pods.remove(_a_member("a", index=0, run="first"))
    assert sum(shell.pods.finished.of_gang(shell.pod("b")).values()) == 0
    assert told == [1, 0]


def test_gangs_that_are_forgotten_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.feeds.finished_members._MOST_DELETED", 2)
    finished = FinishedMembers()
    counts: dict[str, int] = {}
    finished.on_change.append(
        lambda gang, _uid, done: counts.update({gang.name: sum(done.values())})
    )
    for name in ("a", "b", "c"):
        pod = a_pod(name).with_gpus(1).in_gang(name, size=2).in_phase("Succeeded")
        read = read_pod(pod.annotated(marks.WORKLOAD_ANNOTATION, workload_mark(name)))
        assert read is not None
        finished.put(read)
        finished.remove(read.uid)
    assert counts == {"a": 0, "b": 1, "c": 1}


def test_a_helper_that_is_created_again_has_not_succeeded(shell: Shell) -> None:
    """As the driver of a JobSet that restarts, whose workers have other controllers."""
    workload = workload_mark("set", kind="JobSet")
    driver = a_pod("d").in_gang("bert", size=3).controlled_by("Job", "driver")
    driver = driver.annotated(marks.WORKLOAD_ANNOTATION, workload)
    shell.pods.upsert(driver.in_phase("Succeeded"))
    shell.pods.upsert(_a_member("b", index=0))
    assert sum(shell.pods.finished.of_gang(shell.pod("b")).values()) == 1
    shell.pods.remove(driver)
    again = a_pod("d2").in_gang("bert", size=3).controlled_by("Job", "driver")
    again["metadata"]["ownerReferences"][0]["uid"] = uid_of("another")
    shell.pods.upsert(again.annotated(marks.WORKLOAD_ANNOTATION, workload))
    assert sum(shell.pods.finished.of_gang(shell.pod("b")).values()) == 0


def test_a_pod_that_no_workload_made_counts_while_it_exists(shell: Shell) -> None:
    """After that, a pod of the same gang may belong to another run."""
    finished = a_pod("a").with_gpus(1).in_gang("bert", size=2).in_phase("Succeeded")
    shell.pods.upsert(finished)
    shell.pods.upsert(a_pod("b").with_gpus(1).in_gang("bert", size=2))
    assert sum(shell.pods.finished.of_gang(shell.pod("b")).values()) == 1
    shell.pods.remove(finished)
    assert sum(shell.pods.finished.of_gang(shell.pod("b")).values()) == 0
    assert list(shell.pods.finished) == []


def test_a_late_member_without_leaf_cells_is_not_counted(shell: Shell) -> None:
    """All workers of an MPIJob are needed, also after its launcher has succeeded."""
    launcher = a_pod("l").in_gang("bert", size=3).controlled_by("Job", "launcher")
    launcher = launcher.annotated(marks.WORKLOAD_ANNOTATION, workload_mark("set", kind="JobSet"))
    launcher = launcher.annotated(marks.LATE_ANNOTATION, "1x0")
    shell.pods.upsert(launcher.in_phase("Succeeded"))
    shell.pods.upsert(_a_member("b", index=0))
    assert sum(shell.pods.finished.of_gang(shell.pod("b")).values()) == 0


def test_a_member_without_leaf_cells_is_known_and_not_told_to_the_engine(shell: Shell) -> None:
    launcher = a_pod("a").in_gang("mpi", size=2)
    ended: list[str] = []
    shell.pods.helpers.on_end.append(lambda pod: ended.append(pod.name))
    shell.pods.upsert(launcher.bound_to("node-00"))
    assert shell.pods.get(UID) is not None
    assert [pod.uid for pod in shell.pods.helpers.of_gang(GangKey("lab", "mpi"))] == [UID]
    assert (list(shell.pods), shell.cluster.has_place(UID)) == ([], False)

    shell.pods.upsert(a_pod("a").in_gang("other", size=2).bound_to("node-00"))
    assert shell.pods.helpers.of_gang(GangKey("lab", "mpi")) == []
    shell.pods.upsert(a_pod("a").bound_to("node-00"))
    assert (shell.pods.get(UID), ended) == (None, ["a", "a"])

    shell.pods.upsert(launcher)
    shell.pods.replace([])
    assert shell.pods.get(UID) is None
    assert shell.pods.has_ended(UID)


@pytest.mark.parametrize("is_marked_first", [True, False])
def test_members_that_an_earlier_webhook_admitted_join_those_of_the_same_job(
    shell: Shell, is_marked_first: bool
) -> None:
    marked = _a_member("a", index=0)
    unmarked = a_pod("b").with_gpus(1).in_gang("bert", size=3).controlled_by("Job", "train")
    strange = a_pod("c").with_gpus(1).in_gang("bert", size=3).controlled_by("Job", "other")
    changed: list[str] = []
    shell.pods.on_change.append(lambda pod: changed.append(f"{pod.name} in {pod.gang.key.owner}"))
    pods = [marked, unmarked, strange] if is_marked_first else [strange, unmarked, marked]
    for pod in pods:
        shell.pods.upsert(pod)
    owner = uid_of("set")
    together = shell.pods.of_gang(GangKey("lab", "bert", owner))
    assert sorted(pod.name for pod in together) == ["a", "b"]
    assert [pod.name for pod in shell.pods.of_gang(GangKey("lab", "bert"))] == ["c"]
    assert f"b in {owner}" in changed
    placement = Placement(node=NodeName("node-00"), leaf_cells=(0,))
    shell.pods.upsert(unmarked.placed(placement).bound_to("node-00"))
    assert len(shell.pods.of_gang(GangKey("lab", "bert", owner))) == 2


def test_a_gang_that_runs_without_marks_stays_as_it_is(shell: Shell) -> None:
    placement = Placement(node=NodeName("node-00"), leaf_cells=(0,))
    pod = a_pod("b").with_gpus(1).in_gang("bert", size=3).controlled_by("Job", "train")
    shell.pods.upsert(pod.placed(placement).bound_to("node-00"))
    shell.pods.upsert(_a_member("a", index=0))
    assert [pod.name for pod in shell.pods.of_gang(GangKey("lab", "bert"))] == ["b"]
