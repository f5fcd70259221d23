"""In which chains a gang is tried, and how it may lie over several of them.

Chains share nothing: neither cells nor promises. So what fits in two chains separately fits in both
at once.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from extender.cells.budget import CHAIN_SPLITS
from extender.cells.decide.refusals import chains_of
from extender.cells.fit.demand import ANY_NODE, AllowedNodes, Ask, Demand
from extender.cells.fit.gang_fit import fit, may_hold
from extender.cells.model import OPPORTUNISTIC, MemberRequest, Seat
from extender.cells.state.allocation_table import AllocationTable
from policy.topology import ChainName


class ChainFitter:
    """Fits gangs into the chains where they may be."""

    def __init__(self, table: AllocationTable) -> None:
        self._table = table

    def fit_in_any(self, ask: Ask) -> list[Seat] | None:
        """Fit into one chain, else over several where the gang may lie so."""
        for chain in chains_of(self._table, ask.request):
            seats = self.fit_in(ask, chain)
            if seats is not None:
                return seats
        if not ask.request.spans_chains:
            return None
        return self._fit_across(ask) or self._fit_divided(ask)

    def fit_in(self, ask: Ask, chain: ChainName) -> list[Seat] | None:
        """Fit into one chain."""
        return fit(self._table, self.demand(ask, chain))

    def may_fit_in_any(self, ask: Ask) -> bool:
        """False if arithmetic alone says that there is no room."""
        if ask.request.spans_chains:
            return True
        chains = chains_of(self._table, ask.request)
        return any(may_hold(self._table, self.demand(ask, chain)) for chain in chains)

    def _fit_across(self, ask: Ask) -> list[Seat] | None:
        """Fill one chain after the other; the member that asks is in the first that it fits in."""
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
        """Fit as many members of a list as possible, from its beginning, into one chain."""
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
        """Fit some members; the one that asks is among them, or it is not."""
        demand = self.demand(replace(ask, sizes=sizes), chain)
        if not is_first:
            demand = replace(demand, allowed_first=demand.allowed, first_size=sizes[0])
        return fit(self._table, demand)

    def _fit_divided(self, ask: Ask) -> list[Seat] | None:
        """Try every way to divide unequal members between the chains; equal ones have just one."""
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
        """Fit each part into its chain; the member that asks into the first that takes it."""
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
        """What is asked of one chain."""
        request, offered = ask.request, AllowedNodes(ask.candidates)
        is_guaranteed = self.is_guaranteed(request)
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

    def is_guaranteed(self, request: MemberRequest) -> bool:
        """True if the request counts on cells of its VC."""
        return request.priority != OPPORTUNISTIC and not self._table.is_open

    def fits_anywhere(self, ask: Ask, chain: ChainName) -> bool:
        """True if the gang would fit were all nodes offered."""
        demand = self.demand(ask, chain)
        return (
            fit(self._table, replace(demand, allowed=ANY_NODE, allowed_first=ANY_NODE)) is not None
        )


def _divisions(sizes: Counter[int], chains: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All ways to divide members into as many parts as there are chains, sizes descending."""
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
