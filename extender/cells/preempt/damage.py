"""What ending gangs costs: fewest gangs, then fewest leaf cells, then the youngest work.

Gangs that are ending already cost nothing: whoever told them to end, nothing is lost any more.
"""

from collections.abc import Sequence
from math import fsum

from extender.cells.state.change_log import ChangeLog
from extender.cells.state.placed_gangs import PlacedGang

Damage = tuple[int, int, float, int]
"""Gangs, leaf cells, then age of their work, of which youth is less."""

NO_DAMAGE: Damage = (0, 0, 0.0, 0)


def damage(gangs: Sequence[PlacedGang]) -> Damage:
    """What ending gangs costs."""
    return total([_of(gang) for gang in gangs])


def total(harms: Sequence[Damage]) -> Damage:
    """What several gangs cost together."""
    if len(harms) == 1:
        return harms[0]
    return (
        sum(harm[0] for harm in harms),
        sum(harm[1] for harm in harms),
        fsum(harm[2] for harm in harms),
        sum(harm[3] for harm in harms),
    )


def _of(gang: PlacedGang) -> Damage:
    if gang.is_ending:
        return NO_DAMAGE
    return 1, gang.leaf_count, -gang.request.created, -gang.sequence_number


class DamageCache:
    """What ending each gang costs, remembered until it changes: a gang may have many slots."""

    def __init__(self, changes: ChangeLog) -> None:
        self._changes = changes
        self._read = changes.now
        self._known: dict[PlacedGang, Damage | None] = {}

    def refresh(self) -> None:
        """Forget what has changed."""
        changed = self._changes.since(self._read)
        self._read = self._changes.now
        if changed is None:
            self._known.clear()
            return
        for gang in changed:
            if isinstance(gang, PlacedGang):
                self._known.pop(gang, None)

    def of(self, gang: PlacedGang) -> Damage | None:
        """What ending a gang costs; None if nobody may end it."""
        if gang not in self._known:
            self._known[gang] = _if_endable(gang)
        return self._known[gang]

    def audit(self) -> bool:
        """True if what is remembered is what it costs now."""
        self.refresh()
        return all(harm == _if_endable(gang) for gang, harm in self._known.items())


def _if_endable(gang: PlacedGang) -> Damage | None:
    return None if gang.is_foreign or gang.is_preempting else _of(gang)
