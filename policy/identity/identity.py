"""Identity: who is in which group, who may use which VC, and whose word about others counts.

A pod that a controller makes arrives under the controller's name. The real submitter is stamped on
the pod template when the template is created; the stamp on a pod is believed only if whoever sends
the pod is trusted: a controller of Kubernetes itself, or one that the admins list.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from policy.errors import RequestError
from policy.submission import GroupName, UserName, VcName
from policy.wording import listing, quote

_KUBE_SYSTEM: Final = "system:serviceaccount:kube-system:"
BUILT_IN_CONTROLLERS: Final = frozenset(
    {
        # All of them together, where kube-controller-manager does not use one account for each.
        "system:kube-controller-manager",
        *(
            f"{_KUBE_SYSTEM}{name}"
            for name in (
                "cronjob-controller",
                "daemon-set-controller",
                "deployment-controller",
                "job-controller",
                "replicaset-controller",
                "replication-controller",
                "statefulset-controller",
            )
        ),
    }
)
"""Who makes pods of templates, or templates of templates, in every cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VcAccess:
    """Who may use a VC."""

    groups: tuple[GroupName, ...] = ()
    users: tuple[UserName, ...] = ()

    def is_open_to(self, user: UserName, groups: Iterable[GroupName]) -> bool:
        """Tell whether a submitter may use it."""
        return user in self.users or not frozenset(self.groups).isdisjoint(groups)

    def __str__(self) -> str:
        groups = f"groups {listing(self.groups)}" if self.groups else ""
        users = f"users {listing(self.users)}" if self.users else ""
        return " and ".join(part for part in (groups, users) if part)


@dataclass(frozen=True, slots=True)
class TemplateKind:
    """A kind of object that holds pod templates, and where."""

    api_version: str
    kind: str
    path: tuple[str, ...]
    """Keys on the way to a template; `*` stands for every key or every element."""


BUILT_IN_TEMPLATES: Final = (
    TemplateKind("batch/v1", "Job", ("spec", "template")),
    TemplateKind("batch/v1", "CronJob", ("spec", "jobTemplate", "spec", "template")),
    TemplateKind("apps/v1", "Deployment", ("spec", "template")),
    TemplateKind("apps/v1", "StatefulSet", ("spec", "template")),
    TemplateKind("apps/v1", "ReplicaSet", ("spec", "template")),
    TemplateKind("apps/v1", "DaemonSet", ("spec", "template")),
    TemplateKind("v1", "ReplicationController", ("spec", "template")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the Identity document says; empty without one."""

    members: Mapping[UserName, tuple[GroupName, ...]] = field(default_factory=dict)
    """Groups by user, in the document's order."""
    vcs: Mapping[VcName, VcAccess] = field(default_factory=dict)
    trusted_controllers: frozenset[str] = frozenset()
    templates: tuple[TemplateKind, ...] = ()
    known_vcs: tuple[VcName, ...] | None = None
    """All VCs there are, by the Cluster document; None without one: then any name is one."""

    def groups_of(self, user: str, known: Iterable[str]) -> tuple[GroupName, ...]:
        """Return all groups of a user, beside those that the API server knows; sorted."""
        ours = self.members.get(UserName(user), ())
        # A token file can put a user into a group without a name.
        return tuple(sorted({*map(GroupName, filter(None, known)), *ours}))

    def is_trusted(self, user: str) -> bool:
        """Tell whether what this user says about a submitter is believed."""
        return user in BUILT_IN_CONTROLLERS or user in self.trusted_controllers

    def find_templates(self, *, api_version: str, kind: str) -> tuple[TemplateKind, ...]:
        """Return where an object of this kind has its pod templates."""
        known = (*BUILT_IN_TEMPLATES, *self.templates)
        return tuple(one for one in known if (one.api_version, one.kind) == (api_version, kind))

    def check_vc(
        self, vc: VcName, *, user: UserName, groups: Iterable[GroupName], path: str
    ) -> None:
        """Raise RequestError at `path` if there is no such VC or it is not open to a submitter."""
        if self.known_vcs is not None and vc not in self.known_vcs:
            known = f"known are {listing(self.known_vcs)}" if self.known_vcs else "there is none"
            raise RequestError.at(path, f"VC {quote(vc)} is not known; {known}")
        access = self.vcs.get(vc)
        if access is not None and not access.is_open_to(user, groups):
            message = f"VC {quote(vc)} is not open to {quote(user)}; it is for {access}"
            raise RequestError.at(path, message)
