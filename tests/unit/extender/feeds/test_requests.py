"""What a pod asks of the engine."""

import pytest

from extender.cells.model import OPPORTUNISTIC, FreeMode, MemberRequest
from extender.feeds.requests import member_rank, to_bound, to_member_request, to_single_request
from kube import marks
from kube.hived.spec import HivedGang, HivedMembers, HivedSpec
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from policy.classes import NO_CLASSES, Classes, PriorityClass
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import ClassName, GangKey, NodeName, PodUid, VcName
from tests.support.extender.group_sizes import GroupSizes
from tests.support.kube.pods import PodBuilder, a_pod

CLASSES = Classes.of(
    [
        PriorityClass(name=ClassName("prod"), cell_priority=100, high=True),
        PriorityClass(name=ClassName("oppo"), cell_priority=OPPORTUNISTIC),
    ],
    default=ClassName("oppo"),
)


def managed(pod: PodBuilder) -> ManagedPod:
    read = read_pod(pod)
    assert read is not None
    return read


def request(
    pod: PodBuilder, *, classes: Classes = NO_CLASSES, size: int | None = None
) -> MemberRequest:
    return to_member_request(managed(pod), classes=classes, sizes=GroupSizes(size))


def test_members_of_a_labelled_gang_are_alike() -> None:
    asked = request(a_pod("bert-0").with_gpus(8).in_gang("bert", size=2, min_size=1))

    assert asked == MemberRequest(
        member=PodUid("uid-of-bert-0"),
        gang=GangKey("lab", "bert"),
        leaf_count=8,
        gang_leaf_counts=(8, 8),
        gang_min=1,
    )


def test_hived_tells_what_each_member_asks_for() -> None:
    gang = HivedGang(name="bert", members=(HivedMembers(1, 2), HivedMembers(8, 1)))
    spec = HivedSpec(vc=VcName("lab"), priority=7, leaf_count=8, gang=gang)
    asked = request(a_pod().for_hived().with_hived_spec(spec))

    assert asked.gang_leaf_counts == (1, 1, 8)
    assert (asked.priority, asked.vc, asked.free_mode) == (7, "lab", FreeMode.WHOLE)


def test_the_class_decides_where_classes_are_listed_whatever_the_annotation_says() -> None:
    spec = HivedSpec(vc=VcName("lab"), priority=1000, leaf_count=8)
    pod = a_pod().for_hived().with_hived_spec(spec)

    assert request(pod).priority == 1000
    assert request(pod, classes=CLASSES).priority == OPPORTUNISTIC
    assert request(pod.of_class("prod"), classes=CLASSES).priority == 100


def test_a_class_that_is_not_listed_is_refused_but_not_for_a_pod_that_runs() -> None:
    pod = a_pod().with_gpus(1).of_class("root")

    with pytest.raises(RequestError, match='class "root" is not in the Classes document'):
        request(pod, classes=CLASSES)
    running = managed(pod.bound_to("n1"))
    assert to_bound(running, classes=CLASSES, sizes=GroupSizes()).request.priority == OPPORTUNISTIC


def test_a_pod_group_tells_the_size_that_its_pods_do_not() -> None:
    pod = a_pod("bert-0").with_gpus(8).labelled(marks.COSCHEDULING_LABEL, "bert")

    assert request(pod, size=3).gang_leaf_counts == (8, 8, 8)
    assert request(pod, size=3).gang == GangKey("lab", "bert")


def test_a_gang_of_unknown_size_is_placed_member_by_member() -> None:
    pod = a_pod("bert-0").with_gpus(8).labelled(marks.COSCHEDULING_LABEL, "bert")
    asked = request(pod)

    assert (asked.gang, asked.gang_leaf_counts) == (GangKey("lab", "bert/bert-0"), (8,))
    assert to_single_request(request(pod, size=3), managed(pod)) == asked


def test_a_placement_is_believed_only_if_it_can_be_true() -> None:
    pod = a_pod().with_gpus(2)
    good = Placement(node=NodeName("n1"), leaf_cells=(0, 1))

    for placement, leaf_cells in (
        (good, (0, 1)),
        (Placement(node=NodeName("n2"), leaf_cells=(0, 1)), ()),
        (Placement(node=NodeName("n1"), leaf_cells=(0,)), ()),
    ):
        bound = managed(pod.placed(placement).bound_to("n1"))
        found = to_bound(bound, classes=NO_CLASSES, sizes=GroupSizes()).placement
        assert (found.node, found.leaf_cells) == ("n1", leaf_cells)


def test_a_released_pod_is_where_it_was_sent() -> None:
    placement = Placement(node=NodeName("n1"), leaf_cells=(0,), vc_cell="lab/0")
    released = managed(a_pod().with_gpus(1).placed(placement))

    assert released.is_released
    found = to_bound(released, classes=NO_CLASSES, sizes=GroupSizes()).placement
    assert (found.node, found.leaf_cells, found.vc_cell) == ("n1", (0,), "lab/0")


def test_members_are_ranked_by_index_and_then_by_the_natural_order_of_their_names() -> None:
    def rank(name: str, index: str = "") -> tuple[tuple[int, str], ...]:
        pod = a_pod(name).with_gpus(1)
        found = read_pod(pod.labelled(marks.JOB_INDEX_LABEL, index) if index else pod)
        assert found is not None
        return member_rank(found)

    assert sorted(["w-10", "w-9", "m-0", "w-1-2"], key=rank) == ["m-0", "w-1-2", "w-9", "w-10"]
    assert rank("zz-7x", "2") < rank("aa-3x", "10")
    assert rank("a-1", "no number") == rank("a-1")
