"""The derived form: cells from the labels of live nodes, promises as far as they can be kept."""

from collections.abc import Mapping

from policy.cluster.document import BuiltCluster, LiveNode
from policy.submission import NodeName, VcName
from policy.topology import CellAddress, CellTypeName, ChainName, Level, PhysicalCell, Promise
from tests.support.policy.cluster_texts import addresses, cluster_of, problems_of
from tests.support.policy.documents import HEAD

ZONE, RACK, NODE = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/rack",
    "kubernetes.io/hostname",
)
ENTRY = f"""
- nodeSelector: {{node-role/gpu: "true"}}
  levels: [{ZONE}, {RACK}, {NODE}]
  leafResource: nvidia.com/gpu
  leafTypeLabel: nvidia.com/gpu.product
"""


def derived(*cells: str, entries: str = ENTRY, more: str = "{}") -> str:
    """Write a document whose VC `lab` was promised these cells."""
    vcs = f"{{lab: {{virtualCells: [{', '.join(cells)}]}}, other: {more}}}"
    return f"{HEAD}Cluster\nnodeTopology:{entries}virtualClusters: {vcs}\n"


def promised(level: str, count: int, leaf_type: str = "A100") -> str:
    return f"{{leafType: {leaf_type}, level: {level}, cellNumber: {count}}}"


def a_live_node(
    name: str,
    *,
    zone: str = "a",
    rack: str = "r1",
    leaf_type: str = "A100",
    leaves: int = 2,
    more: Mapping[str, str] | None = None,
) -> LiveNode:
    labels = {"node-role/gpu": "true", ZONE: zone, RACK: rack, "nvidia.com/gpu.product": leaf_type}
    return LiveNode(
        name=NodeName(name),
        labels={key: value for key, value in {**labels, **(more or {})}.items() if value},
        leaf_counts={"nvidia.com/gpu": leaves},
    )


NODES = [
    a_live_node("n3", rack="r2", leaves=1),
    a_live_node("n1"),
    a_live_node("n2"),
    a_live_node("n4", zone="b"),
    a_live_node("h1", leaf_type="H100"),
]


def told(built: BuiltCluster) -> list[str]:
    return [str(problem) for problem in (*built.problems, *built.warnings)]


def test_cells_are_built_from_labels() -> None:
    document = cluster_of(derived())
    built = document.build(NODES)
    assert document.depends_on_nodes
    assert told(built) == []
    assert list(built.topology.chains) == ["A100", "H100"]
    chain = built.topology.chains[ChainName("A100")]
    assert addresses(*chain.cells) == [
        "a",
        "a/r1",
        "a/r1/n1",
        "a/r1/n1/0",
        "a/r1/n1/1",
        "a/r1/n2",
        "a/r1/n2/0",
        "a/r1/n2/1",
        "a/r2",
        "a/r2/n3",
        "a/r2/n3/0",
        "b",
        "b/r1",
        "b/r1/n4",
        "b/r1/n4/0",
        "b/r1/n4/1",
    ]
    assert chain.cells[0].children[1].children[0] == PhysicalCell(
        address=CellAddress("a/r2/n3"),
        level=2,
        node=NodeName("n3"),
        children=(
            PhysicalCell(address=CellAddress("a/r2/n3/0"), level=1, node=NodeName("n3"), device=0),
        ),
    )


def test_a_level_is_described_by_its_largest_cell() -> None:
    chain = cluster_of(derived()).build(NODES).topology.chains[ChainName("A100")]
    described = [("A100", 0, 1), (NODE, 2, 2), (RACK, 2, 4), (ZONE, 2, 5)]
    assert chain.levels == tuple(
        Level(
            level=place + 1,
            cell_type=CellTypeName(name),
            child_count=children,
            leaf_count=leaves,
            is_node=name == NODE,
        )
        for place, (name, children, leaves) in enumerate(described)
    )


def test_promises_name_a_level_by_its_label_and_leaf_cells_by_their_resource() -> None:
    cells = [promised(RACK, 1), promised(NODE, 1), promised("nvidia.com/gpu", 2), promised(ZONE, 0)]
    built = cluster_of(derived(*cells, promised(NODE, 1, "H100"))).build(NODES)
    a100, h100 = ChainName("A100"), ChainName("H100")
    assert told(built) == []
    assert built.topology.vcs[VcName("lab")].promises == (
        Promise(chain=a100, level=3, count=1),
        Promise(chain=a100, level=2, count=1),
        Promise(chain=a100, level=1, count=2),
        Promise(chain=h100, level=2, count=1),
    )


def test_promises_that_the_live_nodes_cannot_hold_are_cut_fairly_and_told() -> None:
    more = f"{{virtualCells: [{promised(NODE, 1)}]}}"
    document = cluster_of(derived(promised(NODE, 3), promised(NODE, 1), more=more))
    built = document.build([a_live_node("n1"), a_live_node("n2"), a_live_node("n3")])
    assert told(built) == [
        f'virtualClusters.lab.virtualCells[0]: 3 cells promised of level "{NODE}", but the nodes '
        'of leaf type "A100" back only 2 of them: VCs share the leaf cells equally, as far as '
        "whole cells allow",
        f'virtualClusters.lab.virtualCells[1]: 1 cell promised of level "{NODE}", but the nodes of '
        'leaf type "A100" back only 0 of them: VCs share the leaf cells equally, as far as '
        "whole cells allow",
    ]
    kept = {name: vc.promises for name, vc in built.topology.vcs.items()}
    chain = ChainName("A100")
    assert kept == {
        "lab": (Promise(chain=chain, level=2, count=2),),
        "other": (Promise(chain=chain, level=2, count=1),),
    }


def test_a_promise_of_a_leaf_type_that_no_node_has_is_told() -> None:
    built = cluster_of(derived(promised(RACK, 2, "B200"))).build(NODES)
    assert told(built) == [
        f'virtualClusters.lab.virtualCells[0]: 2 cells promised of level "{RACK}", but no node '
        'has leaf type "B200" and that level'
    ]
    assert built.topology.vcs[VcName("lab")].promises == ()


def test_without_nodes_there_are_no_cells() -> None:
    built = cluster_of(derived()).build()
    assert built.topology.chains == {}
    assert list(built.topology.vcs) == ["lab", "other"]


def test_nodes_that_are_not_as_they_should_be_are_told_and_placed_where_possible() -> None:
    nodes = [
        *(a_live_node(f"n{place}", rack="") for place in range(7)),
        a_live_node("untyped", leaf_type=""),
        a_live_node("empty", leaves=0),
        a_live_node("broken", leaves=1025),
        a_live_node("negative", leaves=-1, leaf_type=""),
        a_live_node("cpu", more={"node-role/gpu": ""}),
    ]
    built = cluster_of(derived()).build(nodes)
    assert told(built) == [
        "nodeTopology[0].leafResource: 1 node of a leaf type, but without any nvidia.com/gpu, left "
        'out: "empty"',
        "nodeTopology[0].leafResource: 1 node with more than 1024 nvidia.com/gpu, left out: "
        '"broken"',
        "nodeTopology[0].leafTypeLabel: 1 node without the label nvidia.com/gpu.product, of leaf "
        'type "unknown": "untyped"',
        f'nodeTopology[0].levels[1]: 7 nodes without the label {RACK}, placed in "-": "n0", "n1", '
        '"n2", "n3", "n4", 2 more',
    ]
    chains = built.topology.chains
    assert list(chains) == ["A100", "unknown"]
    assert addresses(*chains[ChainName("A100")].cells)[:3] == ["a", "a/-", "a/-/n0"]


TWO = f"""
- {{nodeSelector: {{pool: x}}, levels: [{RACK}, {NODE}], leafResource: gpu, leafTypeLabel: type}}
- {{levels: [{NODE}], leafResource: gpu, leafTypeLabel: type}}
- {{levels: [{NODE}], leafResource: tpu, leafTypeLabel: tpu-type}}
"""


def test_of_several_entries_the_first_counts_for_each_leaf_resource() -> None:
    nodes = [
        LiveNode(
            name=NodeName(name),
            labels={"pool": pool, RACK: "r", "type": "A100", "tpu-type": "v5"},
            leaf_counts={"gpu": 1, "tpu": tpus},
        )
        for name, pool, tpus in [("n1", "x", 0), ("n2", "y", 1)]
    ]
    built = cluster_of(derived(promised(NODE, 1), promised(RACK, 1), entries=TWO)).build(nodes)
    assert {name: addresses(*chain.cells) for name, chain in built.topology.chains.items()} == {
        "A100": ["r", "r/n1", "r/n1/0"],
        "A100#1": ["n2", "n2/0"],
        "v5#2": ["n2", "n2/0"],
    }
    assert told(built) == [
        'nodeTopology[2].leafResource: 1 node of a leaf type, but without any tpu, left out: "n1"',
        f'virtualClusters.lab.virtualCells[0]: 1 cell promised of level "{NODE}" could be of any '
        'of the chains "A100", "A100#1"; they are spread over these',
    ]
    assert built.topology.vcs[VcName("lab")].promises == (
        Promise(chain=ChainName("A100#1"), level=2, count=1),
        Promise(chain=ChainName("A100"), level=3, count=1),
    )


def test_everything_wrong_with_the_document_is_told_at_once() -> None:
    entries = f"""
- {{nodeSelector: {{a: true}}, levels: [{NODE}, x, x], leafResource: "", leafTypeLabel: t, rack: r}}
- {{levels: [], leafResource: 5}}
"""
    cells = ["{leafType: A, level: y, cellNumber: -1}", "{level: x, cellNumber: 400001}"]
    text = derived(*cells, entries=entries, more="{pinnedCells: []}")
    assert problems_of(f"{text}physicalCluster: {{}}\n") == [
        "nodeTopology[0].nodeSelector.a: must be a string, not true",
        "nodeTopology[0].leafResource: must not be empty",
        "nodeTopology[0].rack: unknown key; known keys are name, nodeSelector, levels, "
        "leafResource, leafTypeLabel",
        "nodeTopology[1].levels: must not be empty",
        "nodeTopology[1].leafResource: must be a string, not 5",
        "nodeTopology[1].leafTypeLabel: is required",
        "virtualClusters.lab.virtualCells[0].cellNumber: must be at least 0, not -1",
        "virtualClusters.lab.virtualCells[1].leafType: is required",
        "virtualClusters.lab.virtualCells[1].cellNumber: must be at most 400000, not 400001",
        "virtualClusters.other.pinnedCells: unknown key; known keys are virtualCells",
        "physicalCluster: unknown key; known keys are apiVersion, kind, quarantine, foreign, "
        "nodeTopology, virtualClusters, expectedNodes",
        "nodeTopology[0].levels[2]: duplicate of nodeTopology[0].levels[1]",
        f"nodeTopology[0].levels: the last level must be {NODE}, the node",
        f'virtualClusters.lab.virtualCells[0].level: "y" is not one of the levels "{NODE}", "x"',
    ]


def test_the_derived_form_needs_its_head() -> None:
    text = derived().replace(f"{HEAD}Cluster\n", "")
    assert problems_of(text) == ["apiVersion: is required", "kind: is required"]
