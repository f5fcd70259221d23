"""Promises that do not all fit: which cells each VC keeps."""

from collections.abc import Mapping

import pytest

from policy.cluster.document import LiveNode
from policy.cluster.fair_cut import cut_fairly_stepwise
from policy.cluster.promises import check_promises
from policy.cluster.safety import Stepwise, run_to_end
from policy.submission import NodeName, VcName
from tests.support.policy.cluster_texts import cluster_of
from tests.support.policy.documents import HEAD

RACK, NODE = "topology.kubernetes.io/rack", "kubernetes.io/hostname"
SIZES = {1: 1, 2: 8, 3: 16}


def cut(available: Mapping[int, int], **promised: Mapping[int, int]) -> dict[str, dict[int, int]]:
    """Cut promises of a chain in which every level has cells of its own."""

    def fits(cells: Mapping[int, int]) -> Stepwise[bool]:
        yield
        return all(count <= available[level] for level, count in cells.items())

    wanted = {VcName(name): cells for name, cells in promised.items()}
    kept = run_to_end(cut_fairly_stepwise(wanted, sizes=SIZES, fits=fits))
    return {name: {level: n for level, n in cells.items() if n} for name, cells in kept.items()}


@pytest.mark.parametrize(
    ("promised", "available", "kept"),
    [
        ({"a": 4, "b": 1}, 3, {"a": 2, "b": 1}),
        ({"a": 5, "b": 5, "c": 5}, 7, {"a": 3, "b": 2, "c": 2}),
        ({"a": 5, "b": 6, "c": 5}, 7, {"a": 2, "b": 3, "c": 2}),
        ({"a": 1, "b": 2}, 0, {"a": 0, "b": 0}),
        ({"a": 1, "b": 2}, 9, {"a": 1, "b": 2}),
        ({"a": 400_000, "b": 3}, 80_000, {"a": 79_997, "b": 3}),
    ],
)
def test_no_vc_loses_a_cell_while_another_keeps_more(
    promised: dict[str, int], available: int, kept: dict[str, int]
) -> None:
    found = cut({2: available}, **{name: {2: count} for name, count in promised.items()})
    assert found == {name: {2: count} if count else {} for name, count in kept.items()}


def test_a_vc_that_gets_no_more_large_cells_goes_on_with_its_small_ones() -> None:
    found = cut({3: 2, 2: 9}, a={3: 30, 2: 2}, b={3: 1, 2: 1})
    assert found == {"a": {3: 1, 2: 2}, "b": {3: 1, 2: 1}}


def derived(**vcs: list[tuple[str, int]]) -> str:
    """Write a document of racks and nodes with these promises."""
    lines = [
        f"  {name}: {{virtualCells: ["
        + ", ".join(f"{{leafType: A100, level: {lv}, cellNumber: {n}}}" for lv, n in promises)
        + "]}"
        for name, promises in vcs.items()
    ]
    entry = f"{{levels: [{RACK}, {NODE}], leafResource: nvidia.com/gpu, leafTypeLabel: type}}"
    return f"{HEAD}Cluster\nnodeTopology: [{entry}]\nvirtualClusters:\n" + "\n".join(lines) + "\n"


def racks(count: int, *, nodes: int = 2, leaves: int = 8) -> list[LiveNode]:
    return [
        LiveNode(
            name=NodeName(f"n{rack}-{place}"),
            labels={RACK: f"r{rack}", "type": "A100"},
            leaf_counts={"nvidia.com/gpu": leaves},
        )
        for rack in range(count)
        for place in range(nodes)
    ]


def backing(text: str, nodes: list[LiveNode]) -> dict[str, list[tuple[str, int, int]]]:
    """Return level, promised and backed cells by VC."""
    topology = cluster_of(text).build(nodes).topology
    return {
        name: [(one.level, one.promised, one.backed) for one in topology.backing(name)]
        for name in topology.vcs
    }


def test_a_promise_of_far_too_many_racks_takes_no_cell_of_another_vc() -> None:
    text = derived(big=[(RACK, 30)], small=[(NODE, 4)])
    assert backing(text, racks(8)) == {"big": [(RACK, 30, 6)], "small": [(NODE, 4, 4)]}


def test_vcs_share_what_is_left_after_an_outage() -> None:
    text = derived(a=[(RACK, 2)], b=[(RACK, 1), (NODE, 2)], c=[("nvidia.com/gpu", 16)])
    assert backing(text, racks(5)) == {
        "a": [(RACK, 2, 2)],
        "b": [(NODE, 2, 2), (RACK, 1, 1)],
        "c": [("A100", 16, 16)],
    }
    assert backing(text, racks(3)) == {
        "a": [(RACK, 2, 1)],
        "b": [(NODE, 2, 0), (RACK, 1, 1)],
        "c": [("A100", 16, 16)],
    }
    assert backing(text, []) == {
        "a": [(RACK, 2, 0)],
        "b": [(NODE, 2, 0), (RACK, 1, 0)],
        "c": [("nvidia.com/gpu", 16, 0)],
    }


def test_what_is_backed_can_be_given_at_once_also_where_racks_differ() -> None:
    text = derived(a=[(RACK, 2), (NODE, 1)], b=[(NODE, 4)], c=[("nvidia.com/gpu", 30)])
    nodes = [*racks(1, nodes=3), *racks(3, nodes=1, leaves=4)[1:]]
    topology = cluster_of(text).build(nodes).topology
    assert topology.vcs == cluster_of(text).build(nodes[::-1]).topology.vcs
    assert check_promises(topology) == []
    assert backing(text, nodes) == {
        "a": [(NODE, 1, 0), (RACK, 2, 1)],
        "b": [(NODE, 4, 2)],
        "c": [("A100", 30, 16)],
    }


def test_promises_are_cut_in_many_steps_and_nodes_that_change_meanwhile_make_no_difference() -> (
    None
):
    vcs = {f"vc-{index}": [(RACK, 2 + index % 3), (NODE, 5 + index)] for index in range(20)}
    document = cluster_of(derived(**vcs))
    builder = document.builder()
    for node in racks(16):
        builder.observe(node)
    steps = builder.build_stepwise()
    for _ in range(len(vcs) * 2 + 10):  # a step for each promise, and then for each question
        next(steps)
    builder.forget(racks(1)[0].name)
    assert run_to_end(steps) == document.build(racks(16))
