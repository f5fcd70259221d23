"""A planner over a small cluster, without a network: which pods it lets go, and why others wait."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from extender.feeds.node_feed import NodeSink
from extender.feeds.pod_needs import PodNeeds
from extender.feeds.requests import to_member_request
from extender.feeds.room_feed import RoomSink, follow_members
from extender.planning.action_executor import ActionExecutor
from extender.planning.cluster_cells import ClusterCells
from extender.planning.held_calls import HeldCalls
from extender.planning.held_pods import HeldPods
from extender.planning.pending_writes import PendingWrites
from extender.planning.planning_loop import PlanningLoop
from extender.planning.user_requests.user_holds import UserHolds
from extender.queue.model import Action, ReleasePod
from extender.room.cluster_room import ClusterRoom
from extender.room.fitting_nodes import FittingNodes
from kube.follow.volumes import Volumes
from kube.read.managed_pod import ManagedPod
from policy.classes import NO_CLASSES, Classes
from policy.submission import PodUid
from tests.support.background import background
from tests.support.extender.shell import Shell
from tests.support.kube.nodes import a_node


class Groups:
    """PodGroups, as they become known."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def size(self, pod: ManagedPod) -> int | None:
        return self.sizes.get(pod.gang.key.name)

    def is_awaited(self, pod: ManagedPod) -> bool:
        return pod.gang.size is None and self.size(pod) is None


class Quota:
    """Holds every gang, unless there is room."""

    def __init__(self) -> None:
        self.has_room = True

    def holds(self, _: ManagedPod) -> bool:
        return not self.has_room


class RecordingExecutor:
    """Keeps the pods that it was to release."""

    def __init__(self) -> None:
        self.released: list[PodUid] = []

    async def execute(self, action: Action, *, is_wanted: Callable[[], bool]) -> None:
        assert is_wanted()
        if isinstance(action, ReleasePod):
            self.released.append(action.uid)


class Planning:
    """A planner over a cluster of four nodes with eight leaf cells."""

    def __init__(self, executor: ActionExecutor | None = None, shell: Shell | None = None) -> None:
        self.shell = shell or Shell()
        self.groups = Groups()
        self.classes: Classes = NO_CLASSES
        self.executor = RecordingExecutor()
        self.room = ClusterRoom()
        self.volumes = Volumes()
        fitting = FittingNodes(self.room)
        follow_members(self.shell.cluster.members, self.room)
        self.nodes = NodeSink(self.shell.cluster, fitting)
        self.pods = RoomSink(self.room, self.shell.pods)
        self.quota = Quota()
        self.holds = UserHolds(
            self.shell.pods, has_place=self.shell.cluster.has_place, clock=self.shell.clock
        )
        self.planner = PlanningLoop(
            cells=ClusterCells(
                self.shell.cluster,
                self.shell.pods,
                outcomes=self.shell.outcomes,
                calls=HeldCalls(PendingWrites()),
            ),
            pods=self.shell.pods,
            needs=PodNeeds(fitting, self.volumes),
            to_request=lambda pod: to_member_request(pod, classes=self.classes, sizes=self.groups),
            executor=executor or self.executor,  # type: ignore[arg-type] # all that it uses
            held=HeldPods(
                awaits_group=self.groups.is_awaited,
                quota=self.quota,  # type: ignore[arg-type] # all that it uses
                by_users=self.holds,
            ),
            clock=self.shell.clock,
        )
        self.shell.recover()

    def add_nodes(self, **spec: Any) -> None:
        for index in range(4):
            self.nodes.upsert(a_node(f"node-{index:02}").with_spec(**spec))

    async def looked(self) -> list[PodUid]:
        """Let it look until it has nothing to do; whom it has released."""
        for _ in range(50):
            await asyncio.sleep(0)
        return sorted(self.executor.released)

    def waiting(self) -> dict[str, str]:
        """Why gangs wait."""
        return {str(entry.gang): entry.reason.text for entry in self.shell.waiting}

    def placed(self) -> list[str]:
        members = self.shell.cluster.members
        return sorted(one.placement.node for _, one in members.items())


@asynccontextmanager
async def planning(
    executor: ActionExecutor | None = None, shell: Shell | None = None
) -> AsyncIterator[Planning]:
    plans = Planning(executor, shell)
    async with background(plans.planner.run()):
        yield plans
