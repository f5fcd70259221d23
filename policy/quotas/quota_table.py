"""Quotas: how much a group, and each user within it, may hold.

A submission is charged to one group: the one that its label names, else the first that lists the
submitter, else the first of which the submitter is a member. A group that has admins of its own
takes no submitter from a group of which only the API server knows that the submitter is a member.
All limits of the group and of the submitter within it apply at once. What happens over a limit is
the group's `over`:

- `fail`: the gang is refused;
- `queue`: it waits, uncharged, until it fits;
- a class: it is lowered to that class and runs beyond the limit. A gang that asks for that class or
  a lower one at once also runs beyond the limit, so that asking for less is never worse.

What is held is not known here: the ledger compares it with the limits, together with the charge.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from policy.errors import RequestError
from policy.quotas.limits import Limit, Measure, Scope
from policy.submission import GroupName, LeafType, UserName
from policy.wording import listing, quote

FAIL: Final = "fail"
QUEUE: Final = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How much a group or user may hold; a measure that is missing is not limited."""

    most: Mapping[Measure, float] = field(default_factory=dict)
    by_leaf_type: Mapping[LeafType, int] = field(default_factory=dict)

    def limits(self, scope: Scope) -> Iterator[Limit]:
        """Yield its limits on what a scope holds, in a defined order."""
        for measure in Measure:
            if measure in self.most:
                yield Limit(scope=scope, measure=measure, most=self.most[measure])
        for leaf_type in sorted(self.by_leaf_type):
            most = self.by_leaf_type[leaf_type]
            of_type = Measure.LEAF_CELLS_OF_TYPE
            yield Limit(scope=scope, measure=of_type, most=most, leaf_type=leaf_type)


NO_ALLOWANCE: Final = Allowance()


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingBounds:
    """Between which limits a billing system may choose, and for how long."""

    identities: tuple[str, ...]
    """Users and groups of the API server that may set limits."""
    most: Allowance
    """The highest limits; a measure that is missing may not be changed."""
    least: Allowance = NO_ALLOWANCE
    """The lowest ones; a measure that is missing may be zero."""
    longest_days: int = 31


_MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaGroup:
    """One group's quotas."""

    name: GroupName
    admins: tuple[UserName, ...] = ()
    allowance: Allowance = NO_ALLOWANCE
    over: str = FAIL
    """`fail`, `queue`, or the class to which a gang is lowered."""
    users: Mapping[UserName, Allowance] = field(default_factory=dict)
    each_user: Allowance = NO_ALLOWANCE
    """For members that are not listed."""
    billing: BillingBounds | None = None
    billed_users: Mapping[UserName, Allowance] = field(default_factory=dict)
    """Limits of users that a billing system has changed."""
    _remembered: dict[UserName, tuple[Limit, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Limits by user: every gang of a user is compared with the same ones."""

    @property
    def lowers(self) -> bool:
        """Whether a gang over a limit runs in a lower class instead."""
        return self.over not in (FAIL, QUEUE)

    def has(self, user: UserName, groups: Iterable[GroupName]) -> bool:
        """Whether a submitter is listed, or a member of the group of this name."""
        return user in self.users or self.name in groups

    def limits(self, user: UserName) -> tuple[Limit, ...]:
        """Return all limits on a gang of this user: first the user's own, then the group's."""
        limits = self._remembered.get(user)
        if limits is None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            limits = self._remembered[user] = tuple(self._build_limits(user))
        return limits

    def allowance_of(self, user: UserName) -> Allowance:
        """Return the limits of a user within the group."""
        billed = self.billed_users.get(user)
        return self.users.get(user, self.each_user) if billed is None else billed

    def _build_limits(self, user: UserName) -> Iterator[Limit]:
        own = self.allowance_of(user)
        yield from own.limits(Scope(user, self.name))
        yield from self.allowance.limits(Scope(None, self.name))


class QuotaTable:
    """All groups that have quotas, in order. Immutable."""

    __slots__ = ("_by_name", "_first_listing", "groups")

    def __init__(self, groups: Iterable[QuotaGroup]) -> None:
        """Index the groups; names are unique."""
        self.groups: Final = tuple(groups)
        self._by_name = {group.name: group for group in self.groups}
        self._first_listing: dict[UserName, QuotaGroup] = {}
        for group in self.groups:
            for user in group.users:
                self._first_listing.setdefault(user, group)

    def find(
        self,
        user: UserName,
        groups: tuple[GroupName, ...],
        *,
        named: GroupName | None,
        path: str,
        by_identity: Collection[GroupName] | None = None,
    ) -> QuotaGroup | None:
        """Return the group that a submitter's gang is charged to; None if there is none.

        `named` is the group of the label at `path`. `by_identity` are the groups that the Identity
        document states; the others only the API server knows. Raises RequestError if the submitter
        may not use the named group.
        """
        if named is not None and self.groups:
            return self._named(user, groups, named=named, path=path)
        listed = self._first_listing.get(user)
        if listed is None:
            return self._first_of(groups)
        if not listed.admins or listed.name in groups:
            return listed
        # Its own admins may have listed the user. When they did, membership that only the API
        # server knows could not be compared, so it counts now.
        known = groups if by_identity is None else by_identity
        return self._first_of(group for group in groups if group not in known) or listed

    def _first_of(self, groups: Iterable[GroupName]) -> QuotaGroup | None:
        members = frozenset(groups)
        return next((group for group in self.groups if group.name in members), None)

    def administered_by(self, user: str) -> tuple[GroupName, ...]:
        """Return the groups whose quotas this user may change."""
        return tuple(group.name for group in self.groups if user in group.admins)

    def billed_by(self, names: Iterable[str]) -> tuple[GroupName, ...]:
        """Return the groups whose limits a user or group may change for a billing system."""
        wanted = frozenset(names)
        bounds = ((group.name, group.billing) for group in self.groups)
        return tuple(name for name, one in bounds if one and not wanted.isdisjoint(one.identities))

    def group(self, name: GroupName) -> QuotaGroup | None:
        """Return one group's quotas."""
        return self._by_name.get(name)

    def _named(
        self, user: UserName, groups: tuple[GroupName, ...], *, named: GroupName, path: str
    ) -> QuotaGroup:
        group = self._by_name.get(named)
        if group is not None and group.has(user, groups):
            return group
        known = [quote(other.name) for other in self.groups if other.has(user, groups)]
        yours = f"your groups with quotas are {listing(known)}" if known else "you have none"
        raise RequestError.at(path, f"{quote(named)} is not a quota group of yours; {yours}")
