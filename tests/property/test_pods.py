"""Whatever is given as a pod: it is read, or refused with RequestError, and never anything else."""

from dataclasses import dataclass, replace
from typing import Any

import hypothesis.strategies as st
from hypothesis import example, given

from kube import marks
from kube.hived.spec import HivedGang, HivedMembers, HivedSpec, format_spec, modernise, parse_spec
from kube.placement_annotations import (
    format_bind_info,
    format_placement,
    parse_bind_info,
    parse_placement,
)
from kube.read.leaf_demand import read_demand
from kube.read.pods import read_device_use, read_pod
from kube.values.fields import Fields, Problems
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import LeafType, NodeName, VcName
from tests.support.kube.objects import NVIDIA
from tests.support.kube.pods import PodBuilder, a_pod

_KEYS = st.sampled_from(
    [
        *("metadata", "spec", "status", "labels", "annotations", "name", "namespace", "uid"),
        *("containers", "initContainers", "resources", "limits", "requests", "overhead"),
        *("schedulingGroup", "podGroupName", "schedulingGates", "priority", "nodeName", "phase"),
        *(value for name, value in vars(marks).items() if name.isupper() and "/" in value),
        *marks.DEFAULT_LEAF_RESOURCES,
    ]
)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["8", "-1", "1e9", "9" * 5_000, "x" * 70_000, "{}", "[" * 500, "\ud800"])
)
_GARBAGE = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=6),
    max_leaves=25,
)
_TEXTS = st.text() | st.sampled_from(["a: &x [*x]", "{" * 900, "a: b: c", "- " * 900, "<<: {}"])


def _reads_or_refuses(pod: Any) -> str:
    """Read a pod twice; say what came of it."""
    answers = []
    for _ in range(2):
        try:
            answers.append(repr(read_pod(pod)))
        except RequestError as exc:
            answers.append(str(exc))
    assert answers[0] == answers[1]
    return answers[0]


@given(_GARBAGE)
def test_garbage_is_read_or_refused(garbage: object) -> None:
    _reads_or_refuses(garbage)


@given(st.sampled_from(["metadata", "spec", "status"]), _KEYS, _GARBAGE)
def test_a_managed_pod_with_one_broken_field_is_read_or_refused(
    part: str, key: str, garbage: object
) -> None:
    pod = a_pod().with_gpus(1)
    pod[part][key] = garbage
    _reads_or_refuses(pod)


@given(st.dictionaries(_KEYS, _GARBAGE, max_size=8), st.dictionaries(_KEYS, _GARBAGE, max_size=8))
def test_garbage_in_labels_and_annotations_is_read_or_refused(
    labels: dict[str, Any], annotations: dict[str, Any]
) -> None:
    pod = a_pod().with_gpus(1).bound_to("gpu-7")
    pod["metadata"].update(labels=labels, annotations=annotations)
    _reads_or_refuses(pod)
    assert read_device_use(pod) is not None


@given(_TEXTS)
@example("\x00")
@example("\ud800")
def test_any_text_as_an_annotation_is_read_or_refused(text: str) -> None:
    for key in (marks.HIVED_SPEC_ANNOTATION, marks.SUBMITTER_GROUPS_ANNOTATION):
        _reads_or_refuses(a_pod().with_gpus(1).annotated(key, text))
    for key in (marks.PLACEMENT_ANNOTATION, marks.HIVED_BIND_INFO_ANNOTATION):
        pod = read_pod(a_pod().with_gpus(1).annotated(key, text))
        assert pod is not None
        assert not text or (pod.placement is None) == (pod.placement_problem is not None)


@dataclass(frozen=True)
class _Init:
    amount: int
    is_sidecar: bool


_AMOUNTS = st.integers(min_value=0, max_value=16)
_INITS = st.lists(st.builds(_Init, _AMOUNTS, st.booleans()), max_size=5)


@given(st.lists(_AMOUNTS, max_size=4), _INITS)
def test_leaf_counts_agree_with_a_pod_that_is_run_step_by_step(
    containers: list[int], inits: list[_Init]
) -> None:
    pod: PodBuilder = a_pod()
    for amount in containers:
        pod = pod.with_container({NVIDIA: amount})
    for init in inits:
        restart = {"restartPolicy": "Always"} if init.is_sidecar else {}
        pod = pod.with_init_container({NVIDIA: str(init.amount)}, **restart)
    spec = Fields(pod["spec"], key="spec", parent=None, problems=Problems())
    demand = read_demand(spec)
    assert demand.device_count == _most_ever_held(containers, inits)


def _most_ever_held(containers: list[int], inits: list[_Init]) -> int:
    """Start and end containers in their order, and watch what they hold."""
    most = held = 0
    for init in inits:
        most = max(most, held + init.amount)
        held += init.amount if init.is_sidecar else 0
    return max(most, held + sum(containers))


_NAMES = st.from_regex(r"[a-z0-9]([-.a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
_LETTERS = st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("\u2028\ufeff\ufffe😀")
_WORDS = st.text(_LETTERS, min_size=1, max_size=20).filter(lambda word: modernise(word) == word)
_CELLS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=8, unique=True).map(tuple)
_PLACEMENTS = st.builds(
    Placement,
    node=_NAMES.map(NodeName),
    leaf_cells=_CELLS,
    vc_cell=st.none() | _WORDS,
    vc_cell_type=st.none() | _WORDS,
    chain=st.none() | _WORDS,
)


@given(_PLACEMENTS)
def test_placements_survive_being_written(placement: Placement) -> None:
    text = format_placement(placement)
    assert parse_placement(text) == placement
    assert format_placement(parse_placement(text)) == text


@given(_PLACEMENTS)
def test_bind_infos_survive_being_written(placement: Placement) -> None:
    """But for the address of the VC's cell, which HiveD does not record."""
    assert parse_bind_info(format_bind_info(placement)) == replace(placement, vc_cell=None)


@st.composite
def _specs(draw: st.DrawFn) -> HivedSpec:
    counts = draw(st.dictionaries(st.integers(1, 4_096), st.integers(1, 100), max_size=4))
    leaf_count = draw(st.sampled_from(sorted(counts)) if counts else st.integers(1, 4_096))
    members = tuple(HivedMembers(*entry) for entry in sorted(counts.items()))
    return HivedSpec(
        vc=VcName(draw(_WORDS)),
        priority=draw(st.integers(-1, 1_000)),
        pinned_cell=draw(st.none() | _WORDS),
        leaf_type=draw(st.none() | _WORDS.map(LeafType)),
        leaf_count=leaf_count,
        gang_release=draw(st.booleans()),
        lazy_preemption=draw(st.booleans()),
        ignore_candidate_nodes=draw(st.booleans()),
        gang=HivedGang(name=draw(_WORDS), members=members) if counts else None,
    )


@given(_specs())
def test_hived_specs_survive_being_written(spec: HivedSpec) -> None:
    assert parse_spec(format_spec(spec)) == spec
