"""Who has to make room: the least damage that lets a gang in.

Nothing is computed about victims that is not tried: inside `Table.what_if` the candidates are taken
away and the gang is fitted. Fewest gangs, then fewest leaf cells, then the youngest; a gang without
which it fits as well is never among them. One victim or two (of few candidates) are found exactly,
more are shrunk from a larger set until none can be spared.
"""

from collections.abc import Callable, Sequence
from itertools import combinations, islice

from extender.cells.demand import Demand
from extender.cells.fitting import fit
from extender.cells.gangs import Gang
from extender.cells.model import Seat
from extender.cells.registry import Registry
from extender.cells.table import Table
from extender.cells.tree import Cell

_SINGLES = 128
_FEW = 24
FIRST_LOOK = 512
"""Candidates of either kind that are looked at first: in a large cluster they are enough."""

Works = Callable[[Sequence[Gang]], list[Seat] | None]


def damage(gang: Gang) -> tuple[int, int]:
    """What ending a gang costs: leaf cells, then age."""
    return gang.leaf_count, -gang.born


def least(candidates: Sequence[Gang], works: Works) -> tuple[list[Gang], list[Seat]] | None:
    """Find the least harmful candidates with which it works, and the seats it gives.

    Candidates come in the order in which they would be ended, one after the other.
    """
    ordered = sorted(candidates, key=damage)
    for gang in ordered[:_SINGLES]:
        seats = works([gang])
        if seats is not None:
            return [gang], seats
    if 1 < len(ordered) <= _FEW:
        for pair in sorted(combinations(ordered, 2), key=_damage_of_pair):
            seats = works(pair)
            if seats is not None:
                return list(pair), seats
    return _shrink(_enough(list(candidates), works), works)


def _enough(candidates: list[Gang], works: Works) -> list[Gang]:
    """The first candidates with which it works, all if they are few."""
    low, high = _FEW, len(candidates)
    while low < high:
        middle = (low + high) // 2
        if works(candidates[:middle]) is not None:
            high = middle
        else:
            low = middle + 1
    return sorted(candidates[:low], key=damage)


def _damage_of_pair(pair: Sequence[Gang]) -> tuple[int, int]:
    return sum(gang.leaf_count for gang in pair), -sum(gang.born for gang in pair)


def _shrink(ordered: list[Gang], works: Works) -> tuple[list[Gang], list[Seat]] | None:
    """Take all, then spare one after the other, the most harmful first."""
    seats = works(ordered) if ordered else None
    if seats is None:
        return None
    chosen = list(ordered)
    for gang in reversed(ordered):
        without = [other for other in chosen if other is not gang]
        spared = works(without)
        if spared is not None:
            chosen, seats = without, spared
    return chosen, seats


def overtaken(registry: Registry, demand: Demand, priority: int) -> list[Gang]:
    """Gangs of the VC that preempt at a lower priority: cancelling that ends nobody."""
    if demand.vc is None:
        return []
    return [
        gang
        for gang in registry.below(demand.vc.name, priority)
        if gang.is_preempting and _touches(gang, demand)
    ]


def downgradable(registry: Registry, demand: Demand, priority: int) -> list[Gang]:
    """Gangs of the VC that are to be downgraded rather than ended."""
    if demand.vc is None:
        return []
    return [
        gang
        for gang in registry.below(demand.vc.name, priority)
        if gang.request.is_lazy and not gang.is_preempting and _touches(gang, demand)
    ]


def endable(registry: Registry, demand: Demand, priority: int, *, most: int | None) -> list[Gang]:
    """Gangs that a guaranteed gang may end: of its own VC at a lower priority, opportunistic.

    At most so many of either kind: the lowest priorities, the youngest borrowers.
    """
    if demand.vc is None:
        return []
    own = (
        gang
        for gang in registry.below(demand.vc.name, priority)
        if not gang.is_preempting and _touches(gang, demand)
    )
    others = (gang for gang in registry.opportunistic() if _is_in_the_way(gang, demand))
    return _in_clearing_order([*islice(own, most), *islice(others, most)], demand)


def _touches(gang: Gang, demand: Demand) -> bool:
    """True if the gang uses preassigned cells that this one could use."""
    return any(
        slot.claim is not None
        and slot.claim.virtual.chain == demand.chain
        and slot.claim.virtual.pinned == demand.pinned
        for slot in gang.slots
    )


def _is_in_the_way(gang: Gang, demand: Demand) -> bool:
    return any(_is_usable(leaf, demand) for slot in gang.slots for leaf in slot.leaves)


def _is_usable(leaf: Cell, demand: Demand) -> bool:
    """True if the leaf lies where the VC's preassigned cells are or could be mapped."""
    if demand.vc is None or leaf.chain.name != demand.chain or leaf.reserver is not None:
        return False
    claim = leaf.enclosing_claim()
    if claim is None:
        return demand.pinned is None
    return claim.vc == demand.vc.name and claim.virtual.pinned == demand.pinned


def _in_clearing_order(candidates: list[Gang], demand: Demand) -> list[Gang]:
    """Candidates by their nodes, the cheapest to clear first; of very many, only those."""
    rooms: dict[Cell, dict[Gang, int]] = {}
    for gang in candidates:
        for slot in [slot for slot in gang.slots if slot.leaves]:
            node = slot.leaves[0].ancestor(slot.leaves[0].chain.node_level)
            here = rooms.setdefault(node, {})
            here[gang] = here.get(gang, 0) + len(slot.leaves)
    largest = demand.sizes[0]
    costs = [
        (len(here), sum(gang.leaf_count for gang in here), node.order, node)
        for node, here in rooms.items()
        if node.idle + sum(here.values()) >= largest and demand.allowed(node)
    ]
    is_many = len(candidates) > _SINGLES
    most = 4 * len(demand.sizes) if is_many else len(costs)
    kept: dict[Gang, None] = {}
    for *_, node in sorted(costs, key=lambda cost: cost[:3])[:most]:
        kept.update(dict.fromkeys(rooms[node]))
    return list(kept) if is_many else list(kept | dict.fromkeys(candidates))


def fit_without(table: Table, demand: Demand) -> Works:
    """Try to fit while some gangs are gone; their mapped cells stay mapped, for the newcomer.

    If only another mapping of their cells would do, nothing can be reserved yet: no seats.
    """
    after = fit_after(table, demand)

    def works(gangs: Sequence[Gang]) -> list[Seat] | None:
        with table.what_if():
            for gang in gangs:
                table.release(gang, keeps_claims=True)
            seats = fit(table, demand)
        if seats is None and after(gangs) is not None:
            return []
        return seats

    return works


def fit_after(table: Table, demand: Demand) -> Works:
    """The same, but the cells of those gangs go back to the VC: another mapping may be better."""

    def works(gangs: Sequence[Gang]) -> list[Seat] | None:
        with table.what_if():
            for gang in gangs:
                table.release(gang)
            return fit(table, demand)

    return works


def fit_downgraded(table: Table, demand: Demand) -> Works:
    """Try to fit while some gangs are opportunistic."""

    def works(gangs: Sequence[Gang]) -> list[Seat] | None:
        with table.what_if():
            for gang in gangs:
                table.downgrade(gang)
            return fit(table, demand)

    return works
