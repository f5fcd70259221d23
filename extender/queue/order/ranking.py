"""The ranks of the planner's gangs, and when they change.

A rank changes when the document changes, when a gang is promoted, and when recent use or the use of
a VC makes another factor. Then gangs that wait are moved; what was decided about them stays.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from heapq import heappop, heappush

from extender.cells.views.listings import Stepwise
from extender.queue.lines.gang_places import Rank
from extender.queue.order.facts import QueueFacts
from extender.queue.order.fair_shares import Account
from extender.queue.order.gang_order import GangOrder
from extender.queue.order.listing import Ranked
from extender.queue.order.standing import Standing
from extender.queue.ports import RunTimes
from extender.queue.queued_gang import QueuedGang
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from policy.queues.factors import FactorName
from policy.submission import GangKey


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
        self.now = 0.0
        """The last time that was told, in seconds since 1970."""
        self._ranked: dict[GangKey, Ranked] = {}
        self._of_account: dict[Account, dict[GangKey, None]] = {}
        self._promotions: list[tuple[float, GangKey]] = []
        """A heap of moments at which gangs may be promoted; some are outdated."""

    def of(self, gang: QueuedGang) -> Rank:
        """Return the rank of a gang.

        After leases that it did not use, a gang is behind all others of its level, once.
        """
        self.order.shares.leave(gang.key)
        return self._rank(gang, self._facts(gang))

    def _rank(self, gang: QueuedGang, facts: QueueFacts) -> Rank:
        standing = self.order.standing(facts, now=self.now)
        self._note(facts, standing)
        level, rank, asked = standing.key
        return level, max(rank, gang.waits_since), asked

    def in_order(self) -> list[Ranked]:
        """Return the gangs that wait for cells, in the order in which they are planned."""
        return [self._ranked[gang] for gang in self._waiting.in_order() if gang in self._ranked]

    def _facts(self, gang: QueuedGang) -> QueueFacts:
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
        )

    def _note(self, facts: QueueFacts, standing: Standing) -> None:
        key, before = facts.gang, self._ranked.get(facts.gang)
        if before is not None:
            self._leave_account(before[0])
        self._of_account.setdefault(_account(facts), {})[key] = None
        self._ranked[key] = facts, standing
        due = standing.next_promotion
        if due is not None and (before is None or before[1].next_promotion != due):
            heappush(self._promotions, (due, key))

    def _leave_account(self, facts: QueueFacts) -> None:
        gangs = self._of_account.get(_account(facts), {})
        gangs.pop(facts.gang, None)
        if not gangs:
            self._of_account.pop(_account(facts), None)

    def forget(self, gang: GangKey) -> None:
        """A gang is gone."""
        self._drop(gang)
        self.order.shares.leave(gang)

    def _drop(self, gang: GangKey) -> QueueFacts | None:
        """Do not rank a gang any more; return what was known of it."""
        known = self._ranked.pop(gang, None)
        if known is None:
            return None
        self._leave_account(known[0])
        return known[0]

    def start(self, gang: GangKey) -> None:
        """A gang has its places and is not ranked any more: its expected use counts from now on."""
        facts, rules = self._drop(gang), self.order.queues
        if facts is None or not rules.uses(FactorName.FAIR_SHARE):
            return
        seconds = self.order.expected_seconds(facts)
        ends = self.now + (rules.run_time.cap if seconds is None else seconds)
        account = _account(facts)
        if self.order.shares.enter(gang, account, leaf_cells=facts.leaf_cells, ends=ends):
            self._move_accounts(self.order.shares.refresh_group(account[0], now=self.now))

    def _move_accounts(self, accounts: Iterable[Account]) -> None:
        for account in accounts:
            for gang in list(self._of_account.get(account, ())):
                self._move(gang)

    # -- changes

    def note_time(self, now: float) -> None:
        """Promote the gangs that have waited long enough."""
        self.now = now
        while self._promotions and self._promotions[0][0] <= self.now:
            _, gang = heappop(self._promotions)
            self._move(gang)

    def reorder(self) -> Stepwise[None]:
        """Rank all waiting gangs anew: the document or the classes have changed."""
        for gang in self._waiting.in_order():
            self._move(gang)
            yield

    def reorder_accounts(self, accounts: Collection[Account]) -> Stepwise[None]:
        """Rank the waiting gangs of some accounts anew."""
        for account in accounts:
            for gang in list(self._of_account.get(account, ())):
                self._move(gang)
                yield

    def reorder_vcs(self, vcs: Collection[str]) -> Stepwise[None]:
        """Rank the waiting gangs of some VCs anew."""
        for gang in self._waiting.in_order() if vcs else ():
            known = self._ranked.get(gang)
            if known is not None and known[0].vc in vcs:
                self._move(gang)
                yield

    def reorder_run_times(self) -> Stepwise[bool]:
        """Rank the waiting gangs anew whose run times are expected to be others than before.

        Return whether there were any.
        """
        has_changed = False
        for key, (facts, _) in list(self._ranked.items()):
            if self._run_times.expected(key) != facts.run_time:
                has_changed = True
                self._move(key)
            yield
        return has_changed

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
