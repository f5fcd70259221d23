"""New components of a new topology, built beside the present ones, step by step.

The present components stay in use meanwhile, and may change between any two steps. The invariant:
a gang of the new table is as it is in the present one, or `note_gang` was called for it. A gang
that was noted is removed from the new table, and taken over again after the others. So the last
step, after which the new components replace the present ones, has next to nothing to do.

If nothing changes meanwhile, gangs are taken over in the order of `reconfiguration`: high
priorities first, then old gangs. A gang that changes meanwhile comes last. Where a share shrank
below its use, such a gang may lose its guarantee to one that came before it.
"""

from collections.abc import Iterable, Mapping

from extender.cells.components import Components
from extender.cells.observe.adoption import Adopter
from extender.cells.observe.reconfiguration import (
    Changed,
    Comparison,
    compared,
    replay_order,
    summed,
)
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.views.listings import Stepwise
from policy.submission import GangKey, NodeName


class Rebuild:
    """Components that are being built, and what they have to catch up with."""

    def __init__(
        self, present: Components, fresh: Components, *, gangs: Mapping[GangKey, PlacedGang]
    ) -> None:
        """`gangs` are the gangs of the present components, also those to come."""
        self.fresh = fresh
        self._present = present
        self._gangs = gangs
        self._adopter = Adopter(fresh.table, fresh.lifecycle, fresh.pod_observer)
        self._noted: dict[GangKey, None] = {}
        """Gangs that changed since the last step."""
        self._late: dict[GangKey, None] = {}
        """Gangs that have to be taken over again."""
        self._nodes: dict[NodeName, None] = {}
        """Nodes that changed since the last step."""
        self._comparisons: dict[GangKey, Comparison] = {}
        self._uncompared: dict[GangKey, None] = {}
        fresh.table.changes.watched = self._uncompared

    def note_gang(self, *gangs: GangKey) -> None:
        """Gangs of the present components have changed."""
        self._noted.update(dict.fromkeys(gangs))

    def note_node(self, name: NodeName) -> None:
        """A node has changed or left."""
        self._nodes[name] = None

    def steps(self) -> Stepwise[Changed]:
        """Build the cells and take over all gangs; no step follows the last catching up."""
        if self.fresh.topology is not None:
            yield from self.fresh.table.build_stepwise(self.fresh.topology)
        known = self._present.node_observer.known
        for name in sorted(known):
            self.note_node(name)
            self._catch_up()
            yield
        self._catch_up()
        late: Iterable[GangKey] = [gang.key for gang in replay_order(list(self._gangs.values()))]
        while late:
            yield from self._take_over(list(late))
            yield from self._compare()
            late = self._take_late()
        self.fresh.settle()
        self.fresh.table.changes.watched = None
        return self._result()

    # -- catching up

    def _take_late(self) -> list[GangKey]:
        self._catch_up()
        gangs = [self._gangs[key] for key in self._late if key in self._gangs]
        self._late.clear()
        return [gang.key for gang in replay_order(gangs)]

    def _catch_up(self) -> None:
        """Note the nodes that changed, and remove the gangs that changed."""
        for name in self._nodes:
            node = self._present.node_observer.known.get(name)
            if node is None:
                self.fresh.node_observer.forget(name)
            else:
                self.fresh.node_observer.observe(node)
        self._nodes.clear()
        while self._noted:
            self._remove(next(iter(self._noted)))

    def _remove(self, key: GangKey) -> None:
        """Remove a gang, and gangs that reserve what it holds, until they are taken over again."""
        del self._noted[key]
        self._late[key] = None
        self._uncompared[key] = None
        gang = self.fresh.table.gangs.get(key)
        if gang is None:
            return
        leaves = [leaf for slot in gang.slots for leaf in slot.leaves]
        reservers = (leaf.reserver for leaf in leaves if leaf.reserver not in (None, gang))
        self._noted.update({reserver.key: None for reserver in reservers if reserver})
        self.fresh.lifecycle.end(gang)

    # -- taking over

    def _take_over(self, keys: list[GangKey]) -> Stepwise[None]:
        """Take over some gangs: first those that run, then what is only leased or reserved."""
        adopter = self._adopter
        phases = (
            adopter.adopt_bound,
            adopter.adopt_held,
            adopter.adopt_reserved,
            adopter.promote_downgraded,
        )
        for phase in phases:
            for key in keys:
                gang = self._gangs.get(key)
                if gang is not None and key not in self._late:
                    phase(gang)
                yield
                self._catch_up()
        self.fresh.settle()
        self._uncompared.update(dict.fromkeys(keys))

    def _compare(self) -> Stepwise[None]:
        """Compare the gangs that were taken over with what they were."""
        while self._uncompared:
            key = next(iter(self._uncompared))
            del self._uncompared[key]
            self._comparisons.pop(key, None)
            before = self._gangs.get(key)
            if before is not None and key not in self._late:
                self._comparisons[key] = compared(before, self.fresh.table.gangs.get(key))
            yield
            self._catch_up()

    def _result(self) -> Changed:
        found = sorted(self._comparisons.items())
        return summed(one for _, one in found)
