"""HiveD's YAML: accepted as it is, addresses as HiveD gives them, promises by chain and level."""

from pathlib import Path

import pytest

from policy.submission import NodeName, VcName
from policy.topology import (
    CellAddress,
    CellTypeName,
    ChainName,
    Level,
    PhysicalCell,
    PinnedCellId,
    Promise,
    VirtualCluster,
)
from tests.support.policy.cluster_texts import (
    addresses,
    chain_of,
    cluster_of,
    hived,
    topology_of,
    warnings_of,
)

EXAMPLES = sorted(Path(__file__).parents[5].glob("shared/data/hived/**/hived*.yaml"))

# One node of two chains, devices by other numbers, an order of its own, pinned cells of all levels.
MIXED = """
kubeApiServerAddress: http://10.0.0.1:8080
webServerAddress: ":9096"
physicalCluster:
  skuTypes:
    K80: {gpu: 1, cpu: 4, memory: 8192Mi}
  cellTypes:
    CT1-NODE: {childCellType: CT1, childCellNumber: 2, isNodeLevel: true}
    K80-SWITCH: {childCellType: K80, childCellNumber: 2}
    K80-NODE: {childCellType: K80-SWITCH, childCellNumber: 2, isNodeLevel: true}
    2-K80-NODE: {childCellType: K80-NODE, childCellNumber: 2}
    4-K80-NODE: {childCellType: 2-K80-NODE, childCellNumber: 2}
  physicalCells:
  - cellType: CT1-NODE
    cellAddress: 1.0.0.1
    cellChildren:
    - cellAddress: 8
      pinnedCellId: one-device
    - cellAddress: 9
  - cellType: 4-K80-NODE
    cellChildren:
    - pinnedCellId: half
      cellChildren:
      - cellAddress: 0.0.3.0
      - cellAddress: 0.0.3.1
        cellChildren: null
    - cellChildren:
      - cellAddress: 1.0.0.1
        cellChildren:
        - cellAddress: 1
          cellChildren:
          - cellAddress: 1
          - cellAddress: 0
        - cellAddress: 0
          cellChildren: []
      - cellAddress: 0010
virtualClusters:
  VC1:
    virtualCells:
    - {cellType: 4-K80-NODE.2-K80-NODE.K80-NODE, cellNumber: 1}
    - {cellType: 4-K80-NODE.K80, cellNumber: 2}
    - {cellType: CT1-NODE.CT1, cellNumber: 0}
    pinnedCells:
    - pinnedCellId: one-device
  VC2:
    pinnedCells:
    - pinnedCellId: half
  VC3:
"""


def test_the_address_is_what_is_written_or_a_number_by_place() -> None:
    assert addresses(*chain_of(MIXED, "4-K80-NODE").cells) == [
        "1",
        "1/2",
        "1/2/0.0.3.0",
        "1/2/0.0.3.0/0",
        "1/2/0.0.3.0/0/0",
        "1/2/0.0.3.0/0/1",
        "1/2/0.0.3.0/1",
        "1/2/0.0.3.0/1/2",
        "1/2/0.0.3.0/1/3",
        "1/2/0.0.3.1",
        "1/2/0.0.3.1/0",
        "1/2/0.0.3.1/0/0",
        "1/2/0.0.3.1/0/1",
        "1/2/0.0.3.1/1",
        "1/2/0.0.3.1/1/2",
        "1/2/0.0.3.1/1/3",
        "1/3",
        "1/3/1.0.0.1",
        "1/3/1.0.0.1/1",
        "1/3/1.0.0.1/1/1",
        "1/3/1.0.0.1/1/0",
        "1/3/1.0.0.1/0",
        "1/3/1.0.0.1/0/2",
        "1/3/1.0.0.1/0/3",
        "1/3/0010",
        "1/3/0010/0",
        "1/3/0010/0/0",
        "1/3/0010/0/1",
        "1/3/0010/1",
        "1/3/0010/1/2",
        "1/3/0010/1/3",
    ]


def test_the_number_of_a_top_cell_is_its_place_among_all_of_them() -> None:
    types = """
  cellTypes:
    CT1-NODE: {childCellType: CT1, childCellNumber: 2, isNodeLevel: true}
    V100-2: {childCellType: V100, childCellNumber: 2}
    V100-4: {childCellType: V100-2, childCellNumber: 2}
    V100-8: {childCellType: V100-4, childCellNumber: 2}
    NODE: {childCellType: V100-8, childCellNumber: 2, isNodeLevel: true}
    2-NODE: {childCellType: NODE, childCellNumber: 2}
    4-NODE: {childCellType: 2-NODE, childCellNumber: 2}
"""
    others = "\n".join(f"  - {{cellType: CT1-NODE, cellAddress: c{place}}}" for place in range(7))
    last = """
  - cellType: 4-NODE
    cellChildren:
    - {cellAddress: , cellChildren: [{cellAddress: 0.0.3.0}, {cellAddress: 0.0.3.1}]}
    - cellChildren: [{cellAddress: 0.0.3.2}, {cellAddress: 0.0.3.3}]
"""
    (top,) = chain_of(hived(others + last, types=types), "4-NODE").cells
    found = addresses(top)
    assert found[:7] == [
        "7",
        "7/14",
        "7/14/0.0.3.0",
        "7/14/0.0.3.0/0",
        "7/14/0.0.3.0/0/0",
        "7/14/0.0.3.0/0/0/0",
        "7/14/0.0.3.0/0/0/0/0",
    ]
    assert found[-4:] == [
        "7/15/0.0.3.3/1/3/6/13",
        "7/15/0.0.3.3/1/3/7",
        "7/15/0.0.3.3/1/3/7/14",
        "7/15/0.0.3.3/1/3/7/15",
    ]


def test_cells_know_their_node_their_device_and_their_pin() -> None:
    (node,) = chain_of(MIXED, "CT1-NODE").cells
    name = "1.0.0.1"
    assert node == PhysicalCell(
        address=CellAddress(name),
        level=2,
        node=NodeName(name),
        children=(
            PhysicalCell(
                address=CellAddress("1.0.0.1/8"),
                level=1,
                node=NodeName(name),
                device=8,
                pinned=PinnedCellId("one-device"),
            ),
            PhysicalCell(address=CellAddress("1.0.0.1/9"), level=1, node=NodeName(name), device=9),
        ),
    )
    (top,) = chain_of(MIXED, "4-K80-NODE").cells
    assert (top.node, top.device, top.children[0].pinned) == (None, None, "half")


def test_a_chain_is_the_ladder_of_types_under_a_top_type() -> None:
    chain = chain_of(hived(), "POOL")
    assert (chain.name, chain.leaf_type) == ("POOL", "G")
    assert chain.levels == (
        a_level(1, "G", children=0, leaves=1),
        a_level(2, "PAIR", children=2, leaves=2),
        a_level(3, "NODE", children=2, leaves=4, is_node=True),
        a_level(4, "POOL", children=2, leaves=8),
    )


def a_level(level: int, name: str, *, children: int, leaves: int, is_node: bool = False) -> Level:
    return Level(
        level=level,
        cell_type=CellTypeName(name),
        child_count=children,
        leaf_count=leaves,
        is_node=is_node,
    )


def test_promises_name_chain_and_level_by_first_and_last_part() -> None:
    k80 = ChainName("4-K80-NODE")
    assert topology_of(MIXED).vcs == {
        "VC1": VirtualCluster(
            name=VcName("VC1"),
            promises=(Promise(chain=k80, level=3, count=1), Promise(chain=k80, level=1, count=2)),
            pinned=(PinnedCellId("one-device"),),
        ),
        "VC2": VirtualCluster(name=VcName("VC2"), pinned=(PinnedCellId("half"),)),
        "VC3": VirtualCluster(name=VcName("VC3")),
    }


SKUS = (
    "is read, but CPU and memory of leaf types are not used; pods state what they need, and "
    "shapes can set it"
)


def test_the_settings_of_hiveds_process_are_ignored_with_a_warning() -> None:
    document = cluster_of(MIXED)
    assert [str(warning) for warning in document.warnings] == [
        "kubeApiServerAddress: is a setting of HiveD's process and has no effect here",
        "webServerAddress: is a setting of HiveD's process and has no effect here",
        f"physicalCluster.skuTypes: {SKUS}",
    ]
    assert document.build().warnings == document.warnings
    assert not document.depends_on_nodes


@pytest.mark.parametrize(
    "text",
    ["", "# nothing\n", "physicalCluster:\nvirtualClusters:\n", "kind: Cluster\nphysicalCluster: "],
)
def test_a_cluster_may_be_empty(text: str) -> None:
    built = cluster_of(text).build()
    assert (built.topology.chains, built.topology.vcs, built.problems) == ({}, {}, ())


def test_historic_words_and_the_booleans_of_old_yaml_are_understood() -> None:
    text = hived().replace("physicalCluster:", "physicalCluster:\n  gpuTypes: {G: {gpu: 1}}")
    old = text.replace("isNodeLevel: true", "isNodeLevel: Yes").replace("{gpu: 1}", "7")
    assert topology_of(old) == topology_of(hived())
    other = old.replace("gpuTypes", "leafCellTypes")
    assert warnings_of(other) == [f"physicalCluster.leafCellTypes: {SKUS}"]


def test_names_may_look_like_numbers() -> None:
    types = """
  cellTypes:
    1.10: {childCellType: 1e3, childCellNumber: 1, isNodeLevel: true}
"""
    text = hived("  - {cellType: 1.10, cellAddress: 007}", types=types)
    chain = chain_of(text, "1.10")
    assert (chain.leaf_type, chain.cells[0].node) == ("1e3", "007")


def test_a_chain_that_no_vc_has_and_a_node_of_two_chains_are_fine() -> None:
    topology = topology_of(MIXED.split("virtualClusters")[0])
    assert list(topology.chains) == ["CT1-NODE", "4-K80-NODE"]
    assert topology.vcs == {}


def test_what_is_probably_not_meant_is_a_warning() -> None:
    text = hived(
        "  - {cellType: POOL, cellChildren: [{pinnedCellId: PIN}, {cellAddress: n1, colour: red}]}",
        vcs="{vc: {virtualCells: [{cellType: POOL.PAIR.NODE, cellNumber: 1}, {cellType: POOL}]}}",
    )
    assert warnings_of(f"quotaExcludeVCs: [a]\n{text}") == [
        "quotaExcludeVCs: unknown key, it has no effect; known keys are physicalCluster, "
        "virtualClusters, quarantine, foreign",
        "physicalCluster.physicalCells[0].cellChildren[1].colour: unknown key, it has no effect; "
        "known keys are cellType, cellAddress, pinnedCellId, cellChildren",
        "physicalCluster.physicalCells[0].cellChildren[0]: a node level cell without cellAddress "
        'is assumed to be the node "0"',
        'virtualClusters.vc.virtualCells[0].cellType: the parts of "POOL.PAIR.NODE" are not in the '
        'order of the chain ("POOL", "NODE", "PAIR", "G"); only the first and the last count',
        "virtualClusters.vc.virtualCells[1].cellNumber: is not given, so no cell is promised",
        'physicalCluster.physicalCells[0].cellChildren[0].pinnedCellId: "PIN" is not promised to '
        "any VC, so it is not reserved",
    ]


def test_unknown_keys_beyond_counting_are_one_warning() -> None:
    keys = ", ".join(f"strange{place}: 1" for place in range(250))
    warnings = warnings_of(f"{{{keys}}}")
    assert (len(warnings), warnings[-1]) == (201, "50 more unknown keys not shown")


@pytest.mark.skipif(not EXAMPLES, reason="the shared example configurations are not here")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_hiveds_own_examples_are_read(path: Path) -> None:
    built = cluster_of(path.read_text()).build()
    assert built.problems == ()
    paths = {warning.path for warning in built.warnings}
    assert paths <= {"kubeApiServerAddress", "physicalCluster.skuTypes"}
