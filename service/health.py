"""Whether a service is alive and ready: one object per service, read by `/healthz` and `/readyz`.

A *condition* must be met before the service may answer ("pods synced"). A *fault* needs a restart
(a background task died). Draining means that the process was asked to end: it still answers, but
should get no new callers.
"""

import logging
from collections.abc import Iterable

logger = logging.getLogger(__name__)


class Health:
    """The conditions and faults of one service."""

    def __init__(self, conditions: Iterable[str] = ()) -> None:
        self._unmet = dict.fromkeys(conditions)
        self._faults: list[str] = []
        self.is_draining = False

    @property
    def is_ready(self) -> bool:
        """True if every condition is met, there is no fault, and the service is not draining."""
        return self.can_answer and not self.is_draining

    @property
    def can_answer(self) -> bool:
        """True if answers are correct; also while draining, for requests in flight."""
        return not (self._unmet or self._faults)

    @property
    def is_alive(self) -> bool:
        """False if only a restart helps."""
        return not self._faults

    @property
    def unmet(self) -> tuple[str, ...]:
        """Conditions that are not met yet."""
        return tuple(self._unmet)

    def reasons(self) -> list[str]:
        """List why the service is not ready, in a stable order."""
        waiting = [f"waiting for: {condition}" for condition in self._unmet]
        draining = ["ending: asked to stop"] if self.is_draining else []
        return [*self._faults, *waiting, *draining]

    def expect(self, *conditions: str) -> None:
        """Add conditions."""
        self._unmet |= dict.fromkeys(conditions)

    def meet(self, condition: str) -> None:
        """Mark a condition as met."""
        if condition in self._unmet:
            del self._unmet[condition]
            logger.info("condition met", extra={"condition": condition})

    def fault(self, text: str) -> None:
        """Record a fault: only a restart helps."""
        self._faults.append(text)
