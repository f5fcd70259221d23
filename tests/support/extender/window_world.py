"""A shell with a gang on a node, and a maintenance window over it."""

from datetime import UTC, datetime

from extender.outcomes.pod_events import PodEvents
from extender.planning.maintenance.concerned_gangs import ConcernedGang, find_concerned
from extender.planning.maintenance.window_nodes import WindowNodes
from extender.planning.maintenance.window_notices import WindowNotices
from extender.queue.forecast.model import RunTime
from kube.follow.policies import PolicySink
from policy.placement import Placement
from policy.queues.windows import MaintenanceWindow
from policy.submission import GangKey, NodeName
from service.clock import Clock
from tests.support.cells.builders import a_cluster
from tests.support.extender.shell import Shell
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.events import KeptEvents
from tests.support.kube.pods import a_pod
from tests.support.queue.timed_world import TimedWorld

DOCUMENT = """apiVersion: cellgate.io/v1
kind: Queues
levels: [{name: all, strategy: fifo}]
maintenance:
- {name: firmware, nodes: [node-00, gone], nodeLabels: {rack: r1}, reason: new firmware,
   from: "1970-01-01T02:00:00Z", until: "1970-01-01T03:00:00Z", notice: 1h}
"""
GANG = GangKey("lab", "bert")


class WindowWorld:
    """A shell with a gang on node-00, and the window of the document."""

    def __init__(self) -> None:
        self.shell = Shell()
        self.shell.recover()
        self.planner = TimedWorld(a_cluster("2 nodes x 4").promising("a", node=2).build())
        self.reservations = self.planner.planner.reservations
        self.policies = PolicySink(KeptEvents())
        calendar = self.reservations.calendar
        WindowNodes(calendar, cluster=self.shell.cluster, policies=self.policies)
        self.apply(DOCUMENT)
        place = Placement(node=NodeName("node-00"), leaf_cells=tuple(range(8)))
        pod = a_pod("bert-0").with_gpus(8).in_gang("bert", size=1).in_vc("lab")
        self.shell.pods.upsert(pod.placed(place).bound_to("node-00"))
        self.at(0.0)
        self.notices = WindowNotices(
            windows=lambda: self.policies.policy.queues.maintenance,
            concerned=self.concerned,
            pods=self.shell.pods,
            events=PodEvents(self.shell.events),  # type: ignore[arg-type] # all that it uses
            clock=Clock(now=lambda: datetime.fromtimestamp(self.seconds, UTC)),
        )

    def apply(self, text: str) -> None:
        self.policies.replace([a_policy_map("queues", text)])
        policy, ranking = self.policies.policy, self.planner.planner.ranking
        ranking.order.configure(policy.queues, policy.classes)

    def at(self, seconds: float) -> None:
        self.seconds = seconds
        self.planner.planner.ranking.note_time(seconds)

    @property
    def window(self) -> MaintenanceWindow:
        (window,) = self.policies.policy.queues.maintenance
        return window

    def concerned(self, window: MaintenanceWindow) -> list[ConcernedGang]:
        members = self.shell.cluster.members
        return find_concerned(window, members=members, reservations=self.reservations)

    def expect(self, seconds: float | None) -> None:
        """Expect the gang to run for so long from now on."""
        self.planner.run_times.of[GANG] = RunTime(median=seconds, high=seconds, runs=50)

    def told(self, reason: str) -> list[str]:
        return [message for _, message in self.shell.events.said(reason)]
