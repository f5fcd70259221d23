"""Questions about the state of the cluster that change nothing and are not logged."""

from collections.abc import Collection

from extender.cells.engine import Engine
from extender.cells.model import Decision, GangView, MemberRequest, NodeCell
from extender.cells.views.listings import Holders, Stepwise
from extender.cells.views.state_views import CellView, VcView
from extender.cluster.members import MemberIndex
from policy.errors import Problem
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid, VcName
from policy.topology import Topology


class ClusterReader:
    """The part of `Cluster` that only reads: no other package sees the engine itself.

    Methods that end in `_stepwise` yield after each part of their work, so that a caller can
    answer requests in between; the state may change meanwhile.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._members = MemberIndex()
        self.topology: Topology | None = None
        self.problems: tuple[Problem, ...] = ()
        """Promises that the nodes which are alive cannot hold."""
        self.version = 0
        """Grows with every change that a plan could see."""

    @property
    def members(self) -> MemberIndex:
        """The members that have places, for quick lookups."""
        return self._members

    def what_if(self, request: MemberRequest, *, candidate_nodes: Collection[NodeName]) -> Decision:
        """Return what would be decided now."""
        return self._engine.plan(request, candidate_nodes=candidate_nodes)

    def placement(self, member: PodUid) -> Placement | None:
        """Return where a member was placed, bound or not."""
        return self._engine.placement(member)

    def has_place(self, member: PodUid) -> bool:
        """Tell whether a member was placed, bound or not: cheaper than `placement`."""
        return self._engine.has_place(member)

    def is_preempting(self, gang: GangKey) -> bool:
        """Tell whether cells are reserved for a gang until its victims have ended."""
        return self._engine.is_preempting(gang)

    def gang(self, key: GangKey) -> GangView | None:
        """Return a gang that has leaf cells or has reserved them."""
        return self._engine.gang(key)

    def gangs(self) -> list[GangView]:
        """Return all gangs that have leaf cells or have reserved them, by key."""
        return self._engine.gangs()

    def gangs_stepwise(self) -> Stepwise[list[GangView]]:
        """Do the same in steps."""
        return self._engine.gangs_stepwise()

    def cells_stepwise(self) -> Stepwise[list[CellView]]:
        """Return all physical cells, as trees."""
        return self._engine.cells_stepwise()

    def vcs_stepwise(self) -> Stepwise[dict[VcName, VcView]]:
        """Return all VCs with their preassigned cells."""
        return self._engine.vcs_stepwise()

    def nodes_stepwise(self) -> Stepwise[list[tuple[NodeCell, Holders]]]:
        """Return all nodes with the holders of their leaf cells, by name."""
        return self._engine.nodes_stepwise()

    def check_stepwise(self) -> Stepwise[None]:
        """Check every invariant, while nothing changes; InvariantError is a bug of ours."""
        return self._engine.check_stepwise()
