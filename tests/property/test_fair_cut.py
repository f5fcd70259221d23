"""Promises that do not all fit, for random clusters and promises."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from policy.cluster.fair_cut import Cells, cut_fairly_stepwise
from policy.cluster.safety import Composition, Forest, Stepwise, plant, run_to_end
from policy.submission import VcName

SIZES = {1: 1, 2: 4, 3: 12}
NODE: Composition = (((), 4),)
RACK: Composition = ((NODE, 3),)
VCS = [VcName(name) for name in "abcd"]


def a_forest(racks: int) -> Forest:
    """Racks of three nodes of four leaf cells."""
    return plant(((RACK, racks),), top_level=3, levels=SIZES)


def fits(forest: Forest, cells: Mapping[int, int]) -> bool:
    return forest.find_shortage({level: cells.get(level, 0) for level in SIZES}) is None


def cut(forest: Forest, promised: Mapping[VcName, Mapping[int, int]]) -> dict[VcName, Cells]:
    def asked(cells: Mapping[int, int]) -> Stepwise[bool]:
        yield
        return fits(forest, cells)

    return run_to_end(cut_fairly_stepwise(promised, sizes=SIZES, fits=asked))


def total(kept: Mapping[VcName, Mapping[int, int]]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for cells in kept.values():
        counts.update(cells)
    return counts


PROMISES = st.dictionaries(
    st.sampled_from(VCS),
    st.dictionaries(st.sampled_from([1, 2, 3]), st.integers(1, 40), min_size=1),
    min_size=1,
)


@given(PROMISES, st.integers(1, 6))
def test_what_is_kept_fits_and_no_cell_is_left_out_that_would(
    promised: dict[VcName, dict[int, int]], racks: int
) -> None:
    forest = a_forest(racks)
    kept = cut(forest, promised)
    assert fits(forest, total(kept))
    for vc, cells in promised.items():
        for level, count in cells.items():
            assert kept[vc][level] <= count
            if kept[vc][level] < count:
                assert not fits(forest, total(kept) + Counter({level: 1}))


@given(st.dictionaries(st.sampled_from(VCS), st.integers(1, 40), min_size=1), st.integers(1, 6))
def test_at_one_level_no_vc_keeps_two_cells_more_than_one_that_was_cut(
    promised: dict[VcName, int], racks: int
) -> None:
    forest = a_forest(racks)
    kept = cut(forest, {vc: {2: count} for vc, count in promised.items()})
    lower = [kept[vc][2] for vc, count in promised.items() if kept[vc][2] < count]
    assert all(cells[2] <= least + 1 for least in lower for cells in kept.values())


@given(st.integers(1, 40), st.integers(1, 1000), st.integers(1, 6))
def test_a_vc_that_asks_for_its_equal_share_or_less_keeps_it_whatever_others_ask_for(
    own: int, others: int, racks: int
) -> None:
    forest, half = a_forest(racks), racks * 12 // 2
    promised = {VCS[0]: {1: min(own, half)}, VCS[1]: {3: others}}
    kept = cut(forest, promised)
    assert kept[VCS[0]][1] == min(own, half)
