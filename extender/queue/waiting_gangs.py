"""Waiting gangs in order; a gang that cannot fit yet is not planned again.

Gangs with equal requests have the same *shape* and are in one *line*: where one does not fit, none
does. A line that did not fit is skipped until an event may help it. Lines that ask for at least as
much of the same *kind* are skipped, too, unless the gang may start with its smallest members. An
event wakes the lines that it may help and no others: its cost depends on the number of different
shapes that wait in one pool, not on the number of gangs.
"""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from itertools import count
from math import inf

from extender.cells.freed_cells import FreedCells
from extender.cells.model import MemberRequest
from extender.queue.lines.gang_places import GangPlaces, Place, Rank, take_out
from extender.queue.lines.kinds import Line, LineKind
from extender.queue.lines.shapes import GangShape, ShapeKind
from extender.queue.lines.sleepers import GAPS, Lack, Sleepers
from policy.queues.pools import Pool, pool_of
from policy.submission import GangKey, VcName


class LineBounds:
    """What lines certainly lack; this class knows nothing of it."""

    def lack(self, shape: GangShape, gang: GangKey) -> Lack | None:
        """Return what the first gang of a line lacks; None if it has to be planned."""
        return None

    def too_many(self, request: MemberRequest) -> float:
        """Return from how many leaf cells on a gang with a request lacks cells."""
        return inf

    def is_settled(self, shape: GangShape, gang: GangKey) -> bool:
        """Tell whether nothing would change if it was planned that a gang lacks cells."""
        return False


class WaitingGangs:
    """The queue of waiting gangs."""

    def __init__(self) -> None:
        self._kinds: dict[ShapeKind, LineKind] = {}
        self._entries: dict[GangKey, tuple[Line, Rank]] = {}
        self._order = GangPlaces()
        self.in_order = self._order.in_order
        self.pools = self._order.pools
        self.head = self._order.head
        self.first_of = self._order.first_of
        self._heads: list[tuple[Place, int, Line]] = []
        """A heap with the first gang of every line that may be planned, and outdated entries; the
        number keeps lines from being compared."""
        self._count = count()
        self._new: list[Place] = []
        """Gangs that were never planned: each gets a decision, and so a reason, of its own."""
        self.bounds = LineBounds()
        self._paused: dict[GangKey, float] = {}
        """Gangs that pause, and until when."""
        self._sleepers = Sleepers()
        self._needing: dict[Hashable, dict[LineKind, None]] = {}
        """Kinds by what their members need of nodes."""
        self._is_woken = False
        """Whether every line may fit since the last gang was chosen or refused."""
        self._freed: dict[FreedCells, None] = {}
        """Leaf cells that became free since then."""
        self._grown: dict[Hashable, None] = {}
        """Needs for which nodes have more room since then."""
        self._unbound: dict[VcName, bool] = {}
        """VCs of which cells are not reserved any more, and whether that may help others."""

    # -- gangs

    def put(self, gang: GangKey, shape: GangShape, rank: Rank) -> None:
        """Add a gang, or move it if its shape or rank has changed.

        A gang that was planned and asks for the same, but for another time, was told its reason:
        it is planned again only if it may fit.
        """
        known = self._entries.get(gang)
        if known is not None and known[1] == rank and known[0].shape == shape:
            return
        is_told = known is not None and self._is_told(gang, *known, shape)
        self.remove(gang)
        line, place = self._line(shape), (rank, gang)
        self._entries[gang] = line, rank
        self._order.add(line.kind.pool, place)
        insort(line.places, place)
        if not is_told:
            insort(self._new, place)
        self._offer(line)

    def _is_told(self, gang: GangKey, line: Line, rank: Rank, shape: GangShape) -> bool:
        """Tell whether a gang that waits was planned, and asks for the same as then."""
        if (line.shape.sizes, line.shape.kind) != (shape.sizes, shape.kind):
            return False
        index = bisect_left(self._new, (rank, gang))
        return index == len(self._new) or self._new[index] != (rank, gang)

    def _line(self, shape: GangShape) -> Line:
        key = shape.kind
        kind = self._kinds.get(key)
        if kind is None:
            pool, others = pool_of(shape.request), shape.other_pools
            kind = self._kinds[key] = LineKind(key, pool, other_pools=others)
            for need in shape.needs:
                self._needing.setdefault(need, {})[kind] = None
        line = kind.lines.get(shape)
        if line is None:
            line = kind.lines[shape] = Line(shape, kind)
        return line

    def move(self, gang: GangKey, rank: Rank) -> None:
        """Give a gang that waits another rank; what was decided about it stays."""
        entry = self._entries.get(gang)
        if entry is None or entry[1] == rank:
            return
        line, before = entry
        self._order.remove(line.kind.pool, (before, gang))
        self._order.add(line.kind.pool, (rank, gang))
        take_out(line.places, (before, gang))
        insort(line.places, (rank, gang))
        if take_out(self._new, (before, gang)):
            insort(self._new, (rank, gang))
        self._entries[gang] = line, rank
        self._offer(line)

    def remove(self, gang: GangKey) -> None:
        """Remove a gang, if it waits."""
        entry = self._entries.pop(gang, None)
        if entry is None:
            return
        line, rank = entry
        place = (rank, gang)
        self._order.remove(line.kind.pool, place)
        take_out(line.places, place)
        take_out(self._new, place)
        if line.places:
            self._offer(line)
        else:
            self._drop(line)

    def _drop(self, line: Line) -> None:
        kind = line.kind
        del kind.lines[line.shape]
        if kind.lines:
            return
        del self._kinds[kind.key]
        self._sleepers.remove(kind)
        for need in line.shape.needs:
            del self._needing[need][kind]
            if not self._needing[need]:
                del self._needing[need]

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

    def plan_again(self, gang: GangKey) -> None:
        """Let a gang be planned once, whatever is known of its line."""
        entry = self._entries.get(gang)
        if entry is not None:
            place = entry[1], gang
            take_out(self._new, place)
            insort(self._new, place)

    # -- order

    def pool(self, gang: GangKey) -> Pool | None:
        """Return the pool in which a gang waits."""
        entry = self._entries.get(gang)
        return None if entry is None else entry[0].kind.pool

    def shape(self, gang: GangKey) -> GangShape | None:
        """Return what a gang asks for that waits."""
        entry = self._entries.get(gang)
        return None if entry is None else entry[0].shape

    def rank(self, gang: GangKey) -> Rank:
        """Return the rank of a gang that waits."""
        return self._entries[gang][1]

    def first(self) -> GangKey | None:
        """Return the best ranked gang that may fit; bounds rule lines out without a plan."""
        self._apply_wake()
        while self._heads:
            (_, gang), _, line = self._heads[0]
            if self._is_current(*self._heads[0]):
                lacking = self.bounds.lack(line.shape, gang)
                if lacking is None:
                    break
                self._rule_out(line, lacking)
            heappop(self._heads)
        heads = [place for place, _, _ in self._heads[:1]]
        return min([*heads, *self._new[:1]])[1] if heads or self._new else None

    @staticmethod
    def _is_current(place: Place, _: int, line: Line) -> bool:
        return line.may_fit and line.places[0] == place

    def _offer(self, line: Line) -> None:
        """Offer the first gang of a line, unless it was refused."""
        if not line.is_refused:
            heappush(self._heads, (line.places[0], next(self._count), line))

    # -- what fits and what does not

    def refuse(self, gang: GangKey, lack: Lack = Lack.CELLS) -> None:
        """Note that a gang does not fit: gangs that ask for at least as much are skipped."""
        self._apply_wake()
        line, rank = self._entries[gang]
        take_out(self._new, (rank, gang))
        self._refuse(line, lack)

    def _refuse(self, line: Line, lack: Lack) -> None:
        line.kind.refuse(line, fits_no_gap=lack in GAPS)
        self._sleepers.add(line.kind, lack)

    def _rule_out(self, line: Line, lack: Lack) -> None:
        if lack in GAPS:
            self._refuse(line, lack)
        else:
            line.kind.rule_out(line)
            self._sleepers.add(line.kind, lack)

    def wake(self, freed: FreedCells | None = None) -> None:
        """Leaf cells became free; None: every line may fit now."""
        if freed is None:
            self._is_woken = True
        else:
            self._freed[freed] = None

    def wake_bound(self, vc: VcName | None, *, others: bool) -> None:
        """Cells of a VC, or of all, are not reserved any more.

        `others` tells whether opportunistic gangs left these cells alone, too.
        """
        if vc is None:
            self.wake()
        else:
            self._unbound[vc] = others or self._unbound.get(vc, False)

    def wake_needing(self, needs: Iterable[Hashable]) -> None:
        """Nodes have more room for some needs: lines with these needs may fit now."""
        self._grown.update(dict.fromkeys(needs))

    def _apply_wake(self) -> None:
        """Retry lines after events; many events of one pool cost no more than one."""
        if not (self._is_woken or self._freed or self._grown or self._unbound):
            return
        for kind in self._woken():
            self._sleepers.remove(kind)
            kind.wake()
            self._offer_kind(kind)
        self._is_woken = False
        self._freed.clear()
        self._grown.clear()
        self._unbound.clear()

    def _offer_kind(self, kind: LineKind) -> None:
        """Offer the lines of a kind, without those that certainly lack cells as before."""
        too_many = self.bounds.too_many(kind.request)
        for line in kind.lines.values():
            if line.leaf_cells < too_many or not self._is_settled(line):
                self._offer(line)
            else:
                line.is_refused = True
                self._sleepers.add(kind, Lack.CELLS if kind.is_opportunistic else Lack.OWN_CELLS)

    def _is_settled(self, line: Line) -> bool:
        return self.bounds.is_settled(line.shape, line.places[0][1])

    def _woken(self) -> Iterable[LineKind]:
        """Return the kinds that may fit since the last events."""
        if self._is_woken:
            self._heads.clear()
            return self._kinds.values()
        found: dict[LineKind, None] = {}
        for freed in self._freed:
            found |= dict.fromkeys(self._sleepers.helped_by(freed))
        for vc, others in self._unbound.items():
            found |= dict.fromkeys(self._sleepers.bound_by(vc, others=others))
        for need in self._grown:
            kinds = self._needing.get(need, {})
            found |= {kind: None for kind in kinds if kind in self._sleepers}
        return found
