"""Chooses the chain for a gang, or divides a gang between several chains.

Chains share neither cells nor promises. So parts of a gang that fit into two chains separately also
fit together.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from extender.cells.budget import CHAIN_SPLITS
from extender.cells.fit.demand import ANY_NODE, AllowedNodes, Ask, Demand
from extender.cells.fit.gang_fit import fit, may_hold, occupy_seat, surroundings
from extender.cells.model import OPPORTUNISTIC, MemberRequest, Part, Seat
from extender.cells.state.allocation_table import AllocationTable
from policy.topology import ChainName


class ChainFitter:
    """Fits gangs into the chains that they may use."""

    def __init__(self, table: AllocationTable) -> None:
        self._table = table

    def fit_in_any(self, ask: Ask) -> list[Seat] | None:
        """Fit into one chain, else into several if the gang may span chains."""
        for chain in chains_of(self._table, ask.request):
            seats = self.fit_in(ask, chain)
            if seats is not None:
                return seats
        if not ask.request.spans_chains:
            return None
        return self._fit_across(ask) or self._fit_divided(ask)

    def fit_apart(self, ask: Ask) -> list[Seat] | None:
        """Fit each part of a gang on its own nodes, all in one chain; seats in order of parts."""
        for chain in chains_of(self._table, ask.request):
            seats = self._fit_apart_in(ask, chain)
            if seats is not None:
                return seats
        return None

    def _fit_apart_in(self, ask: Ask, chain: ChainName) -> list[Seat] | None:
        """Fit the part with the fewest nodes first, the others as near to it as possible."""
        found: dict[int, list[Seat]] = {}
        order = sorted(range(len(ask.parts)), key=lambda index: len(ask.parts[index].nodes))
        with self._table.what_if():
            for index in order:
                part, taken = ask.parts[index], [one for seats in found.values() for one in seats]
                demand = self._part_demand(ask, chain, part)
                seats = self._fit_near(demand, taken)
                if seats is None:
                    return None
                for seat in seats:
                    occupy_seat(self._table, demand, seat)
                found[index] = seats
        return [seat for index in sorted(found) for seat in found[index]]

    def _part_demand(self, ask: Ask, chain: ChainName, part: Part) -> Demand:
        sizes = tuple(sorted(part.sizes, reverse=True))
        nodes = AllowedNodes(part.nodes)
        demand = self.demand(replace(ask, sizes=sizes), chain)
        return replace(demand, allowed=nodes, allowed_first=nodes, first_size=sizes[0])

    def _fit_near(self, demand: Demand, taken: list[Seat]) -> list[Seat] | None:
        cells = [leaf for seat in taken for leaf in self._table.leaves_of(seat)]
        for nodes in surroundings(cells):
            offered = AllowedNodes({node: None for node in nodes if node in demand.nodes})
            seats = fit(self._table, replace(demand, allowed=offered, allowed_first=offered))
            if seats is not None:
                return seats
        return fit(self._table, demand)

    def fit_in(self, ask: Ask, chain: ChainName) -> list[Seat] | None:
        """Fit into one chain."""
        return fit(self._table, self.demand(ask, chain))

    def may_fit_in_any(self, ask: Ask) -> bool:
        """False if quick bounds rule out that the gang fits."""
        if ask.request.spans_chains:
            return True
        chains = chains_of(self._table, ask.request)
        return any(may_hold(self._table, self.demand(ask, chain)) for chain in chains)

    def _fit_across(self, ask: Ask) -> list[Seat] | None:
        """Fill one chain after the other; the asking member uses the first chain that holds it."""
        left, found, has_first = list(ask.sizes), list[Seat](), False
        for chain in chains_of(self._table, ask.request):
            ordered = sorted(left, reverse=True)
            if not has_first:
                ordered.remove(ask.request.leaf_count)
                ordered.insert(0, ask.request.leaf_count)
            seats = self._fit_most(ask, chain, ordered, is_first=not has_first)
            for seat in seats:
                left.remove(len(seat.leaves))
            found += seats
            has_first = has_first or bool(seats)
            if not left:
                return found
        return None

    def _fit_most(
        self, ask: Ask, chain: ChainName, ordered: list[int], *, is_first: bool
    ) -> list[Seat]:
        """Fit the longest possible prefix of a list of members into one chain."""
        best: list[Seat] = []
        low, high = 1, len(ordered)
        while low <= high:
            middle = (low + high) // 2
            sizes = tuple(sorted(ordered[:middle], reverse=True))
            seats = self._fit_part(ask, chain, sizes, is_first=is_first)
            if seats is not None:
                best, low = seats, middle + 1
            else:
                high = middle - 1
        return best

    def _fit_part(
        self, ask: Ask, chain: ChainName, sizes: tuple[int, ...], *, is_first: bool
    ) -> list[Seat] | None:
        """Fit some members into a chain; `is_first`: the asking member is one of them."""
        demand = self.demand(replace(ask, sizes=sizes), chain)
        if not is_first:
            demand = replace(demand, allowed_first=demand.allowed, first_size=sizes[0])
        return fit(self._table, demand)

    def _fit_divided(self, ask: Ask) -> list[Seat] | None:
        """Try every division of unequal members between chains; `_fit_across` covers equal ones."""
        chains = chains_of(self._table, ask.request)
        if ask.sizes[0] == ask.sizes[-1] or len(chains) < 2:
            return None
        for number, parts in enumerate(_divisions(Counter(ask.sizes), len(chains))):
            if number == CHAIN_SPLITS:
                ask.budget.is_cut = True
                return None
            seats = self._fit_parts(ask, list(zip(chains, parts, strict=True)))
            if seats is not None:
                return seats
        return None

    def _fit_parts(
        self, ask: Ask, parts: list[tuple[ChainName, tuple[int, ...]]]
    ) -> list[Seat] | None:
        """Fit each part into its chain; the asking member uses the first chain that holds it."""
        found, has_first = list[Seat](), False
        for chain, sizes in parts:
            is_mine = not has_first and ask.request.leaf_count in sizes
            seats = self._fit_part(ask, chain, sizes, is_first=is_mine) if sizes else []
            has_first = has_first or (is_mine and seats is not None)
            if seats is None and is_mine:
                seats = self._fit_part(ask, chain, sizes, is_first=False)
            if seats is None:
                return None
            found += seats
        return found if has_first else None

    def demand(self, ask: Ask, chain: ChainName) -> Demand:
        """The demand on one chain."""
        request, offered = ask.request, AllowedNodes(ask.candidates)
        is_guaranteed = self._table.is_guaranteed(request)
        return Demand(
            chain=chain,
            sizes=ask.sizes,
            vc=self._table.vcs[request.vc] if is_guaranteed else None,
            pinned=request.pinned if is_guaranteed else None,
            allowed=ANY_NODE if request.ignores_candidates else offered,
            allowed_first=offered,
            first_size=request.leaf_count,
            budget=ask.budget,
        )

    def fits_anywhere(self, ask: Ask, chain: ChainName) -> bool:
        """True if the gang would fit if all nodes were candidates."""
        demand = self.demand(ask, chain)
        return (
            fit(self._table, replace(demand, allowed=ANY_NODE, allowed_first=ANY_NODE)) is not None
        )


def chains_of(table: AllocationTable, request: MemberRequest) -> list[ChainName]:
    """The chains that a request may use, those with the smallest top-level cells first."""
    vc = table.vcs.get(request.vc)
    if request.pinned is not None and vc is not None:
        return [vc.pinned_rankings[request.pinned].root.chain.name]
    names = [
        name
        for name, tree in table.trees.items()
        if request.leaf_type is None or tree.leaf_type == request.leaf_type
    ]
    if request.priority != OPPORTUNISTIC and vc is not None:
        names = [name for name in names if name in vc.rankings]
    if len(names) < 2:
        return names
    return sorted(names, key=lambda name: (table.trees[name].levels[-1].leaf_count, name))


def _divisions(sizes: Counter[int], chains: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All divisions of members into as many parts as there are chains; sizes descend."""
    if chains == 1:
        yield (_descending(sizes),)
        return
    kinds = sorted(sizes, reverse=True)
    for counts in product(*(range(sizes[size], -1, -1) for size in kinds)):
        part = Counter(dict(zip(kinds, counts, strict=True)))
        for rest in _divisions(sizes - part, chains - 1):
            yield (_descending(part), *rest)


def _descending(sizes: Counter[int]) -> tuple[int, ...]:
    return tuple(sorted(sizes.elements(), reverse=True))
