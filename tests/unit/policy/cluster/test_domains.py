"""Domains: named entries of `nodeTopology`, promises within them, and promises that are unclear."""

from collections.abc import Mapping

import pytest

from policy.cluster.derived import DerivedClusterDocument
from policy.cluster.document import LiveNode, NodeCount
from policy.cluster.safety import run_to_end
from policy.submission import LeafType, NodeName
from policy.topology import Backing, DomainName
from tests.support.policy.cluster_texts import cluster_of, problems_of
from tests.support.policy.documents import HEAD

RACK, NODE, GPU = "topology.kubernetes.io/rack", "kubernetes.io/hostname", "nvidia.com/gpu"
FAIR = "VCs share the leaf cells equally, as far as whole cells allow"


def entry(pool: str, *, name: str = "", levels: str = NODE) -> str:
    named = f"name: {name}, " if name else ""
    selector = f"nodeSelector: {{pool: {pool}}}"
    return f"{{{named}{selector}, levels: [{levels}], leafResource: {GPU}, leafTypeLabel: type}}"


def cells(count: int, *, domain: str = "", level: str = NODE, leaf_type: str = "A100") -> str:
    named = f", domain: {domain}" if domain else ""
    return f"{{leafType: {leaf_type}, level: {level}, cellNumber: {count}{named}}}"


def text(*entries: str, expected: str = "", **vcs: str) -> str:
    promises = ", ".join(f"{name}: {{virtualCells: [{cells}]}}" for name, cells in vcs.items())
    more = f"expectedNodes: [{expected}]\n" if expected else ""
    head = f"{HEAD}Cluster\nnodeTopology: [{', '.join(entries)}]\n"
    return f"{head}{more}virtualClusters: {{{promises}}}\n"


TWO = entry("east", name="east"), entry("west", name="west")
UNNAMED = entry("east"), entry("west")


def nodes(**pools: int) -> list[LiveNode]:
    return [
        LiveNode(
            name=NodeName(f"{pool}-{place}"),
            labels={"pool": pool, "type": "A100", RACK: "r1"},
            leaf_counts={GPU: 8},
        )
        for pool, count in pools.items()
        for place in range(count)
    ]


def backed(document: str, live: list[LiveNode]) -> dict[str, list[tuple[str, int, int]]]:
    """Return domain, promised and backed cells by VC."""
    topology = cluster_of(document).build(live).topology
    return {
        name: [(one.domain, one.promised, one.backed) for one in topology.backing(name)]
        for name in topology.vcs
    }


def test_each_promise_gets_the_nodes_of_its_domain() -> None:
    document = text(*TWO, va=cells(2, domain="west"), vb=cells(1, domain="east"))
    assert backed(document, nodes(east=1, west=2)) == {
        "va": [("west", 2, 2)],
        "vb": [("east", 1, 1)],
    }
    chains = cluster_of(document).build(nodes(east=1, west=2)).topology.chains
    assert {name: chain.domain for name, chain in chains.items()} == {
        "A100@east": "east",
        "A100@west": "west",
    }


def test_a_vc_has_promises_in_several_domains_and_each_is_shown() -> None:
    both = f"{cells(2, domain='east')}, {cells(2, domain='west')}"
    document = text(*TWO, va=both)
    assert backed(document, nodes(east=2, west=1)) == {"va": [("east", 2, 2), ("west", 2, 1)]}
    built = cluster_of(document).build(nodes(east=2, west=1))
    assert [str(problem) for problem in built.problems] == [
        f'virtualClusters.va.virtualCells[1]: 2 cells promised of level "{NODE}", but the nodes of '
        f'leaf type "A100" in domain "west" back only 1 of them: {FAIR}'
    ]
    none = cluster_of(document).build(nodes(east=2))
    assert [str(problem) for problem in none.problems] == [
        f'virtualClusters.va.virtualCells[1]: 2 cells promised of level "{NODE}", but no node has '
        'leaf type "A100" in domain "west" and that level'
    ]
    assert backed(document, nodes(east=2)) == {"va": [("east", 2, 2), ("west", 2, 0)]}


def test_a_node_leaves_one_domain_and_joins_another_by_its_label() -> None:
    builder = cluster_of(text(*TWO, va=cells(2, domain="east"))).builder()
    for node in nodes(east=1, west=2):
        builder.observe(node)
    topology = run_to_end(builder.build_stepwise()).topology
    (short,) = topology.backing(next(iter(topology.vcs)))
    assert short == Backing(LeafType("A100"), NODE, 2, 1, DomainName("east"))
    moving = nodes(west=1)[0]
    builder.observe(
        LiveNode(
            name=moving.name,
            labels={**moving.labels, "pool": "east"},
            leaf_counts=moving.leaf_counts,
        )
    )
    topology = run_to_end(builder.build_stepwise()).topology
    assert [one.backed for one in topology.backing(next(iter(topology.vcs)))] == [2]
    assert {name: len(chain.cells) for name, chain in topology.chains.items()} == {
        "A100@east": 2,
        "A100@west": 1,
    }


def test_a_promise_that_can_be_of_several_domains_must_name_one() -> None:
    mixed = (*TWO, entry("north"), entry("south", name="south", levels=f"{RACK}, {NODE}"))
    document = text(*mixed, va=f"{cells(2)}, {cells(1, level=RACK)}", vb=cells(1, domain="east"))
    assert problems_of(document) == [
        f'virtualClusters.va.virtualCells[0].domain: is required: cells of level "{NODE}" can be '
        'of domain "east", domain "west", nodeTopology[2], which has no name, domain "south"'
    ]


@pytest.mark.parametrize(
    ("document", "problems"),
    [
        (
            text(entry("a", name="east"), entry("b", name="east")),
            ["nodeTopology[1].name: duplicate of nodeTopology[0].name"],
        ),
        (
            text(*TWO, va=cells(1, domain="north")),
            [
                'virtualClusters.va.virtualCells[0].domain: "north" is not a domain; the domains '
                'are "east", "west"'
            ],
        ),
        (
            text(entry("a"), va=cells(1, domain="east")),
            [
                'virtualClusters.va.virtualCells[0].domain: "east" is not a domain; no entry of '
                "nodeTopology has a name"
            ],
        ),
        (
            text(
                *TWO,
                entry("c", name="c", levels=f"{RACK}, {NODE}"),
                va=cells(1, domain="east", level=RACK),
            ),
            [f'virtualClusters.va.virtualCells[0].level: domain "east" has no level "{RACK}"'],
        ),
        (
            text(*TWO, expected="{leafType: A100, nodes: 1, leafCells: 8, domain: north}"),
            ['expectedNodes[0].domain: "north" is not a domain; the domains are "east", "west"'],
        ),
        (
            text(entry("a", name="East"), entry("b", name="-b")),
            [
                "nodeTopology[0].name: must be a name of lower-case letters, digits and -, not "
                '"East"',
                "nodeTopology[1].name: must be a name of lower-case letters, digits and -, not "
                '"-b"',
            ],
        ),
    ],
    ids=["twice", "unknown", "no names", "level", "expected", "spelling"],
)
def test_a_domain_that_makes_no_sense_is_refused(document: str, problems: list[str]) -> None:
    assert problems_of(document) == problems


def seen(leaf_type: str = "A100", **pools: int) -> list[NodeCount]:
    return [
        NodeCount(labels={"pool": pool, "type": leaf_type}, leaf_counts={GPU: 8}, number=count)
        for pool, count in pools.items()
    ]


def check(document: str, counts: list[NodeCount]) -> list[str]:
    found = cluster_of(document)
    assert isinstance(found, DerivedClusterDocument)
    return [str(problem) for problem in found.check_raised(None, counts)]


def test_without_names_a_promise_is_refused_if_nodes_of_several_entries_could_be_meant() -> None:
    document = text(*UNNAMED, va=cells(2), vb=cells(1))
    hint = "give these entries names, and name the promise's domain"
    assert check(document, seen(east=1, west=2)) == [
        f"virtualClusters.{vc}.virtualCells[0].domain: is required: nodes of leaf type "
        f'"A100" were seen under nodeTopology[0], nodeTopology[1]; {hint}'
        for vc in ("va", "vb")
    ]


def test_without_names_a_promise_is_clear_while_one_entry_has_nodes_of_its_leaf_type() -> None:
    document = text(*UNNAMED, va=cells(2), vb=cells(1, leaf_type="H100"))
    assert check(document, [*seen(east=2), *seen("H100", west=1)]) == []
    warnings = [str(warning) for warning in cluster_of(document).warnings]
    assert warnings == [
        f"virtualClusters.{vc}.virtualCells[0]: can be of nodeTopology[0], nodeTopology[1], and is "
        f'ambiguous once nodes of several of them have leaf type "{leaf_type}"; give these entries '
        "names, and name the promise's domain"
        for vc, leaf_type in (("va", "A100"), ("vb", "H100"))
    ]
    assert cluster_of(text(*TWO, va=cells(1, domain="east"))).warnings == ()


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ({"east": 1, "west": 2}, {"va": 2, "vb": 1}),
        ({"east": 2, "west": 1}, {"va": 2, "vb": 1}),
        ({"east": 3}, {"va": 2, "vb": 1}),
        ({"east": 1, "west": 1}, {"va": 1, "vb": 1}),
        ({"west": 1}, {"va": 1, "vb": 0}),
    ],
)
def test_a_promise_that_became_unclear_keeps_its_cells_in_any_entry(
    pools: Mapping[str, int], expected: Mapping[str, int]
) -> None:
    document = text(*UNNAMED, va=cells(2), vb=cells(1))
    found = backed(document, nodes(**pools))
    assert {vc: sum(one[2] for one in some) for vc, some in found.items()} == expected


def test_promises_are_raised_within_the_nodes_of_their_domain() -> None:
    document = text(*TWO, va=cells(2, domain="east"))
    assert check(document, seen(east=2, west=1)) == []
    assert check(document, seen(east=1, west=5)) == [
        f'virtualClusters.va.virtualCells[0].cellNumber: 2 cells of level "{NODE}" promised, but '
        'nodes of leaf type "A100" in domain "east" seen in the last 7 days do not back it: of '
        f'level "{NODE}", 2 are promised in all and 1 can be given; lower it, or declare nodes '
        "that will be added under expectedNodes"
    ]
    coming = "{leafType: A100, nodes: 1, leafCells: 8, domain: %s}"
    more = text(*TWO, expected=coming % "east", va=cells(2, domain="east"))
    assert check(more, seen(east=1, west=5)) == []
    other = text(*TWO, expected=coming % "west", va=cells(2, domain="east"))
    assert len(check(other, seen(east=1, west=5))) == 1


def test_the_capacity_of_a_vc_is_that_of_its_domain() -> None:
    document = cluster_of(text(*TWO, va=cells(2, domain="west")))
    capacity = document.capacity(seen(east=4, west=3))
    assert capacity is not None
    assert [
        (one.all_cells.leaf_count, {vc: share.leaf_count for vc, share in one.of_vc.items()})
        for one in capacity.chains
    ] == [(32, {}), (24, {"va": 16})]
