"""What all pods request, managed or not, and where members have places: for the room on nodes."""

from collections.abc import Sequence

from extender.cluster.members import Member, MemberIndex
from extender.room.cluster_room import ClusterRoom
from kube.api.client import Object
from kube.api.feed import Sink
from kube.read.pod_resources import read_node_pod
from kube.read.pods import has_finished
from kube.values.objects import mapping
from policy.submission import NodeName, PodUid


class RoomSink:
    """Passes pods on to the room on nodes, and then to another sink.

    The room is told first: the other sink may plan.
    """

    def __init__(self, room: ClusterRoom, then: Sink) -> None:
        self._room = room
        self._then = then

    def replace(self, objects: Sequence[Object]) -> None:
        """Take all pods there are; any other is gone."""
        there = {obj["metadata"]["uid"] for obj in objects}
        for uid in [uid for uid in self._room.pods() if uid not in there]:
            self._room.lose(uid)
        for obj in objects:
            self._see(obj)
        self._then.replace(objects)

    def upsert(self, obj: Object) -> None:
        """A pod appeared or changed."""
        self._see(obj)
        self._then.upsert(obj)

    def remove(self, obj: Object) -> None:
        """A pod is gone."""
        self._room.lose(PodUid(obj["metadata"]["uid"]))
        self._then.remove(obj)

    def _see(self, obj: Object) -> None:
        uid = PodUid(obj["metadata"]["uid"])
        if has_finished(obj):
            self._room.lose(uid)
            return
        node = mapping(obj.get("spec")).get("nodeName")
        self._room.see(uid, read_node_pod(obj), node=NodeName(str(node)) if node else None)


def follow_members(members: MemberIndex, room: ClusterRoom) -> None:
    """Count members that have places, also while they are not bound."""

    def note(uid: PodUid, member: Member | None) -> None:
        if member is None:
            room.unseat(uid)
        else:
            room.seat(uid, member.placement.node, is_endable=not member.is_foreign)

    members.on_change.append(note)
