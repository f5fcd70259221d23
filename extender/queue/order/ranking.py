"""The ranks of the planner's gangs, and when they change.

A rank changes when the document changes, when a gang is promoted, and when recent use or the use of
a VC makes another factor. Then gangs that wait are moved; what was decided about them stays.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Final

from extender.cells.views.listings import Stepwise
from extender.queue.lines.gang_places import Rank
from extender.queue.order.facts import QueueFacts
from extender.queue.order.fair_shares import Account
from extender.queue.order.gang_order import GangOrder
from extender.queue.order.listing import Ranked
from extender.queue.order.rank_changes import RankChanges
from extender.queue.order.standing import Standing, SwapState
from extender.queue.order.swaps import Swaps
from extender.queue.ports import RunTimes
from extender.queue.queued_gang import QueuedGang
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from policy.queues.factors import FactorName
from policy.queues.swaps import SwapRequest
from policy.submission import GangKey

_MOST_PROMOTED: Final = 200
"""Gangs that are promoted in one step: each takes about 50 µs."""
_BACK_SECONDS: Final = 10.0
"""A clock that goes back by less is corrected all the time."""


class Ranking:
    """Ranks gangs, and moves those that wait when their ranks change."""

    def __init__(
        self,
        order: GangOrder,
        run_times: RunTimes,
        *,
        seen: SeenGangs,
        waiting: WaitingGangs,
    ) -> None:
        self.order = order
        self._run_times = run_times
        self._seen = seen
        self._waiting = waiting
        self.swaps = Swaps()
        """Gangs that have the places of others."""
        self.changes = RankChanges(order)
        """Tells which ranks have changed."""
        self.now = 0.0
        """The last time that was told, in seconds since 1970."""
        self._ranked: dict[GangKey, Ranked] = {}
        """Gangs with their own facts, and their places."""
        self._account_of: dict[GangKey, Account] = {}
        """By whose use each of them is ranked."""
        self._of_account: dict[Account, dict[GangKey, None]] = {}
        self._promotions: list[tuple[float, GangKey]] = []
        """A heap of moments at which gangs may change their level; some are outdated."""
        self._tidy_at = _MOST_PROMOTED
        self.on_reorder: Callable[[GangKey], None] = lambda _: None
        """Called with each gang that waits when the document or the classes have changed."""

    def of(self, gang: QueuedGang) -> Rank:
        """Return the rank of a gang.

        After leases that it did not use, a gang is behind all others of its level, once.
        """
        self.order.shares.leave(gang.key)
        facts = self.facts(gang)
        rank = self._rank(gang, facts)
        if self.swaps.concerned(gang.key):
            self._move_swapped(gang.key)
            rank = self._rank(gang, facts)
        return rank

    def _rank(self, gang: QueuedGang, facts: QueueFacts) -> Rank:
        swap = self.swaps.state(facts, self._ranked)
        place = facts if swap is None or swap.place is None else swap.place
        standing = self.order.standing(place, now=self.now)
        self._note(facts, standing if swap is None else replace(standing, swap=swap), place)
        return self.changes.note(facts.gang, place, standing, behind=gang.waits_since, now=self.now)

    def find(self, gang: GangKey) -> Ranked | None:
        """Return the place of a gang that waits for cells."""
        return self._ranked.get(gang)

    def in_order(self) -> list[Ranked]:
        """Return the gangs that wait for cells, in the order in which they are planned."""
        return [self._ranked[gang] for gang in self._waiting.in_order() if gang in self._ranked]

    def facts(self, gang: QueuedGang) -> QueueFacts:
        """Return what the order knows of a gang."""
        first = gang.first
        return QueueFacts(
            gang=gang.key,
            user=first.user,
            group=first.group,
            vc=first.request.vc,
            class_name=first.class_name,
            priority=first.request.priority,
            leaf_cells=sum(gang.leaf_counts()),
            leaf_type=first.request.leaf_type,
            pinned=first.request.pinned,
            asked=first.asked,
            run_time=self._run_times.expected(gang.key),
            start_by=first.start_by,
        )

    def _note(self, facts: QueueFacts, standing: Standing, place: QueueFacts) -> None:
        key, before = facts.gang, self._ranked.get(facts.gang)
        self._leave_account(key)
        self._account_of[key] = _account(place)
        self._of_account.setdefault(_account(place), {})[key] = None
        self._ranked[key] = facts, standing
        due = standing.next_promotion
        if due is not None and (before is None or before[1].next_promotion != due):
            heappush(self._promotions, (due, key))
            self._tidy_promotions()

    def _tidy_promotions(self) -> None:
        """Drop moments of gangs that wait no longer: they may be weeks away."""
        if len(self._promotions) > self._tidy_at:
            due = dict.fromkeys(self._promotions)
            self._promotions = [one for one in due if one[1] in self._ranked]
            heapify(self._promotions)
            self._tidy_at = max(_MOST_PROMOTED, 2 * len(self._promotions))

    def _leave_account(self, gang: GangKey) -> None:
        account = self._account_of.pop(gang, None)
        gangs = self._of_account.get(account, {}) if account is not None else {}
        gangs.pop(gang, None)
        if account is not None and not gangs:
            self._of_account.pop(account, None)

    def forget(self, gang: GangKey) -> None:
        """A gang is gone."""
        self._drop(gang)
        self.swaps.leave(gang)
        self._move_swapped(gang)
        self.order.shares.leave(gang)

    def _drop(self, gang: GangKey) -> QueueFacts | None:
        """Do not rank a gang any more; return what was known of it."""
        known = self._ranked.pop(gang, None)
        if known is None:
            return None
        self._leave_account(gang)
        self.changes.forget(gang)
        return known[0]

    def start(self, gang: GangKey) -> None:
        """A gang has its places and is not ranked any more: its expected use counts from now on."""
        self.swaps.start(gang, self._ranked)
        facts, rules = self._drop(gang), self.order.queues
        self._move_swapped(gang)
        if facts is None or not rules.uses(FactorName.FAIR_SHARE):
            return
        seconds = self.order.expected_seconds(facts)
        ends = self.now + (rules.run_time.cap if seconds is None else seconds)
        account = _account(facts)
        if self.order.shares.enter(gang, account, leaf_cells=facts.leaf_cells, ends=ends):
            self._move_accounts(self.order.shares.refresh_group(account[0], now=self.now))

    def _move_accounts(self, accounts: Collection[Account]) -> None:
        self.changes.begin()
        for account in accounts:
            for gang in list(self._of_account.get(account, ())):
                self._move(gang)
        self.changes.end(accounts=self._known(accounts), now=self.now)

    def _known(self, accounts: Iterable[Account]) -> list[Account]:
        """Return those of some accounts by whose use gangs are ranked."""
        return [account for account in accounts if account in self._of_account]

    # -- changes

    def note_time(self, now: float) -> None:
        """Promote the gangs that have waited long enough: some of them, and others the next time.

        If the clock was wrong and goes back, gangs that were promoted by it are ranked again.
        """
        if now < self.now - _BACK_SECONDS:
            promoted = (key for key, (_, known) in self._ranked.items() if known.is_promoted)
            for key in promoted:
                heappush(self._promotions, (now, key))
        self.now = now
        for _ in range(_MOST_PROMOTED):
            if not self._promotions or self._promotions[0][0] > self.now:
                break
            self._move(heappop(self._promotions)[1])

    def reorder(self) -> Stepwise[None]:
        """Rank all waiting gangs anew: the document or the classes have changed."""
        version = self.order.version
        self.changes.begin()
        for gang in dict.fromkeys([*self._waiting.in_order(), *self._ranked]):
            self._move(gang)
            self.on_reorder(gang)
            yield
        vcs = dict.fromkeys(_place(known).vc for known in self._ranked.values())
        self.changes.end(accounts=self._of_account, vcs=vcs, by_version=version, now=self.now)

    def refresh_shares(self, *, now: float) -> Stepwise[list[Account]]:
        """Count recent use, and rank the gangs anew that it concerns.

        Return the accounts whose factor has changed.
        """
        self.changes.begin()
        accounts = yield from self.order.shares.refresh(now=now)
        yield from self.reorder_accounts(accounts)
        self.changes.end(now=self.now)
        return accounts

    def reorder_accounts(self, accounts: Collection[Account]) -> Stepwise[None]:
        """Rank the waiting gangs of some accounts anew."""
        self.changes.begin()
        for account in accounts:
            for gang in list(self._of_account.get(account, ())):
                self._move(gang)
                yield
        self.changes.end(accounts=self._known(accounts), now=self.now)

    def reorder_vcs(self, vcs: Collection[str]) -> Stepwise[None]:
        """Rank the waiting gangs of some VCs anew."""
        self.changes.begin()
        for gang in list(self._ranked) if vcs else ():
            known = self._ranked.get(gang)
            if known is not None and _place(known).vc in vcs:
                self._move(gang)
                yield
        self.changes.end(vcs=vcs, now=self.now)

    def reorder_run_times(self) -> Stepwise[bool]:
        """Rank the waiting gangs anew whose run times are expected to be others than before.

        Return whether there were any.
        """
        has_changed = False
        for key, (facts, _) in list(self._ranked.items()):
            if self._run_times.expected(key) != facts.run_time:
                has_changed = True
                self._move(key)
                self._move_swapped(key)
            yield
        return has_changed

    def swap(self, gang: GangKey, request: SwapRequest | None) -> None:
        """The pods of a gang state another swap, or none any more."""
        before = self.swaps.concerned(gang)
        if request is None:
            self.swaps.remove(gang)
        else:
            self.swaps.put(gang, request)
        for one in (gang, *before):
            self._move(one)
        self._move_swapped(gang)

    def unheeded_swap(self, gang: GangKey) -> SwapState | None:
        """Return the swap that a gang states while another swap of it is in force, if it does."""
        return self.swaps.unheeded(gang, self._ranked)

    def keep_place(self, gang: GangKey, request: SwapRequest, place: QueueFacts) -> None:
        """A gang keeps the place that it was given by a swap, although the other one is gone."""
        self.swaps.keep(gang, request, place)
        self._move(gang)

    def _move_swapped(self, gang: GangKey) -> None:
        """Rank the gangs anew whose places may depend on a gang."""
        for one in self.swaps.concerned(gang):
            self._move(one)

    def _move(self, key: GangKey) -> None:
        """Rank a gang anew by what was known of it: its pods have not changed."""
        gang, known = self._seen.find(key), self._ranked.get(key)
        if gang is None or known is None or not gang.pods:
            return
        facts, expected = known[0], self._run_times.expected(key)
        if facts.run_time != expected:
            facts = replace(facts, run_time=expected)
        self._waiting.move(key, self._rank(gang, facts))


def _account(facts: QueueFacts) -> Account:
    return facts.group or "", facts.user


def _place(known: Ranked) -> QueueFacts:
    """Return what a gang is ranked by: its own facts, or those of another one."""
    facts, standing = known
    return standing.place_of(facts)
