"""Which users may change which policy document, in addition to the RBAC rules of Kubernetes.

A *policy admin* may change everything. The *admins of a group* may change the Quotas document of
their own group, if it is about their groups only, and no other document: there they divide the
group's quota among its users. They may not raise the limits of the group itself, change what
happens over a limit, list users that are charged to another group, or delete the document. No other
user may change quotas. Shapes give commands, accounts and directories of nodes to the pods of
others, so only policy admins may change them. The identities of a billing system may change the
Billing document, for groups whose quotas name them, and nothing else. For all other documents RBAC
is enough, except for admins of a group.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from policy.errors import Problem, RequestError
from policy.quotas.quota_table import Allowance, QuotaGroup, QuotaTable
from policy.submission import GroupName, UserName
from policy.wording import join_path, listing, quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor:
    """The user who changes a document."""

    user: str
    groups: tuple[str, ...] = ()

    def is_any_of(self, names: Iterable[str]) -> bool:
        """Whether a list of users and groups names this user."""
        return not frozenset(names).isdisjoint((self.user, *self.groups))


def check_other_change(editor: Editor, *, in_force: QuotaTable, is_shaping: bool) -> None:
    """Raise RequestError if a user may not change a document that is not about quotas."""
    if is_shaping:
        message = "only a policy admin may change the Shaping document"
        raise RequestError.at("", f"{message}; {quote(editor.user)} is none")
    if in_force.billed_by((editor.user, *editor.groups)):
        who = f"{quote(editor.user)} is an identity of a billing system"
        raise RequestError.at("", f"{who} and may change no other document than Billing")
    own = in_force.administered_by(editor.user)
    if own:
        who = f"{quote(editor.user)} is an admin of {_named(own)}"
        raise RequestError.at("", f"{who} and may change no other document than its quotas")


def check_quotas_change(
    editor: Editor,
    *,
    before: tuple[QuotaGroup, ...],
    after: tuple[QuotaGroup, ...],
    in_force: QuotaTable,
    groups_of: Callable[[UserName], tuple[GroupName, ...]],
) -> None:
    """Raise RequestError with every reason why a user may not change a Quotas document.

    `groups_of` returns the groups of a user, as far as the policy knows them.
    """
    own = in_force.administered_by(editor.user)
    if not own:
        message = f"{quote(editor.user)} is neither a policy admin nor an admin of these groups"
        raise RequestError.at("groups", message)
    problems = [*_foreign(editor, before, after, own=own), *_gone(before, after)]
    known = {group.name: group for group in before}
    for place, group in enumerate(after):
        if group.name in known and group.name in own:
            problems += _raised(known[group.name], group, place=place)
    problems += _taken(after, own=own, in_force=in_force, groups_of=groups_of)
    if problems:
        raise RequestError(problems)


def _foreign(
    editor: Editor,
    before: tuple[QuotaGroup, ...],
    after: tuple[QuotaGroup, ...],
    *,
    own: tuple[GroupName, ...],
) -> Iterator[Problem]:
    """Yield the groups of others that the change touches; a shared document may hold others."""
    old, new = ({group.name: group for group in groups} for groups in (before, after))
    names = dict.fromkeys((*old, *new))
    foreign = tuple(name for name in names if name not in own and old.get(name) != new.get(name))
    kept = [name for name in new if name in old]
    if kept != [name for name in old if name in new]:
        yield Problem("groups", "only a policy admin may change the order of groups")
    if foreign:
        who = f"{quote(editor.user)} is an admin of {_named(own)}"
        yield Problem("groups", f"{who} and may not change the quotas of {_named(foreign)}")


def _gone(before: tuple[QuotaGroup, ...], after: tuple[QuotaGroup, ...]) -> Iterator[Problem]:
    kept = {group.name for group in after}
    gone = tuple(group.name for group in before if group.name not in kept)
    if gone:
        yield Problem("groups", f"only a policy admin may remove {_named(gone)}")


def check_billing_change(
    editor: Editor, changed: Iterable[GroupName], *, in_force: QuotaTable
) -> None:
    """Raise RequestError if a user may not change the limits of these groups for billing."""
    own = in_force.billed_by((editor.user, *editor.groups))
    foreign = tuple(name for name in changed if name not in own)
    if foreign or not own:
        of = f"the billed limits of {_named(foreign)}" if foreign else "the Billing document"
        message = f"{quote(editor.user)} may not change {of}: no `billing.identities` name it"
        raise RequestError.at("limits", message)


def _raised(before: QuotaGroup, after: QuotaGroup, *, place: int) -> Iterator[Problem]:
    """Yield what a group's admin would grant to their own group."""
    if before.over != after.over:
        message = f"only a policy admin may change {before.over} to {after.over}"
        yield Problem(join_path(("groups", place, "over")), message)
    if before.billing != after.billing:
        message = "only a policy admin may change what billing may change"
        yield Problem(join_path(("groups", place, "billing")), message)
    if not _is_within(after.allowance, before.allowance):
        message = "only a policy admin may raise or remove a limit of the group itself"
        yield Problem(join_path(("groups", place, "limits")), message)


def _taken(
    after: tuple[QuotaGroup, ...],
    *,
    own: tuple[GroupName, ...],
    in_force: QuotaTable,
    groups_of: Callable[[UserName], tuple[GroupName, ...]],
) -> Iterator[Problem]:
    """Yield users of other groups who would be charged to one of these groups."""
    changed = {group.name: group for group in after}
    table = QuotaTable(changed.get(group.name, group) for group in in_force.groups)
    for place, group in enumerate(after):
        for user in group.users:
            pays, would_pay = (
                one.find(user, groups_of(user), named=None, path="") for one in (in_force, table)
            )
            if pays is not None and pays.name not in own and would_pay is group:
                whom = f"{quote(user)}, who is charged to {_named((pays.name,))}"
                message = f"only a policy admin may list {whom}"
                yield Problem(join_path(("groups", place, "users")), message)


def _is_within(new: Allowance, old: Allowance) -> bool:
    unlimited = float("inf")
    return all(new.most.get(key, unlimited) <= most for key, most in old.most.items()) and all(
        new.by_leaf_type.get(key, unlimited) <= most for key, most in old.by_leaf_type.items()
    )


def _named(groups: tuple[GroupName, ...]) -> str:
    return f"group{'s'[: len(groups) != 1]} {listing(groups)}"
