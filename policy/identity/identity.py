"""Identity: the groups of users, access to VCs, trusted controllers, kinds with pod templates.

A pod that a controller creates arrives under the controller's name. The real submitter is stamped
on the pod template when the template is created. The stamp on a pod counts only if a trusted
controller created the pod: one of Kubernetes itself, or one that the admins list.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from policy.errors import RequestError
from policy.submission import GroupName, UserName, VcName
from policy.wording import listing, quote

_LISTED: Final = 20
_KUBE_SYSTEM: Final = "system:serviceaccount:kube-system:"
BUILT_IN_CONTROLLERS: Final = frozenset(
    {
        # If kube-controller-manager uses one account for all its controllers.
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
"""The controllers of Kubernetes that create pods from templates, or templates from templates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VcAccess:
    """Users and groups that may use a VC."""

    groups: tuple[GroupName, ...] = ()
    users: tuple[UserName, ...] = ()

    def is_open_to(self, user: UserName, groups: Iterable[GroupName]) -> bool:
        """Whether a submitter may use it."""
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
    """Keys on the path to a template; `*` means every key or every element."""


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
    """The Identity document; empty without one."""

    members: Mapping[UserName, tuple[GroupName, ...]] = field(default_factory=dict)
    """Groups by user, in the document's order."""
    vcs: Mapping[VcName, VcAccess] = field(default_factory=dict)
    trusted_controllers: frozenset[str] = frozenset()
    templates: tuple[TemplateKind, ...] = ()
    known_vcs: tuple[VcName, ...] | None = None
    """All VCs of the Cluster document; None without one: then any name is accepted."""

    def groups_of(self, user: str, known: Iterable[str]) -> tuple[GroupName, ...]:
        """Return all groups of a user, sorted: those that the API server knows, and ours."""
        ours = self.members.get(UserName(user), ())
        # A token file can put a user into a group without a name.
        return tuple(sorted({*map(GroupName, filter(None, known)), *ours}))

    def is_trusted(self, user: str) -> bool:
        """Whether a submitter stamped on pods of this user counts."""
        return user in BUILT_IN_CONTROLLERS or user in self.trusted_controllers

    def find_templates(self, *, api_version: str, kind: str) -> tuple[TemplateKind, ...]:
        """Return where an object of this kind has its pod templates."""
        known = (*BUILT_IN_TEMPLATES, *self.templates)
        return tuple(one for one in known if (one.api_version, one.kind) == (api_version, kind))

    def check_vc(
        self,
        vc: VcName,
        *,
        user: UserName,
        groups: Iterable[GroupName],
        path: str,
        missing_label: str = "",
    ) -> None:
        """Raise RequestError at `path` if the VC does not exist or is not open to the submitter.

        `missing_label` is the label that would name a VC, if the pod has the default one.
        """
        mine = frozenset(groups)
        if self.known_vcs is not None and vc not in self.known_vcs:
            problem = f"there is no VC {quote(vc)}"
        elif not self._is_open(vc, user, mine):
            problem = f"VC {quote(vc)} is not open to {quote(user)}; it is open to {self.vcs[vc]}"
        else:
            return
        if missing_label:
            problem += f"; neither the pod nor its namespace has the label {missing_label}"
        raise RequestError.at(path, f"{problem}{self._choices(user, mine)}")

    def open_vcs(
        self, vcs: Iterable[VcName], *, user: UserName, groups: Iterable[GroupName]
    ) -> list[VcName]:
        """Return those of some VCs that a submitter may use."""
        mine = frozenset(groups)
        return [vc for vc in vcs if self._is_open(vc, user, mine)]

    def _is_open(self, vc: VcName, user: UserName, groups: frozenset[GroupName]) -> bool:
        access = self.vcs.get(vc)
        return access is None or access.is_open_to(user, groups)

    def _choices(self, user: UserName, groups: frozenset[GroupName]) -> str:
        """List the VCs that a submitter may use, if all VCs are known."""
        if self.known_vcs is None:
            return ""
        known = self.open_vcs(self.known_vcs, user=user, groups=groups)
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        return f"; VCs open to you: {listing(known[:_LISTED]) or 'none'}{more}"
