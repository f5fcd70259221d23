"""All of an engine's state as one value, so that "nothing changed" can be asserted."""

from extender.cells.engine import Engine


def snapshot(engine: Engine) -> object:
    """Everything that a later decision could depend on."""
    table, parts = engine._table, engine._parts
    return (
        engine.gangs(),
        engine.cells(),
        engine.vcs(),
        engine.nodes(),
        [
            (key, gang.born, gang.lease_expires, gang.is_guaranteed, list(gang.asking), gang.slots)
            for key, gang in sorted(table.gangs.items())
        ],
        [repr(slot) for _, gang in sorted(table.gangs.items()) for slot in gang.slots],
        {name: (supply._free, supply.unused) for name, supply in table.supplies.items()}.__repr__(),
        {name: repr((vc.unmapped, sorted(vc.claims))) for name, vc in table.vcs.items()},
        dict(parts.lives.gang_of),
        list(parts.registry.opportunistic()),
    )
