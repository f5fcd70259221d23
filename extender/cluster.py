"""The cluster as the extender knows it: nodes and pods from their feeds, passed on to the engine.

Nothing is decided here. An object that cannot be understood is logged and left out; it never stops
a feed.
"""

import logging
from collections.abc import Sequence

from extender import wire
from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, NodeCell
from kube.client import Object
from kube.nodes import read_node
from kube.pods import ManagedPod, read_device_use, read_pod
from policy.errors import RequestError
from policy.submission import GangKey, NodeName, PodUid

logger = logging.getLogger(__name__)


class NodeSink:
    """Nodes → cells."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[NodeName, None] = {}

    def replace(self, objects: Sequence[Object]) -> None:
        """Take a whole list: what is not in it is gone."""
        there = {obj["metadata"]["name"] for obj in objects}
        for name in [name for name in self._known if name not in there]:
            self._forget(name)
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """Take note of a node that joined or changed."""
        node = read_node(obj)
        if node is None:
            self._forget(NodeName(obj["metadata"]["name"]))
            return
        self._known[node.name] = None
        self._engine.observe_node(
            NodeCell(
                name=node.name,
                leaf_type=node.leaf_type,
                leaf_count=node.leaf_count,
                is_healthy=node.is_healthy,
            )
        )

    def remove(self, obj: Object) -> None:
        """Take note of a node that left."""
        self._forget(NodeName(obj["metadata"]["name"]))

    def _forget(self, name: NodeName) -> None:
        if name in self._known:
            del self._known[name]
            self._engine.forget_node(name)


class PodSink:
    """Pods → members of gangs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pods: dict[PodUid, ManagedPod] = {}

    def get(self, uid: PodUid) -> ManagedPod | None:
        """The pod as it was last seen, if it is managed and alive."""
        return self._pods.get(uid)

    def replace(self, objects: Sequence[Object]) -> None:
        """Take a whole list: what is not in it is gone."""
        there = {obj["metadata"]["uid"] for obj in objects}
        for uid in [uid for uid in self._pods if uid not in there]:
            self._forget(uid)
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """Take note of a pod that appeared or changed."""
        try:
            pod = read_pod(obj)
        except RequestError as exc:
            self._observe_misfit(obj, exc)
            return
        if pod is None or pod.is_finished:
            self._forget(PodUid(obj["metadata"]["uid"]))
            return
        self._pods[pod.uid] = pod
        if pod.node:
            placement = wire.to_placement(pod)
            self._engine.observe_bound(
                wire.to_member_request(pod),
                node=pod.node,
                leaf_cells=placement.leaf_cells if placement else (),
                placement=placement,
            )

    def remove(self, obj: Object) -> None:
        """Take note of a pod that is gone."""
        self._forget(PodUid(obj["metadata"]["uid"]))

    def _observe_misfit(self, obj: Object, error: RequestError) -> None:
        """A pod that makes no sense to us may still run: then its devices are not ours to give."""
        uid, namespace = PodUid(obj["metadata"]["uid"]), str(obj["metadata"].get("namespace"))
        logger.warning("pod not understood", extra={"pod_uid": uid, "error": str(error)})
        try:
            use = read_device_use(obj)
        except RequestError:
            use = None
        if use is None:
            self._forget(uid)
            return
        request = MemberRequest(
            member=uid,
            gang=GangKey(namespace, f"misfit/{uid}"),
            leaf_count=use.device_count,
            gang_leaf_counts=(use.device_count,),
        )
        self._engine.observe_bound(request, node=use.node, leaf_cells=())

    def _forget(self, uid: PodUid) -> None:
        self._pods.pop(uid, None)
        self._engine.forget_member(uid)
