"""Workloads on pods: their marks, and the gangs that they tell apart."""

import pytest

from kube import marks
from kube.read.managed_pod import charged_gang
from kube.read.pods import read_pod
from kube.read.workloads import Workload, controller_of
from policy.errors import RequestError
from policy.submission import GangKey
from tests.support.kube.objects import uid_of
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.kube.workloads import workload_mark


def gang_of(pod: PodBuilder) -> GangKey:
    found = read_pod(pod)
    assert found is not None
    return found.gang.key


def a_member(of: str, *, kind: str = "Job", gang: str = "bert") -> PodBuilder:
    pod = a_pod().with_gpus(1).in_gang(gang, size=2)
    return pod.annotated(marks.WORKLOAD_ANNOTATION, workload_mark(of, kind=kind))


def test_two_jobs_with_the_same_label_are_two_gangs() -> None:
    assert gang_of(a_member("a")) == GangKey("lab", "bert", uid_of("a"))
    assert gang_of(a_member("a")) != gang_of(a_member("b"))
    assert str(gang_of(a_member("a"))) == "lab/bert"


def test_a_pod_without_a_workload_has_the_label_alone() -> None:
    assert gang_of(a_pod().with_gpus(1).in_gang("bert", size=2)) == GangKey("lab", "bert")


def test_a_size_is_enough_for_pods_of_a_workload() -> None:
    alone = a_pod().with_gpus(1).labelled(marks.GANG_SIZE_LABEL, "2")
    owned = alone.annotated(marks.WORKLOAD_ANNOTATION, workload_mark("train"))
    assert gang_of(owned) == GangKey("lab", "train", uid_of("train"))
    with pytest.raises(RequestError, match=r"needs the label cellgate\.io/gang beside it"):
        read_pod(alone)


def test_a_minimum_alone_is_not_enough() -> None:
    pod = a_pod().with_gpus(1).labelled(marks.GANG_MIN_LABEL, "2")
    pod = pod.annotated(marks.WORKLOAD_ANNOTATION, workload_mark("train"))
    with pytest.raises(RequestError, match=r"needs the label cellgate\.io/gang-size beside it"):
        read_pod(pod)


def test_every_group_of_a_leader_worker_set_is_a_gang() -> None:
    worker = a_member("vllm", kind="LeaderWorkerSet").labelled(marks.LWS_NAME_LABEL, "vllm")
    leader = worker.with_metadata(name="vllm-1")
    worker = worker.labelled(marks.LWS_GROUP_LABEL, "1")
    assert gang_of(worker) == gang_of(leader) == GangKey("lab", "bert-1", uid_of("vllm"))
    assert gang_of(worker.labelled(marks.LWS_GROUP_LABEL, "0")).name == "bert-0"


def test_other_forms_and_single_pods_have_no_owner() -> None:
    mark = workload_mark("a")
    native = a_pod().with_gpus(1).in_native_gang("g").annotated(marks.WORKLOAD_ANNOTATION, mark)
    single = a_pod("solo").with_gpus(1).annotated(marks.WORKLOAD_ANNOTATION, mark)
    assert (gang_of(native), gang_of(single)) == (GangKey("lab", "g"), GangKey("lab", "solo"))
    pod = read_pod(single)
    assert pod is not None
    assert (charged_gang(pod), str(pod.workload)) == (GangKey("lab", "solo"), "Job a")


@pytest.mark.parametrize(
    "mark",
    ["", "batch/Job/a", f"batch/Job/a/{uid_of('a')}/x", "batch/Job/a/1", f"batch//a/{uid_of('a')}"],
)
def test_a_mark_that_we_did_not_write_is_ignored(mark: str) -> None:
    assert Workload.parse(mark) is None
    pod = a_member("a").annotated(marks.WORKLOAD_ANNOTATION, mark)
    assert gang_of(pod) == GangKey("lab", "bert")


@pytest.mark.parametrize(
    ("name", "owner", "stored"),
    [
        ("bert", "", "bert"),
        ("bert", uid_of("a"), f"bert@{uid_of('a')}"),
        ("alice@lab", "", "alice@lab"),
        (f"x@{uid_of('a')}", "", f"x@{uid_of('a')}@none"),
        ("x@none", "", "x@none@none"),
    ],
)
def test_the_ledger_stores_name_and_owner_in_one_text(name: str, owner: str, stored: str) -> None:
    key = GangKey("lab", name, owner)
    assert key.stored_name == stored
    assert GangKey.from_stored("lab", stored) == key


@pytest.mark.parametrize(
    ("kind", "version", "path"),
    [
        ("Job", "batch/v1", "/apis/batch/v1/namespaces/lab/jobs/a"),
        ("Pod", "v1", "/api/v1/namespaces/lab/pods/a"),
        ("MPIJob", "kubeflow.org/v2beta1", "/apis/kubeflow.org/v2beta1/namespaces/lab/mpijobs/a"),
        ("Policy", "x.org/v1", "/apis/x.org/v1/namespaces/lab/policies/a"),
    ],
)
def test_a_controller_is_found_by_its_path(kind: str, version: str, path: str) -> None:
    link = controller_of(a_pod().controlled_by(kind, "a", api_version=version))
    assert link is not None
    assert link.path("lab") == path


def test_an_owner_that_no_api_server_stores_is_none() -> None:
    pod = a_pod().controlled_by("Job", "../secrets/x")
    assert controller_of(pod) is None
    assert controller_of(a_pod().controlled_by("Job", "a", is_controller=False)) is None
