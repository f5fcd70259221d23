"""Who may change which policy document, beyond what Kubernetes' own rights allow.

An *admin of policies* may change everything. A *group's admins* may change the Quotas document of
their own group, if it is about their groups only, and no other document: there they share out what
the group has. What the group itself has, and what happens over it, is not theirs to raise; for whom
another group pays is not theirs to charge; and the document is not theirs to delete. Nobody else
may change quotas. For all other documents it is enough to have the right of Kubernetes, unless one
is a group's admin.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from policy.errors import Problem, RequestError
from policy.quotas.quota_table import Allowance, QuotaGroup, QuotaTable
from policy.submission import GroupName, UserName
from policy.wording import join_path, listing, quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor:
    """Who wants to change a document."""

    user: str
    groups: tuple[str, ...] = ()

    def is_any_of(self, names: Iterable[str]) -> bool:
        """Tell whether a list of users and groups names this one."""
        return not frozenset(names).isdisjoint((self.user, *self.groups))


def check_other_change(editor: Editor, *, in_force: QuotaTable) -> None:
    """Raise RequestError if somebody may not change a document that is not about quotas."""
    own = in_force.administered_by(editor.user)
    if own:
        who = f"{quote(editor.user)} is an admin of {_named(own)}"
        raise RequestError.at("", f"{who} and may change the quotas of no more than that")


def check_quotas_change(
    editor: Editor,
    *,
    before: tuple[QuotaGroup, ...],
    after: tuple[QuotaGroup, ...],
    in_force: QuotaTable,
    groups_of: Callable[[UserName], tuple[GroupName, ...]],
) -> None:
    """Raise RequestError with every reason why somebody may not change a Quotas document.

    `groups_of` tells the groups of a user, as far as the policy knows them.
    """
    own = in_force.administered_by(editor.user)
    if not own:
        message = f"{quote(editor.user)} is no admin of policies or of the groups concerned"
        raise RequestError.at("groups", message)
    problems = [*_foreign(editor, before, after, own=own), *_gone(before, after)]
    known = {group.name: group for group in before}
    for place, group in enumerate(after):
        if group.name in known:
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
    names = dict.fromkeys(group.name for group in (*before, *after))
    foreign = tuple(name for name in names if name not in own)
    if foreign:
        who = f"{quote(editor.user)} is an admin of {_named(own)}"
        yield Problem("groups", f"{who} and may not change the quotas of {_named(foreign)}")


def _gone(before: tuple[QuotaGroup, ...], after: tuple[QuotaGroup, ...]) -> Iterator[Problem]:
    kept = {group.name for group in after}
    gone = tuple(group.name for group in before if group.name not in kept)
    if gone:
        yield Problem("groups", f"only an admin of policies may remove {_named(gone)}")


def _raised(before: QuotaGroup, after: QuotaGroup, *, place: int) -> Iterator[Problem]:
    """Yield what a group's admin would grant to the own group."""
    if before.over != after.over:
        message = f"only an admin of policies may change {before.over} to {after.over}"
        yield Problem(join_path(("groups", place, "over")), message)
    if not _is_within(after.allowance, before.allowance):
        message = "only an admin of policies may raise or remove a limit of the group itself"
        yield Problem(join_path(("groups", place, "limits")), message)


def _taken(
    after: tuple[QuotaGroup, ...],
    *,
    own: tuple[GroupName, ...],
    in_force: QuotaTable,
    groups_of: Callable[[UserName], tuple[GroupName, ...]],
) -> Iterator[Problem]:
    """Yield users of other groups who would be charged to one of these: they would lose theirs."""
    changed = {group.name: group for group in after}
    table = QuotaTable(changed.get(group.name, group) for group in in_force.groups)
    for place, group in enumerate(after):
        for user in group.users:
            pays, would_pay = (
                one.find(user, groups_of(user), named=None, path="") for one in (in_force, table)
            )
            if pays is not None and pays.name not in own and would_pay is group:
                whom = f"{quote(user)}, for whom {_named((pays.name,))} pays"
                message = f"only an admin of policies may list {whom}"
                yield Problem(join_path(("groups", place, "users")), message)


def _is_within(new: Allowance, old: Allowance) -> bool:
    unlimited = float("inf")
    return all(new.most.get(key, unlimited) <= most for key, most in old.most.items()) and all(
        new.by_leaf_type.get(key, unlimited) <= most for key, most in old.by_leaf_type.items()
    )


def _named(groups: tuple[GroupName, ...]) -> str:
    return f"group{'s'[: len(groups) != 1]} {listing(groups)}"
