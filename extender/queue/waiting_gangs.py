"""Waiting gangs in order; a gang that cannot fit yet is not planned again.

Gangs with equal requests have the same *shape*: where one does not fit, none does. A shape that did
not fit is skipped until an event may help it. Shapes that ask for at least as much of the same
*kind* are skipped, too, unless the gang may start with its smallest members. So the cost of an
event depends on the number of different shapes that wait, not on the number of gangs.
"""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count

from extender.cells.model import MemberRequest
from policy.submission import GangKey, PodUid

_NO_GANG = GangKey("", "")

Rank = tuple[float, ...]
"""The place of a gang in the queue: the lowest rank comes first, of equal ranks the lowest key."""
_Place = tuple[Rank, GangKey]
_Kind = tuple[MemberRequest, Hashable, bool, GangKey | None]


@dataclass(frozen=True, slots=True)
class GangShape:
    """What a gang asks for, without its name."""

    request: MemberRequest
    """Without names and sizes."""
    sizes: tuple[int, ...]
    """Leaf cells of each member that has no place yet, largest first."""
    needs: tuple[Hashable, ...]
    """What its members ask of their nodes."""
    nodes: Hashable
    """Identifies the nodes that it may not use."""
    may_preempt: bool = True
    own: GangKey | None = None
    """The gang itself, if no other gang has its shape: for example, some members run."""

    @property
    def kind(self) -> _Kind:
        """Everything except the sizes: shapes of one kind can be compared."""
        return self.request, (self.needs, self.nodes), self.may_preempt, self.own


def shape_of(
    request: MemberRequest,
    sizes: Iterable[int],
    *,
    nodes: Hashable,
    own: GangKey | None,
    needs: tuple[Hashable, ...] = (),
    may_preempt: bool = True,
) -> GangShape:
    """Return the shape of a gang."""
    nameless = replace(
        request, member=PodUid(""), gang=_NO_GANG, leaf_count=0, gang_leaf_counts=(), created=0.0
    )
    return GangShape(nameless, tuple(sorted(sizes, reverse=True)), needs, nodes, may_preempt, own)


@dataclass(slots=True, eq=False)
class _Line:
    """All waiting gangs of one shape, best rank first."""

    places: list[_Place] = field(default_factory=list)
    is_refused: bool = False


class WaitingGangs:
    """The queue of waiting gangs."""

    def __init__(self) -> None:
        self._lines: dict[GangShape, _Line] = {}
        self._entries: dict[GangKey, tuple[GangShape, Rank]] = {}
        self._heads: list[tuple[_Place, int, GangShape]] = []
        """A heap with the first gang of every line that may be planned, and outdated entries; the
        number keeps shapes from being compared."""
        self._count = count()
        self._new: list[_Place] = []
        """Gangs that were never planned: each gets a decision, and so a reason, of its own."""
        self._is_woken = False
        """Whether `wake` was called since the last gang was chosen or refused."""
        self._paused: dict[GangKey, float] = {}
        """Gangs that pause, and until when."""
        self._woken_needs: dict[Hashable, None] = {}
        """Needs for which nodes have more room since then."""
        self._too_much: dict[_Kind, list[tuple[int, ...]]] = {}
        """Sizes that did not fit, by kind."""

    def put(self, gang: GangKey, shape: GangShape, rank: Rank) -> None:
        """Add a gang, or move it if its shape or rank has changed."""
        if self._entries.get(gang) == (shape, rank):
            return
        self.remove(gang)
        self._entries[gang] = shape, rank
        line = self._lines.setdefault(shape, _Line())
        insort(line.places, (rank, gang))
        insort(self._new, (rank, gang))
        self._offer(shape, line)

    def remove(self, gang: GangKey) -> None:
        """Remove a gang, if it waits."""
        entry = self._entries.pop(gang, None)
        if entry is None:
            return
        shape, rank = entry
        line = self._lines[shape]
        _take_out(line.places, (rank, gang))
        _take_out(self._new, (rank, gang))
        if line.places:
            self._offer(shape, line)
        else:
            del self._lines[shape]

    def pause(self, gang: GangKey, *, until: float) -> None:
        """Leave a gang out for a while."""
        self.remove(gang)
        self._paused[gang] = until

    def take_resumed(self, now: float) -> list[GangKey]:
        """Return the gangs whose pause is over."""
        resumed = [gang for gang, until in self._paused.items() if until <= now]
        for gang in resumed:
            del self._paused[gang]
        return resumed

    def _offer(self, shape: GangShape, line: _Line) -> None:
        """Offer the first gang of a line, unless the shape was refused."""
        if not line.is_refused:
            heappush(self._heads, (line.places[0], next(self._count), shape))

    def first(self) -> GangKey | None:
        """Return the best ranked gang that may fit."""
        self._apply_wake()
        while self._heads and not self._may_fit(*self._heads[0]):
            heappop(self._heads)
        heads = [place for place, _, _ in self._heads[:1]]
        return min([*heads, *self._new[:1]])[1] if heads or self._new else None

    def _may_fit(self, place: _Place, _: int, shape: GangShape) -> bool:
        line = self._lines.get(shape)
        is_first = line is not None and not line.is_refused and line.places[0] == place
        return is_first and not self._asks_too_much(shape)

    def refuse(self, gang: GangKey) -> None:
        """Note that a gang does not fit: gangs that ask for at least as much are skipped."""
        self._apply_wake()
        shape, rank = self._entries[gang]
        _take_out(self._new, (rank, gang))
        self._lines[shape].is_refused = True
        if not self._asks_too_much(shape):
            self._too_much.setdefault(shape.kind, []).append(shape.sizes)

    def in_order(self) -> list[GangKey]:
        """Return all gangs that wait for cells, the one that is planned first at the head."""
        return [
            gang for _, gang in sorted((rank, gang) for gang, (_, rank) in self._entries.items())
        ]

    def wake(self) -> None:
        """Leaf cells became free, joined or changed: every shape may fit now."""
        self._is_woken = True

    def wake_needing(self, needs: Iterable[Hashable]) -> None:
        """Nodes have more room for some needs: shapes with these needs may fit now."""
        self._woken_needs.update(dict.fromkeys(needs))

    def _apply_wake(self) -> None:
        """Retry all shapes after an event; many events cost no more than one."""
        if not self._is_woken:
            self._retry_needing()
            return
        self._is_woken = False
        self._woken_needs.clear()
        self._too_much.clear()
        self._heads.clear()
        for shape, line in self._lines.items():
            line.is_refused = False
            self._offer(shape, line)

    def _retry_needing(self) -> None:
        if not self._woken_needs:
            return
        for shape, line in self._lines.items():
            if line.is_refused and any(need in self._woken_needs for need in shape.needs):
                line.is_refused = False
                self._too_much.pop(shape.kind, None)
                self._offer(shape, line)
        self._woken_needs.clear()

    def _asks_too_much(self, shape: GangShape) -> bool:
        tried = self._too_much.get(shape.kind, ())
        if shape.request.gang_min is not None:
            return shape.sizes in tried
        return any(_is_at_least(shape.sizes, sizes) for sizes in tried)


def _take_out(places: list[_Place], place: _Place) -> None:
    index = bisect_left(places, place)
    if index < len(places) and places[index] == place:
        del places[index]


def _is_at_least(sizes: tuple[int, ...], others: tuple[int, ...]) -> bool:
    """Tell whether these sizes are at least as large as the others, member by member."""
    return len(sizes) >= len(others) and all(
        size >= other for size, other in zip(sizes, others, strict=False)
    )
