"""All of an engine's state as one value, so that "nothing changed" can be asserted."""

from extender.cells.engine import Engine
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from tests.support.cells.engine_calls import list_cells, list_nodes, list_vcs


def snapshot(engine: Engine) -> object:
    """Everything that a later decision could depend on."""
    table, components = engine._table, engine._components
    return (
        (engine.gangs(), list_cells(engine), list_vcs(engine), list_nodes(engine)),
        {key: _gang(gang) for key, gang in table.gangs.items()},
        {
            name: ([list(orders) for orders in supply._free], list(supply.unused))
            for name, supply in table.supplies.items()
        },
        {
            name: (
                {rung: list(left) for rung, left in vc.unmapped.items()},
                {index: dict(claim.users) for index, claim in vc.claims.items()},
            )
            for name, vc in table.vcs.items()
        },
        {node: set(slots) for node, slots in table.incomplete_slots.items()},
        dict(components.lifecycle.gang_of),
        [gang.key for gang in components.registry.borrowers()],
    )


def _gang(gang: PlacedGang) -> object:
    standing = (gang.is_guaranteed, gang.is_preempting, gang.downgraded_by)
    times = (gang.sequence_number, gang.lease_expires)
    return standing, times, list(gang.waiting_members), [_slot(slot) for slot in gang.slots]


def _slot(slot: MemberSlot) -> object:
    return (
        [leaf.address for leaf in slot.leaves],
        slot.claim.cell.address if slot.claim else None,
        (slot.size, slot.member, slot.is_bound, slot.had_member, slot.is_foreign),
        slot.is_ending,
        (slot.reported_placement, slot.reported_devices, slot.missing_leaves),
    )
