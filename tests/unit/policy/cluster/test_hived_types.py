"""What is wrong with HiveD's cell types: each problem once, with its path."""

import pytest

from tests.support.policy.cluster_texts import hived, problems_of


@pytest.mark.parametrize(
    ("types", "problem"),
    [
        pytest.param(
            "A: {childCellType: B, childCellNumber: 1}\n    B: {childCellType: A, "
            "childCellNumber: 1}",
            'physicalCluster.cellTypes.A.childCellType: the types form a cycle: "A" → "B" → "A"',
            id="cycle",
        ),
        pytest.param(
            "A: {childCellType: A, childCellNumber: 1, isNodeLevel: true}",
            'physicalCluster.cellTypes.A.childCellType: the types form a cycle: "A" → "A"',
            id="cycle of one",
        ),
        pytest.param(
            "A: {childCellType: B, childCellNumber: 1}",
            "physicalCluster.cellTypes.A: is the type of a top cell, but no type in it is marked "
            'isNodeLevel: "A" → "B"',
            id="no node level",
        ),
        pytest.param(
            "A: {childCellType: B, childCellNumber: 1, isNodeLevel: true}\n    "
            "B: {childCellType: C, childCellNumber: 1, isNodeLevel: true}",
            'physicalCluster.cellTypes.A.isNodeLevel: "B" inside it is node level too; a cell lies '
            "in exactly one node",
            id="two node levels",
        ),
        pytest.param(
            "A: {childCellNumber: 1, isNodeLevel: true}",
            "physicalCluster.cellTypes.A.childCellType: is required",
            id="no child type",
        ),
        pytest.param(
            'A: {childCellType: "", childCellNumber: 1, isNodeLevel: true}',
            "physicalCluster.cellTypes.A.childCellType: must not be empty",
            id="empty child type",
        ),
        pytest.param(
            "A: {childCellType: B, childCellNumber: 0, isNodeLevel: true}",
            "physicalCluster.cellTypes.A.childCellNumber: must be at least 1, not 0",
            id="no children",
        ),
        pytest.param(
            "A: {childCellType: B, childCellNumber: true, isNodeLevel: true}",
            "physicalCluster.cellTypes.A.childCellNumber: must be a whole number, not true",
            id="a flag for a number",
        ),
        pytest.param(
            "A: {childCellType: B, childCellNumber: .nan, isNodeLevel: true}",
            "physicalCluster.cellTypes.A.childCellNumber: must be a whole number, not nan",
            id="no number",
        ),
        pytest.param(
            f"A: {{childCellType: B, childCellNumber: {10**30}, isNodeLevel: true}}",
            f"physicalCluster.cellTypes.A.childCellNumber: must be at most 400000, not {10**30}",
            id="huge number",
        ),
        pytest.param(
            "A: {childCellType: B, childCellNumber: 1, isNodeLevel: 1}",
            "physicalCluster.cellTypes.A.isNodeLevel: must be true or false, not 1",
            id="a number for a flag",
        ),
        pytest.param(
            "A: {childCellType: [B], childCellNumber: 1, isNodeLevel: true}",
            "physicalCluster.cellTypes.A.childCellType: must be a string, not a list",
            id="a list for a text",
        ),
        pytest.param(
            f"A: {{childCellType: {'B' * 254}, childCellNumber: 1, isNodeLevel: true}}",
            "physicalCluster.cellTypes.A.childCellType: is 254 characters long; at most 253 are "
            "allowed",
            id="a long name",
        ),
        pytest.param(
            "A: [B]", "physicalCluster.cellTypes.A: must be a mapping, not a list", id="no mapping"
        ),
        pytest.param(
            "\n    ".join(
                f"{name}: {{childCellType: {child}, childCellNumber: 1, isNodeLevel: true}}"
                for name, child in [("A", "T0"), *((f"T{n}", f"T{n + 1}") for n in range(40))]
            ),
            "physicalCluster.cellTypes.A: has more than 32 levels",
            id="too many levels",
        ),
    ],
)
def test_types_at_fault_are_told_once(types: str, problem: str) -> None:
    text = hived(
        "  - {cellType: A, cellAddress: n0}\n  - {cellType: A, cellAddress: n1}",
        types=f"\n  cellTypes:\n    {types}\n",
        vcs="{vc: {virtualCells: [{cellType: A, cellNumber: 1}]}}",
    )
    assert problems_of(text) == [problem]
