"""Small random clusters whose promises can be kept, most of them nearly sold out."""

from random import Random

from hypothesis import strategies as st

from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import ChainTree
from policy.topology import Topology
from tests.support.cells.brute_force import is_safe
from tests.support.cells.builders import ClusterBuilder, a_cluster

_SHAPES = (
    "2 racks x 2 nodes x 2",
    "3 nodes x 2 x 2",
    "2 racks x 3 nodes x 1",
    "1 pods x 2 racks x 2 nodes x 2",
    "2 nodes x 4",
)


def clusters() -> st.SearchStrategy[Topology]:
    """One or two chains, even or uneven, up to three VCs, perhaps a pinned cell."""
    return st.integers(0, 2**32).map(lambda seed: a_random_cluster(Random(seed)))


def a_random_cluster(random: Random) -> Topology:
    """The cluster of a seed."""
    shapes = random.sample(_SHAPES, random.choice([1, 1, 2]))
    builder = a_cluster(shapes[0], name="one", leaf_type="x")
    if len(shapes) > 1:
        builder.chain(shapes[1], name="two", leaf_type=random.choice("xy"))
    if random.random() < 0.4:
        _thin_out(random, builder)
    pin = random.choice(_addresses(builder.build())) if random.random() < 0.4 else None
    for vc in "abc"[: random.choice([1, 2, 2, 3])]:
        builder.promising(vc)
    if pin is not None:
        builder.pin(pin, "PIN").promising("a", pinned=["PIN"])
    for _ in range(random.choice([2, 4, 8, 8])):
        _promise(random, builder)
    return builder.build()


def _thin_out(random: Random, builder: ClusterBuilder) -> None:
    """Leave out some cells, as in clusters that are derived from live nodes.

    Racks differ in nodes then, and nodes in leaves; no cell loses all its children.
    """
    for _ in range(random.choice([1, 2, 3])):
        cells = _first_tree(builder.build()).cells.values()
        spare = [cell.address for cell in cells if cell.parent and len(cell.parent.children) > 1]
        if spare:
            builder.without(random.choice(spare))


def _addresses(topology: Topology) -> list[str]:
    tree = _first_tree(topology)
    return [cell.address for cell in tree.cells.values() if cell is not tree.root]


def _first_tree(topology: Topology) -> ChainTree:
    return next(iter(AllocationTable(topology).trees.values()))


def _promise(random: Random, builder: ClusterBuilder) -> None:
    """Promise one more cell, if all promises can still be kept."""
    topology = builder.build()
    vc = random.choice(sorted(topology.vcs))
    chain = random.choice(sorted(topology.chains))
    level = random.randint(1, len(topology.chains[chain].levels))
    table = AllocationTable(topology)
    taken = [cell for cell in table.trees[chain].cells.values() if cell.claim is not None]
    unused = table.supplies[chain].unused
    promised = [rung for rung, count in enumerate(unused) for _ in range(count)]
    if is_safe(table.trees[chain].root, taken, [*promised, level]):
        builder.promise(vc, chain, level=level)
