"""Which kinds of lines wait for which leaf cells.

A gang that lacks cells of its own VC is helped by leaf cells that were given up in its VC, and by
those of opportunistic gangs, which may lie in cells of its VC. What guaranteed gangs of other VCs
give up belongs to these. Every other refused gang may be helped by all leaf cells of its leaf type.
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
    GAP = "gap"
    """A gap before a reservation: shorter runs may fit."""
    CELLS = "cells"
    """Any leaf cells that it may use, or something else."""


def lack_of(decision: Decision) -> Lack:
    """Return what a gang waits for after a decision."""
    if isinstance(decision, Wait) and decision.reason.code is ReasonCode.RESERVED:
        return Lack.GAP
    is_guaranteed = decision.request.priority != OPPORTUNISTIC
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
        pool = kind.pool
        leaf_type = None if pool.pinned is not None else pool.leaf_type
        vc = pool.vc if lack is Lack.OWN_CELLS else None
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

    def helped_by(self, freed: FreedCells) -> list[LineKind]:
        """Return the kinds that may fit after leaf cells became free."""
        found: dict[LineKind, None] = {}
        for leaf_type in (freed.leaf_type, None):
            of_type = self._asleep.get(leaf_type, {})
            vcs = list(of_type) if freed.vc is None else (None, freed.vc)
            for vc in vcs:
                found |= of_type.get(vc, {})
        return list(found)
