"""Numbers that look random: the same seed gives the same numbers, on every machine."""

from collections.abc import Sequence
from typing import Final, TypeVar

from extender.queue.forecast.draws import share_of

_PLACES: Final = 1 << 53

Thing = TypeVar("Thing")


class Chances:
    """One sequence of numbers."""

    def __init__(self, seed: int) -> None:
        # Spread first: sequences of neighbouring seeds must not overlap.
        self._place = int(share_of(seed, 0) * _PLACES)

    def share(self) -> float:
        """Return the next number from 0 to 1, without 1."""
        self._place += 1
        return share_of(self._place, 0)

    def below(self, limit: int) -> int:
        """Return the next whole number from 0 to a limit, without the limit."""
        return int(self.share() * limit)

    def shuffled(self, things: Sequence[Thing]) -> list[Thing]:
        """Return the things in another order."""
        mixed = list(things)
        for place in range(len(mixed) - 1, 0, -1):
            other = self.below(place + 1)
            mixed[place], mixed[other] = mixed[other], mixed[place]
        return mixed
