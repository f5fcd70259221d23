"""Why a gang cannot start now: the first of the reasons that is true."""

from collections.abc import Callable

from extender.cells.decide import wording
from extender.cells.decide.refusals import chains_of
from extender.cells.fit.chain_choice import ChainFitter
from extender.cells.fit.demand import Ask
from extender.cells.model import Wait
from extender.cells.state.allocation_table import AllocationTable
from policy.topology import ChainName


class Reasons:
    """Explains the present state of the table."""

    def __init__(self, table: AllocationTable, chains: ChainFitter) -> None:
        self._table = table
        self._chains = chains

    def too_large(self, ask: Ask) -> Wait | None:
        """Say so if it could not start even if nobody else ran."""
        request = ask.request
        chains = chains_of(self._table, request)
        if not chains:
            return None
        count = self._promised if self._chains.is_guaranteed(request) else self._leaf_count
        most = _over_chains(ask, chains, lambda chain: count(ask, chain))
        if sum(ask.sizes) > most:
            return wording.too_large(request, ask.sizes, most=most)
        widest = max(self._widest(ask, chain) for chain in chains)
        return wording.too_wide(request, widest=widest) if ask.sizes[0] > widest else None

    def _leaf_count(self, ask: Ask, chain: ChainName) -> int:
        return self._table.trees[chain].root.leaf_count

    def _promised(self, ask: Ask, chain: ChainName) -> int:
        vc, pinned = self._table.vcs[ask.request.vc], ask.request.pinned
        return (vc.rankings[chain] if pinned is None else vc.pinned_rankings[pinned]).promised

    def _widest(self, ask: Ask, chain: ChainName) -> int:
        """Leaves of the largest cell that a member could lie in."""
        tree = self._table.trees[chain]
        if not self._table.supplies[chain].is_uniform:
            return tree.root.leaf_count  # cells of a level differ
        highest = tree.node_level
        if self._chains.is_guaranteed(ask.request) and ask.request.pinned is None:
            rungs = self._table.vcs[ask.request.vc].unmapped
            highest = max(level for name, level in rungs if name == chain)
        return tree.levels[min(highest, tree.node_level) - 1].leaf_count

    def why_not(self, ask: Ask) -> Wait:
        """The reason to wait, when nothing was found."""
        request, sizes = ask.request, ask.sizes
        chains = chains_of(self._table, request)
        is_guaranteed = self._chains.is_guaranteed(request)
        if is_guaranteed:
            left = _over_chains(ask, chains, lambda chain: self._unused(ask, chain))
            if left < sum(sizes):
                promised = _over_chains(ask, chains, lambda chain: self._promised(ask, chain))
                return wording.vc_full(request, sizes, left=left, promised=promised)
        if any(self._chains.fits_anywhere(ask, chain) for chain in chains):
            return wording.no_candidate(request, sizes)
        if ask.budget.is_cut:
            return wording.search_ended(request, sizes)
        bad = sum(self._table.trees[chain].root.bad for chain in chains)
        if is_guaranteed and bad:
            return wording.bad_cells(request, sizes, bad=bad)
        rooms = [self._table.idle[chain] for chain in chains]
        found = max((room.capacity(room.root, sizes[-1]) for room in rooms), default=0)
        return wording.no_room(request, sizes, found=min(found, len(sizes) - 1))

    def _unused(self, ask: Ask, chain: ChainName) -> int:
        """Leaf cells of a VC in a chain that its guaranteed gangs do not use."""
        vc, pinned = self._table.vcs[ask.request.vc], ask.request.pinned
        if pinned is not None:
            return vc.pinned_rankings[pinned].total
        tree = self._table.trees[chain]
        unmapped = sum(
            vc.unused(chain, level) * tree.levels[level - 1].leaf_count
            for level in vc.unused_levels(chain)
        )
        return unmapped + vc.rankings[chain].total


def _over_chains(ask: Ask, chains: list[ChainName], count: Callable[[ChainName], int]) -> int:
    """The most of one chain; of all together where the gang may lie so."""
    counts = [count(chain) for chain in chains]
    return sum(counts) if ask.request.spans_chains else max(counts, default=0)
