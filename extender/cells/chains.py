"""In which chains a gang is tried, and how it may lie over several of them.

Chains share nothing: neither cells nor promises. So what fits in two chains separately fits in both
at once.
"""

from collections.abc import Collection
from dataclasses import replace

from extender.cells.admission import chains_of
from extender.cells.demand import ANYWHERE, Allowed, Demand
from extender.cells.fitting import fit
from extender.cells.model import OPPORTUNISTIC, MemberRequest, Seat
from extender.cells.table import Table
from policy.submission import NodeName
from policy.topology import ChainName

Candidates = Collection[NodeName]


class Chains:
    """Fits gangs into the chains where they may be."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def fit_in_any(
        self, request: MemberRequest, sizes: tuple[int, ...], candidates: Candidates
    ) -> list[Seat] | None:
        for chain in chains_of(self._table, request):
            seats = fit(self._table, self.demand(request, chain, sizes, candidates))
            if seats is not None:
                return seats
        return self._fit_across(request, sizes, candidates) if request.spans_chains else None

    def _fit_across(
        self, request: MemberRequest, sizes: tuple[int, ...], candidates: Candidates
    ) -> list[Seat] | None:
        """Fill one chain after the other; the member that asks is in the first that it fits in."""
        left, found, has_first = list(sizes), list[Seat](), False
        for chain in chains_of(self._table, request):
            ordered = sorted(left, reverse=True)
            if not has_first:
                ordered.remove(request.leaf_count)
                ordered.insert(0, request.leaf_count)
            seats = self._fit_most(request, chain, ordered, candidates, is_first=not has_first)
            for seat in seats:
                left.remove(len(seat.leaves))
            found += seats
            has_first = has_first or bool(seats)
            if not left:
                return found
        return None

    def _fit_most(
        self,
        request: MemberRequest,
        chain: ChainName,
        ordered: list[int],
        candidates: Candidates,
        *,
        is_first: bool,
    ) -> list[Seat]:
        """Fit as many members of a list as possible, from its beginning, into one chain."""
        best: list[Seat] = []
        low, high = 1, len(ordered)
        while low <= high:
            middle = (low + high) // 2
            sizes = tuple(sorted(ordered[:middle], reverse=True))
            demand = self.demand(request, chain, sizes, candidates)
            if not is_first:
                demand = replace(demand, allowed_first=demand.allowed, first_size=sizes[0])
            seats = fit(self._table, demand)
            if seats is not None:
                best, low = seats, middle + 1
            else:
                high = middle - 1
        return best

    def demand(
        self,
        request: MemberRequest,
        chain: ChainName,
        sizes: tuple[int, ...],
        candidates: Candidates,
    ) -> Demand:
        offered = Allowed(candidates)
        is_guaranteed = request.priority != OPPORTUNISTIC and not self._table.is_open
        return Demand(
            chain=chain,
            sizes=sizes,
            vc=self._table.vcs[request.vc] if is_guaranteed else None,
            pinned=request.pinned if is_guaranteed else None,
            allowed=ANYWHERE if request.ignores_candidates else offered,
            allowed_first=offered,
            first_size=request.leaf_count,
        )

    def fits_anywhere(
        self, request: MemberRequest, chain: ChainName, sizes: tuple[int, ...]
    ) -> bool:
        demand = self.demand(request, chain, sizes, ())
        return (
            fit(self._table, replace(demand, allowed=ANYWHERE, allowed_first=ANYWHERE)) is not None
        )
