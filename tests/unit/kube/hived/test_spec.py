"""HiveD's annotation: what it accepts, we accept; what is wrong with it, we say."""

import pytest

from kube.hived.spec import HivedGang, HivedMembers, HivedSpec, format_spec, parse_spec
from policy.errors import RequestError
from policy.submission import LeafType, VcName

_PATH = "metadata.annotations[hivedscheduler.microsoft.com/pod-scheduling-spec]"

_FULL = """
virtualCluster: VC1
priority: -1
pinnedCellId: PIN-1
leafCellType: DGX2-V100
leafCellNumber: 8
gangReleaseEnable: yes
lazyPreemptionEnable: true
ignoreK8sSuggestedNodes: false
affinityGroup:
  name: alice~bert/default
  members:
  - podNumber: 4
    leafCellNumber: 8
  - podNumber: 1
    leafCellNumber: 1
quota: {tag: ignored, count: 3}
"""

_FULL_SPEC = HivedSpec(
    vc=VcName("VC1"),
    priority=-1,
    pinned_cell="PIN-1",
    leaf_type=LeafType("DGX2-V100"),
    leaf_count=8,
    gang_release=True,
    lazy_preemption=True,
    ignore_candidate_nodes=False,
    gang=HivedGang(
        name="alice~bert/default",
        members=(HivedMembers(leaf_count=1, pod_count=1), HivedMembers(leaf_count=8, pod_count=4)),
    ),
)

_SMALL_SPEC = HivedSpec(vc=VcName("VC1"), leaf_count=1)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        pytest.param(_FULL, _FULL_SPEC, id="every field"),
        pytest.param("virtualCluster: VC1\nleafCellNumber: 1\n", _SMALL_SPEC, id="defaults"),
        pytest.param(
            "{virtualCluster: VC1, leafCellNumber: 1, pinnedCellId: null, leafCellType: null,"
            " affinityGroup: null, priority: null}",
            _SMALL_SPEC,
            id="null is not given",
        ),
        pytest.param(
            '{"virtualCluster": "VC1", "leafCellNumber": 1, "priority": 0}', _SMALL_SPEC, id="JSON"
        ),
        pytest.param(
            "virtualCluster: VC1\ngpuNumber: 2\ngpuType: K80\n"
            "affinityGroup: {name: g, members: [{podNumber: 1, gpuNumber: 2}]}\n",
            HivedSpec(
                vc=VcName("VC1"),
                leaf_count=2,
                leaf_type=LeafType("K80"),
                gang=HivedGang(name="g", members=(HivedMembers(leaf_count=2, pod_count=1),)),
            ),
            id="the old words",
        ),
        pytest.param(
            "virtualCluster: 010\nleafCellNumber: 1\nleafCellType: 100\n",
            HivedSpec(vc=VcName("010"), leaf_count=1, leaf_type=LeafType("100")),
            id="names that look like numbers",
        ),
        pytest.param(
            "virtualCluster: VC1\nleafCellNumber: 1\nignoreK8sSuggestedNodes:\n",
            HivedSpec(vc=VcName("VC1"), leaf_count=1, ignore_candidate_nodes=False),
            id="a null flag is false, as in Go",
        ),
        pytest.param(
            "virtualCluster: VC1\nleafCellNumber: 1\nVirtualCluster: x\npriorities: 9\n",
            _SMALL_SPEC,
            id="unknown fields are ignored, and case matters",
        ),
        pytest.param(
            "virtualCluster: VC1\nleafCellNumber: 4\npriority: 1000\n"
            "affinityGroup: {name: g, members: [{podNumber: 1, leafCellNumber: 4},"
            " {podNumber: 2, leafCellNumber: 4}]}\n",
            HivedSpec(
                vc=VcName("VC1"),
                leaf_count=4,
                priority=1_000,
                gang=HivedGang(name="g", members=(HivedMembers(leaf_count=4, pod_count=3),)),
            ),
            id="members with equal leaf counts are merged",
        ),
    ],
)
def test_specs_are_read_as_hived_reads_them(text: str, spec: HivedSpec) -> None:
    assert parse_spec(text) == spec


def test_a_gang_knows_its_size_and_its_leaf_cells() -> None:
    gang = parse_spec(_FULL).gang
    assert gang is not None
    assert (gang.size, gang.leaf_count) == (5, 33)


def test_only_priority_minus_one_is_opportunistic() -> None:
    assert [parse_spec(_FULL).is_opportunistic, _SMALL_SPEC.is_opportunistic] == [True, False]


@pytest.mark.parametrize("spec", [_FULL_SPEC, _SMALL_SPEC], ids=["full", "small"])
def test_what_is_written_is_read_again(spec: HivedSpec) -> None:
    assert parse_spec(format_spec(spec)) == spec


def test_the_short_form_leaves_defaults_out() -> None:
    expected = '{"virtualCluster":"VC1","priority":0,"leafCellNumber":1}'
    assert format_spec(_SMALL_SPEC) == expected


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param(
            "{}",
            [
                ".virtualCluster: VirtualCluster is empty",
                ".leafCellNumber: LeafCellNumber is non-positive: "
                "must be a whole number from 1 to 4096, not 0",
            ],
            id="nothing given",
        ),
        pytest.param(
            "{virtualCluster: '', leafCellNumber: -3, priority: -2, affinityGroup: {}}",
            [
                ".virtualCluster: VirtualCluster is empty",
                ".leafCellNumber: LeafCellNumber is non-positive: "
                "must be a whole number from 1 to 4096, not -3",
                ".priority: Priority is less than -1: "
                "must be a whole number from -1 to 1000, not -2",
                ".affinityGroup.name: AffinityGroup.Name is empty",
            ],
            id="all of them at once",
        ),
        pytest.param(
            "{virtualCluster: a, leafCellNumber: 1, priority: 1001}",
            [
                ".priority: Priority is greater than 1000: "
                "must be a whole number from -1 to 1000, not 1001"
            ],
            id="priority too high",
        ),
        pytest.param(
            "{virtualCluster: a, leafCellNumber: 8,"
            " affinityGroup: {name: g, members: [{podNumber: 1, leafCellNumber: 4}]}}",
            [
                ".affinityGroup.members: AffinityGroup.Members does not contains current Pod: "
                "none of them has leafCellNumber 8"
            ],
            id="the pod is not among its members",
        ),
        pytest.param(
            "{virtualCluster: a, leafCellNumber: 8,"
            " affinityGroup: {name: g, members: [{podNumber: 0, leafCellNumber: 8}, {}]}}",
            [
                ".affinityGroup.members[0].podNumber: AffinityGroup.Members has non-positive "
                "PodNumber: must be a whole number from 1 to 150000, not 0",
                ".affinityGroup.members[1].podNumber: AffinityGroup.Members has non-positive "
                "PodNumber: must be a whole number from 1 to 150000, not 0",
                ".affinityGroup.members[1].leafCellNumber: AffinityGroup.Members has non-positive "
                "LeafCellNumber: must be a whole number from 1 to 4096, not 0",
            ],
            id="members without pods or cells",
        ),
        pytest.param(
            "{virtualCluster: a, leafCellNumber: 1, affinityGroup: {name: g, members:"
            " [{podNumber: 100000, leafCellNumber: 1}, {podNumber: 60000, leafCellNumber: 2}]}}",
            [".affinityGroup.members: must have at most 150000 pods, not 160000"],
            id="too many members together",
        ),
        pytest.param(
            "{virtualCluster: [a], leafCellNumber: '8', priority: high, lazyPreemptionEnable: 1,"
            " leafCellType: {}, affinityGroup: [x]}",
            [
                ".virtualCluster: must be a string, not a list",
                '.leafCellNumber: must be a whole number from 1 to 4096, not "8"',
                '.priority: must be a whole number from -1 to 1000, not "high"',
                ".leafCellType: must be a string, not a mapping",
                '.lazyPreemptionEnable: must be true or false, not "1"',
                ".affinityGroup: must be a mapping, not a list",
                ".affinityGroup.name: AffinityGroup.Name is empty",
            ],
            id="wrong types",
        ),
        pytest.param(
            '{virtualCluster: "a\\0b", leafCellNumber: 1}',
            ['.virtualCluster: must be text without control characters, not "a\\x00b"'],
            id="control characters",
        ),
        pytest.param("just text", [': must be a mapping, not "just text"'], id="no mapping"),
        pytest.param(
            "a: ]",
            [": line 1, column 4: not valid YAML: did not find expected node content"],
            id="no YAML",
        ),
        pytest.param(
            "[" * 60_000, [": line 1, column 34: nested more than 32 deep"], id="a deep one"
        ),
        pytest.param(
            "x" * 1_000_000,
            [": the text has 1000000 bytes; at most 65536 are read"],
            id="a megabyte",
        ),
    ],
)
def test_every_problem_is_told(text: str, problems: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        parse_spec(text)
    assert [str(problem) for problem in caught.value.problems] == [
        f"{_PATH}{problem}" for problem in problems
    ]
