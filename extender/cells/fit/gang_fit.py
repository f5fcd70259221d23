"""Entry point: finds seats for all members of a gang in one chain, if no other gang moves.

An opportunistic gang may use any idle leaves. A guaranteed gang must use preassigned cells of its
VC: mapped ones with room, or unused ones that are mapped for it (`guaranteed_fit`). Quick rules
come first and prefer bins that are close together; the exhaustive search follows where they find
nothing. All trials happen inside `AllocationTable.what_if` and are undone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from extender.cells.budget import NEAR_NODES
from extender.cells.fit.bin_choice import choose_bins, has_usable_room
from extender.cells.fit.demand import AllowedNodes, Demand, MemberBin
from extender.cells.fit.exhaustive_search import search
from extender.cells.fit.guaranteed_fit import GuaranteedFit, may_fit
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
"""Holds the leaves of one member while the others are tried; it is never a victim."""


def fit(table: AllocationTable, demand: Demand) -> list[Seat] | None:
    """Find seats for all members, in the order of their sizes; None if they do not fit."""
    bins = _fit_quickly(table, demand)
    if bins is None:
        near = _fit_first_alone(table, demand)
        if near is not None:
            return near
        bins = _fit_exactly(table, demand)
    return None if bins is None else _seats(demand, bins)


def _seats(demand: Demand, bins: Sequence[MemberBin]) -> list[Seat]:
    chooser = LeafChooser()
    return [
        seat_of(demand, chooser.take(chosen.bin_, size), claim=chosen.claim)
        for size, chosen in zip(demand.sizes, bins, strict=True)
    ]


def seat_of(demand: Demand, leaves: Sequence[Cell], *, claim: Cell | None) -> Seat:
    """A seat on some leaves, counted against the preassigned cell that is mapped to `claim`."""
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
        return _fit_in(demand.vc_ranking(), demand)
    vc = demand.vc
    return _with_first(demand, lambda allowed: GuaranteedFit(table, vc, demand, allowed).run())


def _fit_exactly(table: AllocationTable, demand: Demand) -> list[MemberBin] | None:
    if not may_hold(table, demand):
        return None
    ranking, is_mapping = _source(table, demand), demand.vc is not None and demand.pinned is None
    is_exact = demand.is_equal and not is_mapping  # then the quick rules miss nothing
    if is_exact and _choose_member_bins(ranking, demand, demand.allowed) is None:
        return None
    return search(table, ranking, demand)


def may_hold(table: AllocationTable, demand: Demand) -> bool:
    """Quick bounds: False if there is certainly no room for the members."""
    if demand.vc is not None and demand.pinned is None:
        return may_fit(table, demand, demand.vc)
    return has_usable_room(_source(table, demand), demand.sizes)


def _source(table: AllocationTable, demand: Demand) -> Ranking:
    """The bins that the members may use if no further cell is mapped."""
    return table.idle[demand.chain] if demand.vc is None else demand.vc_ranking()


def _fit_opportunistic(table: AllocationTable, demand: Demand) -> list[MemberBin] | None:
    """Prefer unclaimed nodes: there a guaranteed gang is least likely to preempt it."""
    unclaimed, idle = table.unclaimed[demand.chain], table.idle[demand.chain]
    found = _fit_in(unclaimed, demand) if unclaimed.total != idle.total else None
    return found if found is not None else _fit_in(idle, demand)


def _fit_in(ranking: Ranking, demand: Demand) -> list[MemberBin] | None:
    """Fit into the bins of one ranking, without mapping further cells."""
    return _with_first(demand, lambda allowed: _choose_member_bins(ranking, demand, allowed))


def _choose_member_bins(
    ranking: Ranking, demand: Demand, allowed: AllowedNodes
) -> list[MemberBin] | None:
    bins = choose_bins(ranking, demand.sizes, allowed)
    return None if bins is None else [demand.member_bin(bin_) for bin_ in bins]


def _with_first(
    demand: Demand, attempt: Callable[[AllowedNodes], list[MemberBin] | None]
) -> list[MemberBin] | None:
    """Try all allowed nodes; if none of the bins suits the asking member, only its own nodes."""
    found = attempt(demand.allowed)
    if found is None or demand.is_met_by(found):
        return found
    return attempt(demand.allowed_first)


# -- the asking member has fewer allowed nodes than the others


def _fit_first_alone(table: AllocationTable, demand: Demand) -> list[Seat] | None:
    """Place the asking member first, then the others as near to it as possible."""
    if demand.allowed is demand.allowed_first or len(demand.sizes) == 1:
        return None
    at = demand.sizes.index(demand.first_size)
    others = (*demand.sizes[:at], *demand.sizes[at + 1 :])
    alone = replace(demand, sizes=(demand.first_size,), allowed=demand.allowed_first)
    bins = _fit_quickly(table, alone)
    if bins is None:
        return None
    with table.what_if():
        first = seat_of(demand, _occupy(table, demand, bins[0]), claim=bins[0].claim)
        for allowed in (*map(AllowedNodes, surroundings([bins[0].bin_])), demand.allowed):
            rest = replace(
                demand,
                sizes=others,
                allowed=allowed,
                allowed_first=allowed,
                first_size=others[0],
            )
            bins = _fit_quickly(table, rest)
            if bins is not None:
                seats = _seats(rest, bins)
                return [*seats[:at], first, *seats[at:]]
    return None


def _occupy(table: AllocationTable, demand: Demand, chosen: MemberBin) -> Sequence[Cell]:
    """Hold leaves for the asking member, so that they are not idle for the others."""
    if demand.vc is not None and chosen.claim is not None and chosen.claim.claim is None:
        table.map_cell(demand.vc, chosen.claim)
    leaves = LeafChooser().take(chosen.bin_, demand.first_size)
    table.hold(leaves, PLACEHOLDER)
    return leaves


def occupy_seat(table: AllocationTable, demand: Demand, seat: Seat) -> None:
    """Hold the leaves of a seat, so that they are not idle for other members."""
    claim = table.trees[seat.chain].by_address[seat.claim] if seat.claim else None
    if demand.vc is not None and claim is not None and claim.claim is None:
        table.map_cell(demand.vc, claim)
    table.hold(table.leaves_of(seat), PLACEHOLDER)


def surroundings(cells: Sequence[Cell]) -> Iterator[dict[NodeName, None]]:
    """The nodes of some cells, then of their ancestors level by level, up to `NEAR_NODES`."""
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
