"""What a waiting pod needs of its node beside leaf cells: from its spec, and from its volumes."""

from collections.abc import Callable, Collection
from dataclasses import replace

from extender.room.fitting_nodes import FittingNodes, Need
from kube.follow.volumes import ClaimKey, Volumes
from kube.read.managed_pod import ManagedPod
from policy.submission import NodeName, PodUid

NodesFor = Callable[[ManagedPod], Collection[NodeName]]
"""The nodes that a pod could use, apart from leaf cells."""


class PodNeeds:
    """Reads the needs of pods, and tells which pods have other needs than before."""

    def __init__(self, nodes: FittingNodes, volumes: Volumes) -> None:
        self.nodes = nodes
        self._volumes = volumes
        self._users: dict[ClaimKey, dict[PodUid, None]] = {}
        """Waiting pods by the claims that they use."""
        self._claims: dict[PodUid, list[ClaimKey]] = {}
        self.on_change: list[Callable[[PodUid], None]] = []
        """Callbacks that run when a pod has other needs."""
        volumes.on_change.append(self._tell)

    def of(self, pod: ManagedPod) -> Need:
        """Return the need of a pod; a pod that is bound has no claims any more."""
        wish, resources = pod.node_wish, self.nodes.room.pod(pod.uid).resources
        claims = [(pod.namespace, name) for name in pod.claims]
        self._note(pod.uid, claims)
        terms = self._volumes.terms(claims)
        return Need(replace(wish, volumes=terms) if terms else wish, resources)

    def fitting(self, pod: ManagedPod) -> Collection[NodeName]:
        """Return the nodes that have room for a pod beside leaf cells, and do not keep it off."""
        return self.nodes.fitting([self.of(pod)], without=self.nodes.closed_to([pod.uid]))

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        self._note(uid, [])

    def _note(self, uid: PodUid, claims: list[ClaimKey]) -> None:
        for claim in self._claims.pop(uid, ()):
            del self._users[claim][uid]
            if not self._users[claim]:
                del self._users[claim]
        if claims:
            self._claims[uid] = claims
        for claim in claims:
            self._users.setdefault(claim, {})[uid] = None

    def _tell(self, claim: ClaimKey) -> None:
        for uid in list(self._users.get(claim, ())):
            for tell in self.on_change:
                tell(uid)
