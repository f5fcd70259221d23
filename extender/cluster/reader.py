"""Questions about the state of the cluster that change nothing and are not logged."""

from collections.abc import Collection

from extender.cells.engine import Engine
from extender.cells.freed_cells import FreedCells, freed_by
from extender.cells.model import Decision, MemberRequest
from extender.cluster.members import MemberIndex
from policy.errors import Problem
from policy.submission import NodeName, PodUid, VcName
from policy.topology import Backing, Topology


class ClusterReader:
    """The part of `Cluster` that only reads: no other package sees the engine itself.

    It has those methods of the engine that change nothing. Methods that end in `_stepwise` yield
    after each part of their work, so that a caller can answer requests in between; the state may
    change meanwhile.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.plan = engine.plan
        self.is_ready = engine.is_ready
        self.prepare_stepwise = engine.prepare_stepwise
        self.placement = engine.placement
        self.has_place = engine.has_place
        self.is_preempting = engine.is_preempting
        self.known_sizes = engine.known_sizes
        self.victim_priority = engine.victim_priority
        self.shadow = engine.shadow
        self.moves = engine.moves
        self.view_seats = engine.view_seats
        self.count_kept = engine.count_kept
        self.kept_cells = engine.kept_cells
        self.most_leaf_cells = engine.most_leaf_cells
        self.domain = engine.domain
        self.holders = engine.holders
        self.gang = engine.gang
        self.gangs = engine.gangs
        self.gangs_stepwise = engine.gangs_stepwise
        self.cells_stepwise = engine.cells_stepwise
        self.vcs_stepwise = engine.vcs_stepwise
        self.nodes_stepwise = engine.nodes_stepwise
        self.check_stepwise = engine.check_stepwise
        self.members = MemberIndex()
        """The members that have places, for quick lookups."""
        self.topology: Topology | None = None
        self.problems: tuple[Problem, ...] = ()
        """Promises that the nodes which are alive cannot hold."""
        self.warnings: tuple[Problem, ...] = ()
        """Nodes that are not as the Cluster document expects, and promises that became unclear."""
        self.version = 0
        """Grows with every change that a plan could see."""

    def backing(self, vc: VcName) -> tuple[Backing, ...]:
        """Return what a VC was promised and how much of it nodes back; empty if it is unknown."""
        topology = self.topology
        return topology.backing(vc) if topology is not None and vc in topology.vcs else ()

    def freed_by(self, member: PodUid) -> FreedCells | None:
        """Return what becomes free when a member leaves its place; None if that may be anything."""
        known = self.members.get(member)
        if known is None:
            return None
        return freed_by(known.request, self._engine.placement(member), self.topology)

    def what_if(self, request: MemberRequest, *, candidate_nodes: Collection[NodeName]) -> Decision:
        """Return what would be decided now."""
        return self._engine.plan(request, candidate_nodes=candidate_nodes)
