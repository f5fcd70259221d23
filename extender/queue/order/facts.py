"""What the order knows of a gang. Immutable."""

from dataclasses import dataclass

from extender.queue.forecast.model import NOTHING_KNOWN, RunTime
from policy.submission import GangKey, LeafType, VcName
from policy.topology import PinnedCellId


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """A gang that waits, for cells or for quota."""

    gang: GangKey
    user: str
    """The user that is charged."""
    group: str | None = None
    """The group that is charged."""
    vc: VcName
    class_name: str = ""
    priority: int = 0
    """In the cell engine: 0..1000 guaranteed, -1 opportunistic."""
    leaf_cells: int
    """Of all members."""
    leaf_type: LeafType | None = None
    pinned: PinnedCellId | None = None
    """The pinned cell that it must lie in."""
    asked: float
    """Since when its age counts, in seconds since 1970."""
    run_time: RunTime = NOTHING_KNOWN
    start_by: float | None = None
    """When its owner wishes it to start, in seconds since 1970."""

    @property
    def namespace(self) -> str:
        """The namespace of its pods."""
        return self.gang.namespace
