"""Every sentence about what can never start."""

import pytest

from policy.capacity import Capacity, ChainCapacity, Share, capacity_of
from policy.feasibility import (
    JobShape,
    Wanted,
    describe_deadline,
    find_incomplete,
    find_never,
    find_over_limit,
    find_surplus,
)
from policy.quotas.limits import Measure
from policy.quotas.quota_table import Allowance, QuotaGroup
from policy.submission import GroupName, LeafType, UserName, VcName
from tests.support.policy.cluster_texts import hived, hived_text, topology_of

LAB, EMPTY = VcName("lab"), VcName("default")
CAPACITY = Capacity(
    chains=(
        ChainCapacity(
            leaf_type=LeafType("A100"), all_cells=Share(64, 8), of_vc={LAB: Share(32, 8)}
        ),
        ChainCapacity(
            leaf_type=LeafType("H100"),
            all_cells=Share(16, 4),
            of_vc={VcName("leaves"): Share(4, 1)},
        ),
    )
)


def wanted(
    leaves: int = 8,
    *,
    vc: VcName = LAB,
    member: int = 8,
    leaf_type: str | None = None,
    guaranteed: bool = True,
) -> Wanted:
    return Wanted(
        vc=vc,
        leaf_type=LeafType(leaf_type) if leaf_type else None,
        leaf_count=leaves,
        largest_member=member,
        is_guaranteed=guaranteed,
    )


@pytest.mark.parametrize(
    ("one", "sentences"),
    [
        (wanted(32), []),
        (wanted(64, guaranteed=False), []),
        (wanted(0, member=0, vc=EMPTY), []),
        (
            wanted(33),
            [
                "it needs 33 leaf cells, but VC lab was promised at most 32 that one gang can use; "
                "make it smaller, or use an opportunistic class"
            ],
        ),
        (
            wanted(72, guaranteed=False),
            [
                "it needs 72 leaf cells, but one gang can use at most 64 of the cluster; make it "
                "smaller"
            ],
        ),
        (
            wanted(16, member=16),
            [
                "one pod asks for 16 leaf cells, but the largest cell of VC lab within one node "
                "has 8; divide the work among more pods"
            ],
        ),
        (
            wanted(8, member=8, leaf_type="H100", guaranteed=False),
            [
                "one pod asks for 8 leaf cells of type H100, but the largest node has 4; divide "
                "the work among more pods"
            ],
        ),
        (
            wanted(2, member=2, vc=VcName("leaves")),
            [
                "one pod asks for 2 leaf cells, but the largest cell of VC leaves within one node "
                "has 1; divide the work among more pods"
            ],
        ),
        (
            wanted(leaf_type="A1000", guaranteed=False),
            [
                "no node has leaf type A1000; the label cellgate.io/leaf-type may be one of A100, "
                "H100"
            ],
        ),
        (
            wanted(leaf_type="H100"),
            [
                "VC lab was promised no leaf cells of type H100; the label cellgate.io/leaf-type "
                "may be one of A100"
            ],
        ),
        (
            wanted(vc=EMPTY),
            [
                "VC default was promised no leaf cells, and the class is a guaranteed one; use an "
                "opportunistic class, or another VC (label cellgate.io/vc)"
            ],
        ),
    ],
)
def test_what_never_starts_is_told(one: Wanted, sentences: list[str]) -> None:
    assert list(find_never(one, CAPACITY)) == sentences


def test_cells_that_a_document_lists_have_a_capacity() -> None:
    (chain,) = capacity_of(topology_of(hived_text(lab=3))).chains
    assert (chain.leaf_type, chain.all_cells) == ("A100", Share(32, 8))
    assert chain.of_vc == {"lab": Share(24, 8)}


def test_pinned_cells_count() -> None:
    cells = (
        "  - {cellType: POOL, cellChildren: "
        "[{cellAddress: n0, pinnedCellId: PIN}, {cellAddress: n1}]}"
    )
    vcs = "{a: {pinnedCells: [{pinnedCellId: PIN}]}}"
    (chain,) = capacity_of(topology_of(hived(cells, vcs=vcs))).chains
    assert chain.of_vc == {"a": Share(4, 4)}


@pytest.mark.parametrize(
    ("over", "leaves", "high", "count"),
    [("queue", 9, True, 1), ("queue", 5, True, 1), ("queue", 5, False, 0), ("fail", 9, True, 0)],
)
def test_a_gang_larger_than_its_quota_never_leaves_the_queue(
    over: str, leaves: int, high: bool, count: int
) -> None:
    most = {Measure.LEAF_CELLS: 8.0, Measure.LEAF_CELLS_HIGH: 4.0, Measure.GANGS: 0.0}
    group = QuotaGroup(name=GroupName("vision"), allowance=Allowance(most=most), over=over)
    limits = group.limits(UserName("alice"))
    found = list(find_over_limit(group, limits, wanted=wanted(leaves), is_high=high))
    assert len(found) == count
    if leaves == 9 and found:
        assert found == [
            "it needs 9 leaf cells, but the quota of group vision is 8; make it smaller"
        ]


def shape(
    size: int, parallelism: int, completions: int | None, least: int | None = None
) -> JobShape:
    return JobShape(
        gang_size=size, gang_min=least, parallelism=parallelism, completions=completions
    )


@pytest.mark.parametrize(
    ("job", "sentences"),
    [
        (shape(4, 4, 4), []),
        (shape(4, 4, None), []),
        (shape(4, 0, 4), []),
        (shape(4, 2, 4, least=2), []),
        (
            shape(4, 2, 4),
            [
                "cellgate.io/gang-size is 4, but parallelism is 2, so it never has 4 pods at once; "
                "use the same number for both"
            ],
        ),
        (
            shape(4, 4, 3),
            [
                "cellgate.io/gang-size is 4, but completions is 3, so it never has 4 pods at once; "
                "use the same number for both"
            ],
        ),
        (
            shape(8, 2, 8, least=3),
            [
                "cellgate.io/gang-min is 3, but parallelism is 2, so it never has 3 pods at once; "
                "use the same number for both"
            ],
        ),
        (
            shape(4, 6, 8),
            [
                "parallelism is 6, but cellgate.io/gang-size is 4: 2 pods cannot start before a "
                "member of the gang has ended"
            ],
        ),
        (shape(4, 6, 4), []),
    ],
)
def test_a_job_and_its_gang_must_match(job: JobShape, sentences: list[str]) -> None:
    assert [*find_incomplete(job), *find_surplus(job)] == sentences


def test_the_deadline_of_a_job_counts_while_it_waits() -> None:
    assert describe_deadline(60, path="spec") == (
        "spec.activeDeadlineSeconds (60) counts the time that the Job waits, too; "
        "spec.template.spec.activeDeadlineSeconds counts from the start of each pod"
    )
