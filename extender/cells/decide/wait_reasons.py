"""The reason why a gang cannot start now: the first one that applies."""

from collections.abc import Callable
from functools import partial

from extender.cells.answers import needed, owner, wait
from extender.cells.fit.chain_choice import ChainFitter, chains_of
from extender.cells.fit.demand import Ask
from extender.cells.model import Argument, KeptCells, MemberRequest, ReasonCode, Wait
from extender.cells.phrases import LISTED
from extender.cells.state.allocation_table import AllocationTable
from policy.topology import ChainName


class WaitReasons:
    """Finds reasons, given the current state of the table."""

    def __init__(self, table: AllocationTable, chains: ChainFitter) -> None:
        self._table = table
        self._chains = chains

    def too_large(self, ask: Ask) -> Wait | None:
        """Return the decision to wait if the gang could not start even in an empty cluster."""
        request = ask.request
        chains = chains_of(self._table, request)
        if not chains:
            return None
        count = self._promised if self._table.is_guaranteed(request) else self._leaf_count
        most = _over_chains(request, chains, lambda chain: count(ask, chain))
        too_large = partial(wait, request, ReasonCode.TOO_LARGE, **owner(request))
        if sum(ask.sizes) > most:
            told = {**needed(request, ask.sizes), **self._shortfall(ask)}
            return too_large(**told, total=sum(ask.sizes), limit=most)
        widest = max(self._widest(ask, chain) for chain in chains)
        if ask.sizes[0] > widest:
            return too_large(member=max(request.gang_leaf_counts), limit=widest)
        return None

    def _leaf_count(self, ask: Ask, chain: ChainName) -> int:
        return self._table.trees[chain].root.leaf_count

    def _promised(self, ask: Ask, chain: ChainName) -> int:
        vc, pinned = self._table.vcs[ask.request.vc], ask.request.pinned
        return (vc.rankings[chain] if pinned is None else vc.pinned_rankings[pinned]).promised

    def _widest(self, ask: Ask, chain: ChainName) -> int:
        """Return the number of leaves of the largest cell that a member could lie in."""
        tree = self._table.trees[chain]
        if not self._table.supplies[chain].is_uniform:
            return tree.root.leaf_count  # cells of a level differ
        highest = tree.node_level
        if self._table.is_guaranteed(ask.request) and ask.request.pinned is None:
            rungs = self._table.vcs[ask.request.vc].unmapped
            highest = max(level for name, level in rungs if name == chain)
        return tree.levels[min(highest, tree.node_level) - 1].leaf_count

    def find(self, ask: Ask) -> Wait:
        """Return the decision to wait for a gang that no search has found a place for."""
        request, sizes = ask.request, ask.sizes
        needs = needed(request, sizes)
        chains = chains_of(self._table, request)
        is_guaranteed = self._table.is_guaranteed(request)
        if is_guaranteed:
            left = _over_chains(request, chains, partial(self._unused, request))
            if left < sum(sizes):
                told = {**self._share(ask, chains), "unused": left, **owner(request)}
                told |= self._shortfall(ask)
                return wait(request, ReasonCode.VC_FULL, **needs, **told)
        if any(self._chains.fits_anywhere(ask, chain) for chain in chains):
            return wait(request, ReasonCode.NODE_NOT_OFFERED, **needs)
        if ask.budget.is_cut:
            return wait(request, ReasonCode.SEARCH_ENDED, **needs)
        bad = sum(self._table.trees[chain].root.bad for chain in chains)
        if is_guaranteed and self._table.foreign.pod_count(chains):
            return wait(request, ReasonCode.FOREIGN_USE, **needs, **self._foreign(chains), bad=bad)
        if is_guaranteed and bad:
            return wait(request, ReasonCode.BAD_CELLS, **needs, bad=bad, **self._bad(chains))
        return self._no_room(ask, chains)

    def _share(self, ask: Ask, chains: list[ChainName]) -> dict[str, Argument | None]:
        """Return the promise that the unused leaf cells belong to, and its chain among several."""
        if ask.request.spans_chains or len(chains) < 2:
            return {"promised": sum(self._promised(ask, chain) for chain in chains)}
        found = [
            (self._unused(ask.request, chain), self._promised(ask, chain), chain)
            for chain in chains
        ]
        _, promised, chain = max(found, key=lambda one: one[:2])
        return {"promised": promised, "chain": chain if ask.request.pinned is None else None}

    def _no_room(self, ask: Ask, chains: list[ChainName]) -> Wait:
        """Return the decision to wait for idle leaf cells, which foreign pods may use."""
        sizes = ask.sizes
        rooms = [self._table.idle[chain] for chain in chains]
        found = max((room.capacity(room.root, sizes[-1]) for room in rooms), default=0)
        told = {**needed(ask.request, sizes), "room": min(found, len(sizes) - 1)}
        foreign = self._table.foreign
        idle = _over_chains(
            ask.request,
            chains,
            lambda chain: self._table.trees[chain].root.idle + foreign.leaf_count([chain]),
        )
        is_by_foreign = foreign.pod_count(chains) and idle >= sum(sizes)
        named = self._foreign(chains) if is_by_foreign else {}
        return wait(ask.request, ReasonCode.NO_ROOM, **told, **named)

    def _bad(self, chains: list[ChainName]) -> dict[str, Argument]:
        """Return which nodes of some chains have bad leaf cells, as arguments."""
        found = self._table.bad_nodes.first(chains, most=LISTED)
        return {
            "nodes": tuple(node for node, _ in found),
            "quarantined": tuple(node for node, is_quarantined in found if is_quarantined),
            "count": self._table.bad_nodes.count(chains),
        }

    def _shortfall(self, ask: Ask) -> dict[str, Argument | None]:
        """Return, as an argument, the promises to a gang's VC that the nodes do not back."""
        request = ask.request
        if not self._table.is_guaranteed(request) or request.pinned is not None:
            return {}
        lacking = [
            one
            for one in self._table.vcs[request.vc].shortfall
            if request.leaf_type in (None, one.leaf_type)
        ]
        told = tuple((one.promised, one.backed, one.level, one.type_text) for one in lacking)
        return {"shortfall": told[:LISTED] or None}

    def _foreign(self, chains: list[ChainName]) -> dict[str, Argument]:
        """Return which foreign pods use leaf cells of some chains, as arguments."""
        foreign = self._table.foreign
        return {
            "pods": tuple(foreign.first(chains, most=LISTED)),
            "count": foreign.pod_count(chains),
            "used": foreign.leaf_count(chains),
        }

    def most_leaf_cells(self, request: MemberRequest, kept: KeptCells) -> int | None:
        """Return an upper bound of the leaf cells that a gang can get; None if it is not known.

        It holds if no guaranteed gang of the same VC ends, and what is kept is left alone.
        """
        vc = self._table.vcs.get(request.vc)
        is_guaranteed = self._table.is_guaranteed(request)
        pins = vc.pinned_rankings if vc is not None else {}
        if is_guaranteed and (vc is None or request.pinned not in (None, *pins)):
            return None
        chains = chains_of(self._table, request)
        if not chains:
            return None
        idle, pinned = self._table.idle, request.pinned if is_guaranteed else None

        def left(chain: ChainName) -> int:
            has = vc.left(chain, pinned) if is_guaranteed and vc else idle[chain].total
            return has - kept.get((chain, pinned), 0)

        return _over_chains(request, chains, left)

    def _unused(self, request: MemberRequest, chain: ChainName) -> int:
        """Return the leaf cells of a VC in a chain that its guaranteed gangs do not use."""
        vc, pinned = self._table.vcs[request.vc], request.pinned
        if pinned is not None:
            return vc.pinned_rankings[pinned].total
        tree = self._table.trees[chain]
        unmapped = sum(
            vc.unused(chain, level) * tree.levels[level - 1].leaf_count
            for level in vc.unused_levels(chain)
        )
        return unmapped + vc.rankings[chain].total


def _over_chains(
    request: MemberRequest, chains: list[ChainName], count: Callable[[ChainName], int]
) -> int:
    """Return the largest count of one chain, or the sum if the gang may span chains."""
    counts = [count(chain) for chain in chains]
    return sum(counts) if request.spans_chains else max(counts, default=0)
