"""Swaps of two gangs in the queue: which users may ask for them, and between which gangs.

The leader decides last whether a swap is in force: only it knows the order and the reservations.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kube import marks
from kube.follow.policies import PolicySink
from kube.lives.pod_swaps import SWAP_PATH, read_pod_swap
from kube.read.managed_pod import ManagedPod
from kube.values.objects import marks_of
from policy.classes import OPPORTUNISTIC
from policy.errors import RequestError
from policy.queues.holds import STRENGTH, HoldRole, only_by
from policy.queues.pools import Pool
from policy.topology import PinnedCellId
from policy.wording import describe
from webhook.guard.gang_roles import UNRECORDED, GangRoles
from webhook.wire import UserInfo

SWAP_MARKS: Final = (marks.SWAP_ANNOTATION, marks.SWAPPED_BY_ANNOTATION)
"""The annotations that change with a swap."""
_STARTED: Final = "has started, or is about to: it has no place in the queue"


class SwapGuard:
    """Decides which users may swap which gangs."""

    def __init__(self, policies: PolicySink, roles: GangRoles) -> None:
        self._policies = policies
        self._roles = roles.of

    def check_own(self, user: UserInfo, pod: ManagedPod, after: Mapping[str, Any]) -> HoldRole:
        """Return as what a user may change the swap of a pod's gang. Raises RequestError."""
        roles = self._roles(user, pod)
        if not roles:
            who = only_by(pod.charged_user, pod.charged_group)
            raise RequestError.at(SWAP_PATH, f"{who} may swap it")
        if pod.swap is not None and STRENGTH[roles[-1]] < STRENGTH[pod.swap.role]:
            message = f"{pod.swap.describe_user()} swapped it: that is not yours to change"
            raise RequestError.at(SWAP_PATH, message)
        if not pod.is_gated and swap_text(after) is not None:
            raise RequestError.at(SWAP_PATH, f"gang {pod.gang.key} {_STARTED}")
        return roles[0]

    def choose(
        self, user: UserInfo, pod: ManagedPod, found: Sequence[ManagedPod], *, name: str
    ) -> ManagedPod:
        """Return a pod of the gang that a pod's gang may be swapped with. Raises RequestError.

        `found` are the pods that a name may mean. A gang of another user is not told apart from
        one that does not exist.
        """
        allowed = [one for one in found if self._roles(user, one)]
        if not allowed:
            raise RequestError.at(SWAP_PATH, f"there is no gang or pod {name} that you may swap")
        gangs = {one.gang.key for one in allowed}
        if len(gangs) > 1:
            message = f"{name} names {len(gangs)} gangs; name a pod of the one that you mean"
            raise RequestError.at(SWAP_PATH, message)
        other = next((one for one in allowed if one.is_gated), allowed[0])
        self._check_pair(pod, other)
        return other

    def _check_pair(self, pod: ManagedPod, other: ManagedPod) -> None:
        gang = other.gang.key
        if gang == pod.gang.key:
            raise RequestError.at(SWAP_PATH, "must name another gang, not the gang itself")
        if other.is_finished or other.is_deleting:
            raise RequestError.at(SWAP_PATH, f"gang {gang} has ended, or is about to")
        if not other.is_gated:
            raise RequestError.at(SWAP_PATH, f"gang {gang} {_STARTED}")
        ours, theirs = self._pool(pod), self._pool(other)
        if ours != theirs:
            message = (
                f"gang {gang} waits for cells of {theirs.describe()}, this gang for cells of "
                f"{ours.describe()}"
            )
            raise RequestError.at(SWAP_PATH, f"{message}: only gangs of one pool can be swapped")
        if other.swap is not None:
            message = f"gang {gang} is to be swapped with gang {other.swap.other}: undo that first"
            raise RequestError.at(SWAP_PATH, message)

    def _pool(self, pod: ManagedPod) -> Pool:
        """Return the pool of a gang, as the planner knows it."""
        priority = pod.hived.priority if pod.hived is not None else 0
        if pod.charged_class is not None:
            known = self._policies.policy.classes.cell_priority(pod.charged_class)
            priority = priority if known is None else known
        vc = None if priority == OPPORTUNISTIC else pod.vc
        cell = pod.hived.pinned_cell if pod.hived is not None else None
        return Pool(vc, pod.leaf_type, PinnedCellId(cell) if cell else None)

    def check_recorded(
        self, user: UserInfo, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> bool:
        """Tell whether a swap has changed; who did it must be on record. Raises RequestError."""
        new = swap_text(after)
        if swap_text(before) == new:
            return False
        stated = read_pod_swap(marks_of(after, "annotations"))
        is_recorded = stated is None if new is None else (stated and stated.user) == user.username
        if not is_recorded or (new is None and _has_record(after)):
            raise RequestError.at(SWAP_PATH, UNRECORDED)
        return True


def swap_text(obj: Mapping[str, Any]) -> str | None:
    """Return the gang that an object names for a swap. Raises RequestError if it is no text."""
    value = marks_of(obj, "annotations").get(marks.SWAP_ANNOTATION)
    if value is not None and not isinstance(value, str):
        raise RequestError.at(SWAP_PATH, f"must be a text, not {describe(value)}")
    return value


def _has_record(obj: Mapping[str, Any]) -> bool:
    return marks.SWAPPED_BY_ANNOTATION in marks_of(obj, "annotations")
