"""The JSON of `/v1/nodes`: what a node has, how much of it is used, and which gangs use it."""

from collections.abc import Mapping
from typing import Final

from extender.cells.model import NodeCell
from extender.cells.views.listings import Holder, Holders
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.inspection.census import count_bad
from extender.inspection.json_views import JsonObject, if_any
from extender.room.cluster_room import ClusterRoom
from kube.read.managed_pod import ManagedPod
from policy.pod_resources import CPU, MEMORY
from policy.submission import NodeName
from policy.wording import moment

_MILLI: Final = 1000


class NodeViews:
    """Shows nodes; changes nothing."""

    def __init__(self, *, cluster: Cluster, pods: PodSink, room: ClusterRoom) -> None:
        self._cluster = cluster
        self._pods = pods
        self._room = room

    def show(self, node: NodeCell, holders: Holders) -> JsonObject:
        """Show a node, what holds its leaf cells, and why no gang may use it."""
        known = self._cluster.nodes.get(node.name)
        total, idle = node.leaf_count, max(0, node.leaf_count - len(holders))
        bad = count_bad(node, idle=idle)
        return {
            "name": node.name,
            "leafType": node.leaf_type,
            "healthy": node.is_healthy,
            **if_any("quarantine", known.quarantine if known is not None else None),
            "leafCells": {"total": total, "used": total - idle, "free": idle - bad, "bad": bad},
            **self._show_room(node.name),
            "holders": [
                self._show_holder(holder, leaf_cells)
                for holder, leaf_cells in _by_holder(holders).items()
            ],
        }

    def _show_room(self, name: NodeName) -> JsonObject:
        """Show CPUs, and memory in bytes, as kube-scheduler counts them."""
        room = self._room.node(name)
        shown: JsonObject = {}
        for resource in (CPU, MEMORY):
            total, used = (room.capacity or {}).get(resource), room.used(resource)
            if total is not None:
                amounts = {"total": total, "used": used, "free": max(0, total - used)}
                shown[resource] = _in_cpus(amounts) if resource == CPU else amounts
        return shown

    def _show_holder(self, holder: Holder, leaf_cells: list[int]) -> JsonObject:
        shown: JsonObject = {"leafCells": leaf_cells, "gang": str(holder.gang)}
        if holder.member is None:
            return shown  # the gang holds the cells for a member that is not there yet
        pod = self._pods.get(holder.member)
        if pod is None:
            return shown | {"uid": holder.member}
        return {
            **shown,
            "pod": pod.display_name,
            "uid": pod.uid,
            "user": pod.charged_user,
            "vc": pod.vc,
            **if_any("class", pod.effective_class or pod.class_name),
            **if_any("since", _bound_since(pod)),
        }


def _in_cpus(amounts: Mapping[str, int]) -> JsonObject:
    return {name: amount / _MILLI for name, amount in amounts.items()}


def _by_holder(holders: Holders) -> Mapping[Holder, list[int]]:
    found: dict[Holder, list[int]] = {}
    for leaf_cell, holder in holders.items():
        found.setdefault(holder, []).append(leaf_cell)
    return found


def _bound_since(pod: ManagedPod) -> str | None:
    """Return since when a pod is on its node; a pod may have been created there."""
    if pod.node is None:
        return None
    return moment(pod.bound_at or pod.created)
