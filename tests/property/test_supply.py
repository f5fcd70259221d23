"""VC safety: the quick answer is that of trying every assignment, on even and uneven trees."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from policy.cluster.safety import find_shortage
from policy.submission import VcName
from policy.topology import ChainName
from tests.support.cells.brute_force import is_safe
from tests.support.cells.random_clusters import a_random_cluster


def _promised(table: AllocationTable, chain: ChainName) -> list[int]:
    """The levels of all cells that were promised and are not mapped."""
    return [
        level
        for vc in table.vcs.values()
        for (name, level), left in vc.unmapped.items()
        if name == chain
        for _ in left
    ]


def _is_safe_by_trying(table: AllocationTable, chain: ChainName) -> bool:
    tree = table.trees[chain]
    taken = [cell for cell in tree.cells.values() if cell.claim is not None]
    return is_safe(tree.root, taken, _promised(table, chain))


def _openings(table: AllocationTable, chain: ChainName) -> list[tuple[VcName, Cell]]:
    """Every way to map one more cell, safe or not."""
    return [
        (name, cell)
        for name, vc in table.vcs.items()
        for level in vc.unused_levels(chain)
        for cell in table.trees[chain].root.at_level(level)
        if cell.is_unclaimed()
    ]


@given(seed=st.integers(0, 2**32))
def test_mapping_is_safe_exactly_if_all_other_promises_can_be_kept(seed: int) -> None:
    random = Random(seed)
    table = AllocationTable(a_random_cluster(random))
    for _ in range(6):
        chain = random.choice(sorted(table.trees))
        openings = _openings(table, chain)
        if not openings:
            continue
        vc, cell = random.choice(openings)
        claim = table.map_cell(table.vcs[vc], cell)
        expected = _is_safe_by_trying(table, chain)
        assert table.supplies[chain].is_safe() == expected
        if not expected or random.random() < 0.3:
            table.unmap_cell(claim)
            assert table.supplies[chain].is_safe()


@given(seed=st.integers(0, 2**32))
def test_the_document_is_checked_by_the_same_definition(seed: int) -> None:
    topology = a_random_cluster(Random(seed))
    table = AllocationTable(topology)
    pinned = [pin for vc in topology.vcs.values() for pin in vc.pinned]
    for name, chain in topology.chains.items():
        for more in range(1, len(chain.levels) + 1):
            levels = [*_promised(table, name), more]
            promised = {level: levels.count(level) for level in levels}
            fits = find_shortage(chain, promised=promised, pinned=pinned) is None
            taken = [cell for cell in table.trees[name].cells.values() if cell.claim is not None]
            assert fits == is_safe(table.trees[name].root, taken, levels)
