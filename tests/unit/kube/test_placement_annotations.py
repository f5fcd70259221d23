"""The placement annotation: what recovery lives on."""

import pytest

from kube.placement_annotations import format_placement, parse_placement
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName

_PATH = "metadata.annotations[cellgate.io/placement]"

_EXAMPLES = [
    pytest.param(
        Placement(node=NodeName("gpu-7"), leaf_cells=(0,)),
        '{"node":"gpu-7","leafCells":[0]}',
        id="opportunistic",
    ),
    pytest.param(
        Placement(
            node=NodeName("0.0.1.0"),
            leaf_cells=(1, 3, 0),
            vc_cell="lab/0",
            vc_cell_type=CellTypeName("DGX2-V100-NODE"),
            chain=ChainName("3-DGX2-V100-NODE"),
        ),
        '{"node":"0.0.1.0","leafCells":[1,3,0],"vcCell":"lab/0",'
        '"vcCellType":"DGX2-V100-NODE","chain":"3-DGX2-V100-NODE"}',
        id="guaranteed",
    ),
]


@pytest.mark.parametrize(("placement", "text"), _EXAMPLES)
def test_placements_have_one_text(placement: Placement, text: str) -> None:
    assert format_placement(placement) == text
    assert parse_placement(text) == placement


def test_fields_of_a_newer_version_are_ignored() -> None:
    text = '{"node": "gpu-7", "leafCells": [0], "colour": "red"}'
    assert parse_placement(text) == Placement(node=NodeName("gpu-7"), leaf_cells=(0,))


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("", [": must be valid JSON"], id="empty"),
        pytest.param("{", [": must be valid JSON"], id="no JSON"),
        pytest.param("[" * 100_000, [": must be valid JSON"], id="deep"),
        pytest.param('"\ud800"', [": must be valid JSON"], id="surrogate"),
        pytest.param("null", [": must be a mapping, not null"], id="null"),
        pytest.param("[]", [": must be a mapping, not a list"], id="no mapping"),
        pytest.param(
            "{}",
            [".node: is required", ".leafCells: must have 1 to 4096 leaf cells, not 0"],
            id="nothing given",
        ),
        pytest.param(
            '{"node": "A B", "leafCells": [0, 1.0, true, -1], "vcCell": 8, "chain": []}',
            [
                '.node: must be a DNS name, not "A B"',
                ".leafCells[1]: must be a whole number from 0 to 2147483647, not 1.0",
                ".leafCells[2]: must be a whole number from 0 to 2147483647, not true",
                ".leafCells[3]: must be a whole number from 0 to 2147483647, not -1",
                ".vcCell: must be a string, not 8",
                ".chain: must be a string, not a list",
            ],
            id="wrong types",
        ),
        pytest.param(
            '{"node": "gpu-7", "leafCells": [3, 1, 3]}',
            [".leafCells: must not have the same leaf cell twice"],
            id="a leaf cell twice",
        ),
    ],
)
def test_every_problem_is_told(text: str, problems: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        parse_placement(text)
    told = [str(problem) for problem in caught.value.problems]
    assert told == [f"{_PATH}{problem}" for problem in problems]
