"""Gangs that run beyond the quotas of their group, and which of them may be raised next. Pure.

A gang that `over` lowered is raised to the class that the quotas kept from it once they have room,
the gang that was asked for first before the others. The ledger decides, in one step.
`OverflowQueue` only avoids asking in vain: from each refusal it learns how much of a limit is used,
and believes that until less is held. So the ledger is asked once for each gang that is raised, and
once for each limit that is in the way, however many gangs wait.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policy.quotas.admission import describe_room
from policy.quotas.limits import Exceeded, Limit, Measure, Scope
from policy.submission import GangKey, GroupName, LeafType, UserName


@dataclass(frozen=True, slots=True, kw_only=True)
class OverflowGang:
    """A gang beyond its quotas."""

    key: GangKey
    """The name under which it is charged."""
    user: UserName
    group: GroupName | None
    asked_at: float
    """When its first pod was created."""
    leaf_count: int
    cpu_millis: int = 0
    memory_bytes: int = 0
    leaf_type: LeafType | None = None
    is_high: bool = False
    """Whether the class that it rises to is a high one."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The holders whose limits it needs room in."""
        return scopes_of(self.user, self.group)

    def needs(self, limit: Limit) -> int | None:
        """Return how much of a limit it needs; None if the limit does not apply to it."""
        match limit.measure:
            case Measure.LEAF_CELLS_HIGH if not self.is_high:
                return None
            case Measure.LEAF_CELLS_OF_TYPE if limit.leaf_type != self.leaf_type:
                return None
            case Measure.GANGS:
                return 1
            case Measure.CPU_MILLIS:
                return self.cpu_millis
            case Measure.MEMORY_BYTES:
                return self.memory_bytes
            case measure if measure.is_hours:
                return 0
            case _:
                return self.leaf_count


class OverflowQueue:
    """The gangs beyond their quotas, and what is known about the limits in their way."""

    def __init__(self) -> None:
        self._gangs: dict[GangKey, OverflowGang] = {}
        self._exceeded: dict[Scope, dict[Limit, Exceeded]] = {}
        """Limits that were in the way, with what was used then."""
        self._by_rules: dict[GangKey, Scope] = {}
        """Gangs that rules keep in their class, until their submitter holds less."""

    def __len__(self) -> int:
        return len(self._gangs)

    def find(self, key: GangKey) -> OverflowGang | None:
        """Return a gang that waits to be raised."""
        return self._gangs.get(key)

    def put(self, gang: OverflowGang) -> None:
        """Note a gang; one that is known keeps the time at which it was first asked for."""
        known = self._gangs.get(gang.key)
        if known is None or gang.asked_at <= known.asked_at:
            self._gangs[gang.key] = gang

    def remove(self, key: GangKey) -> None:
        """Forget a gang that has ended, or is within quota."""
        self._gangs.pop(key, None)
        self._by_rules.pop(key, None)

    def oldest_first(self) -> list[OverflowGang]:
        """Return all gangs, in the order in which they are raised."""
        return sorted(self._gangs.values(), key=lambda gang: (gang.asked_at, gang.key))

    def may_fit(self, gang: OverflowGang) -> bool:
        """Whether no limit is known to be in the way of a gang."""
        return gang.key not in self._by_rules and not self.obstacles(gang)

    def obstacles(self, gang: OverflowGang) -> tuple[Exceeded, ...]:
        """Return the limits that are in the way of a gang, as far as known, for that gang."""
        return tuple(
            Exceeded(limit=limit, used=known.used, asked=needed)
            for scope in gang.scopes
            for limit, known in self._exceeded.get(scope, {}).items()
            if (needed := gang.needs(limit)) is not None and _is_over(limit, known.used, needed)
        )

    def explain(self, gang: OverflowGang) -> str:
        """Say what a gang waits for."""
        if gang.key in self._by_rules:
            return f"the rules keep it in its class while {gang.user} holds as much as now"
        found = self.obstacles(gang)
        return "; ".join(map(describe_room, found)) or "its quotas are compared soon"

    def note_refused(self, exceeded: Sequence[Exceeded]) -> None:
        """Note the limits that were in the way."""
        for one in exceeded:
            self._exceeded.setdefault(one.limit.scope, {})[one.limit] = one

    def note_ruled(self, gang: OverflowGang) -> None:
        """Note that rules keep a gang in its class."""
        self._by_rules[gang.key] = Scope(gang.user)

    def note_raised(self, gang: OverflowGang) -> None:
        """Forget a gang that was raised: its limits have less room."""
        self.remove(gang.key)
        for scope in gang.scopes:
            for limit, known in self._exceeded.get(scope, {}).items():
                used = known.used + (gang.needs(limit) or 0)
                self._exceeded[scope][limit] = Exceeded(limit=limit, used=used, asked=known.asked)

    def free(self, scopes: Iterable[Scope]) -> None:
        """Note that these hold less, or may: their limits are asked again."""
        freed = frozenset(scopes)
        for scope in freed:
            self._exceeded.pop(scope, None)
        for key in [key for key, scope in self._by_rules.items() if scope in freed]:
            del self._by_rules[key]

    def free_all(self) -> None:
        """Note that all limits may have room: documents have changed, or a new day begins."""
        self._exceeded.clear()
        self._by_rules.clear()


def scopes_of(user: UserName, group: GroupName | None) -> tuple[Scope, ...]:
    """Return the scopes in which the gangs of a user count."""
    if group is None:
        return (Scope(user),)
    return (Scope(user), Scope(user, group), Scope(None, group))


def _is_over(limit: Limit, used: float, needed: int) -> bool:
    return used >= limit.most if limit.measure.is_hours else used + needed > limit.most
