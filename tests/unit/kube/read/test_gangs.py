"""Which gang a pod belongs to: the forms of others, HiveD's, ours, and their order."""

import pytest

from kube import marks
from kube.read.gangs import DeclaredGang, GangForm
from kube.read.pods import read_pod
from policy.errors import RequestError
from policy.submission import GangKey
from tests.support.kube.pods import PodBuilder, a_pod

_POD = a_pod("bert-0", namespace="lab").with_gpus(8)

_HIVED = """
virtualCluster: VC1
leafCellNumber: 8
affinityGroup:
  name: alice~bert/default
  members: [{podNumber: 2, leafCellNumber: 8}, {podNumber: 1, leafCellNumber: 4}]
"""


def _gang(
    name: str, form: GangForm, *, size: int | None = None, min_size: int | None = None
) -> DeclaredGang:
    return DeclaredGang(key=GangKey("lab", name), size=size, min_size=min_size, form=form)


@pytest.mark.parametrize(
    ("pod", "gang"),
    [
        pytest.param(_POD, _gang("bert-0", GangForm.SINGLE, size=1), id="no mark"),
        pytest.param(
            _POD.in_native_gang("bert.v1"), _gang("bert.v1", GangForm.NATIVE), id="native"
        ),
        pytest.param(
            _POD.labelled("scheduling.x-k8s.io/pod-group", "bert"),
            _gang("bert", GangForm.COSCHEDULING),
            id="coscheduling",
        ),
        pytest.param(
            _POD.labelled("pod-group.scheduling.sigs.k8s.io", "bert"),
            _gang("bert", GangForm.COSCHEDULING),
            id="coscheduling before 2022",
        ),
        pytest.param(
            _POD.labelled("pod-group.scheduling.sigs.k8s.io/name", "bert").labelled(
                "pod-group.scheduling.sigs.k8s.io/min-available", "3"
            ),
            _gang("bert", GangForm.COSCHEDULING, min_size=3),
            id="lightweight coscheduling",
        ),
        pytest.param(
            _POD.labelled("kueue.x-k8s.io/pod-group-name", "bert").annotated(
                "kueue.x-k8s.io/pod-group-total-count", "4"
            ),
            _gang("bert", GangForm.KUEUE, size=4),
            id="Kueue",
        ),
        pytest.param(
            _POD.annotated("kueue.x-k8s.io/pod-group-name", "b" * 100).annotated(
                "kueue.x-k8s.io/pod-group-total-count", "4"
            ),
            _gang("b" * 100, GangForm.KUEUE, size=4),
            id="Kueue, with a name too long for a label",
        ),
        pytest.param(
            _POD.annotated("scheduling.k8s.io/group-name", "bert-6e1f"),
            _gang("bert-6e1f", GangForm.VOLCANO),
            id="Volcano",
        ),
        pytest.param(
            _POD.annotated("scheduling.volcano.sh/group-name", "bert-6e1f"),
            _gang("bert-6e1f", GangForm.VOLCANO),
            id="Volcano's own key",
        ),
        pytest.param(
            _POD.in_gang("bert", size=4), _gang("bert", GangForm.CELLGATE, size=4), id="ours"
        ),
        pytest.param(
            _POD.in_gang("bert", size=4, min_size=2),
            _gang("bert", GangForm.CELLGATE, size=4, min_size=2),
            id="ours, incremental",
        ),
        pytest.param(
            _POD.with_hived_spec(_HIVED),
            _gang("alice~bert/default", GangForm.HIVED, size=3),
            id="HiveD",
        ),
        pytest.param(
            _POD.with_hived_spec("{virtualCluster: VC1, leafCellNumber: 8}"),
            _gang("bert-0", GangForm.HIVED, size=1),
            id="HiveD, without an affinity group",
        ),
        pytest.param(
            _POD.labelled(marks.GANG_LABEL, "").labelled(marks.GANG_SIZE_LABEL, ""),
            _gang("bert-0", GangForm.SINGLE, size=1),
            id="empty labels are none",
        ),
    ],
)
def test_gangs_are_recognised(pod: PodBuilder, gang: DeclaredGang) -> None:
    managed = read_pod(pod)
    assert managed is not None
    assert managed.gang == gang


def test_the_first_form_counts_alone() -> None:
    marked = (
        _POD.with_hived_spec(_HIVED)
        .in_native_gang("native")
        .labelled(marks.COSCHEDULING_LABEL, "coscheduling")
        .labelled(marks.KUEUE_GROUP, "kueue")
        .annotated(marks.KUEUE_COUNT_ANNOTATION, "2")
        .annotated(marks.VOLCANO_ANNOTATION, "volcano")
        .in_gang("ours", size=9)
    )
    forms = []
    for pod in _without_one_after_the_other(marked):
        managed = read_pod(pod)
        assert managed is not None
        forms.append(str(managed.gang.form))
    assert forms == ["hived", "native", "coscheduling", "kueue", "volcano", "cellgate", "single"]


def _without_one_after_the_other(pod: PodBuilder) -> list[PodBuilder]:
    pods = [pod]
    for part, field, keys in [
        ("metadata", "annotations", [marks.HIVED_SPEC_ANNOTATION]),
        ("spec", "schedulingGroup", ["podGroupName"]),
        ("metadata", "labels", [marks.COSCHEDULING_LABEL]),
        ("metadata", "labels", [marks.KUEUE_GROUP]),
        ("metadata", "annotations", [marks.VOLCANO_ANNOTATION]),
        ("metadata", "labels", [marks.GANG_LABEL, marks.GANG_SIZE_LABEL]),
    ]:
        pod = pod.labelled("copy", "of-it")
        for key in keys:
            del pod[part][field][key]
        pods.append(pod)
    return pods


@pytest.mark.parametrize(
    ("pod", "problems"),
    [
        pytest.param(
            _POD.in_gang("bert", size=4).labelled(marks.GANG_SIZE_LABEL, "x"),
            [
                "metadata.labels[cellgate.io/gang-size]: "
                'must be a whole number from 1 to 150000, not "x"'
            ],
            id="the size is no number",
        ),
        pytest.param(
            _POD.labelled(marks.GANG_LABEL, "bert"),
            ["metadata.labels[cellgate.io/gang-size]: is required: the number of pods in the gang"],
            id="no size",
        ),
        pytest.param(
            _POD.in_gang("bert", size=0),
            [
                "metadata.labels[cellgate.io/gang-size]: "
                'must be a whole number from 1 to 150000, not "0"'
            ],
            id="no members",
        ),
        pytest.param(
            _POD.in_gang("bert", size=4, min_size=5),
            ['metadata.labels[cellgate.io/gang-min]: must be a whole number from 1 to 4, not "5"'],
            id="more to start than there are",
        ),
        pytest.param(
            _POD.labelled(marks.GANG_SIZE_LABEL, "4").labelled(marks.GANG_MIN_LABEL, "x"),
            [
                f"metadata.labels[cellgate.io/gang-{label}]: needs the label cellgate.io/gang "
                "beside it, which names the gang of pods that no controller creates"
                for label in ("size", "min")
            ],
            id="a size without a gang",
        ),
        pytest.param(
            _POD.in_gang("b" * 64, size=4),
            ["metadata.labels[cellgate.io/gang]: must be at most 63 characters, not 64"],
            id="too long a name",
        ),
        pytest.param(
            _POD.labelled(marks.KUEUE_GROUP, "bert"),
            [
                "metadata.annotations[kueue.x-k8s.io/pod-group-total-count]: "
                "is required: the number of pods in the gang"
            ],
            id="Kueue without a count",
        ),
        pytest.param(
            _POD.labelled(marks.COSCHEDULING_LIGHT_LABEL, "bert").labelled(
                marks.COSCHEDULING_LIGHT_MIN_LABEL, "-1"
            ),
            [
                "metadata.labels[pod-group.scheduling.sigs.k8s.io/min-available]: "
                'must be a whole number from 1 to 150000, not "-1"'
            ],
            id="lightweight coscheduling with a negative minimum",
        ),
        pytest.param(
            _POD.in_native_gang("B" * 300),
            ["spec.schedulingGroup.podGroupName: must be at most 253 characters, not 300"],
            id="native with too long a name",
        ),
    ],
)
def test_problems_are_told_with_their_paths(pod: PodBuilder, problems: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        read_pod(pod)
    assert [str(problem) for problem in caught.value.problems] == problems


def test_our_labels_are_not_even_checked_beside_another_form() -> None:
    managed = read_pod(_POD.in_native_gang("bert").labelled(marks.GANG_SIZE_LABEL, "x"))
    assert managed is not None
    assert managed.gang == _gang("bert", GangForm.NATIVE)
