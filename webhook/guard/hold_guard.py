"""Changes of a pod's hold: which users may make them, and what the stored pod must state then."""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.follow.policies import PolicySink
from kube.lives.pod_holds import HOLD_PATH, check_hold
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from kube.values.objects import marks_of
from policy.errors import RequestError
from policy.identity.ownership import Editor
from policy.queues.holds import Holder, check_holder, parse_hold, read_holder
from webhook.guard.gang_roles import UNRECORDED
from webhook.wire import UserInfo

HOLD_MARKS: Final = (
    marks.HOLD_ANNOTATION,
    marks.HELD_BY_ANNOTATION,
    marks.HELD_SECONDS_ANNOTATION,
)
"""The annotations that change with a hold."""
_STARTED: Final = "cannot hold the pod: it has started, or is about to; delete it to end it"


class HoldGuard:
    """Decides which users may hold and release the gang of a pod."""

    def __init__(self, policies: PolicySink, *, admins: tuple[str, ...]) -> None:
        """`admins` are the users and groups that may change everything."""
        self._policies = policies
        self._admins = admins

    def check(
        self, user: UserInfo, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> Holder | None:
        """Return the user who changes a hold, as what; None if it stays. Raises RequestError."""
        old, new = (_text(obj, marks.HOLD_ANNOTATION) for obj in (before, after))
        pod = read_pod(before) if old != new else None
        if pod is None:
            return None
        try:
            role = check_holder(
                Editor(user=user.username, groups=user.groups),
                owner=pod.charged_user,
                group=pod.charged_group,
                quotas=self._policies.policy.quotas,
                admins=self._admins,
                held_by=pod.hold.holder if pod.hold else None,
            )
        except RequestError as exc:
            raise RequestError.at(HOLD_PATH, exc.problems[0].message) from exc
        if new is not None:
            _check_new_hold(pod, after)
        return Holder(role=role, user=user.username)

    def check_recorded(
        self, user: UserInfo, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> bool:
        """Tell whether a hold has changed; its holder must be on record. Raises RequestError."""
        holder = self.check(user, before, after)
        if holder is None:
            return False
        stated = _text(after, marks.HELD_BY_ANNOTATION)
        if _text(after, marks.HOLD_ANNOTATION) is None:
            is_recorded = stated is None
        else:
            found = read_holder(stated or "", owner="")
            is_recorded = (found.role, found.user) == (holder.role, holder.user)
        if not is_recorded:
            raise RequestError.at(HOLD_PATH, UNRECORDED)
        return True


def _check_new_hold(pod: ManagedPod, after: Mapping[str, Any]) -> None:
    check_hold(after)
    text = _text(after, marks.HOLD_ANNOTATION) or ""
    if parse_hold(text).after == (pod.namespace, pod.gang.key.name):
        raise RequestError.at(HOLD_PATH, "must not wait for the end of its own gang")
    if not pod.is_gated:
        raise RequestError.at(HOLD_PATH, _STARTED)


def _text(obj: Mapping[str, Any], key: str) -> str | None:
    value = marks_of(obj, "annotations").get(key)
    return value if isinstance(value, str) else None
