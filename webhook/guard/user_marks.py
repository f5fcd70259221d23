"""The annotations of a pod that users change themselves, each by its own rules."""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.follow.policies import PolicySink
from webhook.guard.gang_roles import GangRoles
from webhook.guard.hold_guard import HOLD_MARKS, HoldGuard
from webhook.guard.swap_guard import SWAP_MARKS, SwapGuard
from webhook.wire import UserInfo

USER_MARKS: Final = frozenset(
    {marks.CANCEL_ANNOTATION, marks.HOLD_ANNOTATION, marks.SWAP_ANNOTATION}
)
"""The annotations that users write; the others follow from them."""


class UserMarks:
    """Decides which annotations a user may change on a pod."""

    def __init__(self, policies: PolicySink, *, admins: tuple[str, ...]) -> None:
        """`admins` are the users and groups that may change everything."""
        self.roles = GangRoles(policies, admins=admins)
        self.holds = HoldGuard(policies, admins=admins)
        self.swaps = SwapGuard(policies, self.roles)

    def free(
        self, user: UserInfo, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return the annotations that a change of a pod by a user may touch. Raises RequestError.

        A change of its status may touch none: the reviews that write who changes a hold or a swap
        are not asked about it.
        """
        return (
            *(HOLD_MARKS if self.holds.check_recorded(user, before, after) else ()),
            *(SWAP_MARKS if self.swaps.check_recorded(user, before, after) else ()),
            *((marks.CANCEL_ANNOTATION,) if self.roles.may_say_why(user, before, after) else ()),
        )
