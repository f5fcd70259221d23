"""What a gang waits for, by the code of its reason, for people and programs that sort reasons."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from extender.cells.model import ReasonCode


class WaitsFor(StrEnum):
    """What has to happen before a waiting gang can start."""

    CELLS = "cells"
    """Leaf cells that are free, healthy and of its VC."""
    NODES = "nodes"
    """Nodes that its pods may use, with CPU, memory and all else."""
    VICTIMS = "victims"
    """The end of other gangs, which are preempted for it."""
    MEMBERS = "members"
    """Members that do not exist yet, or earlier ones that have to end."""
    QUOTA = "quota"
    OWNER = "owner"
    """A change by its owner: as it is, it is refused."""
    CONTROLLER = "controller"
    """Another controller, which has a gate of its own on the pods."""
    RELEASE = "release"
    """The end of a hold, which its owner or an admin has put on it."""
    TURN = "turn"
    """The planner, which has not looked at it yet."""


_BY_CODE: Final[Mapping[ReasonCode, WaitsFor]] = {
    ReasonCode.NO_ROOM: WaitsFor.CELLS,
    ReasonCode.VC_FULL: WaitsFor.CELLS,
    ReasonCode.BAD_CELLS: WaitsFor.CELLS,
    ReasonCode.FOREIGN_USE: WaitsFor.CELLS,
    ReasonCode.SEARCH_ENDED: WaitsFor.CELLS,
    ReasonCode.TOO_LARGE: WaitsFor.CELLS,
    ReasonCode.BEING_PREEMPTED: WaitsFor.CELLS,
    ReasonCode.PREEMPTED: WaitsFor.CELLS,
    ReasonCode.RESERVED: WaitsFor.CELLS,
    ReasonCode.MAINTENANCE: WaitsFor.NODES,
    ReasonCode.RESERVED_AHEAD: WaitsFor.CELLS,
    ReasonCode.MINIMUM_RUN: WaitsFor.CELLS,
    ReasonCode.NODE_NOT_OFFERED: WaitsFor.NODES,
    ReasonCode.LACKS_RESOURCES: WaitsFor.NODES,
    ReasonCode.BINDING_GIVEN_UP: WaitsFor.NODES,
    ReasonCode.PREEMPTING: WaitsFor.VICTIMS,
    ReasonCode.GATHERING: WaitsFor.MEMBERS,
    ReasonCode.MEMBERS_ENDING: WaitsFor.MEMBERS,
    ReasonCode.GANG_FULL: WaitsFor.MEMBERS,
    ReasonCode.NO_POD_GROUP: WaitsFor.MEMBERS,
    ReasonCode.HELD_AT_BINDING: WaitsFor.MEMBERS,
    ReasonCode.QUOTA: WaitsFor.QUOTA,
    ReasonCode.OTHER_GATE: WaitsFor.CONTROLLER,
    ReasonCode.UNPLANNED: WaitsFor.TURN,
    ReasonCode.HELD_BY_USER: WaitsFor.RELEASE,
    ReasonCode.HELD_BY_ADMIN: WaitsFor.RELEASE,
    ReasonCode.NO_SCHEDULER: WaitsFor.OWNER,
    ReasonCode.UNKNOWN_CLASS: WaitsFor.OWNER,
    ReasonCode.UNKNOWN_VC: WaitsFor.OWNER,
    ReasonCode.UNKNOWN_PINNED_CELL: WaitsFor.OWNER,
    ReasonCode.UNKNOWN_LEAF_TYPE: WaitsFor.OWNER,
    ReasonCode.BAD_PRIORITY: WaitsFor.OWNER,
    ReasonCode.BAD_GANG_MIN: WaitsFor.OWNER,
    ReasonCode.BAD_LEAF_COUNT: WaitsFor.OWNER,
    ReasonCode.OPPORTUNISTIC_PINNED: WaitsFor.OWNER,
    ReasonCode.GANG_MISMATCH: WaitsFor.OWNER,
}


def may_start_unchanged(code: ReasonCode) -> bool:
    """Tell whether a gang may start although neither it, its VC nor the cluster changes."""
    return code is not ReasonCode.TOO_LARGE and waits_for(code) is not WaitsFor.OWNER


def waits_for(code: ReasonCode) -> WaitsFor:
    """Return what a gang waits for."""
    return _BY_CODE[code]
