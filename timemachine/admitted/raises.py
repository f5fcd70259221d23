"""Gangs that quotas lowered get their class when the quotas have room, as in the product.

The gang that was asked for first is raised before the others. A gang that cannot be raised is tried
again when its accounts hold less, and when a new day begins.
"""

from collections.abc import Iterable
from dataclasses import replace

from policy.admission.charge_request import ChargeRequest
from policy.policy import Policy
from policy.quotas.charge import Charge, find_exceeded
from policy.quotas.held_usage import HeldUsage
from policy.quotas.limits import Scope
from policy.quotas.overflow import OverflowGang, OverflowQueue
from policy.rules.decision import Outcome
from policy.submission import ClassName, GangKey, Occupancy


class Raises:
    """The gangs that run beyond the quotas of their group."""

    def __init__(self, policy: Policy, usage: HeldUsage) -> None:
        self._policy = policy
        self._usage = usage
        self._queue = OverflowQueue()
        self._asked: dict[GangKey, tuple[ChargeRequest, Charge]] = {}
        self._has_news = False

    def put(self, request: ChargeRequest, charge: Charge, *, asked: float) -> None:
        """Note a charge; only one beyond quotas can be raised."""
        if charge.rises_to in (None, charge.class_name):
            return
        assert charge.rises_to is not None
        self._asked[charge.gang] = request, charge
        self._queue.put(
            OverflowGang(
                key=charge.gang,
                user=charge.user,
                group=charge.group,
                asked_at=asked,
                leaf_count=charge.leaf_count,
                cpu_millis=charge.cpu_millis,
                memory_bytes=charge.memory_bytes,
                leaf_type=charge.leaf_type,
                is_high=self._policy.classes.is_high(charge.rises_to),
            )
        )
        self._has_news = True

    def remove(self, gang: GangKey) -> None:
        """Forget a gang that has ended."""
        if self._asked.pop(gang, None) is not None:
            self._queue.remove(gang)

    def free(self, scopes: Iterable[Scope]) -> None:
        """Note that these hold less."""
        if self._asked:
            self._queue.free(scopes)
            self._has_news = True

    def free_all(self) -> None:
        """Note that a new day begins."""
        self._queue.free_all()
        self._has_news = True

    def work(self) -> list[Charge]:
        """Raise the gangs that fit; return their new charges, in the order of the raises."""
        if not self._has_news:
            return []
        self._has_news = False
        tried = (
            self._try(gang) for gang in self._queue.oldest_first() if self._queue.may_fit(gang)
        )
        return [raised for raised in tried if raised is not None]

    def _try(self, gang: OverflowGang) -> Charge | None:
        request, charge = self._asked[gang.key]
        target = self._target(request, charge)
        if target is None:
            self._queue.note_ruled(gang)
            return None
        raised = replace(
            charge,
            class_name=target,
            is_high=self._policy.classes.is_high(target),
            rises_to=None,
            raised_from=charge.class_name,
        )
        group = None if charge.group is None else self._policy.quotas.group(charge.group)
        limits = () if group is None else group.limits(charge.user)
        exceeded = tuple(find_exceeded(raised, limits, self._usage.of))
        if exceeded:
            self._queue.note_refused(exceeded)
            return None
        self._usage.release(charge)
        self._usage.charge(raised)
        del self._asked[gang.key]
        self._queue.note_raised(gang)
        return raised

    def _target(self, request: ChargeRequest, charge: Charge) -> ClassName | None:
        """Return the class to which the rules let a gang rise; None if they do not."""
        classes, wanted = self._policy.classes, charge.rises_to
        held = self._usage.of(Scope(charge.user))
        others = Occupancy(
            occupied=max(0, held.leaf_cells - charge.leaf_count),
            occupied_high=max(0, held.leaf_cells_high - charge.leaf_count * charge.is_high),
        )
        rules = self._policy.rules.decide(request.submission, usage=others, classes=classes)
        if rules.outcome is Outcome.REFUSED or wanted is None:
            return None
        target = rules.final_class if classes.is_lower(rules.final_class, wanted) else wanted
        return target if classes.is_lower(charge.class_name, target) else None
