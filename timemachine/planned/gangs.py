"""Gangs as they are played: an admitted arrival with its class, and its members."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from extender.cells.model import MemberRequest
from extender.queue.model import QueuedPod
from policy.submission import ClassName, GangKey, GroupName, PodUid
from timemachine.model import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedGang:
    """An arrival that was admitted."""

    key: GangKey
    """Unique among all gangs of a play, which the name of a gang is not."""
    arrival: Arrival
    class_name: ClassName
    priority: int
    """In the cell engine: 0..1000 guaranteed, -1 opportunistic."""
    group: GroupName | None = None
    """The group that is charged."""
    created: float
    """When its pods were created: after it was preempted, later than it asked."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The leaf cells of each member that has some."""
        return tuple(filter(None, self.arrival.sizes))

    @property
    def least(self) -> int:
        """How many members are enough to start."""
        least = self.arrival.gang_min
        return len(self.sizes) if least is None else max(1, min(least, len(self.sizes)))

    def requests(self) -> list[MemberRequest]:
        """Return what its members ask for."""
        sizes, arrival = self.sizes, self.arrival
        first = MemberRequest(
            member=PodUid(""),
            gang=self.key,
            leaf_count=0,
            gang_leaf_counts=sizes,
            gang_min=None if arrival.gang_min is None else self.least,
            leaf_type=arrival.leaf_type,
            vc=arrival.vc,
            priority=self.priority,
            created=self.created,
            checkpoint_cost=arrival.checkpoint_cost,
        )
        name = f"{self.key.namespace}/{self.key.stored_name}"
        return [
            replace(first, member=PodUid(f"{name}-{index}"), leaf_count=size)
            for index, size in enumerate(sizes)
        ]

    def pods(self) -> Sequence[QueuedPod]:
        """Return its members as the planner sees them."""
        return [
            QueuedPod(
                request=request,
                gang_size=len(self.sizes),
                is_gated=True,
                first_asked=self.arrival.submitted,
                user=self.arrival.user,
                group=self.group,
                class_name=self.class_name,
            )
            for request in self.requests()
        ]
