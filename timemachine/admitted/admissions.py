"""What the webhook would decide about an arrival: class, VC, rules, quotas, by usage in memory."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from policy.admission.charge_request import ChargeRequest, build_charge
from policy.admission.gang_decision import GangDecision
from policy.admission.preview import decide, occupancy_of
from policy.errors import RequestError
from policy.policy import Policy
from policy.quotas.charge import Charge
from policy.quotas.held_usage import HeldUsage
from policy.quotas.limits import Scope
from policy.rules.decision import Outcome
from policy.submission import ClassName, GangKey, Submission
from timemachine.model import Arrival

_CLASS: Final = "spec.priorityClassName"
_GROUP: Final = "metadata.labels[cellgate.io/group]"
_VC: Final = "metadata.labels[cellgate.io/vc]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The decision about one arrival."""

    outcome: Outcome
    class_name: ClassName
    reason: str = ""
    """Why it is refused, waits for quota or has a lower class."""
    charge: Charge | None = None
    """What it is charged, now or once there is room; None if it is refused."""
    is_lowered: bool = False
    """Whether it gets a lower class than it asked for."""
    request: ChargeRequest | None = None
    """What it asked rules and quotas for; None if it was refused before they were asked."""


class Admissions:
    """Decides about arrivals, and holds their charges."""

    def __init__(self, policy: Policy, usage: HeldUsage) -> None:
        self._policy = policy
        self._usage = usage
        self._decided = 0

    def admit(self, arrival: Arrival, key: GangKey) -> Admitted:
        """Decide about an arrival, and charge it unless it is refused or waits for quota."""
        try:
            request = self._request(arrival, key)
            made = decide(
                request,
                usage=self._usage.of,
                occupancy=occupancy_of(self._usage.of(Scope(request.submission.user))),
            )
        except RequestError as exc:
            refused = arrival.requested_class
            return Admitted(outcome=Outcome.REFUSED, class_name=refused, reason=str(exc))
        decision, charge = made.decision, made.charge
        if charge is not None:
            self._usage.charge(charge)
        elif decision.outcome is Outcome.QUEUED:
            charge = build_charge(request, decision.gang_class)
        return Admitted(
            outcome=decision.outcome,
            class_name=decision.gang_class,
            reason=_reason(decision),
            is_lowered=decision.is_lowered,
            charge=charge,
            request=request,
        )

    def _request(self, arrival: Arrival, key: GangKey) -> ChargeRequest:
        """Return what the webhook would ask rules and quotas; RequestError if it would refuse."""
        policy, user = self._policy, arrival.user
        groups = policy.identity.groups_of(user, arrival.groups)
        policy.identity.check_vc(arrival.vc, user=user, groups=groups, path=_VC)
        self._decided += 1
        return ChargeRequest(
            submission=Submission(
                user=user,
                groups=groups,
                vc=arrival.vc,
                requested_class=policy.classes.resolve(arrival.requested_class, path=_CLASS),
                gang=key,
                gang_size=len(arrival.sizes),
                leaf_count=arrival.leaf_cells,
                cpu_millis=arrival.cpu_millis,
                memory_bytes=arrival.memory_bytes,
                leaf_type=arrival.leaf_type,
                labels=arrival.labels,
            ),
            group=policy.quotas.find(
                user,
                groups,
                named=arrival.charged_group,
                path=_GROUP,
                by_identity=policy.identity.groups_of(user, ()),
            ),
            decision=UUID(int=self._decided),
            policy=policy,
            is_alone=len(arrival.sizes) == 1,
        )


def _reason(decision: GangDecision) -> str:
    """Say what was decided, if it is not what was asked for."""
    if decision.outcome is Outcome.REFUSED:
        return decision.admission.format_refusal()
    if decision.is_lowered or decision.outcome is Outcome.QUEUED:
        return " ".join(decision.explain())
    return ""
