"""A queue as forecasts see it, with the gangs that a test gives."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from extender.cells.views.listings import Stepwise
from extender.queue.forecast.copied_gangs import KeptCells
from extender.queue.order.facts import QueueFacts
from extender.queue.order.new_places import NewPlace
from policy.submission import GangKey


@dataclass
class GivenQueue:
    """New gangs come behind all others, in the level `default`."""

    gangs: list[GangKey] = field(default_factory=list)
    stuck: set[GangKey] = field(default_factory=set)
    """Gangs that cannot start as they are."""
    kept: dict[GangKey, KeptCells] = field(default_factory=dict)

    def order(self) -> Sequence[GangKey]:
        return self.gangs

    def without_chance(self) -> Collection[GangKey]:
        return self.stuck

    def reserved(self, *, now: float) -> dict[GangKey, KeptCells]:
        return self.kept

    def places(self, new: Sequence[QueueFacts]) -> Stepwise[list[NewPlace]]:
        yield
        number = len(self.gangs)
        return [NewPlace(ahead=number, level="default", level_place=number + 1) for _ in new]
