"""The cost of ending gangs: fewest budgets broken, gangs and leaf cells, least work lost, youngest.

A gang breaks a budget if a PodDisruptionBudget does not allow all its pods to be ended. The work
that is lost is what its owner says (`checkpoint_cost`), on each of its leaf cells. A gang that is
ending already costs nothing: its work is lost in any case.
"""

from collections.abc import Sequence
from math import fsum

from extender.cells.state.change_log import ChangeLog
from extender.cells.state.placed_gangs import PlacedGang

Damage = tuple[int, int, int, int, float, int]
"""Number of gangs that break a budget, of all gangs and of leaf cells, seconds of work that are
lost, then two measures of age; less is better."""

NO_DAMAGE: Damage = (0, 0, 0, 0, 0.0, 0)


def damage_of(gangs: Sequence[PlacedGang]) -> Damage:
    """The damage of ending some gangs."""
    return total_damage([_damage_of_one(gang) for gang in gangs])


def total_damage(damages: Sequence[Damage]) -> Damage:
    """The sum of some damages."""
    if len(damages) == 1:
        return damages[0]
    return (
        sum(damage[0] for damage in damages),
        sum(damage[1] for damage in damages),
        sum(damage[2] for damage in damages),
        sum(damage[3] for damage in damages),
        fsum(damage[4] for damage in damages),
        sum(damage[5] for damage in damages),
    )


def breaks_budget(damage: Damage) -> bool:
    """Tell whether a damage includes a gang that breaks a budget."""
    return damage[0] > 0


def _damage_of_one(gang: PlacedGang) -> Damage:
    if gang.is_ending:
        return NO_DAMAGE
    age = -gang.request.created, -gang.sequence_number
    leaf_count = gang.leaf_count
    lost = (gang.request.checkpoint_cost or 0) * leaf_count
    return int(gang.breaks_budget), 1, leaf_count, lost, *age


class DamageCache:
    """The damage of ending each gang, cached until the gang changes: it may have many slots."""

    def __init__(self, changes: ChangeLog) -> None:
        self._changes = changes
        self._read = changes.now
        self._known: dict[PlacedGang, Damage | None] = {}

    def refresh(self) -> None:
        """Drop the gangs that have changed."""
        changed = self._changes.since(self._read)
        self._read = self._changes.now
        if changed is None:
            self._known.clear()
            return
        for gang in changed:
            if isinstance(gang, PlacedGang):
                self._known.pop(gang, None)

    def of(self, gang: PlacedGang) -> Damage | None:
        """The damage of ending a gang; None if no gang may end it."""
        if gang not in self._known:
            self._known[gang] = _if_endable(gang)
        return self._known[gang]

    def audit(self) -> bool:
        """True if all cached damages are up to date."""
        self.refresh()
        return all(damage == _if_endable(gang) for gang, damage in self._known.items())


def _if_endable(gang: PlacedGang) -> Damage | None:
    return None if gang.is_kept or gang.is_preempting else _damage_of_one(gang)
