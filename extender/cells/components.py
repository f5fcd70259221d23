"""The state of one topology and everything that works on it; a new topology gets new ones."""

from extender.cells.decide.applier import Applier
from extender.cells.decide.decider import Decider
from extender.cells.decide.moves import MoveSearch
from extender.cells.decide.shadow import ShadowSearch
from extender.cells.observe.bound_pods import PodObserver
from extender.cells.observe.lifecycle import GangLifecycle
from extender.cells.observe.nodes import NodeObserver
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.registry import Registry
from policy.topology import Topology


class Components:
    """One table, and the parts of the engine that read and change it."""

    def __init__(
        self, topology: Topology | None, *, lease_seconds: float, reclaims_foreign: bool
    ) -> None:
        """Build no cells yet if there is a topology: `table.build_stepwise` does."""
        self.topology = topology
        self.table = AllocationTable(None, reclaims_foreign=reclaims_foreign)
        self.registry = Registry()
        self.lifecycle = GangLifecycle(self.table, self.registry)
        self.decider = Decider(self.table, self.registry)
        self.shadows = ShadowSearch(self.table, self.decider)
        self.moves = MoveSearch(self.table, self.decider)
        self.applier = Applier(self.table, self.lifecycle, lease_seconds=lease_seconds)
        self.pod_observer = PodObserver(self.table, self.lifecycle)
        self.node_observer = NodeObserver(self.table, self.pod_observer)

    def settle(self) -> None:
        """Count missing leaves and choose missing devices again, after leaves changed holders."""
        self.pod_observer.count_freed()
        self.node_observer.mark_short()
