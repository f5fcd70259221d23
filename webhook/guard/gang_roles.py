"""As what a user may change a gang: as its owner, an admin of its group, or a policy admin."""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.follow.policies import PolicySink
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from kube.values.objects import marks_of
from policy.identity.ownership import Editor
from policy.queues.holds import HoldRole, find_roles
from webhook.wire import UserInfo

UNRECORDED: Final = "was changed without a record of the user who did so; try again"


class GangRoles:
    """Finds the roles of users."""

    def __init__(self, policies: PolicySink, *, admins: tuple[str, ...]) -> None:
        """`admins` are the users and groups that may change everything."""
        self._policies = policies
        self._admins = admins

    def of(self, user: UserInfo, pod: ManagedPod) -> list[HoldRole]:
        """Return the roles of a user for the gang of a pod, the weakest first."""
        return self.find(user, owner=pod.charged_user, group=pod.charged_group)

    def find(self, user: UserInfo, *, owner: str, group: str | None) -> list[HoldRole]:
        """Return the roles of a user for a gang that is charged to an owner and a group."""
        return find_roles(
            Editor(user=user.username, groups=user.groups),
            owner=owner,
            group=group,
            quotas=self._policies.policy.quotas,
            admins=self._admins,
        )

    def may_say_why(
        self, user: UserInfo, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> bool:
        """Tell whether a user writes why a pod is about to be deleted, and may do so."""
        old, new = (
            marks_of(obj, "annotations").get(marks.CANCEL_ANNOTATION) for obj in (before, after)
        )
        pod = read_pod(before) if old != new else None
        return pod is not None and bool(self.of(user, pod))
