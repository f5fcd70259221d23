"""Gangs that wait for quota: they are planned once they are charged.

The webhook admitted them without a charge, because their group queues what is over its quota. They
are charged as soon as the ledger has room for them, the oldest first. A gang that was charged keeps
its charge while it waits for leaf cells, like every other waiting gang.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from math import inf
from typing import Final, NoReturn

from extender.feeds.charges import to_charge, with_amounts
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import GangSizeSource, members_left
from kube.follow.policies import PolicySink
from kube.read.managed_pod import ManagedPod, charged_gang
from policy.errors import BackendError, ConflictError
from policy.quotas.charge import Charge
from policy.quotas.limits import Limit
from policy.submission import GangKey
from state.ledger.ledger import LeaderTerm, Ledger, Refused

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0


class QuotaQueue:
    """The gangs that are not charged yet."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        pods: PodSink,
        sizes: GangSizeSource,
        policies: PolicySink,
        term: Callable[[], LeaderTerm],
    ) -> None:
        self._ledger = ledger
        self._pods = pods
        self._sizes = sizes
        self._policies = policies
        self._term = term
        self._charged: set[GangKey] = set()
        self._waiting: dict[GangKey, GangKey] = {}
        """Gangs by the names under which they are charged."""
        self.on_charged: list[Callable[[GangKey], None]] = []
        """Called when a gang has been charged."""
        pods.on_appear.append(self._note_appeared)
        pods.on_end.append(self._note_ended)

    def holds(self, pod: ManagedPod) -> bool:
        """Whether a pod must not be planned yet."""
        is_unpaid = pod.is_uncharged and charged_gang(pod) not in self._charged
        return pod.is_gated and is_unpaid and not self._has_begun(pod)

    def _has_begun(self, pod: ManagedPod) -> bool:
        """Whether an earlier leader charged the gang: it has released other members.

        That is known without the ledger, which may be unavailable while half of a gang waits for
        the other half.
        """
        gang = () if pod.is_charged_alone else self._pods.of_gang(pod.gang.key)
        return any(not member.is_gated for member in gang)

    async def run(self) -> NoReturn:
        """Charge the gangs for which there is room, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            try:
                await self.charge()
            except (BackendError, ConflictError) as exc:
                logger.warning("queued gangs not charged, will retry", extra={"error": str(exc)})

    async def charge(self) -> None:
        """Try each waiting gang once, the oldest first; after a refusal, skip the gangs like it."""
        too_much: dict[Hashable, int] = {}
        for pod, *others in self._oldest_first():
            charge = self._due(pod, others)
            if charge is None or charge.leaf_count >= too_much.get(_kind(charge), inf):
                continue
            try:
                is_charged = await self._try(charge, pod)
            except ValueError as exc:  # a forged decision: the gang waits, the others go on
                logger.warning("gang cannot be charged", extra={"error": str(exc)})
                continue
            if is_charged:
                self._note_charged(pod)
            else:
                too_much[_kind(charge)] = charge.leaf_count

    def _due(self, first: ManagedPod, others: Sequence[ManagedPod]) -> Charge | None:
        """Return what to charge a gang; None while members are missing, or if it does not say.

        Members that exist count with what they ask for; only missing ones count like the first.
        """
        charge = to_charge(first, classes=self._policies.policy.classes, sizes=self._sizes)
        if charge is None or first.is_charged_alone:
            return charge
        there = 1 + len(others) + len(self._pods.helpers.of_gang(first.gang.key))
        size = first.gang.size or self._sizes.size(first) or 1
        finished = self._pods.finished.of_gang(first)
        left = members_left([first, *others], size=size, finished=finished)
        if there < left.least(first.gang.min_size):
            return None
        if first.hived is not None and first.hived.gang is not None:
            return charge
        held = first.leaf_count + sum(pod.leaf_count for pod in others)
        missing = left.missing(there, each=first.leaf_count)
        each = min(pod.leaf_count for pod in (first, *others))
        late = sum(max(0, count - each) for count in left.missing_late(there))
        charge = replace(charge, leaf_count=held + sum(missing))
        charge = with_amounts(charge, [first, *others])
        return replace(charge, places=late, leaf_count_each=each) if late else charge

    async def _try(self, charge: Charge, pod: ManagedPod) -> bool:
        """Charge a gang; True also if an earlier leader has charged it."""
        answer = await self._ledger.charge(charge, limits=self._limits(pod))
        if isinstance(answer, Refused):
            return False
        await self._ledger.confirm([charge.gang], term=self._term())
        return True

    def _limits(self, pod: ManagedPod) -> tuple[Limit, ...]:
        """Return what its group allows now; no limits if the group has no quotas any more."""
        if pod.charged_group is None or pod.submitter is None:
            return ()
        group = self._policies.policy.quotas.group(pod.charged_group)
        return group.limits(pod.submitter) if group is not None else ()

    def in_order(self) -> list[GangKey]:
        """Return the gangs that wait for quota, in the order in which they are charged."""
        return [pods[0].gang.key for pods in self._oldest_first()]

    def _oldest_first(self) -> list[list[ManagedPod]]:
        """Return the pods of every gang that waits."""
        found = (self._members(charged, gang) for charged, gang in self._waiting.items())
        asked = self._pods.workloads.first_asked
        return sorted((pods for pods in found if pods), key=lambda pods: asked(pods[0]))

    def _members(self, charged: GangKey, gang: GangKey) -> list[ManagedPod]:
        """Return the pods of a gang; none if they are charged under another name since."""
        ours = (pod for pod in self._pods.of_gang(gang) if charged_gang(pod) == charged)
        return sorted(ours, key=lambda pod: (pod.created, pod.uid))

    def _note_charged(self, pod: ManagedPod) -> None:
        if self._waiting.pop(charged_gang(pod), None) is None:
            return  # it has ended: the ledger is corrected, and a gang of the same name pays anew
        self._charged.add(charged_gang(pod))
        logger.info("queued gang charged", extra={"gang": str(pod.gang.key)})
        for notify in self.on_charged:
            notify(pod.gang.key)

    def _note_appeared(self, pod: ManagedPod) -> None:
        if self.holds(pod):
            self._waiting[charged_gang(pod)] = pod.gang.key

    def _note_ended(self, pod: ManagedPod) -> None:
        if pod.is_charged_alone or not self._pods.of_gang(pod.gang.key):
            self._waiting.pop(charged_gang(pod), None)
            self._charged.discard(charged_gang(pod))


def _kind(charge: Charge) -> Hashable:
    """Return the accounts that a gang is charged to."""
    return charge.user, charge.group, charge.class_name, charge.is_high, charge.leaf_type
