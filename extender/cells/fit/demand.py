"""What is to be placed, and what was found for it."""

from collections.abc import Collection
from dataclasses import dataclass

from extender.cells.budget import Budget
from extender.cells.model import MemberRequest
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Vc
from policy.submission import NodeName
from policy.topology import ChainName, PinnedCellId

Candidates = Collection[NodeName]


@dataclass(frozen=True, slots=True, eq=False)
class AllowedNodes:
    """Bins that may be used: those of some nodes."""

    nodes: Candidates | None = None
    """None: of all."""

    def __call__(self, bin_: Cell) -> bool:
        return self.nodes is None or bin_.node in self.nodes


ANY_NODE = AllowedNodes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What one decision is about: some members of a gang, on the nodes that are offered."""

    request: MemberRequest
    """Of the member that asks."""
    sizes: tuple[int, ...]
    """Leaf cells of the members to be placed, that one included, descending."""
    candidates: Candidates
    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Members to be placed together in one chain; sizes descend."""

    chain: ChainName
    sizes: tuple[int, ...]
    vc: Vc | None
    """Whose preassigned cells they must lie in; None: anywhere (opportunistic)."""
    pinned: PinnedCellId | None = None
    allowed: AllowedNodes
    """Bins that any member may use."""
    allowed_first: AllowedNodes
    """Bins that the member that asks may use; some of the others, or the same."""
    first_size: int
    """Leaf cells of the member that asks."""
    budget: Budget

    @property
    def is_equal(self) -> bool:
        """True if all members are of one size."""
        return self.sizes[0] == self.sizes[-1]

    def is_met_by(self, bins: "list[MemberBin]") -> bool:
        """True if one of the spots suits the member that asks."""
        return any(
            size == self.first_size and self.allowed_first(spot.bin_)
            for size, spot in zip(self.sizes, bins, strict=True)
        )


@dataclass(frozen=True, slots=True)
class MemberBin:
    """A bin for one member, and the physical cell of the preassigned cell it counts against."""

    bin_: Cell
    claim: Cell | None
