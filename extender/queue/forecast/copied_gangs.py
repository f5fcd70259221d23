"""Gangs as sampled futures see them: what they hold or wait for, and how long they run."""

from dataclasses import dataclass
from typing import Final

from extender.queue.forecast.closures import CopiedPool
from extender.queue.forecast.expectation import Draw
from policy.submission import GangKey

NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCells:
    """Concrete leaf cells that are reserved for a waiting gang."""

    deadline: float
    """Other gangs use them only if they end before; in seconds from now."""
    holders: frozenset[GangKey]
    """The gangs that hold some of them now."""
    needs_them: bool = True
    """Whether it does not start elsewhere: single leaf cells are found wherever some are free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedGang:
    """A gang that holds leaf cells, or waits for some."""

    gang: GangKey
    pool: CopiedPool
    """Where it must fit."""
    leaf_cells: int
    left: Draw
    """What is left of its run, from now or from its start on."""
    also: tuple[CopiedPool, ...] = ()
    """Other pools from which it takes leaf cells."""
    safe: float | None = None
    """Within which time it ends, safely enough to start before a reservation."""
    assumed: float = NEVER
    """How long it counts as running at closures, if `safe` is unknown."""
    exempt: frozenset[str] = frozenset()
    """The names of closures whose leaf cells are reserved for it."""
    kept: KeptCells | None = None
    """What is reserved for it."""
    is_probe: bool = False
    """Whether it does not exist: then it takes nothing when it starts, and reserves nothing."""

    @property
    def pools(self) -> tuple[CopiedPool, ...]:
        """All pools from which it takes leaf cells."""
        return (self.pool, *self.also)
