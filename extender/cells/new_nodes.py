"""Waiting gangs that would start on new nodes: those for which an autoscaler is asked for nodes.

A gang is asked for when it has waited for a while because there are too few nodes, and not because
of a quota, of a limit of its VC, or of gangs that are ending for it. No node is asked for on behalf
of opportunistic gangs: they use what is idle.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from extender.cells.model import OPPORTUNISTIC, Reason, ReasonCode
from policy.submission import GangKey

PATIENCE_SECONDS: Final = 15.0
"""A gang that waits for less may start by itself, as others end."""
MOST_AT_ONCE: Final = 50
"""Gangs that are asked for at the same time; others follow as these start."""

_TOO_FEW_NODES: Final = frozenset(
    {ReasonCode.NO_ROOM, ReasonCode.BAD_CELLS, ReasonCode.NODE_NOT_OFFERED}
)
_BY_THE_PROMISE: Final = frozenset({ReasonCode.VC_FULL, ReasonCode.TOO_LARGE})
"""New nodes help where they are promised to the VC and missing, or where every node is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingGang:
    """A gang that waits."""

    gang: GangKey
    reason: Reason
    priority: int
    waited_seconds: float
    """For how long it has waited for this reason."""


def lacks_nodes(reason: Reason, *, is_open: bool) -> bool:
    """Whether a gang that waits for this reason would start if there were more nodes.

    In an open cluster, one without a Cluster document, every new node is at its disposal.
    """
    if reason.code in _TOO_FEW_NODES:
        return True
    if reason.code not in _BY_THE_PROMISE:
        return False
    told = reason.arguments
    return "shortfall" in told or ("needs" in told and (is_open or "vc" not in told))


def choose_for_new_nodes(waiting: Iterable[WaitingGang], *, is_open: bool) -> tuple[GangKey, ...]:
    """Return the gangs to ask nodes for: by priority, then those that wait longest."""
    wanted = [
        one
        for one in waiting
        if one.priority > OPPORTUNISTIC
        and lacks_nodes(one.reason, is_open=is_open)
        and one.waited_seconds >= PATIENCE_SECONDS
    ]
    wanted.sort(
        key=lambda one: (-one.priority, -one.waited_seconds, one.gang.namespace, one.gang.name)
    )
    return tuple(one.gang for one in wanted[:MOST_AT_ONCE])
