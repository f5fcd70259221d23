"""How much one decision may cost: all bounds of the search in one place, each with its reason.

Placing a gang is bin packing, and choosing its victims is a set cover: exact answers can take for
ever. Steps are counted, never timed, so that the same state always gives the same decision. Where
a bound ends the search, the `Budget` remembers it, and who has to wait is told so.
"""

from collections.abc import Iterator
from contextlib import contextmanager

LARGEST_GANG = 10_000
"""Members. One decision places them all: more would keep everybody else waiting for seconds."""

STEPS = 10_000
"""Steps of one decision, about 0.1 s in all: ten seconds of a busy kube-scheduler's patience."""
STEPS_PER_MEMBER = 10
"""More steps for each member: finding its bin and its leaf cells costs about so many."""

EXACT_BINS = 128
"""Bins with room among which is searched exhaustively where the quick ways fail."""
EXACT_MEMBERS = 64
"""Members of the largest gang that is searched for so: the search nests as deep."""
EXACT_STEPS = 5_000
"""Steps of all exhaustive searches of a decision: most succeed within a hundred, or never."""
EXACT_SHARE = 4
"""One part in so many of those that are left is the most that one of them may take."""

CELL_TRIES = 8
"""Cells of a level that are tried where candidate nodes or unequal members spoil the ranking."""
FREE_LOOKS = 64
"""Free cells of a level that are compared. More would cost time without placing better."""
FREE_LOOKS_AGAIN = 8
"""The same for the second and later cells of a gang: a good one is mostly beside the first."""
FREE_LOOKS_INSIDE = 4
"""Cells inside one free cell that are compared: they are mostly alike."""
NEAR_NODES = 512
"""Nodes around a gang among which a late member is placed first; beyond, near is far."""
CHAIN_SPLITS = 256
"""Ways to divide a gang between chains that are tried where filling one after the other fails."""
KNOWN_SIZES = 16
"""Member sizes for which a ranking keeps its index: one more makes every change dearer."""

KNOWN_EVICTION_RANKINGS = 16
"""Eviction rankings that are kept: building one visits a whole chain."""
CLEARING_LOOKS = 64
"""Bins or cells, cheapest first, that are compared where not every one may be mapped."""
VICTIM_LOOKS = 256
"""Candidates for victims of either kind up to which all are weighed."""
CHEAPEST_VICTIMS = 64
"""Where there are more: so many gangs of the bins that are cheapest to clear, and large gangs."""
ENDING_LOOKS = 256
"""Gangs of either kind, ending already, that are looked at; beyond, they only cost nothing."""
ENDING_SHARE = 8
"""One part in so many of the steps that are left is the most that thinking them away may take."""
MOST_DOWNGRADED = 4_096
"""Candidates for a downgrade that are looked at."""
EXACT_VICTIMS = 16
"""Candidates up to which the victims with the least damage are found by trying all sets."""
VICTIM_SETS = 4_000
"""Sets of candidates that are weighed, most of them by arithmetic alone."""
VICTIM_STEPS = 5
"""Steps that one trial costs for each slot that is thought away."""
VICTIMS_PER_STEP = 10
"""Victims whose gain is added up in the time of one step."""


class OutOfBudgetError(Exception):
    """The search was given up."""


class Budget:
    """Steps that one decision has left."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.exact_left = EXACT_STEPS
        self.is_cut = False
        """A bound ended some search: what was not found may exist."""

    @contextmanager
    def half(self) -> Iterator[None]:
        """Let one of several ways spend no more than half of what is left."""
        kept = self.left - self.left // 2
        self.left -= kept
        try:
            yield
        finally:
            self.left = max(0, self.left) + kept

    def exact(self) -> "Budget":
        """What one exhaustive search may spend; to be counted."""
        return Budget(min(self.left, self.exact_left // EXACT_SHARE))

    def count_exact(self, steps: int) -> None:
        """An exhaustive search took so many steps."""
        self.left -= steps
        self.exact_left -= steps

    def spend(self, steps: int = 1) -> None:
        """Count steps; OutOfBudgetError if there are none left."""
        self.left -= steps
        if self.left < 0:
            self.is_cut = True
            raise OutOfBudgetError


def budget_for(members: int) -> Budget:
    """What a decision about a gang of so many members may cost."""
    return Budget(STEPS + STEPS_PER_MEMBER * members)
