"""Gangs that wait for quota behind our gate: they are planned once they are charged.

The webhook let them in without a charge, since their group chose to queue what is over its quota.
They are tried again, the oldest first, until the ledger has room for them. Who was charged keeps
its charge while it waits for leaf cells, like every other waiting gang.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NoReturn

from extender.bookkeeping import LEADERSHIP, build_charge
from extender.pods import PodSink
from extender.policies import Policies
from extender.requests import GangSizes
from kube.charging import charged_gang
from kube.pods import ManagedPod
from policy.errors import BackendError, ConflictError
from policy.limits import Limit
from policy.submission import GangKey
from state.ledger import Charge, Ledger, Refused, Term

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0

OnCharged = Callable[[GangKey], None]


class QuotaQueue:
    """The gangs that nobody has charged yet."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        pods: PodSink,
        sizes: GangSizes,
        policies: Policies,
        epoch: Callable[[], int],
    ) -> None:
        self._ledger = ledger
        self._pods = pods
        self._sizes = sizes
        self._policies = policies
        self._epoch = epoch
        self._charged: set[GangKey] = set()
        self._waiting: dict[GangKey, GangKey] = {}
        """Gangs by the names under which they are charged."""
        self.on_charged: list[OnCharged] = []
        """Who wants to know of gangs that wait for quota no longer."""
        pods.on_appear.append(self._note_appeared)
        pods.on_end.append(self._note_ended)

    def holds(self, pod: ManagedPod) -> bool:
        """Whether a pod must not be planned yet."""
        return pod.is_gated and pod.is_uncharged and charged_gang(pod) not in self._charged

    async def run(self) -> NoReturn:
        """Charge what can be charged, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            try:
                await self.charge()
            except (BackendError, ConflictError) as exc:
                logger.warning("queued gangs not charged", extra={"error": str(exc)})

    async def charge(self) -> None:
        """Try every whole gang that waits once, the oldest first."""
        for pods in sorted(map(self._members, self._waiting), key=lambda pods: pods[0].created):
            charge = self._due(pods)
            if charge is not None and await self._try(charge, pods[0]):
                self._note_charged(pods[0])

    def _due(self, pods: Sequence[ManagedPod]) -> Charge | None:
        """What a gang is to be charged; None while it cannot be planned, or does not say enough.

        Its members are there, so they are believed, and not that all are like the first.
        """
        first = pods[0]
        size = first.gang.size or self._sizes.size(first) or 1
        if len(pods) < (first.gang.min_size or size):
            return None
        charge = build_charge(first, classes=self._policies.classes, sizes=self._sizes)
        is_told = first.hived is not None and first.hived.gang is not None
        if charge is None or is_told or first.is_charged_alone:
            return charge
        to_come = max(0, size - len(pods)) * first.leaf_count
        return replace(charge, leaf_count=sum(pod.leaf_count for pod in pods) + to_come)

    async def _try(self, charge: Charge, pod: ManagedPod) -> bool:
        """Charge a gang; True also if it was charged before, by a leader that has died since."""
        answer = await self._ledger.charge(charge, limits=self._limits(pod))
        if isinstance(answer, Refused):
            return False
        term = Term(leadership=LEADERSHIP, epoch=self._epoch())
        await self._ledger.confirm([charge.gang], term=term)
        return True

    def _limits(self, pod: ManagedPod) -> tuple[Limit, ...]:
        """What its group allows now; nothing stands in its way if the group has no quotas."""
        if pod.charged_group is None or pod.submitter is None:
            return ()
        group = self._policies.quotas.group(pod.charged_group)
        return group.limits(pod.submitter) if group is not None else ()

    def _members(self, charged: GangKey) -> list[ManagedPod]:
        """Return the pods that are charged together, the oldest first."""
        pods = self._pods.of_gang(self._waiting[charged])
        ours = (pod for pod in pods if charged_gang(pod) == charged)
        return sorted(ours, key=lambda pod: (pod.created, pod.uid))

    def _note_charged(self, pod: ManagedPod) -> None:
        self._charged.add(charged_gang(pod))
        self._waiting.pop(charged_gang(pod), None)
        logger.info("queued gang charged", extra={"gang": str(pod.gang.key)})
        for tell in self.on_charged:
            tell(pod.gang.key)

    def _note_appeared(self, pod: ManagedPod) -> None:
        if self.holds(pod):
            self._waiting[charged_gang(pod)] = pod.gang.key

    def _note_ended(self, pod: ManagedPod) -> None:
        if pod.is_charged_alone or not self._pods.of_gang(pod.gang.key):
            self._waiting.pop(charged_gang(pod), None)
            self._charged.discard(charged_gang(pod))
