"""The variants of a waiting gang that start earlier, found by planning them.

One value is changed at a time. Of members, and of leaf cells per member, the largest number is
searched that starts now, or else the largest that starts notably earlier, by halving: a smaller
gang nearly always fits where a larger one does. What is told was planned in any case.
"""

from collections.abc import Callable, Iterator
from math import inf

from extender.cells.model import OPPORTUNISTIC, Decision, Place, Preempt
from extender.cells.views.listings import Stepwise
from extender.queue.queued_gang import QueuedGang
from extender.queue.variants.altered import (
    altered,
    copied,
    has_equal_members,
    leaf_cells_of,
    members_of,
)
from extender.queue.variants.model import (
    Change,
    ChangeKind,
    Options,
    StartKind,
    Variant,
    Variants,
)
from extender.queue.variants.trials import Assume, Trials, starts_at

_LEAST_EARLIER_SECONDS = 60.0
_LEAST_EARLIER_SHARE = 0.1
"""A start is notably earlier if it saves this share of the wait."""
_LEAST_LIMIT_SECONDS = 60
"""Limits are told in whole minutes, so that there is time to submit the gang again."""
_MOST_CHOICES = 8
"""Leaf types, and VCs, that are tried."""

Try = Callable[[int], Stepwise[Variant | None]]


class VariantSearch:
    """Searches the variants of gangs; changes nothing."""

    def __init__(self, trials: Trials) -> None:
        self._trials = trials

    def find(self, gang: QueuedGang, options: Options, assume: Assume) -> Stepwise[Variants]:
        """Return what would let a gang without places start earlier."""
        now = self._trials.now
        if self._trials.has_places(gang):
            return Variants(at=now, starts_now=True)
        search = _Search(self._trials, copied(gang), assume)
        if (yield from search.starts_now()):
            return Variants(at=now, starts_now=True)
        yield from search.expect()
        found: list[Variant] = []
        for one in search.steps(options):
            variant = yield from one
            if variant is not None:
                found.append(variant)
            if self._trials.has_places(gang):  # it has started meanwhile
                return Variants(at=now, starts_now=True)
        expected = search.expected if search.expected < inf else None
        return Variants(at=now, expected=expected, found=tuple(sorted(found, key=_size)))


class _Search:
    """The search for one gang."""

    def __init__(self, trials: Trials, gang: QueuedGang, assume: Assume) -> None:
        self._trials = trials
        self._gang = gang
        self._assume = assume
        self.expected = inf
        """When the gang can start as it is."""
        self._is_timed = False
        """Whether ends of other gangs decide when it starts: it waits for cells alone."""

    def starts_now(self) -> Stepwise[bool]:
        """Tell whether the gang starts as it is."""
        outcome = yield from self._trials.plan(self._gang, self._assume, is_new=False)
        return _start_of(self._gang, outcome.decision) is not None

    def expect(self) -> Stepwise[None]:
        """Find out when the gang can start as it is."""
        shadow = yield from self._trials.shadow(self._gang, self._assume)
        self._is_timed = shadow is None or shadow.waits_for is not None
        self.expected = starts_at(shadow)

    def steps(self, options: Options) -> Iterator[Stepwise[Variant | None]]:
        """Yield one search for each kind of change, the smallest change first."""
        request = self._gang.first.request
        yield self._shorter_limit()
        if request.leaf_type is not None:
            for leaf_type in options.leaf_types[:_MOST_CHOICES]:
                yield self._try(ChangeKind.LEAF_TYPE, request.leaf_type, leaf_type)
        if request.pinned is None and request.priority != OPPORTUNISTIC:
            for vc in options.vcs[:_MOST_CHOICES]:
                yield self._try(ChangeKind.VC, request.vc, vc)
        if has_equal_members(self._gang):
            yield self._fewer(ChangeKind.LEAF_CELLS, leaf_cells_of(self._gang))
            yield self._fewer(ChangeKind.MEMBERS, members_of(self._gang))

    def _shorter_limit(self) -> Stepwise[Variant | None]:
        """Return the longest limit with which the gang ends before what it waits for begins."""
        free = yield from self._trials.plan(self._gang, self._assume, ends_at=-inf)
        if not isinstance(free.decision, Place):
            return None
        used = free.backfills
        window = self._trials.maintenance_of(self._gang, free.decision)
        ends = [used.deadline] if used is not None else []
        until = min([*ends, *([window.begins] if window is not None else [])], default=None)
        if until is None:
            return None
        now = self._trials.now
        left = int(until - now) // _LEAST_LIMIT_SECONDS * _LEAST_LIMIT_SECONDS
        if left < _LEAST_LIMIT_SECONDS:
            return None
        outcome = yield from self._trials.plan(self._gang, self._assume, ends_at=now + left)
        if not isinstance(outcome.decision, Place):
            return None
        return Variant(
            change=Change(kind=ChangeKind.LIMIT, before=None, after=left),
            start=StartKind.NOW,
            reservation=used.gang if used is not None and until == used.deadline else None,
            until=until,
            window=window.name if window is not None and until == window.begins else None,
            takes_own=outcome.takes_own,
        )

    def _fewer(self, kind: ChangeKind, before: int) -> Stepwise[Variant | None]:
        """Return the largest smaller number that starts now, or else earlier."""
        now = yield from _largest(before - 1, lambda after: self._try_now(kind, before, after))
        if now is not None or not self._is_timed:
            return now
        return (yield from _largest(before - 1, lambda after: self._try_later(kind, before, after)))

    def _try(
        self, kind: ChangeKind, before: int | str, after: int | str
    ) -> Stepwise[Variant | None]:
        now = yield from self._try_now(kind, before, after)
        return now if now is not None else (yield from self._try_later(kind, before, after))

    def _try_now(
        self, kind: ChangeKind, before: int | str, after: int | str
    ) -> Stepwise[Variant | None]:
        change = Change(kind=kind, before=before, after=after)
        gang = altered(self._gang, change)
        outcome = yield from self._trials.plan(gang, self._assume)
        start = _start_of(gang, outcome.decision)
        if start is None:
            return None
        used = outcome.backfills
        return Variant(
            change=change,
            start=start,
            victims=_victims(outcome.decision),
            reservation=used.gang if used else None,
            until=used.deadline if used else None,
            takes_own=outcome.takes_own,
        )

    def _try_later(
        self, kind: ChangeKind, before: int | str, after: int | str
    ) -> Stepwise[Variant | None]:
        if not self._is_timed:
            return None
        change = Change(kind=kind, before=before, after=after)
        shadow = yield from self._trials.shadow(altered(self._gang, change), self._assume)
        at = starts_at(shadow)
        if not self._is_early(at):
            return None
        return Variant(change=change, start=StartKind.EARLIER, expected=at)

    def _is_early(self, at: float) -> bool:
        if at == inf or self.expected == inf:
            return at < self.expected
        saved = max(
            _LEAST_EARLIER_SECONDS, _LEAST_EARLIER_SHARE * (self.expected - self._trials.now)
        )
        return at <= self.expected - saved


def _size(one: Variant) -> tuple[bool, float]:
    """Order what takes leaf cells away from the gang by how many, behind all other changes."""
    before, after = one.change.before, one.change.after
    if one.change.kind not in (ChangeKind.LEAF_CELLS, ChangeKind.MEMBERS):
        return False, 0.0
    return True, -int(after) / int(before or 1)


def _largest(most: int, attempt: Try) -> Stepwise[Variant | None]:
    """Return what an attempt gives with the largest number that succeeds, up to this one."""
    best: Variant | None = None
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        found = yield from attempt(middle)
        if found is not None:
            best, low = found, middle
        else:
            high = middle - 1
    return best


def _start_of(gang: QueuedGang, decision: Decision) -> StartKind | None:
    """Return how a gang starts by a decision; None if it waits."""
    if isinstance(decision, Place):
        return StartKind.NOW
    if isinstance(decision, Preempt) and gang.first.may_preempt:
        return StartKind.PREEMPTING
    return None


def _victims(decision: Decision) -> int:
    return len(decision.victims) if isinstance(decision, Preempt) else 0
