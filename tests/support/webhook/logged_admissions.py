"""A log of admission decisions of every kind, made by a webhook over a ledger in memory."""

import random
from dataclasses import replace
from typing import Final

from prometheus_client import CollectorRegistry

from policy.admission.charge_request import ChargeRequest
from policy.errors import RequestError
from policy.policy import Policy
from policy.quotas.charge import CpuAndMemory
from policy.submission import GroupName
from service.clock import Clock
from state.log.log import DecisionLog
from tests.support.kube.events import KeptEvents
from tests.support.state.charges import TERM
from tests.support.twins.log import MemoryDecisions
from tests.support.webhook.admission_world import AdmissionWorld, a_policy
from webhook.metrics import WebhookMetrics
from webhook.records.decision_recorder import DecisionRecorder
from webhook.records.pending_events import PendingEvents

RULES: Final = """
- {user: ^mallory, then: fail}
- {user: ^erin$, current: "> 15", then: fail}
- {user: ^(alice|bob)$, priority: prod, occupied: "> 40", then: oppo, note: beyond forty}
- {priority: prod, current: "> 12", then: test}
- {group: ^guests$, occupiedHigh: ">= 8", then: oppo}
- {when: 'labels.exists(l, l == "night") && current > 2', then: oppo}
- {user: carol, when: 'labels["tier"] == "gold"', then: retain}
- {priority: test, occupiedLow: "> 30", then: fail}
"""
QUOTAS: Final = """groups:
- name: vision
  limits: {leafCells: 48, gangs: 12}
  over: oppo
  users: [{name: alice}, {name: bob}]
- name: speech
  limits: {leafCells: 20, cpu: 160}
  over: queue
  users: [{name: carol, limits: {leafCells: 16}}]
- name: guests
  limits: {leafCellsHigh: 16, byLeafType: {A100: 12}, leafCellHours: {day: 300}}
  over: fail
- name: robots
  limits: {leafCells: 24, cpu: 192}
  over: fail
  users: [{name: erin}]
"""
_USERS: Final = ("alice", "bob", "carol", "dave", "erin", "erin", "mallory-7")
_LABELS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"tier": "gold"},
    {"night": "1", "tier": "silver"},
)


def the_policies() -> tuple[Policy, Policy]:
    """Return what is in force at first, and later."""
    later = RULES.replace('"> 40"', '"> 24"').replace('"> 30"', '">= 24"')
    return a_policy(rules=RULES, quotas=QUOTAS), a_policy(rules=later, quotas=QUOTAS)


class LoggedAdmissions:
    """A webhook that is asked at random, and what it has logged."""

    def __init__(self, *, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._policies = the_policies()
        self.world = AdmissionWorld(self._policies[0])
        self.store = MemoryDecisions()
        self._log = DecisionLog(self.store)
        self._replica = self.world.replica()
        clock = Clock(now=self.world.clock)
        self._recorder = DecisionRecorder(
            log=self._log,
            metrics=WebhookMetrics(CollectorRegistry()),
            events=PendingEvents(KeptEvents()),
            clock=clock,
        )
        self._gangs: list[ChargeRequest] = []

    async def run(self, steps: int = 400) -> MemoryDecisions:
        """Ask so many times."""
        for step in range(steps):
            if step == steps // 2:
                self.world.policy = self._policies[1]
            self.world.ledger.is_away = steps * 6 // 10 < step < steps * 7 // 10
            self.world.clock.advance(seconds=self._random.uniform(0, 300))
            await self._step(step)
        await self._log.flush()
        return self.store

    async def _step(self, step: int) -> None:
        if self._random.random() < 0.3 and not self.world.ledger.is_away:
            await self._end_some()
        grows = [one for one in self._gangs if not one.is_alone]
        if grows and self._random.random() < 0.3:
            await self._decide(self._member_of(self._random.choice(grows)))
        else:
            await self._decide(self._new(step))

    async def _end_some(self) -> None:
        live = [one.charge.gang for one in await self.world.ledger.charges()]
        ended = [gang for gang in live if self._random.random() < 0.4]
        await self.world.ledger.confirm(ended, term=TERM)
        await self.world.ledger.release(ended, term=TERM)
        self._gangs = [one for one in self._gangs if one.submission.gang not in ended]

    def _new(self, step: int) -> ChargeRequest:
        pick, user = self._random.choice, self._random.choice(_USERS)
        size, own = pick((1, 1, 2, 4)), pick((1, 2, 4, 8))
        asked = self.world.ask(
            f"gang-{step}",
            user=user,
            cells=size * own,
            size=size,
            class_name=pick(("prod", "prod", "test", "oppo")),
            leaf_type=pick((None, "A100")),
            groups=(GroupName("guests"),) if user == "dave" else (),
            labels=pick(_LABELS),
            cpu_millis=size * own * 4000,
            memory_bytes=size * own * 2**34,
        )
        policy, submission = asked.policy, asked.submission
        member = CpuAndMemory(cpu_millis=own * 4000, memory_bytes=own * 2**34)
        return replace(
            asked,
            group=policy.quotas.find(
                submission.user, submission.groups, named=None, path="", by_identity=()
            ),
            member=member,
            own_leaf_count=own,
            member_leaf_count=None if size == 1 else own,
        )

    def _member_of(self, first: ChargeRequest) -> ChargeRequest:
        """Ask for one more member, which may want more than the first."""
        own = self._random.choice((1, 4, 8, 16))
        submission, policy = first.submission, self.world.policy
        size = submission.gang_size
        asked = self.world.ask(
            submission.gang.name,
            user=submission.user,
            cells=own * size,
            size=size,
            class_name=submission.requested_class,
            leaf_type=submission.leaf_type,
            groups=submission.groups,
            labels=submission.labels,
            cpu_millis=own * size * 8000,
        )
        return replace(
            asked,
            group=first.group and policy.quotas.group(first.group.name),
            member=CpuAndMemory(cpu_millis=own * 8000),
            own_leaf_count=own,
            member_leaf_count=own,
        )

    async def _decide(self, request: ChargeRequest) -> None:
        try:
            decision = await self._replica.admit(request)
        except RequestError:
            return
        if decision.is_new and decision.outcome == "admitted":
            self._gangs.append(request)
        self._recorder.record(decision, request, is_dry_run=False, seconds=0.001)
