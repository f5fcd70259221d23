"""The proof that promises fit: pinned cells first, then from the highest level down."""

import pytest

from policy.cluster import safety
from policy.cluster.safety import Bag, Forest, Shortage, find_shortage, run_to_end
from policy.submission import LeafType, NodeName
from policy.topology import CellAddress, Chain, ChainName, PhysicalCell
from tests.support.policy.cluster_texts import hived, problems_of, topology_of


def racks(*sizes: list[int]) -> Chain:
    """Build racks of nodes with so many leaf cells each."""
    return Chain(
        name=ChainName("c"),
        leaf_type=LeafType("G"),
        levels=(),
        cells=tuple(
            PhysicalCell(
                address=CellAddress(f"r{place}"),
                level=3,
                children=tuple(
                    a_physical_node(f"r{place}/{n}", size) for n, size in enumerate(nodes)
                ),
            )
            for place, nodes in enumerate(sizes)
        ),
    )


def a_physical_node(address: str, leaf_count: int) -> PhysicalCell:
    leaves = [
        PhysicalCell(address=CellAddress(f"{address}/{n}"), level=1) for n in range(leaf_count)
    ]
    return PhysicalCell(
        address=CellAddress(address), level=2, children=tuple(leaves), node=NodeName(address)
    )


def a_shortage(level: int, *, promised: int, available: int, is_proven: bool = True) -> Shortage:
    return Shortage(level=level, promised=promised, available=available, is_proven=is_proven)


def test_nothing_promised_always_fits() -> None:
    assert find_shortage(racks(), promised={}, pinned=()) is None
    assert find_shortage(racks(), promised={3: 0}, pinned=()) is None


def test_a_chain_without_cells_falls_short() -> None:
    found = find_shortage(racks(), promised={2: 1}, pinned=())
    assert found == a_shortage(2, promised=1, available=0)


def test_the_smallest_rack_is_given_so_that_the_larger_one_is_left_for_nodes() -> None:
    chain = racks([8, 8, 8, 8], [8, 8])
    assert find_shortage(chain, promised={3: 1, 2: 4}, pinned=()) is None
    found = find_shortage(chain, promised={3: 1, 2: 5}, pinned=())
    assert found == a_shortage(2, promised=5, available=4)


@pytest.mark.parametrize(
    "promised",
    [{3: 1, 2: 1, 1: 3}, {3: 1, 2: 2, 1: 1}],
    ids=["give the rack of many nodes", "give the rack of large nodes"],
)
def test_where_no_rack_is_simply_smaller_both_are_tried(promised: dict[int, int]) -> None:
    assert find_shortage(racks([3, 3], [1, 1, 1]), promised=promised, pinned=()) is None
    assert find_shortage(racks([1, 1, 1], [3, 3]), promised=promised, pinned=()) is None


def test_some_of_each_kind_may_be_the_only_way() -> None:
    chain = racks([3, 3], [3, 3], [1, 1, 1], [1, 1, 1])
    assert find_shortage(chain, promised={3: 2, 2: 3, 1: 6}, pinned=()) is None
    found = find_shortage(chain, promised={3: 2, 2: 3, 1: 7}, pinned=())
    assert found == a_shortage(1, promised=7, available=6)


def test_a_search_that_is_too_long_refuses_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safety, "MAX_KINDS", 1)
    found = find_shortage(racks([3, 3], [1, 1, 1]), promised={3: 1, 2: 1, 1: 9}, pinned=())
    assert found is not None
    assert not found.is_proven


def test_a_search_ends_when_its_steps_are_used_up() -> None:
    # 2 to 18 nodes, the more the smaller: of these racks none covers another.
    chain = racks(
        *([40 - 2 * n] * n for n in range(2, 19)), *([39 - 2 * n] * n for n in range(2, 19))
    )
    found = find_shortage(chain, promised={3: 16, 2: 100, 1: 100_000}, pinned=())
    assert found is not None
    assert not found.is_proven


def test_a_long_search_pauses_often_and_finds_the_same() -> None:
    forest = Forest((3, 2, 1))
    kinds = [(40 - 2 * n, n) for n in range(2, 19)]
    for leaves, nodes in kinds:
        forest.add(forest.bag(3, [a_node(forest, leaves)] * nodes), level=3)
    promised = {3: 8, 2: 100, 1: 10_000}
    steps = forest.find_shortage_stepwise(promised, max_steps=1000)
    for _ in range(10):
        next(steps)
    found = run_to_end(steps)
    assert found == forest.find_shortage(promised, max_steps=1000)
    assert found is not None
    assert not found.is_proven


def a_node(forest: Forest, leaves: int) -> Bag:
    return forest.bag(2, [forest.bag(1, ())] * leaves)


PINNED = """
  - {cellType: POOL, cellChildren: [{cellAddress: n0, pinnedCellId: A}, {cellAddress: n1}]}
  - cellType: POOL
    cellChildren:
    - cellAddress: n2
      cellChildren: [{cellChildren: [{pinnedCellId: B}, {}]}, {}]
    - {cellAddress: n3}
  - {cellType: POOL, cellChildren: [{cellAddress: n4}, {cellAddress: n5}]}
"""


def vcs(*promises: tuple[str, int], pinned: str = "") -> str:
    cells = ", ".join(f"{{cellType: POOL.{name}, cellNumber: {count}}}" for name, count in promises)
    pins = ", ".join(f"{{pinnedCellId: {name}}}" for name in pinned)
    return f"{{vc: {{virtualCells: [{cells}]}}, vd: {{pinnedCells: [{pins}]}}}}"


def test_a_pinned_cell_breaks_up_what_it_lies_in_but_not_its_neighbours() -> None:
    everything = [("POOL", 1), ("NODE", 2), ("PAIR", 1), ("G", 1)]
    assert topology_of(hived(PINNED, vcs=vcs(*everything, pinned="AB")))


def test_a_pinned_cell_that_nobody_was_promised_is_a_cell_like_any_other() -> None:
    assert topology_of(hived(PINNED, vcs=vcs(("POOL", 3))))


@pytest.mark.parametrize(
    ("promises", "problem"),
    [
        (
            [("POOL", 2)],
            'chain "POOL", level 4 ("POOL"): 2 cells promised ("vc": 2), but only 1 of 3 can be '
            "given: 2 are broken up by pinned cells",
        ),
        (
            [("POOL", 1), ("NODE", 3)],
            'chain "POOL", level 3 ("NODE"): 3 cells promised ("vc": 3), but only 2 of 6 can be '
            "given: 1 is pinned, 1 is broken up by pinned cells, 2 are inside cells promised at "
            "higher levels",
        ),
        (
            [("POOL", 1), ("NODE", 2), ("G", 4)],
            'chain "POOL", level 1 ("G"): 4 cells promised ("vc": 4), but only 3 of 24 can be '
            "given: 5 are pinned, 16 are inside cells promised at higher levels",
        ),
    ],
)
def test_a_shortage_says_who_was_promised_what_and_where_the_cells_are(
    promises: list[tuple[str, int]], problem: str
) -> None:
    text = hived(PINNED, vcs=vcs(*promises, pinned="AB"))
    assert problems_of(text) == [f"virtualClusters: {problem}"]


def test_many_vcs_are_told_in_short() -> None:
    many = ", ".join(
        f"v{n:02}: {{virtualCells: [{{cellType: POOL, cellNumber: 1}}]}}" for n in range(12)
    )
    (problem,) = problems_of(hived(vcs=f"{{{many}}}"))
    assert '12 cells promised ("v00": 1, ' in problem
    assert '"v09": 1, 2 more VCs), but only 1 of 1 can be given' in problem
