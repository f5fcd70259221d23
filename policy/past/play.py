"""One play of a day: submissions, charges, ends, and gangs that wait for quota.

What is not played: the raise of gangs beyond quota, members that come later, and leaf-cell-hours
that were used before the day began.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from policy.admission.charge_request import ChargeRequest, build_charge
from policy.admission.gang_decision import apply_rules
from policy.admission.logged import GROUP_LABEL
from policy.errors import RequestError
from policy.past.gangs import PastDay, PastGang, known_groups
from policy.policy import Policy
from policy.quotas.admission import over_quota
from policy.quotas.charge import Charge, find_exceeded
from policy.quotas.held_usage import HeldUsage
from policy.quotas.limits import Scope
from policy.rules.decision import Outcome, RuleDecision
from policy.rules.rule_table import RuleTable
from policy.submission import ClassName, GroupName, Occupancy, Submission, UserName, VcName

_CLASS: Final = "spec.priorityClassName"
_VC: Final = "metadata.labels[cellgate.io/vc]"
_GROUP: Final = f"metadata.labels[{GROUP_LABEL}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What was decided about a gang."""

    outcome: Outcome
    class_name: ClassName


@dataclass(frozen=True, slots=True)
class _Waiting:
    gang: PastGang
    request: ChargeRequest
    charge: Charge


class PastPlay:
    """A day, played under one policy."""

    def __init__(self, day: PastDay, policy: Policy) -> None:
        self._day = day
        self._policy = policy
        self._matcher = _KnownMatches(policy.rules)
        self._usage = HeldUsage(counts_time=_limits_hours(policy))
        self._ends: list[tuple[float, int, Charge]] = []
        self._waiting: dict[Scope, list[_Waiting]] = {}
        self._count = 0
        self.fates: list[Fate] = []
        """In the order of the day's gangs."""
        self.hits: Counter[int] = Counter()
        """How many gangs each rule has matched with effect, by its place."""

    def run(self) -> Iterator[None]:
        """Play the day; yields after each gang."""
        self._usage.clock = self._day.since
        for one in self._day.held:
            self._hold(one.charge, until=one.until)
        for gang in self._day.gangs:
            self._end_until(gang.at)
            self._usage.clock = gang.at
            self.fates.append(self._submit(gang))
            yield

    def _submit(self, gang: PastGang) -> Fate:
        try:
            request = self._request(gang.request)
        except RequestError:
            asked = gang.request.submission.requested_class
            return Fate(outcome=Outcome.REFUSED, class_name=asked)
        held = self._usage.account(Scope(request.submission.user)).held
        usage = Occupancy(occupied=held.cells, occupied_high=held.high)
        rules = apply_rules(request, usage, matcher=self._matcher)
        self.hits.update(hit.index for hit in rules.hits)
        if rules.outcome is Outcome.REFUSED:
            return Fate(outcome=Outcome.REFUSED, class_name=rules.final_class)
        return self._compare(gang, request, rules)

    def _compare(self, gang: PastGang, request: ChargeRequest, rules: RuleDecision) -> Fate:
        """Compare a gang that rules admit with its quotas, and charge it or let it wait."""
        charge = build_charge(request, rules.final_class)
        exceeded = tuple(find_exceeded(charge, request.quotas, self._usage.account))
        if not exceeded or request.group is None:
            self._charge(gang, charge)
            return Fate(outcome=Outcome.ADMITTED, class_name=rules.final_class)
        over = over_quota(rules, request.group, exceeded, classes=self._policy.classes)
        if over.outcome is Outcome.ADMITTED:
            beyond = build_charge(request, over.class_after, rises_to=over.class_before)
            self._charge(gang, beyond)
        elif over.outcome is Outcome.QUEUED:
            waiting = _Waiting(gang, request, charge)
            self._waiting.setdefault(Scope(None, charge.group), []).append(waiting)
        return Fate(outcome=over.outcome, class_name=over.class_after)

    def _request(self, recorded: ChargeRequest) -> ChargeRequest:
        """Ask this policy. Raises RequestError if it would not let the gang ask."""
        policy, asked = self._policy, recorded.submission
        identity = policy.identity
        groups = asked.groups
        if recorded.policy is not policy:
            groups = identity.groups_of(asked.user, known_groups(recorded))
        identity.check_vc(asked.vc, user=asked.user, groups=groups, path=_VC)
        named = GroupName(asked.labels.get(GROUP_LABEL, "")) or None
        own = identity.members.get(asked.user, ())
        paying = policy.quotas.find(asked.user, groups, named=named, path=_GROUP, by_identity=own)
        class_name = policy.classes.resolve(asked.requested_class, path=_CLASS)
        if (groups, class_name) != (asked.groups, asked.requested_class):
            asked = replace(asked, groups=groups, requested_class=class_name)
        is_same = recorded.policy is policy and recorded.group is paying
        if is_same and recorded.submission is asked:
            return recorded
        return replace(recorded, submission=asked, group=paying, policy=policy)

    def _charge(self, gang: PastGang, charge: Charge) -> None:
        until = None if gang.held_seconds is None else self._usage.clock + gang.held_seconds
        self._hold(charge, until=until)

    def _hold(self, charge: Charge, *, until: float | None) -> None:
        self._usage.charge(charge)
        if until is not None and until <= self._day.until:
            self._count += 1
            heapq.heappush(self._ends, (until, self._count, charge))

    def _end_until(self, moment: float) -> None:
        while self._ends and self._ends[0][0] <= moment:
            ended, _, charge = heapq.heappop(self._ends)
            self._usage.clock = ended
            self._usage.release(charge)
            self._retry(Scope(None, charge.group))

    def _retry(self, scope: Scope) -> None:
        """Charge gangs that waited for the quota of a group, in their order, while they fit."""
        waiting = self._waiting.get(scope, [])
        while waiting:
            first = waiting[0]
            if any(find_exceeded(first.charge, first.request.quotas, self._usage.account)):
                return
            del waiting[0]
            self._charge(first.gang, first.charge)


class _KnownMatches:
    """Finds which rules match names, once for each submitter: they submit again and again."""

    def __init__(self, table: RuleTable) -> None:
        self._table = table
        self._rules: dict[tuple[UserName, VcName, tuple[GroupName, ...]], int] = {}
        self._classes: dict[ClassName, int] = {}
        self.answer = table.answer

    def for_submission(self, submission: Submission) -> int:
        """Return, as a bit set, the rules for this submitter and VC in any class."""
        names = submission.user, submission.vc, submission.groups
        known = self._rules.get(names)
        if known is None:
            known = self._rules[names] = self._table.for_submission(submission)
        return known

    def for_class(self, name: ClassName) -> int:
        """Return, as a bit set, the rules for this class."""
        known = self._classes.get(name)
        if known is None:
            known = self._classes[name] = self._table.for_class(name)
        return known


def _limits_hours(policy: Policy) -> bool:
    """Tell whether any quota counts leaf-cell-hours."""
    allowances = (
        one
        for group in policy.quotas.groups
        for one in (
            group.allowance,
            group.each_user,
            *group.users.values(),
            *group.billed_users.values(),
        )
    )
    return any(measure.is_hours for one in allowances for measure in one.most)
