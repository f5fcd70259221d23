"""Keeps the order of waiting gangs current: the Queues document, recent use, the size of VCs.

A changed document orders the gangs anew at once, in slices. Recent use is read from the history
twice a minute, and only if a level gives it a worth; while the history does not answer, the
last factors count. Without a history, only gangs that run count.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NoReturn

from extender.queue.order.fair_shares import Account
from extender.queue.order.gang_order import BY_VC, GangOrder, VcSize
from extender.queue.order.ranking import Ranking
from kube.follow.policies import PolicySink
from policy.capacity import capacity_of
from policy.errors import BackendError
from policy.queues.factors import FactorName
from policy.queues.queues import FairShareRules
from policy.topology import Topology
from service.clock import Clock
from service.tasks import in_slices, wait_up_to
from state.history.runs import RunHistory

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 5.0
_READ_SECONDS: Final = 30.0
"""How often the history is read."""
_SOON_SECONDS: Final = 1.0
"""Until the cluster has been counted."""
_HALF_LIVES: Final = 5
"""Older use counts less than a thirtieth."""
_WINDOWS: Final = 20
"""Queries for the use of that time, when a leader begins."""
_BACK: Final = timedelta(seconds=10)
"""A clock that goes back by less is corrected all the time."""
_HOUR: Final = 3600.0


class QueueOrder:
    """Feeds the order of waiting gangs, for as long as this replica leads."""

    def __init__(
        self,
        order: GangOrder,
        ranking: Ranking,
        *,
        policies: PolicySink,
        history: RunHistory | None,
        counts: Callable[[], Mapping[tuple[str, str], int]],
        topology: Callable[[], Topology | None],
        clock: Clock,
    ) -> None:
        """`counts` are leaf cells by VC and state, as in `extender.inspection.census`."""
        self._order = order
        self._ranking = ranking
        self._policies = policies
        self._history = history
        self._counts = counts
        self._topology = topology
        self._clock = clock
        self._counted: Topology | None = None
        self._promised: Mapping[str, int] = {}
        self._read: FairShareRules | None = None
        """The rules by which use was read so far."""
        self._read_until = datetime.fromtimestamp(0, UTC)
        self.policy = policies.policy
        """The policy by which gangs are ordered."""
        self._news = asyncio.Event()
        self._asks_for_use = asyncio.Event()
        self.on_reorder: list[Callable[[], None]] = []
        """Called when gangs may have changed places."""
        policies.on_change.append(self._follow)
        self._follow()

    def _follow(self) -> None:
        policy = self._policies.policy
        if self._order.configure(policy.queues, policy.classes):
            self.policy = policy
            self._news.set()
            self._asks_for_use.set()

    async def run(self) -> NoReturn:
        """Keep the order current until cancelled; a history that hangs holds up nothing else."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_history())
            while True:
                await wait_up_to(_EVERY_SECONDS if self._counts() else _SOON_SECONDS, self._news)
                if self._news.is_set():
                    self._news.clear()
                    await in_slices(self._ranking.reorder())
                    self._tell()
                await self.refresh()
        raise AssertionError("both tasks run until cancelled")

    async def _follow_history(self) -> NoReturn:
        while True:
            await self.read_use()
            await wait_up_to(_READ_SECONDS, self._asks_for_use)
            self._asks_for_use.clear()

    async def refresh(self) -> None:
        """Count what has changed since the last time, and move the gangs that it concerns."""
        uses = self._order.queues.uses
        sizes = self._sizes() if any(map(uses, BY_VC)) else {}
        vcs = self._order.observe_vcs(sizes, leaf_cells=sum(self._counts().values()))
        await in_slices(self._ranking.reorder_vcs(vcs))
        are_new = False
        if self._order.uses_run_times:
            are_new = await in_slices(self._ranking.reorder_run_times())
        accounts: list[Account] = []
        if uses(FactorName.FAIR_SHARE):
            now = self._clock.now().timestamp()
            accounts = await in_slices(self._ranking.refresh_shares(now=now))
        if vcs or accounts or are_new:
            self._tell()

    def _tell(self) -> None:
        for tell in self.on_reorder:
            tell()

    def _sizes(self) -> dict[str, VcSize]:
        topology, counts = self._topology(), self._counts()
        if topology is not self._counted:
            self._counted, self._promised = topology, _promised(topology) if topology else {}
        vcs = dict.fromkeys([*self._promised, *(vc for vc, _ in counts if vc)])
        return {vc: VcSize(self._promised.get(vc, 0), counts.get((vc, "used"), 0)) for vc in vcs}

    async def read_use(self) -> None:
        """Read use since the last time; all that counts, if the rules or the clock changed."""
        rules = self._order.queues.fair_share
        if self._history is None or not self._order.queues.uses(FactorName.FAIR_SHARE):
            return
        now = self._clock.now()
        was_ahead = self._read_until > now + _BACK
        if self._read is None or self._read.half_life != rules.half_life or was_ahead:
            self._order.shares.forget_use()
            self._read_until = datetime.fromtimestamp(0, UTC)
        self._read = rules
        first = now - timedelta(seconds=_HALF_LIVES * rules.half_life)
        self._read_until = max(self._read_until, first)
        longest = _HALF_LIVES * rules.half_life / _WINDOWS
        try:
            for since, until in _windows(self._read_until, now, longest):
                await self._read_window(self._history, since, until)
                self._read_until = until
        except BackendError as exc:
            logger.warning("recent use not read, will retry", extra={"error": str(exc)})

    async def _read_window(self, history: RunHistory, since: datetime, until: datetime) -> None:
        middle = since + (until - since) / 2
        for hours in await history.hours_between(since, until):
            if hours.user_name is not None and hours.leaf_cell_hours > 0:
                self._order.shares.add(
                    hours.user_name,
                    hours.group_name,
                    leaf_cell_seconds=hours.leaf_cell_hours * _HOUR,
                    at=middle.timestamp(),
                )


def _windows(
    since: datetime, until: datetime, longest: float
) -> Iterator[tuple[datetime, datetime]]:
    step = timedelta(seconds=longest)
    while since < until:
        end = min(since + step, until)
        yield since, end
        since = end


def _promised(topology: Topology) -> dict[str, int]:
    found: dict[str, int] = {}
    for chain in capacity_of(topology).chains:
        for vc, share in chain.of_vc.items():
            found[vc] = found.get(vc, 0) + share.leaf_count
    return found
