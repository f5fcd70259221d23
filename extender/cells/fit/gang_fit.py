"""Where a whole gang fits, if nothing else moves.

An opportunistic gang may have any idle leaves. A guaranteed one must lie in preassigned cells of
its VC: in mapped ones that have room, or in unused ones that are mapped for it (`mapping`). Quick
ways are tried first, and the closest together wins; the exhaustive search behind them makes it
exact. What is tried happens inside `Table.what_if`, and so is undone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from extender.cells.budget import NEAR_NODES
from extender.cells.fit.bin_choice import choose_bins, has_usable_room
from extender.cells.fit.demand import AllowedNodes, Demand, MemberBin
from extender.cells.fit.exhaustive_search import search
from extender.cells.fit.guaranteed_fit import fit_guaranteed, may_fit, member_bin_in
from extender.cells.fit.leaf_choice import LeafChooser
from extender.cells.model import HIGHEST_PRIORITY, MemberRequest, Seat
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.ranking import Ranking
from extender.cells.state.tree import Cell
from policy.submission import GangKey, NodeName, PodUid, VcName

PLACEHOLDER = PlacedGang(
    key=GangKey("", ""),
    request=MemberRequest(
        member=PodUid(""),
        gang=GangKey("", ""),
        leaf_count=1,
        gang_leaf_counts=(1,),
        vc=VcName(""),
        priority=HIGHEST_PRIORITY,
    ),
    sequence_number=0,
    is_guaranteed=True,
)
"""Holds the leaves of a member while the others are tried; nobody may end it."""


def fit(table: AllocationTable, demand: Demand) -> list[Seat] | None:
    """Find seats for all members, in the order of their sizes; None if there are none."""
    spots = _fit_quickly(table, demand)
    if spots is None:
        near = _fit_first_alone(table, demand)
        if near is not None:
            return near
        spots = _fit_exactly(table, demand)
    return None if spots is None else _seats(demand, spots)


def _seats(demand: Demand, spots: Sequence[MemberBin]) -> list[Seat]:
    chooser = LeafChooser()
    return [
        seat_of(demand, chooser.take(spot.bin_, size), claim=spot.claim)
        for size, spot in zip(demand.sizes, spots, strict=True)
    ]


def seat_of(demand: Demand, leaves: Sequence[Cell], *, claim: Cell | None) -> Seat:
    """A seat on some leaves, in the preassigned cell that is mapped to `claim`."""
    return Seat(
        chain=demand.chain,
        leaves=tuple(leaf.address for leaf in leaves),
        claim=claim.address if claim else None,
    )


def _fit_quickly(table: AllocationTable, demand: Demand) -> list[MemberBin] | None:
    demand.budget.spend(len(demand.sizes))
    if not may_hold(table, demand):
        return None
    if demand.vc is None:
        return _fit_opportunistic(table, demand)
    if demand.pinned is not None:
        return _fit_in(demand.vc.pinned_rankings[demand.pinned], demand)
    vc = demand.vc
    return _with_first(demand, lambda allowed: fit_guaranteed(table, vc, demand, allowed))


def _fit_exactly(table: AllocationTable, demand: Demand) -> list[MemberBin] | None:
    if not may_hold(table, demand):
        return None
    ranking, is_mapping = _source(table, demand), demand.vc is not None and demand.pinned is None
    is_exact = demand.is_equal and not is_mapping  # gathering equal members is
    if is_exact and _gather_spots(ranking, demand, demand.allowed) is None:
        return None
    return search(table, ranking, demand)


def may_hold(table: AllocationTable, demand: Demand) -> bool:
    """Quick bounds: False if there is no room, wherever the members are put."""
    if demand.vc is not None and demand.pinned is None:
        return may_fit(table, demand, demand.vc)
    return has_usable_room(_source(table, demand), demand.sizes)


def _source(table: AllocationTable, demand: Demand) -> Ranking:
    """The bins that the members may be in, if nothing is mapped."""
    if demand.vc is None:
        return table.idle[demand.chain]
    if demand.pinned is not None:
        return demand.vc.pinned_rankings[demand.pinned]
    return demand.vc.rankings[demand.chain]


def _fit_opportunistic(table: AllocationTable, demand: Demand) -> list[MemberBin] | None:
    """Where no VC has mapped anything, if possible: there it is in nobody's way for longest."""
    unclaimed, idle = table.unclaimed[demand.chain], table.idle[demand.chain]
    if unclaimed.total != idle.total:
        found = _with_first(demand, lambda allowed: _gather_spots(unclaimed, demand, allowed))
        if found is not None:
            return found
    return _fit_in(idle, demand)


def _fit_in(ranking: Ranking, demand: Demand) -> list[MemberBin] | None:
    """Fit into the bins of one ranking; there is nothing to map."""
    return _with_first(demand, lambda allowed: _gather_spots(ranking, demand, allowed))


def _gather_spots(
    ranking: Ranking, demand: Demand, allowed: AllowedNodes
) -> list[MemberBin] | None:
    bins = choose_bins(ranking, demand.sizes, allowed)
    return None if bins is None else [member_bin_in(bin_, demand) for bin_ in bins]


def _with_first(
    demand: Demand, attempt: Callable[[AllowedNodes], list[MemberBin] | None]
) -> list[MemberBin] | None:
    """Try with all bins; if that leaves the member that asks out, with its own bins only."""
    found = attempt(demand.allowed)
    if found is None or demand.is_met_by(found):
        return found
    return attempt(demand.allowed_first)


# -- where the member that asks has fewer nodes than the others


def _fit_first_alone(table: AllocationTable, demand: Demand) -> list[Seat] | None:
    """Seat the member that asks where it may be, then the others as near to it as they fit."""
    if demand.allowed is demand.allowed_first or len(demand.sizes) == 1:
        return None
    at = demand.sizes.index(demand.first_size)
    others = (*demand.sizes[:at], *demand.sizes[at + 1 :])
    alone = replace(demand, sizes=(demand.first_size,), allowed=demand.allowed_first)
    spots = _fit_quickly(table, alone)
    if spots is None:
        return None
    with table.what_if():
        first = seat_of(demand, _occupy(table, demand, spots[0]), claim=spots[0].claim)
        for allowed in (*map(AllowedNodes, surroundings([spots[0].bin_])), demand.allowed):
            rest = replace(
                demand,
                sizes=others,
                allowed=allowed,
                allowed_first=allowed,
                first_size=others[0],
            )
            spots = _fit_quickly(table, rest)
            if spots is not None:
                seats = _seats(rest, spots)
                return [*seats[:at], first, *seats[at:]]
    return None


def _occupy(table: AllocationTable, demand: Demand, spot: MemberBin) -> Sequence[Cell]:
    """Take the leaves of the member that asks, so that the others see them taken."""
    if demand.vc is not None and spot.claim is not None and spot.claim.claim is None:
        table.map_cell(demand.vc, spot.claim)
    leaves = LeafChooser().take(spot.bin_, demand.first_size)
    table.hold(leaves, PLACEHOLDER)
    return leaves


def surroundings(cells: Sequence[Cell]) -> Iterator[dict[NodeName, None]]:
    """The nodes of some cells, then those around them, level by level while they are not many."""
    levels = range(cells[0].chain.node_level, cells[0].chain.top_level + 1) if cells else ()
    before = 0
    for level in levels:
        around = dict.fromkeys(cell.ancestor(level) for cell in cells)
        if sum(cell.leaf_count for cell in around) > NEAR_NODES * _node_leaf_count(cells[0]):
            return
        nodes = {
            node.node: None
            for cell in around
            for node in cell.at_level(cell.chain.node_level)
            if node.node is not None
        }
        if len(nodes) > before:
            before = len(nodes)
            yield nodes


def _node_leaf_count(cell: Cell) -> int:
    return cell.ancestor(cell.chain.node_level).leaf_count
