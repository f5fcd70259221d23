"""Builds charges and limits: a test states only what matters to it."""

import uuid
from typing import Any

from policy.quotas.charge import Charge
from policy.quotas.limits import Limit, Measure, Scope
from policy.submission import ClassName, GangKey, GroupName, LeafType, UserName, VcName
from state.ledger.ledger import LeaderTerm

TERM = LeaderTerm(leadership="cellgate-extender", epoch=7)
ALICE = Scope(UserName("alice"))
VISION = Scope(None, GroupName("vision"))
ALICE_IN_VISION = Scope(UserName("alice"), GroupName("vision"))


def gang_key(name: str) -> GangKey:
    """Return the key of a gang in the tests' namespace."""
    return GangKey("team-a", name)


def a_charge(gang: str | GangKey = "bert", **fields: Any) -> Charge:
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
    key = gang if isinstance(gang, GangKey) else gang_key(gang)
    return Charge(gang=key, **{**defaults, **fields})


def at_most(most: float, measure: Measure, scope: Scope = ALICE, **fields: Any) -> Limit:
    """Return a limit."""
    return Limit(scope=scope, measure=measure, most=most, **fields)
