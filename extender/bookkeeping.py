"""The ledger follows the pods: charges are confirmed when pods appear, released when they end.

The webhook charges a gang before its pods exist; from then on the ledger is kept here. Everything
is done in batches behind the feeds, and again if the ledger did not answer. A full comparison now
and then finds what was missed.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NoReturn

from extender.metrics import ExtenderMetrics
from extender.pods import PodSink
from extender.requests import GangSizes
from kube.charging import charged_gang
from kube.pods import ManagedPod
from policy.classes import Classes
from policy.errors import BackendError, ConflictError
from policy.submission import GangKey
from state.ledger import Charge, Ledger, LiveCharge, Term

logger = logging.getLogger(__name__)

LEADERSHIP: Final = "cellgate-extender"
_EVERY_SECONDS: Final = 0.5
_COMPARE_SECONDS: Final = 60.0
_SOON_SECONDS: Final = 5.0
_GRACE_SECONDS: Final = 30.0
"""Charges younger than that may be for pods that are not seen yet."""
_GROWTH_SECONDS: Final = 10.0
"""The same for a gang that has pods: how long one that grew for a member is not made smaller. As
long as a charge waits for its first pod; longer would keep places of members that were replaced."""


class Bookkeeper:
    """Keeps the ledger equal to the pods."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        pods: PodSink,
        sizes: GangSizes,
        classes: Callable[[], Classes],
        epoch: Callable[[], int],
        metrics: ExtenderMetrics,
    ) -> None:
        self._ledger = ledger
        self._pods = pods
        self._sizes = sizes
        self._classes = classes
        self._epoch = epoch
        self._metrics = metrics
        self._appeared: dict[GangKey, None] = {}
        self._ended: dict[GangKey, None] = {}
        self._confirmed: set[GangKey] = set()
        self._has_changed_size = False
        pods.on_appear.append(self._note_appeared)
        pods.on_end.append(self._note_ended)

    def _term(self) -> Term:
        return Term(leadership=LEADERSHIP, epoch=self._epoch())

    def _note_appeared(self, pod: ManagedPod) -> None:
        gang = charged_gang(pod)
        self._note_size(pod)
        if pod.decision and gang not in self._confirmed:
            self._confirmed.add(gang)
            self._appeared[gang] = None
            self._ended.pop(gang, None)

    def _note_ended(self, pod: ManagedPod) -> None:
        gang = charged_gang(pod)
        self._note_size(pod)
        if pod.is_charged_alone or not self._pods.of_gang(pod.gang.key):
            self._confirmed.discard(gang)
            self._appeared.pop(gang, None)
            self._ended[gang] = None

    def _note_size(self, pod: ManagedPod) -> None:
        """A PodGroup says how many members are needed, not how many there are: look soon."""
        is_open_ended = pod.gang.size is None and not pod.is_charged_alone
        self._has_changed_size = self._has_changed_size or is_open_ended

    async def run(self) -> NoReturn:
        """Keep the ledger until cancelled; what fails is tried again."""
        compared = time.monotonic()
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            pause = _SOON_SECONDS if self._has_changed_size else _COMPARE_SECONDS
            try:
                await self.settle()
                if time.monotonic() >= compared + pause:
                    await self.compare()
                    compared = time.monotonic()
            except (BackendError, ConflictError) as exc:
                logger.warning("ledger not kept, will retry", extra={"error": str(exc)})

    async def settle(self) -> None:
        """Confirm and release what has changed, and expire what never came."""
        appeared, ended = list(self._appeared), list(self._ended)
        if appeared:
            await self._ledger.confirm(appeared, term=self._term())
        if ended:
            await self._ledger.release(ended, term=self._term())
        for gang in appeared:
            self._appeared.pop(gang, None)
        for gang in ended:
            self._ended.pop(gang, None)
        await self._ledger.expire(term=self._term())

    async def compare(self) -> None:
        """Make the ledger equal to the gangs that have pods."""
        self._has_changed_size = False
        charged = {live.charge.gang: live for live in await self._ledger.charges()}
        gangs: dict[GangKey, list[ManagedPod]] = {}
        for pod in self._pods:
            gangs.setdefault(charged_gang(pod), []).append(pod)
        existing = [
            charge
            for gang, pods in gangs.items()
            if (charge := self._due(pods, charged.get(gang))) is not None
        ]
        drift = await self._ledger.reconcile(
            existing,
            term=self._term(),
            grace_seconds=_GRACE_SECONDS,
            seen=tuple(charged.values()),
        )
        for kind in ("released", "created", "corrected"):
            found = getattr(drift, kind)
            if found:
                self._metrics.drift.labels(f"ledger-{kind}").inc(len(found))
                gangs_found = [str(charge.gang) for charge in found]
                logger.warning("ledger drift", extra={"kind": kind, "gangs": gangs_found})

    def _due(self, pods: Sequence[ManagedPod], live: LiveCharge | None) -> Charge | None:
        """What a gang should be charged; None where its pods do not tell, or wait.

        A gang that waits for its quota is charged when there is room in it.
        """
        pod = pods[0]
        if live is not None:
            return replace(live.charge, leaf_count=self._leaf_count(pods, live))
        if pod.is_gated and pod.is_uncharged:
            return None
        return build_charge(pod, classes=self._classes(), sizes=self._sizes)

    def _leaf_count(self, pods: Sequence[ManagedPod], live: LiveCharge) -> int:
        """What a charged gang holds: of a whole one, what its pods ask for together.

        When it was charged, members that were still to come were taken to be like the first.
        """
        told, charged = pods[0].hived, live.charge.leaf_count
        if told is not None and told.gang is not None:
            return charged
        held = sum(pod.leaf_count for pod in pods)
        is_whole = len(pods) >= (pods[0].gang.size or self._sizes.size(pods[0]) or 1)
        is_old = live.charged_at.timestamp() + _GROWTH_SECONDS < time.time()
        return held if is_whole and is_old else max(held, charged)


def build_charge(pod: ManagedPod, *, classes: Classes, sizes: GangSizes) -> Charge | None:
    """What a pod says of its gang's charge; None where it does not say enough."""
    if pod.submitter is None or pod.class_name is None:
        return None
    try:
        decision = uuid.UUID(pod.decision or "")
    except ValueError:
        return None
    return Charge(
        decision=decision,
        gang=charged_gang(pod),
        user=pod.submitter,
        group=pod.charged_group,
        vc=pod.vc,
        class_name=pod.class_name,
        is_high=classes.is_high(pod.class_name),
        leaf_type=pod.leaf_type,
        leaf_count=_told_leaf_count(pod, sizes),
    )


def _told_leaf_count(pod: ManagedPod, sizes: GangSizes) -> int:
    if pod.is_charged_alone:
        return pod.leaf_count
    return pod.gang_leaf_count or pod.leaf_count * (sizes.size(pod) or 1)
