"""Keeps the ranks of waiting gangs current: recent use, the use of VCs, predicted run times.

The product does this every few seconds, a play once a minute. Nothing is refreshed that no level of
the Queues document gives a worth.
"""

from math import inf
from typing import Final

from extender.cells.views.listings import run_to_end
from extender.queue.order.fair_shares import Account
from extender.queue.order.gang_order import VcSize
from extender.queue.order.ranking import Ranking
from policy.capacity import capacity_of
from policy.queues.factors import FactorName
from policy.topology import Topology
from timemachine.model import World
from timemachine.planned.gangs import PlayedGang

_EVERY_SECONDS: Final = 60.0
_BY_VC: Final = (FactorName.SMALL_GANG, FactorName.FILL)
_BY_RUN_TIME: Final = (FactorName.SHORT_RUN, FactorName.ASKED)


class CurrentOrder:
    """Follows which gangs run, and ranks those that wait anew."""

    def __init__(self, ranking: Ranking, world: World) -> None:
        uses = world.policy.queues.uses
        self._ranking = ranking
        self._leaf_cells = sum(node.leaf_count for node in world.nodes)
        self._promised = promised_by(world.topology) if world.topology else {}
        self._by_vc = any(map(uses, _BY_VC))
        self._by_run_time = any(map(uses, _BY_RUN_TIME))
        self._by_share = uses(FactorName.FAIR_SHARE)
        self._used: dict[str, int] = {}
        """Leaf cells in use by VC."""
        self._running: dict[Account, int] = {}
        """Leaf cells in use by account."""
        self._unread: dict[Account, float] = {}
        """Leaf-cell-seconds that were not added to recent use yet."""
        self._counted_at = 0.0
        self._next = -inf

    def start(self, gang: PlayedGang, *, at: float) -> None:
        """A gang runs."""
        self._change(gang, gang.arrival.leaf_cells, at=at)

    def end(self, gang: PlayedGang, *, at: float) -> None:
        """A gang does not run any more."""
        self._change(gang, -gang.arrival.leaf_cells, at=at)

    def _change(self, gang: PlayedGang, leaf_cells: int, *, at: float) -> None:
        vc, account = gang.arrival.vc, (gang.group or "", gang.arrival.user)
        self._used[vc] = self._used.get(vc, 0) + leaf_cells
        if self._by_share:
            self._count_use(at)
            self._running[account] = self._running.get(account, 0) + leaf_cells
            if not self._running[account]:
                del self._running[account]

    def _count_use(self, now: float) -> None:
        seconds, self._counted_at = now - self._counted_at, now
        if seconds:
            for account, leaf_cells in self._running.items():
                self._unread[account] = self._unread.get(account, 0.0) + leaf_cells * seconds

    def refresh(self, *, now: float) -> None:
        """Rank the waiting gangs anew whose factors have changed, at most once a minute."""
        if now < self._next:
            return
        self._next = now + _EVERY_SECONDS
        order = self._ranking.order
        changed = order.observe_vcs(self._sizes(), leaf_cells=self._leaf_cells)
        run_to_end(self._ranking.reorder_vcs(changed))
        if self._by_run_time:
            run_to_end(self._ranking.reorder_run_times())
        if self._by_share:
            self._read_use(now)
            accounts = run_to_end(order.shares.refresh(now=now))
            run_to_end(self._ranking.reorder_accounts(accounts))

    def _sizes(self) -> dict[str, VcSize]:
        if not self._by_vc:
            return {}
        vcs = dict.fromkeys([*self._promised, *self._used])
        return {vc: VcSize(self._promised.get(vc, 0), self._used.get(vc, 0)) for vc in vcs}

    def _read_use(self, now: float) -> None:
        self._count_use(now)
        unread, self._unread = self._unread, {}
        for (group, user), amount in unread.items():
            self._ranking.order.shares.add(
                user, group or None, leaf_cell_seconds=amount, at=now - _EVERY_SECONDS / 2
            )


def promised_by(topology: Topology) -> dict[str, int]:
    """Return how many leaf cells each VC is promised."""
    found: dict[str, int] = {}
    for chain in capacity_of(topology).chains:
        for vc, share in chain.of_vc.items():
            found[vc] = found.get(vc, 0) + share.leaf_count
    return found
