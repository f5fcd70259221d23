"""Limits of the work for one decision, each with its reason.

Placing a gang is bin packing and choosing victims is a set cover: an exact search may not end in
any useful time. Steps are counted instead of timed, so that equal states give equal decisions. If a
limit ends a search, the `SearchBudget` notes it, and the reason to wait says so.
"""

from collections.abc import Iterator
from contextlib import contextmanager

LARGEST_GANG = 10_000
"""Members. One decision places all of them: more would block other requests for seconds."""

STEPS = 10_000
"""Steps of one decision, about 0.1 s in total: other pods wait meanwhile."""
STEPS_PER_MEMBER = 10
"""Additional steps for each member: the cost of finding its bin and its leaf cells."""

EXACT_BINS = 128
"""Bins with room up to which an exhaustive search runs if the fast methods fail."""
EXACT_MEMBERS = 64
"""Members up to which an exhaustive search runs: its recursion is as deep."""
EXACT_STEPS = 5_000
"""Steps of all exhaustive searches of a decision: most succeed within 100 steps or never."""
EXACT_SHARE = 4
"""One exhaustive search may use this fraction (1/n) of the steps that are left for all."""

MOST_NODES_IN_PLACE = 64
"""Nodes that may join, leave or move in one step; with more, all cells are built again beside."""

CELL_TRIES = 8
"""Cells of a level to try if candidate nodes or unequal members make the ranking inexact."""
FREE_LOOKS = 64
"""Free cells of a level to compare: more cost time and give no better places."""
FREE_LOOKS_AGAIN = 8
"""The same for further cells of a gang: good ones are mostly next to the first."""
FREE_LOOKS_INSIDE = 4
"""Cells inside one free cell to compare: they are mostly alike."""
NEAR_NODES = 512
"""Nodes around a gang that a late member is placed on first, if possible."""
CHAIN_SPLITS = 256
"""Divisions of a gang between chains to try if filling one chain after the other fails."""
KNOWN_SIZES = 16
"""Member sizes for which a ranking keeps an index: each makes every change slower."""

KNOWN_EVICTION_RANKINGS = 128
"""Eviction rankings that are kept: building one visits a whole chain."""
CLEARING_LOOKS = 64
"""Bins or cells, the cheapest first, to compare if not all of them may be mapped."""
VICTIM_LOOKS = 256
"""Candidates for victims of either kind up to which all are compared."""
CHEAPEST_VICTIMS = 64
"""If there are more: gangs from the bins that are cheapest to clear, and large gangs."""
ENDING_LOOKS = 256
"""Gangs of either kind that are already ending, up to which they are tried first."""
ENDING_SHARE = 8
"""Trying without them may use this fraction (1/n) of the steps that are left."""
MOST_DOWNGRADED = 4_096
"""Candidates for a downgrade to consider."""
EXACT_VICTIMS = 16
"""Candidates up to which all sets of victims are tried to find the least damage."""
VICTIM_SETS = 4_000
"""Sets of candidates to compare, most of them by arithmetic alone."""
VICTIM_STEPS = 5
"""Steps of a trial for each slot that it removes."""
VICTIMS_PER_STEP = 10
"""Victims whose gain is added up within one step."""

YOUNG_SLOTS = 512
"""Slots of spared gangs up to which it is tried whether these alone keep a gang from preempting."""

SHADOW_ENDS = 96
"""Ends of gangs to try in their order, to find when a gang could start; each takes 0.15 ms."""
SHADOW_NODE_ENDS = 512
"""The same for ends node by node: a large gang among many small ones needs as many."""
SHADOW_STEPS = 2_000
"""Steps of all plans for one shadow time: the leader must not be blocked for longer than 50 ms."""


MOVE_STEPS = 2_000
"""Steps of all plans of a search for moves, for the same reason."""
MOVE_SLOT_STEPS = 10
"""Steps of one trial for each slot that it removes."""
MOVE_NODES = 8
"""Nodes with which clearing nodes one after the other may begin."""
MOST_MOVED = 8
"""Gangs that move for one gang."""


class OutOfBudgetError(Exception):
    """The steps are used up."""


class SearchBudget:
    """The steps that one decision has left."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.exact_left = EXACT_STEPS
        self.is_cut = False
        """Whether a limit ended a search: a place may exist that was not found."""

    @contextmanager
    def half(self) -> Iterator[None]:
        """Let one of several methods spend at most half of the steps that are left."""
        kept = self.left - self.left // 2
        self.left -= kept
        try:
            yield
        finally:
            self.left = max(0, self.left) + kept

    def exact(self) -> "SearchBudget":
        """Return the budget of one exhaustive search; report its steps with `count_exact`."""
        return SearchBudget(min(self.left, self.exact_left // EXACT_SHARE))

    def count_exact(self, steps: int) -> None:
        """Count the steps of an exhaustive search."""
        self.left -= steps
        self.exact_left -= steps

    def spend(self, steps: int = 1) -> None:
        """Count steps; OutOfBudgetError if none are left."""
        self.left -= steps
        if self.left < 0:
            self.is_cut = True
            raise OutOfBudgetError


def budget_for(members: int) -> SearchBudget:
    """Return the budget of a decision about a gang of so many members."""
    return SearchBudget(STEPS + STEPS_PER_MEMBER * members)
