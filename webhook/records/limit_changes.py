"""Records changes of limits by a billing system: a row of the decision log, and an Event."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kube.api.events import Event, EventWriter
from policy.quotas.billing import BilledLimits, describe_billing
from policy.wording import name
from service.clock import Clock
from state.log.log import DecisionLog
from state.log.records import DecisionRecord

_KIND: Final = "limits"
_REASON: Final = "LimitsChanged"


class LimitChanges:
    """Writes down who changed which limits until when."""

    def __init__(self, *, log: DecisionLog, events: EventWriter, clock: Clock) -> None:
        self._log = log
        self._events = events
        self._clock = clock

    def now(self) -> datetime:
        """Return the time, for limits that must end."""
        return self._clock.now()

    def record(
        self,
        config_map: Mapping[str, Any],
        before: Sequence[BilledLimits],
        after: Sequence[BilledLimits],
        *,
        editor: str,
    ) -> None:
        """Record a change of the Billing document; nothing if no limit differs."""
        changes = describe_billing(before, after)
        for change in changes:
            message = f"{name(editor)} {change}"
            self._events.write(
                Event.about(config_map, reason=_REASON, message=message, is_warning=False)
            )
            self._log.append(
                DecisionRecord(
                    at=self._clock.now(),
                    service="webhook",
                    kind=_KIND,
                    subject=f"billing/{name(editor)}",
                    outcome="changed",
                    reason=message,
                    latency_seconds=0.0,
                    details={"editor": editor},
                )
            )
