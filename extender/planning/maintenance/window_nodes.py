"""The nodes that have the labels of a maintenance window, as nodes and documents change."""

from collections.abc import Mapping

from extender.cluster.cluster import Cluster
from extender.queue.reserve.calendar import Calendar
from kube.follow.policies import PolicySink
from policy.queues.windows import MaintenanceWindow
from policy.submission import NodeName


class WindowNodes:
    """Tells the planner's calendar which nodes belong to its windows."""

    def __init__(self, calendar: Calendar, *, cluster: Cluster, policies: PolicySink) -> None:
        self._calendar = calendar
        self._cluster = cluster
        self._policies = policies
        self._windows: tuple[MaintenanceWindow, ...] = ()
        self._found: dict[str, set[NodeName]] = {}
        policies.on_change.append(self._follow)
        cluster.on_node_change.append(self._observe)
        self._follow()

    def _follow(self) -> None:
        """Look at all nodes if the document has other windows."""
        windows = tuple(one for one in self._policies.policy.queues.maintenance if one.labels)
        if windows == self._windows:
            return
        self._windows = windows
        nodes: Mapping[NodeName, object] = self._cluster.nodes
        self._found = {
            one.name: {name for name in nodes if self._belongs(one, name)} for one in windows
        }
        self._calendar.note_nodes(self._found)

    def _observe(self, name: NodeName) -> None:
        """Look at a node that has joined, changed or left."""
        has_changed = False
        for one in self._windows:
            found, belongs = self._found[one.name], self._belongs(one, name)
            if belongs != (name in found):
                has_changed = True
                (found.add if belongs else found.discard)(name)
        if has_changed:
            self._calendar.note_nodes(self._found)

    def _belongs(self, window: MaintenanceWindow, name: NodeName) -> bool:
        node = self._cluster.nodes.get(name)
        return node is not None and window.covers(name, node.labels)
