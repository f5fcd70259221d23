"""Builds charges and limits, and a clock to advance: a test states only what matters to it."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from policy.quotas.limits import Limit, Measure, Scope
from policy.submission import ClassName, GangKey, GroupName, LeafType, UserName, VcName
from state.ledger.ledger import Charge, LeaderTerm

# A Sunday evening at the end of a month: days, weeks and months end soon.
EVENING = datetime(2026, 5, 31, 22, 0, tzinfo=UTC)
TERM = LeaderTerm(leadership="cellgate-extender", epoch=7)
ALICE = Scope(UserName("alice"))
VISION = Scope(None, GroupName("vision"))
ALICE_IN_VISION = Scope(UserName("alice"), GroupName("vision"))


class Clock:
    """Stands still unless it is advanced."""

    def __init__(self, now: datetime = EVENING) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **length: float) -> None:
        """Let time pass, such as `hours=1`."""
        self.now += timedelta(**length)


def a_gang(name: str) -> GangKey:
    """Return the key of a gang in the tests' namespace."""
    return GangKey("team-a", name)


def a_charge(gang: str = "bert", **fields: Any) -> Charge:
    """Return a plausible charge of a gang."""
    defaults: dict[str, Any] = {
        "decision": uuid.uuid4(),
        "user": UserName("alice"),
        "group": GroupName("vision"),
        "vc": VcName("lab"),
        "class_name": ClassName("prod"),
        "is_high": True,
        "leaf_type": LeafType("A100"),
        "leaf_count": 4,
    }
    return Charge(gang=a_gang(gang), **{**defaults, **fields})


def at_most(most: float, measure: Measure, scope: Scope = ALICE, **fields: Any) -> Limit:
    """Return a limit."""
    return Limit(scope=scope, measure=measure, most=most, **fields)
