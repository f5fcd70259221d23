"""The ledger follows the pods: charges are confirmed when pods appear, released when they end.

The webhook charges a gang before its pods exist; from then on the ledger is kept here. Everything
is done in batches behind the feeds, and again if the ledger did not answer. A full comparison now
and then finds what was missed.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from typing import Final, NoReturn

from extender.metrics import ExtenderMetrics
from extender.pods import PodSink
from kube.charging import charged_gang
from kube.pods import ManagedPod
from policy.classes import Classes
from policy.errors import BackendError, ConflictError
from policy.submission import GangKey
from state.ledger import Charge, Ledger, Term

logger = logging.getLogger(__name__)

LEADERSHIP: Final = "cellgate-extender"
_EVERY_SECONDS: Final = 0.5
_COMPARE_SECONDS: Final = 60.0


class Bookkeeper:
    """Keeps the ledger equal to the pods."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        pods: PodSink,
        classes: Callable[[], Classes],
        epoch: Callable[[], int],
        metrics: ExtenderMetrics,
    ) -> None:
        self._ledger = ledger
        self._pods = pods
        self._classes = classes
        self._epoch = epoch
        self._metrics = metrics
        self._appeared: dict[GangKey, None] = {}
        self._ended: dict[GangKey, None] = {}
        self._confirmed: set[GangKey] = set()
        pods.on_appear.append(self._note_appeared)
        pods.on_end.append(self._note_ended)

    def _term(self) -> Term:
        return Term(leadership=LEADERSHIP, epoch=self._epoch())

    def _note_appeared(self, pod: ManagedPod) -> None:
        gang = charged_gang(pod)
        if pod.decision and gang not in self._confirmed:
            self._confirmed.add(gang)
            self._appeared[gang] = None
            self._ended.pop(gang, None)

    def _note_ended(self, pod: ManagedPod) -> None:
        gang = charged_gang(pod)
        if not self._pods.of_gang(pod.gang.key):
            self._confirmed.discard(gang)
            self._appeared.pop(gang, None)
            self._ended[gang] = None

    async def run(self) -> NoReturn:
        """Keep the ledger until cancelled; what fails is tried again."""
        compared = time.monotonic()
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            try:
                await self.settle()
                if time.monotonic() >= compared + _COMPARE_SECONDS:
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
        charged = {live.charge.gang: live.charge for live in await self._ledger.charges()}
        gangs = {charged_gang(pod): pod for pod in self._pods}
        existing = [
            charge
            for gang, pod in gangs.items()
            if (charge := charged.get(gang) or self._charge(pod)) is not None
        ]
        drift = await self._ledger.reconcile(existing, term=self._term())
        for kind in ("released", "created", "corrected"):
            found = getattr(drift, kind)
            if found:
                self._metrics.drift.labels(f"ledger-{kind}").inc(len(found))
                gangs_found = [str(charge.gang) for charge in found]
                logger.warning("ledger drift", extra={"kind": kind, "gangs": gangs_found})

    def _charge(self, pod: ManagedPod) -> Charge | None:
        """What a gang that is not charged should be; None where the pod does not tell, or waits.

        A gang that waits for its quota is charged when there is room in it.
        """
        if pod.is_gated and pod.is_uncharged:
            return None
        return build_charge(pod, self._classes())


def build_charge(pod: ManagedPod, classes: Classes) -> Charge | None:
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
        leaf_count=pod.gang_leaf_count or pod.leaf_count,
    )
