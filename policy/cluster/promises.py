"""Promises that do not fit into their chains, in words."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policy.cluster.safety import Shortage, find_shortage
from policy.errors import Problem
from policy.submission import VcName
from policy.topology import Chain, ChainName, PhysicalCell, PinnedCellId, Topology, VirtualCluster
from policy.wording import are, count_of, listing, quote

_SHOWN_VCS: Final = 10
_MAX_SHORTAGES: Final = 100
"""As many as are shown, since each examines every VC."""


def check_promises(topology: Topology) -> list[Problem]:
    """Return a problem for each chain, up to a limit, whose promises do not fit."""
    problems: list[Problem] = []
    promised, pinned = _promised_by_chain(topology.vcs), claimed_cells(topology.vcs)
    for chain in topology.chains.values():
        shortage = find_shortage(chain, promised=promised[chain.name], pinned=pinned)
        if shortage is not None:
            problems.append(to_problem(shortage, chain=chain, vcs=topology.vcs))
        if len(problems) == _MAX_SHORTAGES:
            break
    return problems


def _promised_by_chain(
    vcs: Mapping[VcName, VirtualCluster],
) -> defaultdict[ChainName, Counter[int]]:
    """Count the promised cells of all VCs by chain and level."""
    promised: defaultdict[ChainName, Counter[int]] = defaultdict(Counter)
    for vc in vcs.values():
        for promise in vc.promises:
            promised[promise.chain][promise.level] += promise.count
    return promised


def claimed_cells(vcs: Mapping[VcName, VirtualCluster]) -> frozenset[PinnedCellId]:
    """All pinned cells that were promised; any other pinned cell is an ordinary cell."""
    return frozenset(pinned for vc in vcs.values() for pinned in vc.pinned)


def promised_by_vc(
    vcs: Mapping[VcName, VirtualCluster], *, chain: ChainName, level: int
) -> dict[VcName, int]:
    """Return how many cells of a level each VC was promised, pinned cells aside."""
    counts = {
        vc.name: sum(
            promise.count
            for promise in vc.promises
            if promise.chain == chain and promise.level == level
        )
        for vc in vcs.values()
    }
    return {name: count for name, count in counts.items() if count}


def to_problem(
    shortage: Shortage, *, chain: Chain, vcs: Mapping[VcName, VirtualCluster]
) -> Problem:
    """Describe what each VC was promised, what exists, and why it is not enough."""
    level = chain.levels[shortage.level - 1]
    where = f"chain {quote(chain.name)}, level {level.level} ({quote(level.cell_type)})"
    by_vc = promised_by_vc(vcs, chain=chain.name, level=level.level)
    promised = f"{count_of(shortage.promised, 'cell')} promised ({_shares(by_vc)})"
    use = _count_use(chain, shortage, claimed_cells(vcs))
    given = f"only {shortage.available} of {use.existing} can be given{use.reasons()}"
    doubt = "" if shortage.is_proven else "; too many different cells to try every choice"
    return Problem("virtualClusters", f"{where}: {promised}, but {given}{doubt}")


def _shares(by_vc: Mapping[VcName, int]) -> str:
    shown = [f"{quote(name)}: {count}" for name, count in list(by_vc.items())[:_SHOWN_VCS]]
    more = len(by_vc) - len(shown)
    return listing([*shown, f"{more} more VCs"] if more else shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    """How the cells of a level are used."""

    existing: int
    pinned: int
    """Pinned, or inside a pinned cell."""
    broken: int
    """Hold a pinned cell."""
    above: int
    """Inside cells that are promised at higher levels."""

    def reasons(self) -> str:
        reasons = {
            "pinned": self.pinned,
            "broken up by pinned cells": self.broken,
            "inside cells promised at higher levels": self.above,
        }
        parts = [f"{count} {are(count)} {what}" for what, count in reasons.items() if count]
        return f": {listing(parts)}" if parts else ""


def _count_use(chain: Chain, shortage: Shortage, pinned: frozenset[PinnedCellId]) -> _Use:
    states = Counter(
        state
        for cell in chain.cells
        for state in _states(cell, shortage.level, pinned, is_taken=False)
    )
    return _Use(
        existing=states.total(),
        pinned=states["pinned"],
        broken=states["broken"],
        above=max(0, states["intact"] - shortage.available),
    )


def _states(
    cell: PhysicalCell, level: int, pinned: frozenset[PinnedCellId], *, is_taken: bool
) -> Iterator[str]:
    """Yield the state of each cell of a level: pinned, broken up by a pinned cell, or intact."""
    taken = is_taken or cell.pinned in pinned
    if cell.level > level:
        for child in cell.children:
            yield from _states(child, level, pinned, is_taken=taken)
    elif taken:
        yield "pinned"
    else:
        yield "broken" if pinned and _holds_pinned(cell, pinned) else "intact"


def _holds_pinned(cell: PhysicalCell, pinned: frozenset[PinnedCellId]) -> bool:
    return cell.pinned in pinned or any(_holds_pinned(child, pinned) for child in cell.children)
