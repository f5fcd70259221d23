"""Stops asking a ledger that does not answer, so that one review at a time pays for the wait."""

from collections.abc import Callable


class Breaker:
    """Closed while the ledger answers; after a failure one attempt is let through now and then."""

    def __init__(self, *, monotonic: Callable[[], float], pause_seconds: float = 1.0) -> None:
        self._monotonic = monotonic
        self._pause_seconds = pause_seconds
        self._next_attempt: float | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the ledger should be asked; True takes the attempt."""
        if self._next_attempt is None:
            return True
        now = self._monotonic()
        if now < self._next_attempt:
            return False
        self._next_attempt = now + self._pause_seconds
        return True

    def note_success(self) -> None:
        """The ledger answered."""
        self._next_attempt = None

    def note_failure(self) -> None:
        """The ledger did not answer."""
        self._next_attempt = self._monotonic() + self._pause_seconds
