"""The engine's methods that only look at its state."""

from collections.abc import Iterable

from extender.cells.components import Components
from extender.cells.decide.kept_cells import count_kept, kept_cells
from extender.cells.decide.kept_seats import view_seats
from extender.cells.model import (
    NONE_KEPT,
    GangView,
    KeptCells,
    KnownSizes,
    MemberRequest,
    NodeCell,
    Seat,
    SeatsView,
)
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, slot_placement
from extender.cells.views import invariants, listings, state_views
from extender.cells.views.listings import Holders, Stepwise, run_to_end
from policy.errors import InvariantError
from policy.placement import Placement
from policy.submission import GangKey, PodUid, VcName


class EngineViews:
    """What can be seen of the state; nothing here changes it."""

    _components: Components

    @property
    def _table(self) -> AllocationTable:
        return self._components.table

    def placement(self, member: PodUid) -> Placement | None:
        """The placement of a member, bound or not."""
        slot = self._slot_of(member)
        return slot_placement(slot) if slot else None

    def has_place(self, member: PodUid) -> bool:
        """True if a member has a placement; cheaper than `placement`."""
        return self._slot_of(member) is not None

    def _slot_of(self, member: PodUid) -> MemberSlot | None:
        key = self._components.lifecycle.gang_of.get(member)
        return self._table.gangs[key].slot_of(member) if key else None

    def nodes_stepwise(self) -> Stepwise[list[tuple[NodeCell, Holders]]]:
        """All nodes with the holders of their leaf cells, by name."""
        return listings.list_nodes(self._table, self._components.node_observer.known)

    def gangs_stepwise(self) -> Stepwise[list[GangView]]:
        """All gangs that hold or reserve leaf cells, by key."""
        return listings.list_gangs(self._table)

    def cells_stepwise(self) -> Stepwise[list[state_views.CellView]]:
        """All physical cells, as trees."""
        return listings.list_cells(self._table)

    def vcs_stepwise(self) -> Stepwise[dict[VcName, state_views.VcView]]:
        """All VCs with their preassigned cells."""
        return listings.list_vcs(self._table)

    def gang(self, key: GangKey) -> GangView | None:
        """One gang, if it holds or reserves leaf cells."""
        gang = self._table.gangs.get(key)
        return state_views.view_gang(gang) if gang else None

    def gangs(self) -> list[GangView]:
        """All gangs that hold or reserve leaf cells, by key, in one step."""
        return run_to_end(self.gangs_stepwise())

    def known_sizes(self, key: GangKey) -> KnownSizes | None:
        """The sizes of a gang that has places, as its first member listed them."""
        gang = self._table.gangs.get(key)
        return KnownSizes(gang.request.gang_leaf_counts, gang.request.gang_min) if gang else None

    def victim_priority(self, key: GangKey) -> int | None:
        """The priority at which a gang that has places counts as a victim."""
        gang = self._table.gangs.get(key)
        return gang.priority if gang else None

    def is_preempting(self, key: GangKey) -> bool:
        """True if cells are reserved for a gang, or for late members of it, until victims end."""
        gang = self._table.gangs.get(key)
        return gang is not None and bool(gang.reserved_slots())

    def check_stepwise(self) -> Stepwise[None]:
        """Check every invariant; nothing may change meanwhile. InvariantError means a bug."""
        yield from invariants.check_stepwise(
            self._table, self._components.registry, self._components.lifecycle.gang_of
        )
        if not self._components.decider.audit():
            raise InvariantError("cached rankings of bins and gangs do not agree with the state")

    def view_seats(self, domain: VcName | None, seats: Iterable[Seat]) -> SeatsView:
        """The state of seats that are kept for a gang of a domain."""
        return view_seats(self._table, domain, seats)

    def count_kept(self, domain: VcName | None, seats: Iterable[Seat]) -> int:
        """How many free leaf cells of these seats other gangs of a domain leave alone."""
        vc = None if domain is None else self._table.vcs.get(domain)
        return 0 if domain is not None and vc is None else count_kept(self._table, vc, seats)

    def kept_cells(self, domain: VcName | None, seats: Iterable[Seat]) -> KeptCells:
        """How many leaf cells these seats keep from other gangs of a domain, at least."""
        vc = None if domain is None else self._table.vcs.get(domain)
        return (
            NONE_KEPT if domain is not None and vc is None else kept_cells(self._table, vc, seats)
        )

    def domain(self, request: MemberRequest) -> VcName | None:
        """The VC whose cells a gang must use; None if it may use all idle cells."""
        return request.vc if self._table.is_guaranteed(request) else None

    def holders(self, domain: VcName | None) -> list[GangKey]:
        """The guaranteed gangs of a VC that hold cells; without a VC all gangs that do."""
        if domain is None:
            return list(self._table.gangs)
        return self._components.registry.guaranteed(domain)
