"""What is wrong with a pod: all of it is told, with its paths."""

import pytest

from kube import marks
from kube.read.pods import read_pod
from policy.errors import RequestError
from tests.support.kube.pods import a_pod


def test_every_problem_is_told_at_once() -> None:
    pod = (
        a_pod("Bert")
        .with_gpus("many")
        .for_hived()
        .with_hived_spec("virtualCluster: VC1")
        .in_gang("bert", size=0)
        .labelled("app", 8)
        .in_vc("-lab")
        .wanting("A 100")
        .of_class("Prod")
        .charged_to("a/b")
        .annotated(marks.SUBMITTER_GROUPS_ANNOTATION, "vision")
    )
    pod["metadata"]["namespace"] = "team.a"
    pod["spec"].update(priority="high", nodeName=7, schedulerName=[], schedulingGates={"name": "x"})
    pod["status"] = {"phase": 3}
    with pytest.raises(RequestError) as caught:
        read_pod(pod)
    assert [str(problem) for problem in caught.value.problems] == [
        "spec.containers[0].resources.limits[nvidia.com/gpu]: "
        'must be a whole number from 0 to 4096, not "many"',
        "metadata.labels[app]: must be a string, not 8",
        "metadata.annotations[hivedscheduler.microsoft.com/pod-scheduling-spec].leafCellNumber: "
        "LeafCellNumber is non-positive: must be a whole number from 1 to 4096, not 0",
        'metadata.namespace: must be a DNS label, not "team.a"',
        'metadata.name: must be a DNS name, not "Bert"',
        "spec.nodeName: must be a string, not 7",
        "spec.schedulingGates: must be a list, not a mapping",
        "status.phase: must be a string, not 3",
        "spec.schedulerName: must be a string, not a list",
        'metadata.labels[cellgate.io/gang-size]: must be a whole number from 1 to 150000, not "0"',
        'metadata.labels[cellgate.io/vc]: must be a label value, not "-lab"',
        'metadata.labels[cellgate.io/leaf-type]: must be a label value, not "A 100"',
        'spec.priorityClassName: must be a DNS name, not "Prod"',
        'spec.priority: must be a whole number from -2147483648 to 2147483647, not "high"',
        "metadata.annotations[cellgate.io/submitter-groups]: "
        'must be a JSON list of group names, not "vision"',
        'metadata.labels[cellgate.io/group]: must be a label value, not "a/b"',
    ]


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        pytest.param([], "must be a mapping, not a list", id="a list"),
        pytest.param({"spec": 8}, "spec: must be a mapping, not 8", id="spec a number"),
        pytest.param(
            a_pod().for_hived(),
            "metadata.annotations[hivedscheduler.microsoft.com/pod-scheduling-spec]: "
            "Annotation does not exist or is empty",
            id="for HiveD, but no annotation",
        ),
        pytest.param(
            {"spec": a_pod().with_gpus(1)["spec"], "metadata": {"labels": ["a"]}},
            "metadata.labels: must be a mapping, not a list",
            id="labels a list",
        ),
        pytest.param(
            a_pod().with_gpus(1).with_hived_spec("x" * 1_000_000),
            "metadata.annotations[hivedscheduler.microsoft.com/pod-scheduling-spec]: "
            "the text has 1000000 bytes; at most 65536 are read",
            id="a megabyte of annotation",
        ),
    ],
)
def test_hostile_pods_are_refused(pod: dict[str, object], problem: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_pod(pod)
    assert [str(told) for told in caught.value.problems] == [problem]
