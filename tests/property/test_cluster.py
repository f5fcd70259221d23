"""Clusters at random: the proof that promises fit against trying everything, and garbage.

`_can_be_given` knows nothing of levels, kinds or an order of choices: it tries every disjoint set
of cells.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policy.cluster.document import BuiltCluster, ClusterDocument, LiveNode
from policy.cluster.promises import check_promises
from policy.cluster.safety import find_shortage
from policy.errors import SpecError
from policy.parser import DocumentKind, parse_document
from policy.submission import NodeName
from policy.topology import ChainName, PhysicalCell, Topology

Leaves = frozenset[str]
LEVELS = ["zone", "rack", "kubernetes.io/hostname"]


def _walk(cell: PhysicalCell) -> Iterator[PhysicalCell]:
    yield cell
    for child in cell.children:
        yield from _walk(child)


def _leaves(cell: PhysicalCell) -> Leaves:
    return frozenset(found.address for found in _walk(cell) if found.level == 1)


def _can_be_given(cells: Mapping[int, Sequence[Leaves]], needs: list[int], used: Leaves) -> bool:
    """Whether cells of these levels can be given, none of which shares a leaf cell with another."""
    if not needs:
        return True
    level, rest = needs[0], needs[1:]
    return any(
        # Cells of a level are interchangeable promises: give them in their order, each once.
        _can_be_given({**cells, level: cells[level][place + 1 :]}, rest, used | leaves)
        for place, leaves in enumerate(cells[level])
        if not leaves & used
    )


def _is_safe(topology: Topology) -> bool:
    claimed = [pinned for vc in topology.vcs.values() for pinned in vc.pinned]
    for chain in topology.chains.values():
        cells = [cell for top in chain.cells for cell in _walk(top)]
        levels = {
            level.level: [_leaves(cell) for cell in cells if cell.level == level.level]
            for level in chain.levels
        }
        used = [leaf for cell in cells if cell.pinned in claimed for leaf in _leaves(cell)]
        if len(used) != len(set(used)):
            return False
        promises = [promise for vc in topology.vcs.values() for promise in vc.promises]
        needs = [p.level for p in promises if p.chain == chain.name for _ in range(p.count)]
        if not _can_be_given(levels, sorted(needs), frozenset(used)):
            return False
    return True


@st.composite
def hived_documents(draw: st.DrawFn) -> dict[str, Any]:
    """One chain of two to four levels, some pinned cells, two VCs."""
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    names = [f"L{level}" for level in range(1, len(counts) + 2)]
    node = draw(st.integers(1, len(counts)))
    types = {
        names[place + 1]: {
            "childCellType": names[place],
            "childCellNumber": count,
            "isNodeLevel": place + 1 == node,
        }
        for place, count in enumerate(counts)
    }
    pins: list[str] = []

    def cell(level: int) -> dict[str, Any]:
        entry: dict[str, Any] = {}
        if draw(st.integers(0, 7)) == 0:
            pins.append(f"pin-{len(pins)}")
            entry["pinnedCellId"] = pins[-1]
        if level > 0:
            entry["cellChildren"] = [cell(level - 1) for _ in range(counts[level - 1])]
        return entry

    tops = [{"cellType": names[-1], **cell(len(counts))} for _ in range(draw(st.integers(1, 2)))]
    claims: dict[str, list[dict[str, str]]] = {"a": [], "b": []}
    for pin in pins:
        owner = draw(st.sampled_from(["a", "b", None]))
        if owner is not None:
            claims[owner].append({"pinnedCellId": pin})
    promise = st.builds(
        lambda name, count: {"cellType": f"{names[-1]}.{name}", "cellNumber": count},
        st.sampled_from(names),
        st.integers(0, 2),
    )
    vcs = {
        vc: {"virtualCells": draw(st.lists(promise, max_size=2)), "pinnedCells": claims[vc]}
        for vc in claims
    }
    cluster = {"cellTypes": types, "physicalCells": tops}
    return {"physicalCluster": cluster, "virtualClusters": vcs}


def _read(document: Any) -> ClusterDocument:
    found = parse_document(json.dumps(document), kind=DocumentKind.CLUSTER)
    assert isinstance(found, ClusterDocument)
    return found


@given(hived_documents())
def test_the_proof_agrees_with_trying_everything(document: dict[str, Any]) -> None:
    try:
        topology = _read(document).build().topology
    except SpecError as exc:
        problems = [str(problem) for problem in exc.problems]
        if any("lies in" in problem for problem in problems):
            return
        assert all(problem.startswith("virtualClusters: chain") for problem in problems)
        chains = _read({**document, "virtualClusters": {}}).build().topology.chains
        vcs = _read(_with_more_cells(document)).build().topology.vcs
        assert not _is_safe(Topology(chains=chains, vcs=vcs))
    else:
        assert _is_safe(topology)


def _with_more_cells(document: dict[str, Any]) -> dict[str, Any]:
    """The same promises over so many more top cells that they fit."""
    tops = document["physicalCluster"]["physicalCells"]
    more = [{"cellType": tops[0]["cellType"]}] * 8
    cluster = {**document["physicalCluster"], "physicalCells": [*tops, *more]}
    return {**document, "physicalCluster": cluster}


@st.composite
def live_nodes(draw: st.DrawFn) -> list[LiveNode]:
    shapes = draw(
        st.lists(
            st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(1, 4)), max_size=7
        )
    )
    return [
        LiveNode(
            name=NodeName(f"n{place}"),
            labels={"zone": zone, "rack": rack, "product": "A100"},
            leaf_counts={"gpu": count},
        )
        for place, (zone, rack, count) in enumerate(shapes)
    ]


@st.composite
def derived_documents(draw: st.DrawFn) -> dict[str, Any]:
    first = draw(st.integers(0, 2))
    levels = LEVELS[first:]
    promise = st.builds(
        lambda level, count: {"leafType": "A100", "level": level, "cellNumber": count},
        st.sampled_from([*levels, "gpu"]),
        st.integers(0, 3),
    )
    vcs = {vc: {"virtualCells": draw(st.lists(promise, max_size=3))} for vc in "ab"}
    entry = {"levels": levels, "leafResource": "gpu", "leafTypeLabel": "product"}
    head = {"apiVersion": "cellgate.io/v1", "kind": "Cluster"}
    return {**head, "nodeTopology": [entry], "virtualClusters": vcs}


def _promised(built: BuiltCluster) -> int:
    return sum(promise.count for vc in built.topology.vcs.values() for promise in vc.promises)


@given(derived_documents(), live_nodes())
def test_of_uneven_nodes_what_fits_is_kept_and_what_does_not_is_told(
    document: dict[str, Any], nodes: list[LiveNode]
) -> None:
    built = _read(document).build(nodes)
    entries = [cell for vc in document["virtualClusters"].values() for cell in vc["virtualCells"]]
    assert _is_safe(built.topology)
    assert check_promises(built.topology) == []
    is_whole = _promised(built) == sum(cell["cellNumber"] for cell in entries)
    assert is_whole == (not built.problems)
    if nodes and not is_whole:
        plenty = [*nodes, *_spare_nodes(len(entries) * 3)]
        wanted = _read(document).build(plenty)
        assert wanted.problems == ()
        vcs = wanted.topology.vcs
        assert not _is_safe(Topology(chains=built.topology.chains, vcs=vcs))


RACKS = st.lists(
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(sorted), min_size=2, max_size=4
)


@given(RACKS, st.integers(1, 2), st.integers(1, 4))
def test_racks_of_which_none_is_simply_larger_are_tried_in_every_order(
    racks: list[list[int]], rack_count: int, node_count: int
) -> None:
    nodes = [
        LiveNode(
            name=NodeName(f"r{rack}n{node}"),
            labels={"rack": f"r{rack}", "product": "A100"},
            leaf_counts={"gpu": count},
        )
        for rack, counts in enumerate(racks)
        for node, count in enumerate(counts)
    ]
    entry = {"levels": LEVELS[1:], "leafResource": "gpu", "leafTypeLabel": "product"}
    head = {"apiVersion": "cellgate.io/v1", "kind": "Cluster", "nodeTopology": [entry]}
    chain = _read(head).build(nodes).topology.chains[ChainName("A100")]
    cells = [cell for top in chain.cells for cell in _walk(top)]
    levels = {n: [_leaves(cell) for cell in cells if cell.level == n] for n in (1, 2, 3)}
    # Single leaf cells are alike: to count those that are left is to try them all.
    ways = _ways_to_give(levels, [3] * rack_count + [2] * node_count, frozenset())
    most_left = max((len(levels[1]) - used for used in ways), default=-1)
    promised = {3: rack_count, 2: node_count}
    exact = find_shortage(chain, promised={**promised, 1: most_left}, pinned=())
    assert (exact is None) == (most_left >= 0)
    over = find_shortage(chain, promised={**promised, 1: most_left + 1}, pinned=())
    assert over is not None
    assert over.is_proven
    if most_left >= 0:
        assert (over.level, over.available) == (1, most_left)


def _ways_to_give(
    cells: Mapping[int, Sequence[Leaves]], needs: list[int], used: Leaves
) -> Iterator[int]:
    """Yield how many leaf cells each way to give these cells uses."""
    if not needs:
        yield len(used)
        return
    for place, leaves in enumerate(cells[needs[0]]):
        if not leaves & used:
            rest = {**cells, needs[0]: cells[needs[0]][place + 1 :]}
            yield from _ways_to_give(rest, needs[1:], used | leaves)


def _spare_nodes(count: int) -> list[LiveNode]:
    return [
        LiveNode(
            name=NodeName(f"spare{place}-{node}"),
            labels={"zone": f"spare{place}", "rack": f"spare{place}", "product": "A100"},
            leaf_counts={"gpu": 4},
        )
        for place in range(count)
        for node in range(2)
    ]


@given(derived_documents(), live_nodes(), st.randoms(use_true_random=False))
def test_cells_do_not_depend_on_the_order_of_nodes_or_on_other_nodes(
    document: dict[str, Any], nodes: list[LiveNode], random: Any
) -> None:
    shuffled = list(nodes)
    random.shuffle(shuffled)
    built = _read(document).build(nodes)
    assert _read(document).build(shuffled) == built
    cells = [c for ch in built.topology.chains.values() for top in ch.cells for c in _walk(top)]
    addresses = [cell.address for cell in cells]
    assert len(addresses) == len(set(addresses))
    assert sum(cell.level == 1 for cell in cells) == sum(n.leaf_counts["gpu"] for n in nodes)
    fewer = _read(document).build(nodes[1:]).topology.chains.values()
    left = [cell.address for ch in fewer for top in ch.cells for cell in _walk(top)]
    assert left == [address for address in addresses if address in set(left)]


WORDS = [
    "apiVersion", "kind", "nodeTopology", "nodeSelector", "levels", "leafResource",
    "leafTypeLabel", "physicalCluster", "skuTypes", "cellTypes", "physicalCells", "cellType",
    "cellAddress", "pinnedCellId", "cellChildren", "childCellType", "childCellNumber",
    "isNodeLevel", "virtualClusters", "virtualCells", "pinnedCells", "cellNumber", "leafType",
    "level", "A", "B", "A.B", "<<", "", "a/b", "-1", "Cluster", "cellgate.io/v1",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([2**31, 10**39, 1.5, float("nan"), float("inf"), 400_000]),
    st.sampled_from(WORDS),
    st.text(max_size=4),
)
GARBAGE = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=40,
)


@given(st.dictionaries(st.sampled_from(WORDS), GARBAGE, max_size=6))
def test_garbage_is_refused_and_nothing_else_happens(data: dict[str, Any]) -> None:
    with suppress(SpecError):
        _read(data).build()


@given(hived_documents() | derived_documents(), st.data())
def test_a_document_with_one_thing_wrong_never_ends_in_anything_but_a_spec_error(
    document: dict[str, Any], data: st.DataObject
) -> None:
    spoilt: Any = document
    for _ in range(data.draw(st.integers(0, 5))):
        keys = sorted(spoilt) if isinstance(spoilt, dict) else range(len(spoilt))
        if not keys:
            break
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(spoilt[key], dict | list) or not spoilt[key]:
            break
        spoilt = spoilt[key]
    keys = sorted(spoilt) if isinstance(spoilt, dict) else range(len(spoilt))
    if keys:
        spoilt[data.draw(st.sampled_from(list(keys)))] = data.draw(GARBAGE)
    with suppress(SpecError):
        built = _read(document).build()
        assert check_promises(built.topology) == []
