"""The Identity document: groups, access to VCs, trusted controllers, kinds with pod templates."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from policy.documents.models import Document, Strict, entries, mapping_of
from policy.documents.names import CheckedName, matching
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.identity.identity import BUILT_IN_TEMPLATES, Identity, TemplateKind, VcAccess
from policy.submission import GroupName, UserName, VcName
from policy.wording import join_path, quote

MAX_ENTRIES: Final = 10_000
MAX_TEMPLATES: Final = 100
_STEP: Final = r"(?:[A-Za-z][A-Za-z0-9_-]*|\*)"
_check_api_version: Final = matching(
    r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9][a-z0-9]*", 'such as "kubeflow.org/v1"'
)
_check_kind: Final = matching(r"[A-Z][A-Za-z0-9]*", 'such as "PyTorchJob"')
_check_path: Final = matching(
    rf"{_STEP}(?:\.{_STEP})*", 'a path such as "spec.pytorchReplicaSpecs.*.template"'
)


class VcEntry(Strict):
    """The users of a VC."""

    groups: list[CheckedName] = Field(default=[], description="Groups whose members may use it.")
    users: list[CheckedName] = Field(default=[], description="Users that may use it.")


class TemplateEntry(Strict):
    """A kind of object that holds pod templates."""

    api_version: Annotated[str, BeforeValidator(_check_api_version)] = Field(
        description="Its apiVersion."
    )
    kind: Annotated[str, BeforeValidator(_check_kind)] = Field(description="Its kind.")
    path: Annotated[str, BeforeValidator(_check_path)] = Field(
        description="The path of its pod templates; `*` means every key or element."
    )


class IdentityDocument(Document):
    """Groups, access to VCs and trusted controllers, in addition to what the API server knows."""

    may_be_partial: ClassVar[bool] = True
    kind: Literal["Identity"] = Field(description="Always `Identity`.")
    groups: dict[CheckedName, list[CheckedName]] = Field(
        default={},
        max_length=MAX_ENTRIES,
        description="Members by group, in addition to the groups that the API server knows.",
    )
    vcs: dict[CheckedName, VcEntry] = Field(
        default={},
        max_length=MAX_ENTRIES,
        description="The users of a virtual cluster; one that is not listed is open to all.",
    )
    trusted_controllers: list[CheckedName] = Field(
        default=[],
        max_length=MAX_ENTRIES,
        description="Users, mostly service accounts, that create pods for others. All kinds from "
        "which they create pods must be listed in `templates`.",
    )
    templates: list[TemplateEntry] = Field(
        default=[],
        max_length=MAX_TEMPLATES,
        description="Kinds with pod templates, in addition to those of Kubernetes itself.",
    )

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield VCs without users, and kinds of Kubernetes that are built in."""
        for name, entry in mapping_of(data.get("vcs")).items():
            if isinstance(entry, dict) and not entry.get("groups") and not entry.get("users"):
                message = "names neither groups nor users, so no user could use the VC"
                yield Problem(join_path(("vcs", name)), message)
        yield from _known_kinds(data)

    def problems_with_vcs(self, known: Iterable[str]) -> Iterator[Problem]:
        """Yield VCs that the Cluster document does not have."""
        names = frozenset(known)
        for name in self.vcs:
            if name not in names:
                message = f"the Cluster document has no VC {quote(name)}"
                yield Problem(join_path(("vcs", name)), message)

    def build(self, known_vcs: tuple[VcName, ...] | None) -> Identity:
        """Build the identity for decisions."""
        members: dict[UserName, list[GroupName]] = {}
        for group, users in self.groups.items():
            for user in users:
                members.setdefault(UserName(user), []).append(GroupName(group))
        return Identity(
            members={user: tuple(groups) for user, groups in members.items()},
            vcs={VcName(name): _access(entry) for name, entry in self.vcs.items()},
            trusted_controllers=frozenset(self.trusted_controllers),
            templates=tuple(
                TemplateKind(entry.api_version, entry.kind, tuple(entry.path.split(".")))
                for entry in self.templates
            ),
            known_vcs=known_vcs,
        )


def _access(entry: VcEntry) -> VcAccess:
    return VcAccess(
        groups=tuple(map(GroupName, entry.groups)), users=tuple(map(UserName, entry.users))
    )


def _known_kinds(data: Mapping[str, Plain]) -> Iterator[Problem]:
    # A list, since the values of a document may have no hash.
    known = [(one.api_version, one.kind) for one in BUILT_IN_TEMPLATES]
    for place, entry in entries(data, "templates"):
        if (entry.get("apiVersion"), entry.get("kind")) in known:
            message = f"{entry['kind']} of Kubernetes is built in; remove the entry"
            yield Problem(join_path(("templates", place)), message)
