"""Gangs that wait for quota: they are charged once there is room, in the order of the queue.

As in the product, gangs are tried of whose accounts charges have ended, and all of them when a new
day begins. After a refusal, gangs that ask the same accounts for at least as much are skipped.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from extender.queue.lines.gang_places import Rank
from policy.quotas.charge import Charge, find_exceeded
from policy.quotas.held_usage import HeldUsage
from policy.quotas.limits import Limit, Scope
from policy.submission import GangKey


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitsForQuota:
    """A gang that is not charged yet."""

    gang: GangKey
    charge: Charge
    limits: tuple[Limit, ...]
    rank: Callable[[], Rank]
    """Ranks it as of now."""


class QuotaQueue:
    """The gangs that are not charged yet."""

    def __init__(self, usage: HeldUsage) -> None:
        self._usage = usage
        self._waiting: dict[GangKey, WaitsForQuota] = {}
        self._by_scope: dict[Scope, dict[GangKey, None]] = {}
        self._freed: dict[Scope, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, one: WaitsForQuota) -> None:
        """Let a gang wait."""
        self._waiting[one.gang] = one
        for scope in one.charge.scopes:
            self._by_scope.setdefault(scope, {})[one.gang] = None

    def free(self, scopes: Iterable[Scope]) -> None:
        """Note that these hold less."""
        self._freed.update((scope, None) for scope in scopes if scope in self._by_scope)

    def free_all(self) -> None:
        """Note that a new day begins."""
        self._freed.update(dict.fromkeys(self._by_scope))

    def charge(self) -> list[GangKey]:
        """Charge the gangs for which there is room now; return them in their order."""
        if not self._freed:
            return []
        freed, self._freed = self._freed, {}
        tried = {gang: None for scope in freed for gang in self._by_scope.get(scope, ())}
        in_order = sorted((self._waiting[gang].rank(), gang) for gang in tried)
        too_much: dict[Hashable, Charge] = {}
        charged: list[GangKey] = []
        for _, gang in in_order:
            one = self._waiting[gang]
            if _is_at_least(one.charge, too_much.get(_kind(one.charge))):
                continue
            if any(find_exceeded(one.charge, one.limits, self._usage.of)):
                too_much[_kind(one.charge)] = one.charge
                continue
            self._usage.charge(one.charge)
            self._remove(gang)
            charged.append(gang)
        return charged

    def _remove(self, gang: GangKey) -> None:
        for scope in self._waiting.pop(gang).charge.scopes:
            del self._by_scope[scope][gang]
            if not self._by_scope[scope]:
                del self._by_scope[scope]


def _kind(charge: Charge) -> Hashable:
    """Return the accounts that a gang is charged to."""
    return charge.user, charge.group, charge.class_name, charge.is_high, charge.leaf_type


def _is_at_least(charge: Charge, other: Charge | None) -> bool:
    """Tell whether a charge is as large as another one: limits may be about CPU, too."""
    return (
        other is not None
        and charge.leaf_count >= other.leaf_count
        and charge.cpu_millis >= other.cpu_millis
        and charge.memory_bytes >= other.memory_bytes
    )
