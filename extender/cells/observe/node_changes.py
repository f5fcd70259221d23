"""Nodes join, leave or move in a topology: only the gangs on them are taken over again.

The result is that of `Adopter.adopt_all` on a new table, at a cost proportional to the change. All
slots on the affected nodes are removed, cells are removed and added, and then the slots are taken
over again as after a restart; gangs elsewhere stay as they are. A leased slot whose node is gone is
not taken over: its member loses its place and is planned again.

The results are equal, because a preassigned cell that is mapped now would be mapped to the same
cell again as long as all mappings together are safe. Where this does not hold, that is, where a
gang would lose its cell to a later one or a promise could not be kept, all is undone. Then the
order of the gangs matters, and the caller takes over all of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from extender.cells.budget import MOST_NODES_IN_PLACE
from extender.cells.observe.adoption import Adopter
from extender.cells.observe.bound_pods import FullReplayNeeded, PodObserver
from extender.cells.observe.lifecycle import GangLifecycle
from extender.cells.observe.nodes import NodeObserver
from extender.cells.observe.reconfiguration import (
    Changed,
    Comparison,
    compared,
    replay_order,
    summed,
)
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.cell_changes import add_cell, change_promises, remove_cell, set_levels
from extender.cells.state.gang_slots import GangSlots
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, slot_placement, sorted_by_key
from extender.cells.state.registry import Registry
from extender.cells.state.vcs import Claim, has_room_for
from extender.cells.views.listings import Stepwise
from policy.submission import GangKey, NodeName, VcName
from policy.topology import CellAddress, Chain, ChainName, PhysicalCell, Topology


@dataclass(frozen=True, slots=True)
class _Joining:
    """A cell that is added below a parent, after a sibling or as the first child."""

    spec: PhysicalCell
    parent: CellAddress | None
    after: CellAddress | None


@dataclass(slots=True)
class _Difference:
    """Cells to be removed from a chain and cells to be added to it."""

    leaving: list[PhysicalCell] = field(default_factory=list)
    joining: list[_Joining] = field(default_factory=list)


class TopologyUpdater:
    """Changes a table in place so that it matches another topology."""

    def __init__(
        self,
        table: AllocationTable,
        registry: Registry,
        lifecycle: GangLifecycle,
        node_observer: NodeObserver,
    ) -> None:
        self._table = table
        self._registry = registry
        self._lifecycle = lifecycle
        self._node_observer = node_observer
        self._pod_observer = PodObserver(table, lifecycle, may_downgrade=False)
        self._adopter = Adopter(table, lifecycle, self._pod_observer)
        self._before: dict[GangKey, PlacedGang] = {}
        """Copies of the affected gangs as they were before."""
        self._affected: dict[GangKey, PlacedGang] = {}
        """These gangs themselves."""

    def _is_possible(self, old: Topology, new: Topology) -> bool:
        """False if an update would take long, or is certain to fail."""
        if old.chains.keys() != new.chains.keys() or old.vcs.keys() != new.vcs.keys():
            return False
        try:
            found = _differences(old, new)
        except FullReplayNeeded:
            return False
        nodes = dict.fromkeys(node for part in found.values() for node in _nodes(part))
        left = self._slots_on(nodes) if len(nodes) <= MOST_NODES_IN_PLACE else {}
        return len(nodes) <= MOST_NODES_IN_PLACE and all(
            has_room_for(spec, self._claims_kept(name, left))
            for name, spec in sorted(new.vcs.items())
            if spec != old.vcs[name]
        )

    def _claims_kept(
        self, vc: VcName, left: Mapping[PlacedGang, Mapping[MemberSlot, None]]
    ) -> list[Claim]:
        """The mapped cells of a VC that gangs use outside the nodes that change."""
        gone: Counter[tuple[Claim, GangKey]] = Counter(
            (slot.claim, gang.key)
            for gang, slots in left.items()
            for slot in slots
            if slot.claim is not None
        )
        return [
            claim
            for claim in self._table.vcs[vc].claims.values()
            if claim.virtual.pinned is not None
            or any(count > gone[claim, key] for key, count in claim.users.items())
        ]

    def update(self, old: Topology, new: Topology) -> bool:
        """Apply the difference between two topologies; False, and no change, if that fails."""
        if not self._is_possible(old, new):
            return False
        found = _differences(old, new)
        nodes = dict.fromkeys(node for part in found.values() for node in _nodes(part))
        freed = dict(self._table.nodes_with_freed_leaves)
        try:
            with self._table.what_if() as trial:
                self._follow(old, new, found=found, nodes=nodes)
                trial.keep()
        except FullReplayNeeded:
            self._table.nodes_with_freed_leaves = freed
            self._restore(nodes)
            return False
        return True

    def _follow(
        self,
        old: Topology,
        new: Topology,
        *,
        found: Mapping[ChainName, _Difference],
        nodes: Mapping[NodeName, None],
    ) -> None:
        for gang in self._registry.reserving():
            self._remember(gang)  # on any node: a gang that is taken over may block its preemption
        taken = self._take_off(nodes)
        self._rebuild(new, found, nodes)
        self._promise(old, new)
        self._adopter.adopt(replay_order(taken))
        self._check_held(taken)
        for gang in taken:
            if gang.key in self._table.gangs:
                self._lifecycle.end_if_empty(self._table.gangs[gang.key])
        if not all(supply.is_safe() for _, supply in sorted(self._table.supplies.items())):
            raise FullReplayNeeded

    def _restore(self, nodes: Mapping[NodeName, None]) -> None:
        """Restore what the table does not undo: the standing of gangs, and short nodes."""
        for key, gang in self._affected.items():
            self._lifecycle.restore(gang, waiting=self._before[key].waiting_members)
        for node in nodes:
            self._node_observer.mark(node)

    # -- gangs

    def _take_off(self, nodes: Mapping[NodeName, None]) -> list[PlacedGang]:
        """Remove all slots on some nodes; returns copies of the gangs with only these slots."""
        touched = self._slots_on(nodes)
        for gang in touched:
            self._remember(gang)
        return [self._take(gang, slots) for gang, slots in touched.items()]

    def _slots_on(self, nodes: Mapping[NodeName, None]) -> dict[PlacedGang, dict[MemberSlot, None]]:
        """The slots on some nodes, by gang."""
        touched: dict[PlacedGang, dict[MemberSlot, None]] = {}
        for node in nodes:
            for cell in self._table.nodes(node):
                leaves = list(cell.leaves())
                gangs = (gang for leaf in leaves for gang in (leaf.holder, leaf.reserver))
                for gang in sorted_by_key(gangs):
                    touched.setdefault(gang, {}).update(dict.fromkeys(gang.slots.on(node)))
            for slot, gang in self._table.leafless_slots.get(node, {}).items():
                touched.setdefault(gang, {})[slot] = None
        return touched

    def _remember(self, gang: PlacedGang) -> None:
        slots = [replace(slot) for slot in gang.slots]
        self._affected[gang.key] = gang
        self._before[gang.key] = replace(
            gang, slots=GangSlots(slots), waiting_members=dict(gang.waiting_members)
        )

    def _take(self, gang: PlacedGang, slots: dict[MemberSlot, None]) -> PlacedGang:
        """Remove slots of a gang and return a copy of the gang with them.

        Reserved slots are removed together, since they do not name the member that waits for them.
        """
        if any(slot.is_reserved for slot in slots):
            slots = slots | dict.fromkeys(gang.reserved_slots())
        lost = [replace(slot) for slot in slots]
        part = replace(gang, slots=GangSlots(lost), waiting_members=dict(gang.waiting_members))
        if gang.is_preempting:
            self._lifecycle.end(gang)
            return part
        if any(slot.is_reserved for slot in slots):
            self._lifecycle.stop_waiting(gang)
        else:
            part.waiting_members.clear()
        for slot in slots:
            self._lifecycle.drop_slot(gang, slot)
        return part

    def _check_held(self, taken: Sequence[PlacedGang]) -> None:
        """Require a full replay if a lease was lost though its node is still there."""
        for gang in taken:
            mine = self._table.gangs.get(gang.key)
            places = [_place(slot) for slot in mine.slots] if mine else []
            for slot in gang.slots:
                is_lost = not slot.is_bound and _place(slot) not in places
                if is_lost and self._table.nodes(slot_placement(slot).node):
                    raise FullReplayNeeded

    def promote_stepwise(self) -> Stepwise[Changed]:
        """Promote downgraded gangs where that is possible now; return all that has changed.

        Other changes may be made between the steps.
        """
        gangs, found = self._table.gangs, self._comparisons()
        downgraded = [gang for gang in gangs.values() if gang.downgraded_by is not None]
        for gang in replay_order(downgraded):
            yield
            if gangs.get(gang.key) is gang and self._promote(gang):
                found[gang.key] = compared(self._before[gang.key], gang)
        return summed(one for _, one in sorted(found.items()))

    def changed(self) -> Changed:
        """What the update has done so far."""
        return summed(one for _, one in sorted(self._comparisons().items()))

    def _comparisons(self) -> dict[GangKey, Comparison]:
        gangs = self._table.gangs
        return {key: compared(one, gangs.get(key)) for key, one in self._before.items()}

    def _promote(self, gang: PlacedGang) -> bool:
        downgraded_by = gang.downgraded_by
        self._adopter.promote(gang)
        if downgraded_by is None or gang.downgraded_by is not None:
            return False
        self._before.setdefault(
            gang.key, replace(gang, is_guaranteed=False, downgraded_by=downgraded_by)
        )
        return True

    # -- cells

    def _rebuild(
        self, new: Topology, found: Mapping[ChainName, _Difference], nodes: Mapping[NodeName, None]
    ) -> None:
        for name, part in found.items():
            set_levels(self._table, name, new.chains[name].levels)
            for spec in part.leaving:
                remove_cell(self._table, self._table.trees[name].by_address[spec.address])
        for name, part in found.items():
            for joining in part.joining:
                self._insert(name, joining)
        for node in nodes:
            self._node_observer.mark(node)

    def _insert(self, name: ChainName, joining: _Joining) -> None:
        tree = self._table.trees[name]
        parent = tree.by_address[joining.parent] if joining.parent else tree.root
        after = tree.by_address[joining.after] if joining.after else None
        if add_cell(self._table, joining.spec, parent=parent, after=after) is None:
            raise FullReplayNeeded

    # -- promises

    def _promise(self, old: Topology, new: Topology) -> None:
        """Change what VCs were promised; mapped cells stay mapped."""
        changed = [spec for name, spec in sorted(new.vcs.items()) if spec != old.vcs[name]]
        moved = change_promises(self._table, changed)
        if moved is None:
            raise FullReplayNeeded
        for claim in moved:
            for key in sorted(claim.users):
                gang = self._table.gangs[key]
                self._before.setdefault(key, replace(gang))
                for slot in gang.slots:
                    slot.cached_placement = None


def _place(slot: MemberSlot) -> tuple[NodeName, tuple[int, ...]]:
    where = slot_placement(slot)
    return where.node, tuple(where.leaf_cells)


def _differences(old: Topology, new: Topology) -> dict[ChainName, _Difference]:
    """The cells that leave and join, by chain; FullReplayNeeded if cells changed their order."""
    changed = [name for name in sorted(new.chains) if old.chains[name] is not new.chains[name]]
    return {name: _compare(old.chains[name], new.chains[name]) for name in changed}


def _compare(old: Chain, new: Chain) -> _Difference:
    found = _Difference()
    _compare_cells(found, old.cells, new.cells, parent=None)
    return found


def _compare_cells(
    found: _Difference,
    old: Sequence[PhysicalCell],
    new: Sequence[PhysicalCell],
    *,
    parent: CellAddress | None,
) -> None:
    known = {cell.address: cell for cell in old}
    kept = {cell.address: cell for cell in new if _is_kept(known.get(cell.address), cell)}
    found.leaving += [cell for cell in old if cell.address not in kept]
    if [cell.address for cell in old if cell.address in kept] != list(kept):
        raise FullReplayNeeded  # cells changed their order
    after: CellAddress | None = None
    for cell in new:
        if cell.address not in kept:
            found.joining.append(_Joining(cell, parent, after))
        elif cell is not known[cell.address]:
            children = known[cell.address].children
            _compare_cells(found, children, cell.children, parent=cell.address)
        after = cell.address


def _is_kept(old: PhysicalCell | None, new: PhysicalCell) -> bool:
    """True if a cell stays, perhaps with other children; a node stays only if it is unchanged."""
    if old is None or old is new:
        return old is new
    if new.node is not None or old.node is not None:
        return old == new
    return replace(old, children=()) == replace(new, children=())


def _nodes(part: _Difference) -> Iterator[NodeName]:
    for cell in (*part.leaving, *(joining.spec for joining in part.joining)):
        yield from _nodes_in(cell)


def _nodes_in(cell: PhysicalCell) -> Iterator[NodeName]:
    if cell.node is not None:
        yield cell.node
        return
    for child in cell.children:
        yield from _nodes_in(child)
