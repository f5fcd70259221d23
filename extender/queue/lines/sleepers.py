"""Which kinds of lines wait for which leaf cells.

A gang that lacks cells of its own VC is helped by leaf cells that were given up in its VC, and by
those of opportunistic gangs, which may lie in cells of its VC. What guaranteed gangs of other VCs
give up belongs to these. Every other refused gang may be helped by all leaf cells of its leaf type,
and a gang with alternatives by those of the leaf types of all its alternatives.
"""

from enum import StrEnum

from extender.cells.freed_cells import FreedCells
from extender.cells.model import OPPORTUNISTIC, Decision, ReasonCode, Wait
from extender.queue.lines.kinds import LineKind
from policy.submission import LeafType, VcName


class Lack(StrEnum):
    """What a refused gang waits for."""

    OWN_CELLS = "own-cells"
    """Leaf cells that its VC was promised."""
    OWN_GAP = "own-gap"
    """A gap before a reservation of its VC: shorter runs, or more cells of its VC, may fit."""
    GAP = "gap"
    """A gap before a reservation or a window: shorter runs may fit."""
    CELLS = "cells"
    """Any leaf cells that it may use, or something else."""


OWN = frozenset({Lack.OWN_CELLS, Lack.OWN_GAP})
"""What only the VC of a gang, or opportunistic gangs, may give up."""
GAPS = frozenset({Lack.OWN_GAP, Lack.GAP})
"""What may be enough for a shorter run."""
_GAPS = frozenset({ReasonCode.RESERVED, ReasonCode.RESERVED_AHEAD, ReasonCode.MAINTENANCE})


def lack_of(decision: Decision) -> Lack:
    """Return what a gang waits for after a decision."""
    is_guaranteed = decision.request.priority != OPPORTUNISTIC
    if isinstance(decision, Wait) and decision.reason.code in _GAPS:
        is_own = is_guaranteed and decision.lacks_own
        return Lack.OWN_GAP if is_own else Lack.GAP
    is_full = isinstance(decision, Wait) and decision.reason.code is ReasonCode.VC_FULL
    return Lack.OWN_CELLS if is_guaranteed and is_full else Lack.CELLS


_Where = tuple[LeafType | None, VcName | None]
"""A leaf type or any; a VC, or None for the cells of all VCs."""


class Sleepers:
    """Kinds of lines by the leaf cells that may help them."""

    def __init__(self) -> None:
        self._asleep: dict[LeafType | None, dict[VcName | None, dict[LineKind, None]]] = {}
        self._where: dict[LineKind, dict[_Where, None]] = {}

    def __contains__(self, kind: LineKind) -> bool:
        return kind in self._where

    def add(self, kind: LineKind, lack: Lack) -> None:
        """Note that a line of a kind was refused."""
        is_own = lack in OWN and not kind.other_pools
        for pool in (kind.pool, *kind.other_pools):
            leaf_type = None if pool.pinned is not None else pool.leaf_type
            vc = pool.vc if is_own else None
            self._asleep.setdefault(leaf_type, {}).setdefault(vc, {})[kind] = None
            self._where.setdefault(kind, {})[leaf_type, vc] = None

    def remove(self, kind: LineKind) -> None:
        """Forget a kind that is awake or gone."""
        for leaf_type, vc in self._where.pop(kind, {}):
            of_type = self._asleep[leaf_type]
            del of_type[vc][kind]
            if not of_type[vc]:
                del of_type[vc]
            if not of_type:
                del self._asleep[leaf_type]

    def bound_by(self, vc: VcName, *, others: bool) -> list[LineKind]:
        """Return the kinds that may fit once cells of a VC are not reserved any more.

        `others` tells whether opportunistic gangs left these cells alone, too.
        """
        vcs = (vc, None) if others else (vc,)
        return [
            kind
            for kind in self._where
            if any(pool.vc in vcs for pool in (kind.pool, *kind.other_pools))
        ]

    def helped_by(self, freed: FreedCells) -> list[LineKind]:
        """Return the kinds that may fit after leaf cells became free."""
        found: dict[LineKind, None] = {}
        for leaf_type in (freed.leaf_type, None):
            of_type = self._asleep.get(leaf_type, {})
            vcs = list(of_type) if freed.vc is None else (None, freed.vc)
            for vc in vcs:
                found |= of_type.get(vc, {})
        return list(found)
