"""Recent use of leaf cells by users and groups, and the factor `fairShare` that follows.

Use is a number of leaf-cell-seconds that is halved each half-life. A user that holds n of the C
leaf cells of the cluster all the time tends to n · halfLife ÷ ln 2, so this amount divided by
C · halfLife ÷ ln 2 is the share of the cluster that the user has used. A share belongs to one
account alone: use of one user changes no factor of another group.

A gang that starts counts at once with its expected use (`entry`); what it has used since then is
part of the history, and only the rest of the expectation is added.
"""

from dataclasses import dataclass, field
from math import exp2, log

from extender.cells.views.listings import Stepwise
from policy.queues.queues import FairShareRules
from policy.submission import GangKey

Account = tuple[str, str]
"""A charged group, empty for none, and a user."""
_FORGET_BELOW = 1.0
"""Leaf-cell-seconds that are as good as none."""
_STEPS = 500
"""Factors change in so many steps, so that gangs are not moved for nothing."""
_SLICE = 100


@dataclass(slots=True)
class _Use:
    amount: float = 0.0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class _Entry:
    account: Account
    leaf_cells: int
    ends: float


@dataclass(slots=True)
class _Group:
    users: dict[str, _Use] = field(default_factory=dict)
    entries: dict[GangKey, _Entry] = field(default_factory=dict)


class FairShares:
    """Recent use by account."""

    def __init__(self) -> None:
        self._rules = FairShareRules()
        self._leaf_cells = 0
        self._groups: dict[str, _Group] = {}
        self._group_of: dict[GangKey, str] = {}
        self._factors: dict[Account, float] = {}

    def configure(self, rules: FairShareRules) -> None:
        """Count by other rules from the next refresh on."""
        self._rules = rules

    def observe_capacity(self, leaf_cells: int) -> None:
        """Note how many leaf cells the cluster has."""
        self._leaf_cells = leaf_cells

    def factor(self, user: str, group: str | None) -> float:
        """Return the factor of an account, as of the last refresh: 1 without recent use."""
        return self._factors.get((group or "", user), 1.0)

    def recall(self, account: Account, factor: float) -> None:
        """Take over the factor of an account that is on record."""
        self._note({account: factor})

    def add(self, user: str, group: str | None, *, leaf_cell_seconds: float, at: float) -> None:
        """Note use that ended about then."""
        use = self._groups.setdefault(group or "", _Group()).users.setdefault(user, _Use())
        now = max(use.at, at)
        use.amount = self._decayed(use, now) + leaf_cell_seconds * self._fading(now - at)
        use.at = now

    def forget_use(self) -> None:
        """Forget all use: it is read from the history again. Gangs that have entered stay."""
        for group in self._groups.values():
            group.users.clear()

    def enter(self, gang: GangKey, account: Account, *, leaf_cells: int, ends: float) -> bool:
        """A gang starts and is expected to use its leaf cells until then.

        Return whether that counts.
        """
        if self._rules.entry == "none" or gang in self._group_of:
            return False
        self._group_of[gang] = account[0]
        entries = self._groups.setdefault(account[0], _Group()).entries
        entries[gang] = _Entry(account, leaf_cells, ends)
        return True

    def leave(self, gang: GangKey) -> None:
        """A gang ended, or did not start: what it used is part of the history."""
        group = self._group_of.pop(gang, None)
        if group is not None:
            self._groups[group].entries.pop(gang, None)

    def refresh(self, *, now: float) -> Stepwise[list[Account]]:
        """Compute all factors anew, in steps; return the accounts whose factor has changed."""
        changed: list[Account] = []
        for index, name in enumerate(list(self._groups)):
            changed += self._forget_unused(name, now=now)
            changed += self.refresh_group(name, now=now)
            if index % _SLICE == 0:
                yield
        return changed

    def refresh_group(self, name: str, *, now: float) -> list[Account]:
        """Compute the factors of one group's users; return the accounts that have changed."""
        group = self._groups.get(name)
        if group is None:
            known = [account for account in self._factors if account[0] == name]
            return self._note(dict.fromkeys(known, 1.0))
        used = {user: self._decayed(use, now) for user, use in group.users.items()}
        for entry in group.entries.values():
            user = entry.account[1]
            rest = entry.leaf_cells * max(0.0, entry.ends - now)
            used[user] = used.get(user, 0.0) + rest
        entitled = self._entitled(name)
        of_group = self._factor(sum(used.values()), entitled)
        each = entitled / max(1, len(used))
        return self._note(
            {
                (name, user): (of_group + self._factor(amount, each)) / 2
                for user, amount in used.items()
            }
        )

    def _note(self, factors: dict[Account, float]) -> list[Account]:
        changed = []
        for account, exact in factors.items():
            value = round(exact * _STEPS) / _STEPS
            if self._factors.get(account, 1.0) != value:
                changed.append(account)
            self._factors[account] = value
            if value == 1.0:
                del self._factors[account]
        return changed

    def _factor(self, amount: float, entitled: float) -> float:
        """Return 1 - used share / (2 · entitled share), at least 0."""
        offered = self._leaf_cells * self._rules.half_life / log(2)
        if not offered or not entitled:
            return 1.0
        return max(0.0, 1.0 - amount / offered / (2 * entitled))

    def _entitled(self, group: str) -> float:
        """Return the share of a group among the groups with recent use."""
        weights = self._rules.weights
        total = sum(weights.get(name, 1.0) for name in self._groups)
        return weights.get(group, 1.0) / total

    def _forget_unused(self, name: str, *, now: float) -> list[Account]:
        """Forget users without recent use; return the accounts whose factor has changed."""
        group, changed = self._groups[name], []
        busy = {entry.account[1] for entry in group.entries.values()}
        for user, use in list(group.users.items()):
            if user not in busy and self._decayed(use, now) < _FORGET_BELOW:
                del group.users[user]
                changed += [(name, user)] if self._factors.pop((name, user), None) else []
        if not group.users and not group.entries:
            del self._groups[name]
        return changed

    def _decayed(self, use: _Use, now: float) -> float:
        return use.amount * self._fading(now - use.at)

    def _fading(self, seconds: float) -> float:
        return exp2(-max(0.0, seconds) / self._rules.half_life)
