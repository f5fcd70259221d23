"""What was asked of the world and is not seen done yet: one thing at a time for each pod.

The planner looks only at what it sees. An action that succeeded shows a moment later; one that
failed is tried again, ever more slowly. Whatever an answer said, it is the next look that counts.
"""

from dataclasses import dataclass

from extender.queue.model import Action, End
from policy.submission import PodUid

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 10.0
# Long enough for a slow watch to show what was done, short enough for one that lost it.
_UNSEEN_SECONDS = 5.0
_NEVER = float("inf")


@dataclass(slots=True)
class _Attempt:
    action: Action
    failures: int = 0
    not_before: float = _NEVER


class Attempts:
    """The latest attempt for each pod."""

    def __init__(self) -> None:
        self._of: dict[PodUid, _Attempt] = {}

    def may_begin(self, action: Action, *, now: float) -> bool:
        """Whether nothing is under way for the pod, and its pause is over."""
        latest = self._of.get(action.uid)
        if latest is None:
            return True
        is_new = latest.action != action and latest.not_before != _NEVER and not latest.failures
        return is_new or now >= latest.not_before

    def begin(self, action: Action) -> None:
        """It is being done now."""
        latest = self._of.get(action.uid)
        failures = latest.failures if latest is not None and latest.action == action else 0
        self._of[action.uid] = _Attempt(action, failures)

    def succeed(self, action: Action, *, now: float) -> None:
        """It was done; wait until it shows. A pod that is being ended takes all the time it has."""
        latest = self._of.get(action.uid)
        if latest is not None and latest.action == action:
            latest.failures = 0
            latest.not_before = _NEVER if isinstance(action, End) else now + _UNSEEN_SECONDS

    def fail(self, action: Action, *, now: float) -> None:
        """It was not done, as far as we know."""
        latest = self._of.get(action.uid)
        if latest is not None and latest.action == action:
            pause = min(_FIRST_PAUSE_SECONDS * 2**latest.failures, _LONGEST_PAUSE_SECONDS)
            latest.failures = min(latest.failures + 1, 10)
            latest.not_before = now + pause

    def forget(self, uid: PodUid) -> None:
        """The pod is gone."""
        self._of.pop(uid, None)

    def is_under_way(self, uid: PodUid) -> bool:
        """Whether the world may be changing the pod at this moment."""
        latest = self._of.get(uid)
        return latest is not None and latest.not_before == _NEVER

    def due(self, now: float) -> list[Action]:
        """What may be tried again, since its pause is over: worth another look."""
        return [latest.action for latest in self._of.values() if latest.not_before <= now]
