"""Small random clusters whose promises can be kept."""

from hypothesis import strategies as st

from extender.cells.table import Table
from policy.topology import Topology
from tests.property.naive import is_safe
from tests.unit.extender.cells.builders import ClusterBuilder, a_cluster

_SHAPES = [
    "2 racks x 2 nodes x 2",
    "3 nodes x 2 x 2",
    "2 racks x 3 nodes x 1",
    "1 pods x 2 racks x 2 nodes x 2",
]
_VCS = ("a", "b", "c")


@st.composite
def clusters(draw: st.DrawFn) -> Topology:
    """One or two chains, up to three VCs, perhaps a pinned cell."""
    shapes = draw(st.lists(st.sampled_from(_SHAPES), min_size=1, max_size=2, unique=True))
    builder = a_cluster(shapes[0], name="one", leaf_type="x")
    if len(shapes) > 1:
        builder.chain(shapes[1], name="two", leaf_type=draw(st.sampled_from(["x", "y"])))
    topology = builder.build()
    pin = draw(st.none() | st.sampled_from(_addresses(topology)))
    if pin is not None:
        builder.pin(pin, "PIN")
    for vc in _VCS[: draw(st.integers(1, 3))]:
        builder.promising(vc)
    if pin is not None:
        builder.promising("a", pinned=["PIN"])
    _promise(draw, builder)
    return builder.build()


def _addresses(topology: Topology) -> list[str]:
    chain = next(iter(topology.chains.values()))
    tree = Table(topology).trees[chain.name]
    return [cell.address for cell in tree.cells if cell is not tree.root]


def _promise(draw: st.DrawFn, builder: ClusterBuilder) -> None:
    """Promise cells one after the other, as long as all promises can be kept."""
    topology = builder.build()
    vcs = sorted(topology.vcs)
    wishes = draw(
        st.lists(
            st.tuples(
                st.sampled_from(vcs), st.sampled_from(sorted(topology.chains)), st.integers(1, 4)
            ),
            min_size=3,
            max_size=10,
        )
    )
    for vc, chain, level in wishes:
        levels = topology.chains[chain].levels
        if level > len(levels):
            continue
        table = Table(builder.build())
        root = table.trees[chain].root
        taken = [cell for cell in table.trees[chain].cells if cell.claim is not None]
        unused = table.supplies[chain].unused
        promised = [rung for rung, count in enumerate(unused) for _ in range(count)]
        if is_safe(root, taken, [*promised, level]):
            builder.promise(vc, chain, level=level)
