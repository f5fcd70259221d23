"""Promises that a changed document raises, compared with the nodes of the last days."""

from typing import Final

import pytest

from policy.cluster.derived import DerivedClusterDocument
from policy.cluster.document import NodeCount
from policy.submission import LeafType
from tests.support.policy.cluster_texts import cluster_of, problems_of
from tests.support.policy.documents import HEAD

RACK, NODE, GPU = "topology.kubernetes.io/rack", "kubernetes.io/hostname", "nvidia.com/gpu"
SEEN: Final = 'nodes of leaf type "A100" seen in the last 7 days'
HINT: Final = "lower it, or declare nodes that will be added under expectedNodes"


def document(expected: str = "", **vcs: list[tuple[str, int]]) -> DerivedClusterDocument:
    """Write a document of racks and nodes with these promises."""
    found = cluster_of(text(expected, **vcs))
    assert isinstance(found, DerivedClusterDocument)
    return found


def text(expected: str = "", **vcs: list[tuple[str, int]]) -> str:
    lines = [
        f"  {name}: {{virtualCells: ["
        + ", ".join(f"{{leafType: A100, level: {lv}, cellNumber: {n}}}" for lv, n in promises)
        + "]}"
        for name, promises in vcs.items()
    ]
    entry = f"{{levels: [{RACK}, {NODE}], leafResource: {GPU}, leafTypeLabel: type}}"
    head = f"{HEAD}Cluster\nnodeTopology: [{entry}]\n"
    more = f"expectedNodes: [{expected}]\n" if expected else ""
    return f"{head}{more}virtualClusters:\n" + "\n".join(lines) + "\n"


def rack(name: str | None, nodes: int = 2, *, leaf_type: str | None = "A100") -> NodeCount:
    labels = {RACK: name, "type": leaf_type}
    told = {key: value for key, value in labels.items() if value is not None}
    return NodeCount(labels=told, leaf_counts={GPU: 8}, number=nodes)


EIGHT = [rack(f"r{index}") for index in range(8)]


def check(
    now: DerivedClusterDocument,
    *,
    before: DerivedClusterDocument | None = None,
    seen: list[NodeCount] = EIGHT,
) -> list[str]:
    return [str(problem) for problem in now.check_raised(before, seen)]


def test_a_promise_that_is_raised_beyond_the_nodes_is_refused() -> None:
    before = document(big=[(RACK, 2)], small=[(NODE, 2)])
    assert check(document(big=[(RACK, 30)], small=[(NODE, 2)]), before=before) == [
        f'virtualClusters.big.virtualCells[0].cellNumber: 30 cells of level "{RACK}" promised, '
        f'but {SEEN} do not back it: of level "{RACK}", 30 are promised in all and 8 can be '
        f"given; {HINT}"
    ]
    assert check(document(big=[(RACK, 7)], small=[(NODE, 2)]), before=before) == []
    assert len(check(document(big=[(RACK, 7)], small=[(NODE, 3)]), before=before)) == 2


def test_the_first_document_is_compared_too() -> None:
    assert len(check(document(big=[(RACK, 9)]))) == 1
    assert check(document(big=[(RACK, 8)])) == []


def test_before_any_node_was_seen_nothing_is_refused() -> None:
    assert check(document(big=[(RACK, 30)]), seen=[]) == []
    cpu_only = [NodeCount(labels={}, leaf_counts={}, number=5)]
    assert check(document(big=[(RACK, 30)]), seen=cpu_only) == []


def test_during_an_outage_a_document_can_be_edited_and_promises_moved() -> None:
    before, seen = document(big=[(RACK, 8)], small=[]), EIGHT[:2]
    assert check(before, before=before, seen=seen) == []
    assert check(document(big=[(RACK, 5)], small=[]), before=before, seen=seen) == []
    assert check(document(big=[(RACK, 5)], small=[(RACK, 3)]), before=before, seen=seen) == []
    assert len(check(document(big=[(RACK, 8)], small=[(RACK, 1)]), before=before, seen=seen)) == 1


def test_a_leaf_type_that_was_not_seen_is_refused_unless_it_is_expected() -> None:
    other = [rack("r1", leaf_type="H100")]
    (problem,) = check(document(big=[(NODE, 2)]), seen=other)
    assert f'no node of leaf type "A100" and that level was seen in the last 7 days; {HINT}' in (
        problem
    )
    expected = "{leafType: A100, nodes: 2, leafCells: 8}"
    assert check(document(expected, big=[(NODE, 2)]), seen=other) == []
    assert check(document(expected, big=[(RACK, 2)]), seen=other) == []
    assert len(check(document(expected, big=[(NODE, 3)]), seen=other)) == 1


def test_nodes_without_labels_count_in_favour_of_the_admin() -> None:
    assert check(document(big=[(RACK, 4)]), seen=[rack(None, 4)]) == []
    assert check(document(big=[(RACK, 2)]), seen=[rack("r1", 1, leaf_type=None), rack("r2")]) == []
    assert len(check(document(big=[(RACK, 5)]), seen=[rack(None, 4)])) == 1


def test_a_promise_below_the_level_that_is_short_is_not_at_fault() -> None:
    (problem,) = check(document(big=[(RACK, 30), (NODE, 2)]))
    assert "virtualCells[0]" in problem


def test_levels_share_their_nodes() -> None:
    assert check(document(big=[(RACK, 7), (NODE, 1)], small=[(GPU, 8)])) == []
    assert len(check(document(big=[(RACK, 7), (NODE, 1)], small=[(GPU, 9)]))) == 3


def test_chains_tell_the_largest_cells() -> None:
    chains = document(big=[(RACK, 1)]).seen_chains([*EIGHT, rack("r9", 3)])
    chain = chains[0, LeafType("A100")]
    assert (chain.levels, chain.largest, chain.leaf_count) == ((GPU, NODE, RACK), (1, 8, 24), 152)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{leafType: A100, nodes: 0, leafCells: 8}", "nodes: must be at least 1, not 0"),
        ("{leafType: A100, nodes: 1}", "leafCells: is required"),
        ("{leafType: A100, nodes: 1, leafCells: 8, racks: 1}", "racks: unknown key"),
    ],
)
def test_expected_nodes_are_checked(entry: str, problem: str) -> None:
    assert problems_of(text(entry, lab=[]))[0].startswith(f"expectedNodes[0].{problem}")
