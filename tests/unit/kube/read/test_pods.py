"""A whole pod: what is ours, what it says, and what is wrong with it."""

import copy

import pytest

from kube import marks
from kube.hived.spec import HivedSpec
from kube.read.gangs import DeclaredGang, GangForm
from kube.read.managed_pod import DeviceUse, ManagedPod, PodPhase
from kube.read.node_choice import NodeWish
from kube.read.pods import read_device_use, read_pod
from policy.errors import Problem, RequestError
from policy.placement import Placement
from policy.submission import (
    ClassName,
    GangKey,
    GroupName,
    LeafType,
    NodeName,
    PodUid,
    UserName,
    VcName,
)
from policy.topology import ChainName
from tests.support.kube.objects import NVIDIA
from tests.support.kube.pods import PodBuilder, a_pod

_SINGLE = DeclaredGang(key=GangKey("lab", "bert-0"), size=1, form=GangForm.SINGLE)
_HIVED = HivedSpec(vc=VcName("VC1"), leaf_count=4, leaf_type=LeafType("K80"), priority=-1)
_PLACEMENT = Placement(node=NodeName("gpu-7"), leaf_cells=(0, 1), vc_cell="lab/0")


def _read(pod: PodBuilder) -> ManagedPod:
    managed = read_pod(pod)
    assert managed is not None
    return managed


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"metadata": None, "spec": None, "status": None}, id="nulls"),
        pytest.param(a_pod(), id="no devices"),
        pytest.param(a_pod().with_gpus(0), id="zero devices"),
        pytest.param(a_pod().in_vc("lab"), id="a VC alone"),
        pytest.param(a_pod().with_hived_spec("nonsense"), id="HiveD's annotation alone"),
        pytest.param(a_pod().with_gpus(1, resource="example.com/npu"), id="other devices"),
        pytest.param({"metadata": {"labels": [], "name": 8}}, id="broken, but none of ours"),
    ],
)
def test_pods_that_ask_for_no_leaf_cell_are_not_ours(pod: dict[str, object]) -> None:
    assert read_pod(pod) is None


def test_a_pod_with_the_labels_of_a_gang_is_a_helper_of_it() -> None:
    helper = _read(a_pod("launcher").in_gang("bert", size=4).gated())
    assert (helper.is_helper, helper.gang.size, helper.gang_leaf_count) == (True, 4, 0)
    assert not _read(a_pod("bert-0").with_gpus(8).in_gang("bert", size=4)).is_helper
    released = a_pod("launcher").in_gang("bert", size=4)
    assert not _read(released).is_released
    released["metadata"]["annotations"] = {marks.RELEASED_ANNOTATION: "17"}
    assert _read(released).is_released


def test_a_plain_pod() -> None:
    assert read_pod(a_pod("bert-0").with_gpus(8)) == ManagedPod(
        uid=PodUid("uid-of-bert-0"),
        namespace="lab",
        name="bert-0",
        resource_version="1",
        scheduler_name="cellgate-scheduler",
        gang=_SINGLE,
        leaf_count=8,
        leaf_resource=NVIDIA,
        device_count=8,
    )


def test_a_pod_with_everything() -> None:
    pod = (
        a_pod("bert-0")
        .with_gpus(2)
        .in_gang("bert", size=4, min_size=2)
        .in_vc("vision")
        .wanting("A100")
        .of_class("oppo", priority=-5)
        .submitted_by("alice", "vision", "students")
        .charged_to("lab")
        .annotated(marks.REQUESTED_CLASS_ANNOTATION, "prod")
        .annotated(marks.DECISION_ANNOTATION, "d-17")
        .gated()
        .placed(_PLACEMENT)
        .bound_to("gpu-7")
        .being_deleted()
    )
    assert read_pod(pod) == ManagedPod(
        uid=PodUid("uid-of-bert-0"),
        namespace="lab",
        name="bert-0",
        resource_version="1",
        node=NodeName("gpu-7"),
        phase=PodPhase.RUNNING,
        is_deleting=True,
        grace_seconds=30,
        is_gated=True,
        scheduler_name="cellgate-scheduler",
        gang=DeclaredGang(key=GangKey("lab", "bert"), size=4, min_size=2, form=GangForm.CELLGATE),
        vc=VcName("vision"),
        leaf_type=LeafType("A100"),
        leaf_count=2,
        leaf_resource=NVIDIA,
        device_count=2,
        class_name=ClassName("oppo"),
        priority=-5,
        requested_class=ClassName("prod"),
        decision="d-17",
        submitter=UserName("alice"),
        submitter_groups=(GroupName("students"), GroupName("vision")),
        charged_group=GroupName("lab"),
        placement=_PLACEMENT,
        labels={
            "cellgate.io/gang": "bert",
            "cellgate.io/gang-size": "4",
            "cellgate.io/gang-min": "2",
            "cellgate.io/vc": "vision",
            "cellgate.io/leaf-type": "A100",
            "cellgate.io/group": "lab",
        },
    )


def test_a_pod_for_hived_without_devices() -> None:
    assert read_pod(a_pod("bert-0").for_hived().with_hived_spec(_HIVED)) == ManagedPod(
        uid=PodUid("uid-of-bert-0"),
        namespace="lab",
        name="bert-0",
        resource_version="1",
        scheduler_name="cellgate-scheduler",
        gang=DeclaredGang(key=GangKey("lab", "bert-0"), size=1, form=GangForm.HIVED),
        vc=VcName("VC1"),
        leaf_type=LeafType("K80"),
        leaf_count=4,
        hived=_HIVED,
    )


def test_hiveds_annotation_counts_before_the_devices() -> None:
    pod = _read(a_pod().with_gpus(8).with_hived_spec(_HIVED))
    assert (pod.leaf_count, pod.device_count, pod.leaf_resource) == (4, 8, NVIDIA)


def test_a_pod_for_hived_with_devices_needs_no_annotation() -> None:
    pod = _read(a_pod().for_hived().with_gpus(8))
    assert (pod.leaf_count, pod.hived, pod.vc) == (8, None, "default")


def test_nothing_of_the_pod_is_changed() -> None:
    pod = a_pod().with_gpus(8).in_gang("bert", size=4).with_hived_spec(_HIVED)
    before = copy.deepcopy(pod)
    read_pod(pod)
    assert pod == before


class TestVc:
    """HiveD's annotation, else the pod's label, else the namespace's, else `default`."""

    @pytest.mark.parametrize(
        ("pod", "namespace_labels", "vc"),
        [
            pytest.param(a_pod(), {}, "default", id="none given"),
            pytest.param(a_pod(), {marks.VC_LABEL: "team"}, "team", id="of the namespace"),
            pytest.param(a_pod().in_vc("lab"), {marks.VC_LABEL: "team"}, "lab", id="of the pod"),
            pytest.param(a_pod().in_vc(""), {marks.VC_LABEL: "team"}, "team", id="empty is none"),
            pytest.param(
                a_pod().in_vc("lab").with_hived_spec(_HIVED), {}, "VC1", id="of the annotation"
            ),
        ],
    )
    def test_order(self, pod: PodBuilder, namespace_labels: dict[str, str], vc: str) -> None:
        managed = read_pod(pod.with_gpus(1), namespace_labels=namespace_labels)
        assert managed is not None
        assert managed.vc == vc

    def test_a_bad_label_of_the_namespace_is_told(self) -> None:
        with pytest.raises(RequestError) as caught:
            read_pod(a_pod().with_gpus(1), namespace_labels={marks.VC_LABEL: "a b"})
        assert str(caught.value) == (
            'namespace.metadata.labels[cellgate.io/vc]: must be a label value, not "a b"'
        )


@pytest.mark.parametrize(
    ("spec", "leaf_type"),
    [
        pytest.param("leafCellType: K80", "K80", id="of the annotation"),
        pytest.param("priority: 0", "A100", id="else of the label"),
        pytest.param("leafCellType: K80\npinnedCellId: P", None, id="none for a pinned cell"),
    ],
)
def test_leaf_type_of_a_hived_pod(spec: str, leaf_type: str | None) -> None:
    text = f"virtualCluster: VC1\nleafCellNumber: 1\n{spec}\n"
    assert _read(a_pod().with_gpus(1).wanting("A100").with_hived_spec(text)).leaf_type == leaf_type


class TestNameless:
    """A pod that is being admitted may have a prefix only, a template not even that."""

    def test_it_is_a_gang_of_one_that_no_named_pod_can_be(self) -> None:
        pod = read_pod(a_pod().with_gpus(1).unnamed("bert-"), request_uid="6e1f")
        assert pod is not None
        assert (pod.uid, pod.name, pod.generate_name) == ("", "", "bert-")
        assert pod.gang.key == GangKey("lab", "bert-*6e1f")
        assert pod.display_name == "lab/bert-*"

    def test_a_template_is_read_too(self) -> None:
        pod = read_pod({"spec": a_pod().with_gpus(1)["spec"]})
        assert pod is not None
        assert (pod.display_name, str(pod.gang.key)) == ("default/*", "default/*")

    def test_a_marked_gang_needs_no_name(self) -> None:
        pod = _read(a_pod().with_gpus(1).in_gang("bert", size=2).unnamed("bert-"))
        assert pod.gang.key == GangKey("lab", "bert")


def test_a_named_pod_is_shown_by_its_name() -> None:
    assert _read(a_pod("bert-0").with_gpus(1)).display_name == "lab/bert-0"


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("2026-11-16T10:00:00Z", 1794823200.0),
        ("2026-11-16T10:00:00+02:00", 1794816000.0),
        (None, 0.0),
        ("", 0.0),
        ("2026-11-16T10:00:00", 0.0),
        ("yesterday", 0.0),
    ],
)
def test_when_a_pod_was_created(told: str | None, seconds: float) -> None:
    pod = a_pod().with_gpus(1)
    pod["metadata"]["creationTimestamp"] = told

    assert _read(pod).created == seconds


@pytest.mark.parametrize(
    ("phase", "expected", "is_finished"),
    [
        ("", PodPhase.PENDING, False),
        ("Pending", PodPhase.PENDING, False),
        ("Running", PodPhase.RUNNING, False),
        ("Succeeded", PodPhase.SUCCEEDED, True),
        ("Failed", PodPhase.FAILED, True),
        ("Unknown", PodPhase.UNKNOWN, False),
        ("Confused", PodPhase.UNKNOWN, False),
    ],
)
def test_phases(phase: str, expected: PodPhase, is_finished: bool) -> None:
    pod = _read(a_pod().with_gpus(1).in_phase(phase))
    assert (pod.phase, pod.is_finished) == (expected, is_finished)


@pytest.mark.parametrize(
    ("reason", "is_refused"), [("Unschedulable", True), ("SchedulerError", False)]
)
def test_a_pod_is_refused_if_kube_scheduler_found_no_node(reason: str, is_refused: bool) -> None:
    pod = a_pod().with_gpus(1).gated()
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}, condition]
    pod["status"]["nominatedNodeName"] = "n-1"

    assert _read(pod).is_refused is is_refused
    assert _read(pod).nominated_node == "n-1"


def test_what_kube_scheduler_writes_does_not_make_it_another_pod() -> None:
    pod = a_pod().with_gpus(1).gated()
    before = _read(pod)
    pod["status"]["nominatedNodeName"] = "n-1"
    pod["spec"]["nodeSelector"] = {"zone": "a"}

    assert _read(pod) == before
    assert _read(pod).node_wish.selector == (("zone", "a"),)


def test_a_bound_pod_has_no_wishes() -> None:
    pod = a_pod().with_gpus(1).bound_to("n-1")
    pod["spec"]["nodeSelector"] = {"zone": "a"}

    assert _read(pod).node_wish == NodeWish()


def test_gates_of_others_do_not_count() -> None:
    pod = a_pod().with_gpus(1)
    pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    assert not _read(pod).is_gated
    pod["spec"]["schedulingGates"].append({"name": marks.QUEUED_GATE})
    assert _read(pod).is_gated


@pytest.mark.parametrize(
    ("pod", "leaf_count"),
    [
        pytest.param(a_pod().with_gpus(2), 2, id="a single pod"),
        pytest.param(a_pod().with_gpus(2).in_gang("bert", size=4), 8, id="members like this one"),
        pytest.param(a_pod().with_gpus(2).in_native_gang("bert"), None, id="size not known"),
        pytest.param(
            a_pod()
            .for_hived()
            .with_hived_spec(
                "{virtualCluster: a, leafCellNumber: 8, affinityGroup: {name: g, members:"
                " [{podNumber: 2, leafCellNumber: 8}, {podNumber: 1, leafCellNumber: 1}]}}"
            ),
            17,
            id="HiveD tells of all members",
        ),
    ],
)
def test_leaf_cells_of_the_whole_gang(pod: PodBuilder, leaf_count: int | None) -> None:
    assert _read(pod).gang_leaf_count == leaf_count


class TestPlacement:
    """Recovery must see a bound pod, whatever its annotation holds."""

    def test_ours_comes_before_hiveds(self) -> None:
        pod = (
            a_pod().with_gpus(2).annotated(marks.HIVED_BIND_INFO_ANNOTATION, "[").bound_to("gpu-7")
        )
        assert _read(pod.placed(_PLACEMENT)).placement == _PLACEMENT

    def test_a_pod_that_hived_bound(self) -> None:
        text = "{node: gpu-7, leafCellIsolation: [3, 1], cellChain: NODE}"
        pod = a_pod().with_gpus(2).annotated(marks.HIVED_BIND_INFO_ANNOTATION, text)
        assert _read(pod).placement == Placement(
            node=NodeName("gpu-7"), leaf_cells=(3, 1), chain=ChainName("NODE")
        )

    @pytest.mark.parametrize(
        ("key", "text", "problem"),
        [
            pytest.param(
                marks.PLACEMENT_ANNOTATION,
                "{}",
                Problem("metadata.annotations[cellgate.io/placement].node", "is required"),
                id="ours",
            ),
            pytest.param(
                marks.HIVED_BIND_INFO_ANNOTATION,
                "[" * 60_000,
                Problem(
                    "metadata.annotations[hivedscheduler.microsoft.com/pod-bind-info]",
                    "line 1, column 34: nested more than 32 deep",
                ),
                id="HiveD's",
            ),
        ],
    )
    def test_a_broken_one_is_carried(self, key: str, text: str, problem: Problem) -> None:
        pod = _read(a_pod().with_gpus(2).annotated(key, text).bound_to("gpu-7"))
        assert (pod.node, pod.placement, pod.placement_problem) == ("gpu-7", None, problem)


class TestDeviceUse:
    """What a bound pod holds, even if `read_pod` refuses it."""

    def test_a_refused_pod_still_holds_its_devices(self) -> None:
        pod = a_pod("bert-0").with_gpus(4).labelled(marks.GANG_SIZE_LABEL, "x").bound_to("gpu-7")
        with pytest.raises(RequestError):
            read_pod(pod)
        assert read_device_use(pod) == DeviceUse(
            uid=PodUid("uid-of-bert-0"),
            node=NodeName("gpu-7"),
            leaf_resource=NVIDIA,
            device_count=4,
        )

    @pytest.mark.parametrize(
        "pod",
        [
            pytest.param(a_pod().with_gpus(4), id="not bound"),
            pytest.param(a_pod().bound_to("gpu-7"), id="no devices"),
            pytest.param(
                a_pod().with_gpus(4).bound_to("gpu-7").in_phase("Succeeded"), id="finished"
            ),
        ],
    )
    def test_other_pods_hold_none(self, pod: PodBuilder) -> None:
        assert read_device_use(pod) is None
