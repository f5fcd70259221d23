"""Gangs that wait for quota: they are planned once they are charged.

The webhook admitted them without a charge, because their group queues what is over its quota. They
are charged as soon as the ledger has room for them, in the order of the Queues document. A gang
that was charged keeps its charge while it waits for leaf cells, like every other waiting gang.

The ledger is asked about gangs of which a member appeared, or of whose user or group charges have
ended, and about all of them after a change of the policy and from time to time.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from extender.feeds.charges import to_charge, with_amounts
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import GangSizeSource, members_left
from extender.queue.lines.gang_places import Rank
from kube.follow.policies import PolicySink
from kube.read.managed_pod import ManagedPod, charged_gang
from policy.errors import BackendError, ConflictError
from policy.quotas.admission import describe_use
from policy.quotas.charge import Charge
from policy.quotas.limits import Exceeded, Limit, Scope
from policy.quotas.overflow import scopes_of
from policy.submission import GangKey
from service.tasks import wait_up_to
from state.ledger.ledger import LeaderTerm, Ledger, Refused

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 10.0
"""How often all gangs are tried: hours of a new day, or a charge that another program ended."""
_PAUSE_SECONDS: Final = 0.5


RankOf = Callable[[Sequence[ManagedPod]], Rank]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    gang: GangKey
    scopes: tuple[Scope, ...]
    """The accounts that are charged for it."""


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
        rank_of: RankOf,
    ) -> None:
        """`rank_of` ranks a gang by its pods: the lowest rank is charged first."""
        self._rank_of = rank_of
        self._ledger = ledger
        self._pods = pods
        self._sizes = sizes
        self._policies = policies
        self._term = term
        self._charged: set[GangKey] = set()
        self._waiting: dict[GangKey, _Waiting] = {}
        """Gangs by the names under which they are charged."""
        self._lacks: dict[GangKey, tuple[Exceeded, ...]] = {}
        """The limits without room for each of them, as they were when it was last tried."""
        self._freed: set[Scope] = set()
        """Accounts whose gangs are to be tried."""
        self._news = asyncio.Event()
        self.is_held: Callable[[ManagedPod], bool] = lambda _: False
        """Tells whether a user holds the gang of a pod: it is not charged meanwhile."""
        self.on_charged: list[Callable[[GangKey], None]] = []
        """Called when a gang has been charged."""
        pods.on_appear.append(self._note_appeared)
        pods.on_end.append(self._note_ended)
        pods.helpers.on_change.append(lambda pod: self._note_gang(pod.gang.key))
        pods.finished.on_change.append(lambda gang, _, __: self._note_gang(gang))
        policies.on_change.append(self._note_all)

    def note_freed(self, scopes: Iterable[Scope]) -> None:
        """Note that charges of these accounts have ended or become smaller."""
        self._freed.update(scopes)
        self._news.set()

    def note_pod(self, pod: ManagedPod) -> None:
        """Note that the gang of a pod was held or released."""
        self._note_gang(charged_gang(pod))

    def _note_gang(self, gang: GangKey) -> None:
        if gang in self._waiting:
            self.note_freed(self._waiting[gang].scopes)

    def _note_all(self) -> None:
        self.note_freed(scope for one in self._waiting.values() for scope in one.scopes)

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
            await wait_up_to(_EVERY_SECONDS, self._news)
            freed = self._freed if self._news.is_set() else None
            self._freed = set()
            self._news.clear()
            try:
                await self.charge(freed)
            except (BackendError, ConflictError) as exc:
                self._note_all()
                logger.warning("queued gangs not charged, will retry", extra={"error": str(exc)})
            await asyncio.sleep(_PAUSE_SECONDS)

    async def charge(self, freed: Collection[Scope] | None = None) -> None:
        """Try each waiting gang once, in their order; after a refusal, skip the gangs like it.

        Where `freed` is given, only gangs that are charged to these accounts are tried.
        """
        too_much: dict[Hashable, tuple[Charge, tuple[Exceeded, ...]]] = {}
        for pod, *others in self.by_rank(freed):
            charge = self._due(pod, others)
            if charge is None:
                continue
            smaller, lacks = too_much.get(_kind(charge), (None, ()))
            if _is_at_least(charge, smaller):
                self._lacks[charge.gang] = lacks
                continue
            try:
                lacks = await self._try(charge, pod)
            except ValueError as exc:  # a forged decision: the gang waits, the others go on
                logger.warning("gang cannot be charged", extra={"error": str(exc)})
                continue
            if lacks:
                too_much[_kind(charge)] = charge, lacks
                self._lacks[charge.gang] = lacks
            else:
                self._note_charged(pod)

    def lacks(self, pod: ManagedPod) -> list[str]:
        """Say which limits have no room for the gang of a pod that waits for quota."""
        found = self._lacks.get(charged_gang(pod), ())
        return [describe_use(one.limit, one.used) for one in found]

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

    async def _try(self, charge: Charge, pod: ManagedPod) -> tuple[Exceeded, ...]:
        """Charge a gang, or return the limits that have no room for it.

        A gang that an earlier leader has charged is charged.
        """
        answer = await self._ledger.charge(charge, limits=self._limits(pod))
        if isinstance(answer, Refused):
            return answer.exceeded
        await self._ledger.confirm([charge.gang], term=self._term())
        return ()

    def _limits(self, pod: ManagedPod) -> tuple[Limit, ...]:
        """Return what its group allows now; no limits if the group has no quotas any more."""
        if pod.charged_group is None or pod.submitter is None:
            return ()
        group = self._policies.policy.quotas.group(pod.charged_group)
        return group.limits(pod.submitter) if group is not None else ()

    def by_rank(self, freed: Collection[Scope] | None = None) -> list[list[ManagedPod]]:
        """Return the pods of every gang that waits, or of those charged to some accounts.

        A gang that a user holds is not charged meanwhile, so it has no place. Of equal ranks the
        lowest key comes first, as for cells: every leader has the same order.
        """
        found = (
            self._members(charged, waiting.gang)
            for charged, waiting in self._waiting.items()
            if freed is None or any(scope in freed for scope in waiting.scopes)
        )
        return sorted(
            (pods for pods in found if pods and not self.is_held(pods[0])),
            key=lambda pods: (self._rank_of(pods), charged_gang(pods[0])),
        )

    def _members(self, charged: GangKey, gang: GangKey) -> list[ManagedPod]:
        """Return the pods of a gang; none if they are charged under another name since."""
        ours = (pod for pod in self._pods.of_gang(gang) if charged_gang(pod) == charged)
        return sorted(ours, key=lambda pod: (pod.created, pod.uid))

    def _note_charged(self, pod: ManagedPod) -> None:
        self._lacks.pop(charged_gang(pod), None)
        if self._waiting.pop(charged_gang(pod), None) is None:
            return  # it has ended: the ledger is corrected, and a gang of the same name pays anew
        self._charged.add(charged_gang(pod))
        logger.info("queued gang charged", extra={"gang": str(pod.gang.key)})
        for notify in self.on_charged:
            notify(pod.gang.key)

    def _note_appeared(self, pod: ManagedPod) -> None:
        if self.holds(pod):
            user, group = pod.submitter, pod.charged_group
            scopes = scopes_of(user, group) if user is not None else ()
            self._waiting[charged_gang(pod)] = _Waiting(gang=pod.gang.key, scopes=scopes)
            self.note_freed(scopes)

    def _note_ended(self, pod: ManagedPod) -> None:
        if pod.is_charged_alone or not self._pods.of_gang(pod.gang.key):
            self._waiting.pop(charged_gang(pod), None)
            self._lacks.pop(charged_gang(pod), None)
            self._charged.discard(charged_gang(pod))


def _kind(charge: Charge) -> Hashable:
    """Return the accounts that a gang is charged to."""
    return charge.user, charge.group, charge.class_name, charge.is_high, charge.leaf_type


def _is_at_least(charge: Charge, other: Charge | None) -> bool:
    """Whether a charge is as large as another one: limits may be about CPU and memory, too."""
    return (
        other is not None
        and charge.leaf_count >= other.leaf_count
        and charge.cpu_millis >= other.cpu_millis
        and charge.memory_bytes >= other.memory_bytes
    )
