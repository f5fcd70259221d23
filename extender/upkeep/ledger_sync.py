"""The ledger follows the pods: charges are confirmed when pods appear, and released when they end.

The webhook charges a gang before its pods exist. From then on the ledger is kept here, in batches
behind the feeds, and again if the ledger did not answer. A full comparison every minute finds what
was missed.

Charges that are some seconds old are compared with the pods that exist: a review can be forged, or
another webhook can refuse its pod, and no user should pay for either for long.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NoReturn

from extender.feeds.charges import in_form, to_charge, to_undecided_charge, with_amounts
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import GangSizeSource, members_left
from extender.metrics import ExtenderMetrics
from kube.read.managed_pod import ManagedPod, charged_gang
from policy.errors import BackendError, ConflictError
from policy.policy import Policy
from policy.quotas.charge import Charge
from policy.quotas.limits import Scope
from policy.quotas.overflow import scopes_of
from policy.submission import GangKey
from service.clock import Clock
from service.memory import BoundedMap
from state.ledger.ledger import Charged, LeaderTerm, Ledger, LiveCharge

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 0.5
_COMPARE_SECONDS: Final = 60.0
_SOON_SECONDS: Final = 5.0
_GRACE_SECONDS: Final = 30.0
"""Younger charges may be for pods that the feed has not shown yet."""
_PROVEN_SECONDS: Final = 10.0
"""After that the pods that a gang was charged for exist, or never will."""
_PROVE_EVERY_SECONDS: Final = 5.0
_AT_ONCE: Final = 100
"""Gangs without a charge that are charged one by one; a comparison finds the others."""
_PROVEN_UNTIL_SECONDS: Final = _PROVEN_SECONDS + 3 * _PROVE_EVERY_SECONDS
"""Charges are checked until that age: more than once, in case the ledger does not answer."""
_MOST_ENDED: Final = 10_000
"""Gangs whose end is remembered until their charges are released; a comparison finds the others.
A standby sees every end, and releases nothing."""

_Full = dict[GangKey, tuple[LiveCharge, float]]


class LedgerSync:
    """Keeps the ledger equal to the pods."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        pods: PodSink,
        sizes: GangSizeSource,
        policy: Callable[[], Policy],
        has_leases: Callable[[GangKey], bool],
        term: Callable[[], LeaderTerm],
        metrics: ExtenderMetrics,
        clock: Clock,
    ) -> None:
        """`has_leases` tells whether leaf cells are leased for members that do not exist yet."""
        self._ledger = ledger
        self._pods = pods
        self._sizes = sizes
        self._policy = policy
        self._has_leases = has_leases
        self._term = term
        self._metrics = metrics
        self._clock = clock
        self._monotonic = clock.monotonic
        self._full: _Full = {}
        """Charges of gangs whose every place was taken, and since when that is known."""
        self._appeared: dict[GangKey, ManagedPod] = {}
        self._ended: BoundedMap[GangKey, ManagedPod] = BoundedMap(_MOST_ENDED)
        self._confirmed: set[GangKey] = set()
        self._formed: set[GangKey] = set()
        """Gangs that are placed by an alternative: a comparison moves their charges."""
        self.compares_soon = False
        """Whether something was seen that only a comparison corrects."""
        self.on_freed: list[Callable[[Sequence[Scope]], None]] = []
        """Called with the scopes of charges that have ended or become smaller."""
        pods.on_appear.append(self._note_appeared)
        pods.on_end.append(self._note_ended)

    def _note_appeared(self, pod: ManagedPod) -> None:
        gang = charged_gang(pod)
        self._note_size(pod)
        if pod.asked is not None and gang not in self._formed:
            self._formed.add(gang)
            self.compares_soon = True
        if pod.is_undecided and gang not in self._confirmed:
            self._confirmed.add(gang)
            self._ended.pop(gang, None)
            self.compares_soon = True
        if pod.decision and gang not in self._confirmed:
            self._confirmed.add(gang)
            self._appeared[gang] = pod
            self._ended.pop(gang, None)

    def _note_ended(self, pod: ManagedPod) -> None:
        gang = charged_gang(pod)
        self._note_size(pod)
        if _is_alone(pod) or not self._pods.of_gang(pod.gang.key):
            self._confirmed.discard(gang)
            self._formed.discard(gang)
            self._appeared.pop(gang, None)
            self.compares_soon |= self._ended.is_full
            self._ended[gang] = pod

    def _note_size(self, pod: ManagedPod) -> None:
        """Compare soon if a gang's size is not fixed: a PodGroup gives only the least number."""
        if pod.gang.size is None and not _is_alone(pod):
            self.compares_soon = True

    async def run(self) -> NoReturn:
        """Keep the ledger until cancelled; what fails is retried."""
        compared = proven = self._monotonic()
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            pause = _SOON_SECONDS if self.compares_soon else _COMPARE_SECONDS
            try:
                await self.settle()
                if self._monotonic() >= proven + _PROVE_EVERY_SECONDS:
                    await self.prove()
                    proven = self._monotonic()
                if self._monotonic() >= compared + pause:
                    await self.compare()
                    compared = self._monotonic()
            except (BackendError, ConflictError) as exc:
                logger.warning("ledger not updated, will retry", extra={"error": str(exc)})

    async def settle(self) -> None:
        """Confirm and release charges, and expire those whose pods never came."""
        appeared, ended = dict(self._appeared), dict(self._ended)
        if appeared:
            found = await self._ledger.confirm(list(appeared), term=self._term())
            await self._charge_missing(
                [pod for gang, pod in appeared.items() if gang not in found and _is_due(pod)]
            )
        if ended:
            await self._ledger.release(list(ended), term=self._term())
        for gang in appeared:
            self._appeared.pop(gang, None)
        for gang in ended:
            self._ended.pop(gang, None)
        expired = await self._ledger.expire(term=self._term())
        scopes = [
            scope
            for pod in ended.values()
            if pod.submitter is not None
            for scope in scopes_of(pod.submitter, pod.charged_group)
        ]
        self._note_freed([*scopes, *_scopes_of(expired)])

    async def _charge_missing(self, pods: Sequence[ManagedPod]) -> None:
        """Charge gangs that exist and have no charge, as a comparison would.

        Their pods were created again before the charge of the earlier ones was released, or were
        admitted while the ledger was unavailable: no later confirmation comes.
        """
        self.compares_soon |= bool(pods)  # for those that cannot be charged by themselves
        classes = self._policy().classes
        due = [to_charge(pod, classes=classes, sizes=self._sizes) for pod in pods[:_AT_ONCE]]
        made: list[Charge] = []
        for charge in filter(None, due):
            with suppress(ValueError):  # the decision of another gang, or a text that is too long
                answer = await self._ledger.charge(charge)
                made += [charge] if isinstance(answer, Charged) else []
        if made:
            await self._ledger.confirm([charge.gang for charge in made], term=self._term())
            self._note_drift("created", made)

    async def prove(self) -> None:
        """Correct charges that are some seconds old by the pods that exist."""
        recent = await self._ledger.charges_aged(
            least_seconds=_PROVEN_SECONDS, most_seconds=_PROVEN_UNTIL_SECONDS
        )
        for live in recent:
            gang = live.charge.gang
            pods = [pod for pod in self._pods.of_gang(gang) if charged_gang(pod) == gang]
            leaf_count = self._proven_leaf_count(pods, live) if pods else live.charge.leaf_count
            if leaf_count != live.charge.leaf_count:
                await self._ledger.resize(live.charge, leaf_count)
                self._note_drift("corrected", [live.charge])
                self._note_freed(live.charge.scopes)

    async def compare(self) -> None:
        """Make the ledger equal to the gangs that have pods."""
        self.compares_soon = False
        known_full, self._full = self._full, {}
        charged = {live.charge.gang: live for live in await self._ledger.charges()}
        gangs: dict[GangKey, list[ManagedPod]] = {}
        for pod in self._pods:
            gangs.setdefault(charged_gang(pod), []).append(pod)
        existing = [
            charge
            for gang, pods in gangs.items()
            if (charge := self._due(pods, charged.get(gang), known_full)) is not None
        ]
        drift = await self._ledger.reconcile(
            existing,
            term=self._term(),
            grace_seconds=_GRACE_SECONDS,
            seen=tuple(charged.values()),
        )
        recounted = [charge for charge in existing if _is_recounted(charge, charged)]
        if recounted:
            await self._ledger.recount(recounted, term=self._term())
            self._note_freed(_scopes_of(recounted))
        moved = {gang for gang, pods in gangs.items() if any(pod.asked for pod in pods)}
        for kind in ("released", "created", "corrected"):
            # The charge of a gang that was placed by an alternative follows it: that is no drift.
            found = [charge for charge in getattr(drift, kind) if charge.gang not in moved]
            self._note_drift(kind, found)
        self._note_freed(_scopes_of((*drift.released, *drift.corrected, *drift.created)))

    def _note_freed(self, scopes: Sequence[Scope]) -> None:
        if scopes:
            for tell in self.on_freed:
                tell(scopes)

    def _note_drift(self, kind: str, found: Sequence[Charge]) -> None:
        if found:
            self._metrics.drift.labels(f"ledger-{kind}").inc(len(found))
            gangs = [str(charge.gang) for charge in found]
            logger.warning("ledger drift", extra={"kind": kind, "gangs": gangs})

    def _due(
        self, pods: Sequence[ManagedPod], live: LiveCharge | None, known_full: _Full
    ) -> Charge | None:
        """Return what a gang should be charged; None where its pods do not say, or wait for quota.

        The quota queue charges a gang that waits for quota.
        """
        pod = pods[0]
        if live is not None:
            leaf_count = self._leaf_count(pods, live)
            if self._is_left(pods, live, known_full):
                leaf_count = min(leaf_count, sum(pod.leaf_count for pod in pods))
            due = with_amounts(replace(live.charge, leaf_count=leaf_count), pods)
            return self._with_class(in_form(due, pod), pods)
        if not _is_due(pod):
            return None
        if pod.is_undecided:
            return to_undecided_charge(pod, self._policy())
        return to_charge(pod, classes=self._policy().classes, sizes=self._sizes)

    def _with_class(self, due: Charge, pods: Sequence[ManagedPod]) -> Charge:
        """Charge a gang in the class of its pods.

        The charge has another class if the webhook decided without waiting for the ledger. But
        where the leader has raised a gang, the ledger's class counts, and the pods follow.
        """
        names = {pod.charged_class for pod in pods}
        class_name = names.pop()
        if due.raised_from is not None or names or class_name in (None, due.class_name):
            return due
        assert class_name is not None
        is_raised = pods[0].effective_class is not None
        return replace(
            due,
            class_name=class_name,
            is_high=self._policy().classes.is_high(class_name),
            rises_to=None if is_raised else pods[0].rises_to,
            raised_from=pods[0].class_name if is_raised else None,
        )

    def _leaf_count(self, pods: Sequence[ManagedPod], live: LiveCharge) -> int:
        """Return what a charged gang holds; pods of a young charge may still appear."""
        proven = self._proven_leaf_count(pods, live)
        is_young = self._clock.now().timestamp() < live.charged_at.timestamp() + _PROVEN_SECONDS
        return max(proven, live.charge.leaf_count) if is_young else proven

    def _is_left(self, pods: Sequence[ManagedPod], live: LiveCharge, known_full: _Full) -> bool:
        """Whether members of a PodGroup are missing because they have ended.

        Then they are not charged any more: a pod that replaces one finds no free place in the
        charge, and is charged anew. A pod that took the last place is visible some seconds after
        that place was seen to be taken.
        """
        is_open = pods[0].gang.size is None and not _is_alone(pods[0])
        if not is_open or live.charge.places or len(pods) >= self._size(pods[0]):
            return False
        seen, since = known_full.get(live.charge.gang, (live, self._monotonic()))
        if (seen.charge, seen.charged_at) != (live.charge, live.charged_at):
            since = self._monotonic()
        self._full[live.charge.gang] = (live, since)
        is_long = self._monotonic() >= since + _PROVEN_SECONDS
        is_paid = live.charge.leaf_count > sum(pod.leaf_count for pod in pods)
        self.compares_soon |= is_paid and not is_long
        return is_long

    def _proven_leaf_count(self, pods: Sequence[ManagedPod], live: LiveCharge) -> int:
        """Return what a gang holds by its pods: if it is whole, the sum of their requests.

        The charge counted missing members like the first. A member that is still missing can be no
        larger than the largest, or the charge would be higher. Members that are created later are
        charged while leaf cells are leased for them.
        """
        gangs = [pod.hived.gang for pod in pods if pod.hived and not _is_alone(pod)]
        annotated = [gang.leaf_count for gang in gangs if gang is not None]
        if annotated:
            return max(annotated)
        counts = [pod.leaf_count for pod in pods]
        finished = self._pods.finished.of_gang(pods[0])
        left = members_left(pods, size=self._size(pods[0]), finished=finished)
        missing = left.missing(len(pods), each=max(counts))
        late = left.missing_late(len(pods))
        most = sum(counts) + sum(missing)
        if late and any(pod.node for pod in pods) and not self._has_leases(pods[0].gang.key):
            most -= sum(late)
        elif late and live.charge.places:  # a smaller charge would have none left for them
            most = max(most, _reserved(live.charge, left.late))
        return max(sum(counts), min(live.charge.leaf_count, most))

    def _size(self, pod: ManagedPod) -> int:
        """Return how many members of a gang have leaf cells, as far as known."""
        if _is_alone(pod):
            return 1
        helpers = len(self._pods.helpers.of_gang(pod.gang.key))
        return max(1, (pod.gang.size or self._sizes.size(pod) or 1) - helpers)


def _is_alone(pod: ManagedPod) -> bool:
    """Whether a pod is charged by itself, whatever its marks say about a gang."""
    return pod.is_charged_alone or pod.is_undecided


def _is_recounted(due: Charge, charged: Mapping[GangKey, LiveCharge]) -> bool:
    """Whether a charge is right but for its CPU and memory."""
    live = charged.get(due.gang)
    if live is None or live.charge != due:
        return False
    had = live.charge
    return (had.cpu_millis, had.memory_bytes) != (due.cpu_millis, due.memory_bytes)


def _reserved(charge: Charge, late: Sequence[int]) -> int:
    """Return what a gang was charged for at first, late members included."""
    each = charge.leaf_count_each or 0
    return (charge.gang_size or 0) * each + sum(max(0, count - each) for count in late)


def _scopes_of(charges: Iterable[Charge]) -> list[Scope]:
    return [scope for charge in charges for scope in charge.scopes]


def _is_due(pod: ManagedPod) -> bool:
    """Whether a pod is to be charged; the quota queue charges a pod that waits for quota."""
    return not (pod.is_gated and pod.is_uncharged)
