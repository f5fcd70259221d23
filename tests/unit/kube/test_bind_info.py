"""HiveD's placement annotations: read where HiveD bound a pod, written where we do."""

import pytest

from kube.placement_annotations import (
    format_bind_info,
    parse_bind_info,
    placement_annotations,
)
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName

_PATH = "metadata.annotations[hivedscheduler.microsoft.com/pod-bind-info]"

_TEXT = """
node: 0.0.1.0
leafCellIsolation: [1, 3]
cellChain: 3-DGX2-V100-NODE
affinityGroupBindInfo:
- podPlacements:
  - physicalNode: 0.0.2.0
    physicalLeafCellIndices: [0, 1]
    preassignedCellTypes: [NODE, NODE]
  - physicalNode: 0.0.1.0
    physicalLeafCellIndices: [1, 3]
    preassignedCellTypes: [RACK, RACK]
"""

_PLACEMENT = Placement(
    node=NodeName("0.0.1.0"),
    leaf_cells=(1, 3),
    chain=ChainName("3-DGX2-V100-NODE"),
    vc_cell_type=CellTypeName("RACK"),
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_TEXT, id="as HiveD writes it"),
        pytest.param(
            _TEXT.replace("leafCellIsolation", "gpuIsolation").replace(
                "physicalLeafCellIndices", "physicalGpuIndices"
            ),
            id="as an old HiveD wrote it",
        ),
        pytest.param(format_bind_info(_PLACEMENT), id="as we write it"),
    ],
)
def test_a_pods_own_part_is_read(text: str) -> None:
    assert parse_bind_info(text) == _PLACEMENT


@pytest.mark.parametrize("types", ["[]", "['', '']", "[~, ~]"])
def test_an_opportunistic_pod_has_no_cell_of_its_vc(types: str) -> None:
    assert parse_bind_info(_TEXT.replace("[RACK, RACK]", types)).vc_cell_type is None


def test_placements_are_written_in_all_three_annotations() -> None:
    placement = Placement(
        node=NodeName("gpu-7"), leaf_cells=(1, 0), vc_cell="lab/0", chain=ChainName("NODE")
    )
    assert placement_annotations(placement) == {
        "cellgate.io/placement": (
            '{"node":"gpu-7","leafCells":[1,0],"vcCell":"lab/0","chain":"NODE"}'
        ),
        "hivedscheduler.microsoft.com/pod-bind-info": (
            '{"node":"gpu-7","leafCellIsolation":[1,0],"cellChain":"NODE",'
            '"affinityGroupBindInfo":[{"podPlacements":[{"physicalNode":"gpu-7",'
            '"physicalLeafCellIndices":[1,0],"preassignedCellTypes":["",""]}]}]}'
        ),
        "hivedscheduler.microsoft.com/pod-leaf-cell-isolation": "1,0",
    }


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param(
            "{}",
            [".node: is required", ".leafCellIsolation: must have 1 to 4096 leaf cells, not 0"],
            id="nothing given",
        ),
        pytest.param(
            "{node: n, leafCellIsolation: [0], affinityGroupBindInfo:"
            " [{podPlacements: [{physicalNode: N, physicalLeafCellIndices: [x]}]}, 3]}",
            [
                '.affinityGroupBindInfo[1]: must be a mapping, not "3"',
                ".affinityGroupBindInfo[0].podPlacements[0].physicalNode: "
                'must be a DNS name, not "N"',
                ".affinityGroupBindInfo[0].podPlacements[0].physicalLeafCellIndices[0]: "
                'must be a whole number from 0 to 2147483647, not "x"',
            ],
            id="broken members",
        ),
        pytest.param(
            "[" * 99_999, [": line 1, column 34: nested more than 32 deep"], id="a deep one"
        ),
        pytest.param(
            "x" * 300_000, [": the text has 300000 bytes; at most 262144 are read"], id="too long"
        ),
    ],
)
def test_every_problem_is_told(text: str, problems: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        parse_bind_info(text)
    told = [str(problem) for problem in caught.value.problems]
    assert told == [f"{_PATH}{problem}" for problem in problems]
