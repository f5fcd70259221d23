"""What is wrong with HiveD's YAML: every kind of problem, all at once, each with its path."""

import pytest

from tests.support.policy.cluster_texts import POOL, TYPES, hived, problems_of

CELLS = "physicalCluster.physicalCells"


def a_pool(*nodes: str, more: str = "") -> str:
    """Write a POOL with these cells in it."""
    return f"  - {{cellType: POOL, {more}cellChildren: [{', '.join(nodes)}]}}"


N0, N1 = "{cellAddress: n0}", "{cellAddress: n1}"


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        pytest.param(
            "  - {cellType: NODEX, cellAddress: n0}",
            '[0].cellType: "NODEX" is not one of cellTypes',
            id="unknown type",
        ),
        pytest.param(
            "  - {cellAddress: n0}",
            "[0].cellType: is required, because this is a top cell",
            id="no type",
        ),
        pytest.param(
            "  - 5",
            "[0]: must be a mapping, not 5",
            id="no cell",
        ),
        pytest.param(
            a_pool(N0, "{cellAddress: n1, cellType: POOL}"),
            '[0].cellChildren[1].cellType: must be "NODE" by the type of the cell above, not '
            '"POOL"',
            id="type that contradicts",
        ),
        pytest.param(
            a_pool(N0, N1, "{cellAddress: n2}"),
            '[0].cellChildren: lists 3 cells, but a "POOL" has 2',
            id="too many children",
        ),
        pytest.param(
            a_pool(N0), '[0].cellChildren: lists 1 cell, but a "POOL" has 2', id="too few children"
        ),
        pytest.param(
            a_pool(N0, N0),
            f'[0].cellChildren[1].cellAddress: the node "n0" is {CELLS}[0].cellChildren[0] already',
            id="node twice in a cell",
        ),
        pytest.param(
            f"{a_pool(N0, N1)}\n{a_pool('{cellAddress: n2}', N1)}",
            f'[1].cellChildren[1].cellAddress: the node "n1" is {CELLS}[0].cellChildren[1] already',
            id="node twice in a chain",
        ),
        pytest.param(
            f"{a_pool(N0, N1)}\n  - {{cellType: NODE, cellAddress: n1}}",
            f'[1]: the device 0 of node "n1" is in {CELLS}[0].cellChildren[1] already',
            id="device in two chains",
        ),
        pytest.param(
            f"{a_pool(N0, N1, more='cellAddress: p, ')}\n"
            + a_pool("{cellAddress: n2}", "{cellAddress: n3}", more="cellAddress: p, "),
            f'[1].cellAddress: "p" is the address of {CELLS}[0] already',
            id="address twice",
        ),
        pytest.param(
            a_pool("{cellAddress: n0, cellChildren: [{cellAddress: 1}, {}]}", N1),
            '[0].cellChildren[0].cellChildren[1].cellAddress: "0/n0/1" is the address of '
            f"{CELLS}[0].cellChildren[0].cellChildren[0] already",
            id="address taken by a default",
        ),
        pytest.param(
            a_pool(
                "{cellAddress: n0, cellChildren: [{cellChildren: [{cellAddress: 2}, {}]}, {}]}", N1
            ),
            '[0].cellChildren[0].cellChildren[1].cellAddress: the device 2 of node "n0" is given '
            "twice",
            id="device twice",
        ),
        pytest.param(
            a_pool(
                "{cellAddress: n0, cellChildren: [{cellChildren: [{cellAddress: x}, {}]}, {}]}", N1
            ),
            '[0].cellChildren[0].cellChildren[0].cellChildren[0].cellAddress: "x" is not the index '
            "of a device, a whole number from 0",
            id="no device",
        ),
        pytest.param(
            a_pool(
                "{cellAddress: n0, cellChildren: [{cellChildren: [{cellAddress: -1}, {}]}, {}]}", N1
            ),
            '[0].cellChildren[0].cellChildren[0].cellChildren[0].cellAddress: "-1" is not the '
            "index of a device, a whole number from 0",
            id="negative device",
        ),
        pytest.param(
            a_pool(
                "{cellAddress: n0, cellChildren: [{cellChildren: [{cellAddress: 2147483648}, {}]},"
                " {}]}",
                N1,
            ),
            "[0].cellChildren[0].cellChildren[0].cellChildren[0].cellAddress: "
            '"2147483648" is not the index of a device, a whole number from 0',
            id="huge device",
        ),
        pytest.param(
            a_pool(
                "{cellAddress: n0, cellChildren: [{cellChildren: [{cellChildren: [{}]}, {}]}, {}]}",
                N1,
            ),
            '[0].cellChildren[0].cellChildren[0].cellChildren[0].cellChildren: a leaf cell ("G") '
            "has none",
            id="children of a leaf",
        ),
        pytest.param(
            a_pool(N0, "{cellAddress: n/1}"),
            '[0].cellChildren[1].cellAddress: "n/1" must not contain a /',
            id="slash",
        ),
        pytest.param(
            a_pool(
                f"{{cellAddress: {'n' * 250}, cellChildren: [{{cellAddress: {'s' * 250}}}, {{}}]}}",
                N1,
                more=f"cellAddress: {'p' * 20}, ",
            ),
            "[0].cellChildren[0].cellChildren[0].cellAddress: the whole address has more than 512 "
            "characters",
            id="long address",
        ),
        pytest.param(
            a_pool("{cellAddress: n0, pinnedCellId: P}", "{cellAddress: n1, pinnedCellId: P}"),
            f'[0].cellChildren[1].pinnedCellId: "P" is the id of {CELLS}[0].cellChildren[0] '
            "already",
            id="pinned id twice",
        ),
    ],
)
def test_cells_at_fault_are_told_with_their_path(cells: str, problem: str) -> None:
    assert problems_of(hived(cells)) == [f"{CELLS}{problem}"]


PINNED = a_pool("{cellAddress: n0, pinnedCellId: P}", N1)


@pytest.mark.parametrize(
    ("vcs", "problem"),
    [
        pytest.param(
            "{vc: {virtualCells: [{cellType: X.NODE, cellNumber: 1}]}}",
            'vc.virtualCells[0].cellType: there is no chain "X": it is not the type of a top cell '
            '("POOL")',
            id="unknown chain",
        ),
        pytest.param(
            "{vc: {virtualCells: [{cellType: NODE, cellNumber: 1}]}}",
            'vc.virtualCells[0].cellType: there is no chain "NODE": it is not the type of a top '
            'cell ("POOL")',
            id="type that is no chain",
        ),
        pytest.param(
            "{vc: {virtualCells: [{cellType: POOL.NODEX, cellNumber: 1}]}}",
            'vc.virtualCells[0].cellType: "NODEX" is not in the chain "POOL" ("POOL", "NODE", '
            '"PAIR", "G")',
            id="type outside the chain",
        ),
        pytest.param(
            "{vc: {virtualCells: [{cellType: POOL.NODE, cellNumber: -1}]}}",
            "vc.virtualCells[0].cellNumber: must be at least 0, not -1",
            id="negative number",
        ),
        pytest.param(
            "{vc: {virtualCells: [{cellNumber: 1}]}}",
            "vc.virtualCells[0].cellType: is required",
            id="no type",
        ),
        pytest.param(
            "{vc: {pinnedCells: [{pinnedCellId: Q}]}}",
            'vc.pinnedCells[0].pinnedCellId: there is no physical cell with the pinnedCellId "Q"',
            id="unknown pinned cell",
        ),
        pytest.param(
            "{vc: {pinnedCells: [{pinnedCellId: P}]}, vd: {pinnedCells: [{pinnedCellId: P}]}}",
            'vd.pinnedCells[0].pinnedCellId: "P" is promised by '
            "virtualClusters.vc.pinnedCells[0].pinnedCellId already",
            id="pinned by two VCs",
        ),
        pytest.param(
            "{vc: {pinnedCells: [{pinnedCellId: P}, {pinnedCellId: P}]}}",
            'vc.pinnedCells[1].pinnedCellId: "P" is promised by '
            "virtualClusters.vc.pinnedCells[0].pinnedCellId already",
            id="pinned twice",
        ),
        pytest.param("{vc: 5}", "vc: must be a mapping, not 5", id="no VC"),
        pytest.param(
            "{vc: {virtualCells: {cellType: POOL}}}",
            "vc.virtualCells: must be a list, not a mapping",
            id="no list",
        ),
    ],
)
def test_vcs_at_fault_are_told_with_their_path(vcs: str, problem: str) -> None:
    assert problems_of(hived(PINNED, vcs=vcs)) == [f"virtualClusters.{problem}"]


def test_a_pinned_cell_in_a_pinned_cell_is_promised_twice() -> None:
    text = hived(
        a_pool("{cellAddress: n0, pinnedCellId: P}", N1, more="pinnedCellId: Q, "),
        vcs="{vc: {pinnedCells: [{pinnedCellId: P}, {pinnedCellId: Q}]}}",
    )
    assert problems_of(text) == [
        f'{CELLS}[0].cellChildren[0].pinnedCellId: "P" lies in "Q", which is promised too'
    ]


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        (
            "virtualCells: [{cellType: POOL.NODE, cellNumber: 1}]",
            "virtualCells: [{cellType: POOL.NODE, cellNumber: 1, pinnedCells: []}]",
            'virtualClusters.vc.virtualCells[0].pinnedCells: unknown key; "pinnedCells" belongs to '
            "a virtual cluster, not to an entry of virtualCells",
        ),
        (
            "cellNumber: 1",
            "cellNumbr: 1",
            "virtualClusters.vc.virtualCells[0].cellNumbr: unknown key; did you mean cellNumber?",
        ),
        (
            "virtualCells",
            "virtual-cell",
            "virtualClusters.vc.virtual-cell: unknown key; did you mean virtualCells?",
        ),
        (
            "cellAddress: n0",
            "CellAdress: n0",
            f"{CELLS}[0].cellChildren[0].CellAdress: unknown key; did you mean cellAddress?",
        ),
        (
            "cellAddress: n1",
            "cellAddress: n1, reservationId: P",
            f"{CELLS}[0].cellChildren[1].reservationId: unknown key; it is now called pinnedCellId",
        ),
        (
            "{cellAddress: n1}",
            "{<<: {cellAddress: n1}}",
            f'{CELLS}[0].cellChildren[1]["<<"]: unknown key; merge keys are not supported; '
            "write the values out",
        ),
    ],
)
def test_a_word_in_the_wrong_place_or_nearly_a_word_is_a_problem(
    right: str, wrong: str, problem: str
) -> None:
    text = hived(vcs="{vc: {virtualCells: [{cellType: POOL.NODE, cellNumber: 1}]}}")
    assert right in text
    assert problems_of(text.replace(right, wrong)) == [problem]


def test_all_problems_are_told_at_once() -> None:
    text = hived(
        f"{a_pool(N0, N0)}\n  - {{cellType: NODEX}}",
        types=TYPES + "    BAD: {childCellType: G, childCellNumber: -2}\n",
        vcs="{vc: {virtualCells: [{cellType: POOL.NODEX, cellNumber: 1}, {cellNumber: x}]}, vd: 1}",
    )
    assert problems_of(f"kubeApiServerAddress: 5\nvirtualCluster: 1\n{text}") == [
        "physicalCluster.cellTypes.BAD.childCellNumber: must be at least 1, not -2",
        "virtualClusters.vc.virtualCells[1].cellType: is required",
        'virtualClusters.vc.virtualCells[1].cellNumber: must be a whole number, not "x"',
        "virtualClusters.vd: must be a mapping, not 1",
        "virtualCluster: unknown key; did you mean virtualClusters?",
        f'{CELLS}[1].cellType: "NODEX" is not one of cellTypes',
        f'{CELLS}[0].cellChildren[1].cellAddress: the node "n0" is {CELLS}[0].cellChildren[0] '
        "already",
        'virtualClusters.vc.virtualCells[0].cellType: "NODEX" is not in the chain "POOL" ("POOL", '
        '"NODE", "PAIR", "G")',
    ]


def test_promises_that_do_not_fit_are_told_beside_other_problems_of_vcs() -> None:
    vcs = "{vc: {virtualCells: [{cellType: X, cellNumber: 1}, {cellType: POOL, cellNumber: 2}]}}"
    assert problems_of(hived(POOL, vcs=vcs)) == [
        'virtualClusters.vc.virtualCells[0].cellType: there is no chain "X": it is not the type of '
        'a top cell ("POOL")',
        'virtualClusters: chain "POOL", level 4 ("POOL"): 2 cells promised ("vc": 2), but only 1 '
        "of 1 can be given",
    ]


@pytest.mark.parametrize(
    "text",
    [
        hived(
            "  - {cellType: A, cellAddress: n0}",
            types="\n  cellTypes:\n"
            + "".join(
                f"    {'ABCDEFGH'[n]}: {{childCellType: {'ABCDEFGHI'[n + 1]}, "
                f"childCellNumber: 400000, isNodeLevel: {str(n == 0).lower()}}}\n"
                for n in range(8)
            ),
        ),
        hived(
            "\n".join(f"  - {{cellType: A, cellAddress: n{n}}}" for n in range(20)),
            types="\n  cellTypes:\n"
            "    A: {childCellType: B, childCellNumber: 390000, isNodeLevel: y}\n",
        ),
    ],
    ids=["deep", "many"],
)
def test_more_cells_than_anybody_has_are_not_built(text: str) -> None:
    message = "contain more than 400000 cells in all; that is the limit"
    assert problems_of(text) == [f"{CELLS}: {message}"]


def test_many_strange_keys_do_not_take_long() -> None:
    keys = ", ".join(f"virtualClusterz{place}: 1" for place in range(40_000))
    assert len(problems_of(f"{{{keys}, virtualCluster: 1}}")) <= 101
