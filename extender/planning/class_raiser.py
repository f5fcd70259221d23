"""Gangs that quotas lowered get their class when the quotas have room: the effective class.

    a charge ends, a document changes, a day begins
      → the ledger is asked, for the gang that was asked for first before the others
          charged   the decision is recorded, and each pod of the gang states its effective class
          refused   the limit is remembered until less is held (`policy.quotas.overflow`)

The ledger has the class that a gang is charged in, so a raise is one atomic step. If a leader dies
before all pods state it, the next leader reads the ledger and writes what is missing. A pod's own
class and priority cannot change: Kubernetes goes by them when it evicts and preempts.

A raise is for the gang's life, as an admission is.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NoReturn

from extender.feeds.charges import to_charge
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import GangSizeSource
from extender.outcomes.outcomes import Outcomes
from extender.planning.raise_rules import (
    Raise,
    describe_raise,
    describe_room_for,
    needs_usage,
    plan_raise,
)
from kube.api.binder import PodRef
from kube.api.client import KubeError
from kube.api.pod_writer import PodMarker
from kube.follow.policies import PolicySink
from kube.read.managed_pod import ManagedPod, charged_gang
from policy.errors import BackendError, ConflictError
from policy.quotas.charge import Charge
from policy.quotas.limits import Scope
from policy.quotas.overflow import OverflowGang, OverflowQueue
from policy.submission import GangKey, Occupancy
from service.clock import Clock
from service.tasks import wait_up_to
from state.ledger.ledger import Charged, Held, LeaderTerm, Ledger, Refused

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
_ATTEMPTS: Final = 3
_AT_ONCE: Final = 32
"""Pods that are written at the same time."""


class ClassRaiser:
    """Raises gangs that run beyond their quotas, for as long as this replica leads."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        pods: PodSink,
        sizes: GangSizeSource,
        policies: PolicySink,
        outcomes: Outcomes,
        marker: PodMarker,
        term: Callable[[], LeaderTerm],
        clock: Clock,
    ) -> None:
        self._ledger = ledger
        self._pods = pods
        self._sizes = sizes
        self._policies = policies
        self._outcomes = outcomes
        self._marker = marker
        self._term = term
        self._clock = clock
        self._queue = OverflowQueue()
        self._gangs: dict[GangKey, GangKey] = {}
        """Gangs beyond quota and raised gangs, by the names under which they are charged."""
        self._raised: dict[GangKey, Charge] = {}
        self._unmarked: dict[GangKey, None] = {}
        """Raised gangs of which a pod may not state the class."""
        self._is_loaded = False
        self._day: date | None = None
        self._news = asyncio.Event()
        pods.on_appear.append(self._note_appeared)
        pods.on_end.append(self._note_ended)
        policies.on_change.append(self._note_policies)

    # -- what happens

    def note_freed(self, scopes: Sequence[Scope]) -> None:
        """Note that charges have ended or become smaller."""
        self._queue.free(scopes)
        self._news.set()

    def _note_policies(self) -> None:
        self._queue.free_all()
        self._news.set()

    def _note_appeared(self, pod: ManagedPod) -> None:
        key = charged_gang(pod)
        raised, known = self._raised.get(key), self._queue.find(key)
        asked_at = self._pods.workloads.first_asked(pod)
        if raised is not None:
            if self._is_marked(pod, raised):
                return
            self._unmarked[key] = None
        elif pod.effective_class is not None:
            self._queue.remove(key)
        elif pod.rises_to in (None, pod.class_name) or (known and known.asked_at <= asked_at):
            return
        else:
            self._put(pod, asked_at=asked_at)
        self._gangs[key] = pod.gang.key
        self._news.set()

    def _put(self, pod: ManagedPod, *, asked_at: float) -> None:
        charge = self._expected([pod])
        if charge is not None:
            self._queue.put(self._to_overflow(charge, asked_at=asked_at))

    def _to_overflow(self, charge: Charge, *, asked_at: float) -> OverflowGang:
        rises_to = charge.rises_to or charge.class_name
        return OverflowGang(
            key=charge.gang,
            user=charge.user,
            group=charge.group,
            asked_at=asked_at,
            leaf_count=charge.leaf_count,
            cpu_millis=charge.cpu_millis,
            memory_bytes=charge.memory_bytes,
            leaf_type=charge.leaf_type,
            is_high=self._policies.policy.classes.is_high(rises_to),
        )

    def _note_ended(self, pod: ManagedPod) -> None:
        key = charged_gang(pod)
        if key in self._gangs and not self._members(key):
            self._queue.remove(key)
            for known in (self._gangs, self._raised, self._unmarked):
                known.pop(key, None)

    def _members(self, key: GangKey) -> list[ManagedPod]:
        """Return the pods of a charged gang, the oldest first."""
        pods = self._pods.of_gang(self._gangs.get(key, key))
        ours = (pod for pod in pods if charged_gang(pod) == key)
        return sorted(ours, key=lambda pod: (pod.created, pod.uid))

    def explain(self, pod: ManagedPod) -> str | None:
        """Say what a gang beyond its quotas waits for; None for any other gang."""
        gang = self._queue.find(charged_gang(pod))
        if gang is None:
            return None
        return f"rises to class {pod.rises_to} when its quotas allow: {self._queue.explain(gang)}"

    # -- raising

    async def run(self) -> NoReturn:
        """Raise gangs whenever their quotas may have room, until cancelled."""
        while True:
            pause = self._seconds_to_next_day()
            self._news.clear()
            try:
                await self.work()
            except (BackendError, ConflictError) as exc:
                logger.warning("gangs not raised, will retry", extra={"error": str(exc)})
                pause = _RETRY_SECONDS
            await wait_up_to(pause, self._news)

    async def work(self) -> None:
        """Complete raises of earlier leaders, then raise each gang that fits, the oldest first."""
        await self._load()
        refused = await self._mark_all()
        self._follow_day()
        for gang in self._queue.oldest_first():
            if self._queue.find(gang.key) is gang and self._queue.may_fit(gang):
                await self._try(gang)
        if refused is not None:
            raise refused

    async def _load(self) -> None:
        """Read which gangs an earlier leader has raised."""
        if self._is_loaded:
            return
        pods = {charged_gang(pod): pod.gang.key for pod in self._pods}
        for live in await self._ledger.charges():
            key = live.charge.gang
            if live.charge.raised_from is not None and key in pods:
                self._gangs[key] = pods[key]
                self._complete(live.charge)
        self._is_loaded = True

    def _follow_day(self) -> None:
        """Leaf-cell-hours of a period are free again when the next one begins."""
        today = self._clock.now().astimezone(UTC).date()
        if self._day not in (None, today):
            self._queue.free_all()
        self._day = today

    def _seconds_to_next_day(self) -> float:
        now = self._clock.now().astimezone(UTC)
        tomorrow = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
        return (tomorrow - now).total_seconds() + 1.0

    async def _try(self, gang: OverflowGang) -> None:
        """Ask the ledger for a gang; its own charge counts, not what the pods let expect."""
        pods = self._members(gang.key)
        charge = self._expected(pods)
        for _ in range(_ATTEMPTS):
            if charge is None:
                return
            plan = await self._plan(pods[0], charge)
            if plan is None:
                self._queue.note_ruled(gang)
                return
            charge = await self._ask(gang, charge, plan)
        raise ConflictError(f"the charge of gang {gang.key} changed at every attempt to raise it")

    def _expected(self, pods: Sequence[ManagedPod]) -> Charge | None:
        if not pods:
            return None
        classes = self._policies.policy.classes
        return to_charge(pods[0], classes=classes, sizes=self._sizes)

    async def _plan(self, pod: ManagedPod, charge: Charge) -> Raise | None:
        policy, usage = self._policies.policy, None
        if needs_usage(pod, charge, policy):
            held = await self._ledger.usage(Scope(charge.user))
            usage = Occupancy(occupied=held.leaf_cells, occupied_high=held.leaf_cells_high)
        return plan_raise(pod, charge, policy, usage=usage)

    async def _ask(self, gang: OverflowGang, charge: Charge, plan: Raise) -> Charge | None:
        """Ask the ledger; return the gang's charge if that is another one, to ask again."""
        answer = await self._ledger.raise_class(
            charge,
            plan.class_name,
            is_high=plan.is_high,
            limits=(*plan.ranges, *plan.quotas),
            term=self._term(),
        )
        match answer:
            case Charged(live=live, usage=usage):
                self._queue.note_raised(gang)
                self._note_raised(live.charge)
                self._report(live.charge, describe_room_for(live.charge, plan.quotas, usage))
                await self._mark(gang.key)
            case Refused(exceeded=exceeded):
                self._queue.note_refused(exceeded)
            case Held(live=live) if live.charge.raised_from is not None:
                self._complete(live.charge)  # the answer to an earlier call was lost
                await self._mark(gang.key)
            case Held(live=live) if live.charge.rises_to is not None:
                return live.charge  # it has grown, or another process holds its row
            case Held() | None:
                # Within quota, or not charged: nothing to raise until a comparison changes that.
                self._queue.note_ruled(gang)
        return None

    def _note_raised(self, charge: Charge) -> None:
        self._queue.remove(charge.gang)
        self._raised[charge.gang] = charge
        self._unmarked[charge.gang] = None

    def _complete(self, charge: Charge) -> None:
        """Take over a raise whose leader may have ended before all pods stated it."""
        self._note_raised(charge)
        if any(not self._is_marked(pod, charge) for pod in self._members(charge.gang)):
            self._report(charge, "decided earlier, and its pods state it now")

    def _report(self, charge: Charge, why: str) -> None:
        for first in self._members(charge.gang)[:1]:
            reason = f"{describe_raise(first, charge)}: {why}"
            self._outcomes.gang_raised(first, charge, why=reason)

    # -- what the pods state

    def _is_marked(self, pod: ManagedPod, charge: Charge) -> bool:
        return self._pods.effective.is_stated(pod, charge.class_name)

    async def _mark_all(self) -> KubeError | None:
        """Mark all raised gangs; return why a pod was refused, which concerns no other gang."""
        refused = None
        for key in list(self._unmarked):
            try:
                await self._mark(key)
            except KubeError as exc:
                if not exc.status:
                    raise
                refused = exc
        return refused

    async def _mark(self, key: GangKey) -> None:
        """Write the effective class on each pod of a gang that does not state it."""
        charge = self._raised.get(key)
        if charge is None:
            return  # its last pod has ended meanwhile
        pods = [pod for pod in self._members(key) if not self._is_marked(pod, charge)]
        for start in range(0, len(pods), _AT_ONCE):
            writes = [
                self._marker.mark_class(PodRef.of(pod), charge.class_name)
                for pod in pods[start : start + _AT_ONCE]
            ]
            for failure in await asyncio.gather(*writes, return_exceptions=True):
                if failure is not None:
                    raise failure
        self._unmarked.pop(key, None)
