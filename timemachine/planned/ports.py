"""What a play needs of whatever places gangs: the product's planner, or another one to compare."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from extender.queue.lines.gang_places import Rank
from policy.placement import Placement
from policy.queues.pools import Pool
from policy.submission import GangKey
from timemachine.model import World
from timemachine.planned.gangs import PlayedGang


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A gang that has started, or has ended for another one."""

    gang: GangKey
    is_start: bool
    places: Sequence[Placement]
    """Where its members run, or ran."""


class Gangs(Protocol):
    """The gangs that wait for cells or run."""

    waiting: int
    """How many gangs wait."""

    def submit(self, gang: PlayedGang) -> None:
        """A gang waits from now on."""

    def end(self, gang: GangKey, *, at: float) -> None:
        """A gang that runs ends."""

    def work(self, now: float) -> Sequence[Change]:
        """Start the gangs that may start now, and return which started, or ended for others."""

    def next_time(self) -> float:
        """Return when something happens here without an event outside; infinite if nothing does."""

    def places(self, gang: GangKey) -> Sequence[Placement]:
        """Return where the members of a gang run."""

    def heads(self) -> Mapping[Pool, GangKey]:
        """Return the first gang of each pool for which gangs wait."""

    def rank(self, gang: PlayedGang, *, now: float) -> Rank:
        """Return the rank of a gang that is not submitted yet, since it waits for quota."""

    def rank_anew(self, gang: PlayedGang) -> None:
        """A gang that waits or runs has another class."""


GangsOf = Callable[[World], Gangs]
