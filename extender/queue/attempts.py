"""Actions that were started and whose effect is not seen yet: one at a time for each pod.

The planner relies on the pods that it sees, not on answers of the API server. The effect of an
action that succeeded shows a moment later. A failed action is retried after growing pauses.
"""

from dataclasses import dataclass

from extender.queue.model import Action, EvictPod
from policy.submission import PodUid

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 10.0
# Long enough for a slow watch to show the effect, short enough if the watch has lost it.
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
        """Tell whether no action is in progress for the pod, and its pause is over."""
        latest = self._of.get(action.uid)
        if latest is None:
            return True
        is_new = latest.action != action and latest.not_before != _NEVER and not latest.failures
        return is_new or now >= latest.not_before

    def begin(self, action: Action) -> None:
        """Note that an action has started."""
        latest = self._of.get(action.uid)
        failures = latest.failures if latest is not None and latest.action == action else 0
        self._of[action.uid] = _Attempt(action, failures)

    def succeed(self, action: Action, *, now: float) -> None:
        """Note that an action succeeded. A pod that is being ended may take its grace period."""
        latest = self._of.get(action.uid)
        if latest is not None and latest.action == action:
            latest.failures = 0
            latest.not_before = _NEVER if isinstance(action, EvictPod) else now + _UNSEEN_SECONDS

    def fail(self, action: Action, *, now: float) -> None:
        """Note that an action failed, or that its result is unknown."""
        latest = self._of.get(action.uid)
        if latest is not None and latest.action == action:
            pause = min(_FIRST_PAUSE_SECONDS * 2**latest.failures, _LONGEST_PAUSE_SECONDS)
            latest.failures = min(latest.failures + 1, 10)
            latest.not_before = now + pause

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that is bound or gone."""
        self._of.pop(uid, None)

    def is_under_way(self, uid: PodUid) -> bool:
        """Tell whether an action on the pod is in progress."""
        latest = self._of.get(uid)
        return latest is not None and latest.not_before == _NEVER

    def due(self, now: float) -> list[Action]:
        """Return the actions whose pause is over."""
        return [latest.action for latest in self._of.values() if latest.not_before <= now]
