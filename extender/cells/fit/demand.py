"""What is to be placed: the members, their VC and the nodes they may use; and the chosen bins."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from extender.cells.budget import SearchBudget
from extender.cells.model import MemberRequest, Part, Victims
from extender.cells.state.ranking import Ranking
from extender.cells.state.tree import Cell, ChainTree
from extender.cells.state.vcs import Vc
from policy.submission import NodeName
from policy.topology import ChainName, PinnedCellId

Candidates = Collection[NodeName]


@dataclass(frozen=True, slots=True, eq=False)
class AllowedNodes:
    """The nodes that a member may use; called with a bin, it says whether the bin is on them."""

    nodes: Candidates | None = None
    """None: all nodes."""
    _left_out: dict[ChainName, list[Cell]] = field(default_factory=dict, repr=False)

    def __call__(self, bin_: Cell) -> bool:
        return self.nodes is None or bin_.node in self.nodes

    def left_out(self, tree: ChainTree) -> list[Cell]:
        """Return the nodes of a chain that are not allowed; found once for each request."""
        if self.nodes is None:
            return []
        if tree.name not in self._left_out:
            self._left_out[tree.name] = [
                cell for name, cell in tree.by_node.items() if name not in self.nodes
            ]
        return self._left_out[tree.name]


ANY_NODE = AllowedNodes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What one decision is about: some members of a gang, on the candidate nodes."""

    request: MemberRequest
    """The request of the member that kube-scheduler or the planner asks about."""
    sizes: tuple[int, ...]
    """Leaf cells of each member to be placed, the asking member included, descending."""
    candidates: Candidates
    limits: Mapping[NodeName, int] = field(default_factory=dict)
    """Of some nodes: how many idle leaf cells the members may use there at most."""
    parts: tuple[Part, ...] = ()
    """The members by the nodes that they may use, the asking one's first; empty if all may use the
    same."""
    victims: Victims = Victims.BEST
    budget: SearchBudget


@dataclass(frozen=True, slots=True)
class MemberBin:
    """The bin of one member, and the physical cell of the claim that the member counts against."""

    bin_: Cell
    claim: Cell | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Members that are to be placed together in one chain."""

    chain: ChainName
    sizes: tuple[int, ...]
    """Leaf cells of each member, descending."""
    vc: Vc | None
    """The VC whose preassigned cells they must use; None if the gang is opportunistic."""
    pinned: PinnedCellId | None = None
    allowed: AllowedNodes
    """Nodes that any member may use."""
    allowed_first: AllowedNodes
    """Nodes that the asking member may use: a subset of `allowed`, or the same object."""
    first_size: int
    """Leaf cells of the asking member."""
    budget: SearchBudget

    @property
    def is_equal(self) -> bool:
        """True if all members have the same size."""
        return self.sizes[0] == self.sizes[-1]

    @property
    def nodes(self) -> Candidates:
        """The nodes that members may use, if not all."""
        return self.allowed.nodes or ()

    def vc_ranking(self) -> Ranking:
        """The bins in mapped cells of the VC, or in the pinned cell; for guaranteed gangs only."""
        assert self.vc is not None
        if self.pinned is not None:
            return self.vc.pinned_rankings[self.pinned]
        return self.vc.rankings[self.chain]

    def member_bin(self, bin_: Cell) -> MemberBin:
        """A bin with the claim that contains it, if the gang is guaranteed."""
        claim = bin_.enclosing_claim() if self.vc is not None else None
        return MemberBin(bin_, claim.cell if claim else None)

    def is_met_by(self, bins: list[MemberBin]) -> bool:
        """True if one of the bins suits the asking member."""
        return any(
            size == self.first_size and self.allowed_first(chosen.bin_)
            for size, chosen in zip(self.sizes, bins, strict=True)
        )
