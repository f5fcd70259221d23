"""Is this process alive, is it ready? One object per service, read by `/healthz` and `/readyz`.

A *condition* is something that must be true before the service may answer ("pods synced"). A
*fault* is something that only a restart can mend (a background task died). Draining means that the
process was asked to end: it still answers, but wants no new callers.
"""

import logging
from collections.abc import Iterable

logger = logging.getLogger(__name__)


class Health:
    """What stands between a service and being ready."""

    def __init__(self, conditions: Iterable[str] = ()) -> None:
        self._unmet = dict.fromkeys(conditions)
        self._faults: list[str] = []
        self.is_draining = False

    @property
    def is_ready(self) -> bool:
        """True when every condition is met, nothing is broken and nobody asked us to end."""
        return self.can_answer and not self.is_draining

    @property
    def can_answer(self) -> bool:
        """True when an answer would be right; also while draining, for what is still in flight."""
        return not (self._unmet or self._faults)

    @property
    def is_alive(self) -> bool:
        """False when only a restart helps."""
        return not self._faults

    @property
    def unmet(self) -> tuple[str, ...]:
        """Conditions that are not true yet."""
        return tuple(self._unmet)

    def reasons(self) -> list[str]:
        """Say what keeps the service from being ready, in a stable order."""
        waiting = [f"waiting for: {condition}" for condition in self._unmet]
        draining = ["ending: asked to stop"] if self.is_draining else []
        return [*self._faults, *waiting, *draining]

    def expect(self, *conditions: str) -> None:
        """Wait for more."""
        self._unmet |= dict.fromkeys(conditions)

    def meet(self, condition: str) -> None:
        """Note that a condition is true now."""
        if condition in self._unmet:
            del self._unmet[condition]
            logger.info("condition met", extra={"condition": condition})

    def fault(self, text: str) -> None:
        """Note something that only a restart can mend."""
        self._faults.append(text)
