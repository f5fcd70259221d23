"""One gang as the planner sees it: the pods of it that exist, and what became of them."""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from extender.cells.answers import terms
from extender.cells.model import ReasonCode
from extender.queue.model import QueuedPod
from extender.queue.order import Standing
from policy.submission import GangKey, NodeName, PodUid

PriorityOf = Callable[[PodUid], int | None]
"""What a pod's priority is now; None if nobody can tell."""

_REFUSED_SECONDS = 60.0
_LONGEST_REFUSED_SECONDS = 480.0


@dataclass(slots=True, eq=False)
class QueuedGang:
    """The pods of one gang, oldest first in every list."""

    key: GangKey
    pods: dict[PodUid, QueuedPod] = field(default_factory=dict)
    refused_nodes: dict[NodeName, float] = field(default_factory=dict)
    """Nodes that kube-scheduler would not use for it, and until when we believe that."""
    _refusals: Counter[NodeName] = field(default_factory=Counter)
    victims: tuple[GangKey, ...] = ()
    """Whom it preempts at present."""
    has_reserved: bool = False
    """Whether what they leave is kept for it. Where that takes another order of cells, it cannot be
    kept: they end nevertheless, and the gang looks again."""
    waits_since: float = 0.0
    """Ranked like one that was created then, where it is no younger itself."""
    told: ReasonCode | None = None
    """Code of the reason that its owner was told last."""
    _in_order: list[QueuedPod] | None = None
    """Its pods, sorted; None after a change. Looks are many, changes few."""

    def put(self, pod: QueuedPod) -> None:
        """A pod of it appeared or changed."""
        self.pods[pod.uid] = pod
        self._in_order = None

    def remove(self, uid: PodUid) -> None:
        """A pod of it is gone."""
        del self.pods[uid]
        self._in_order = None

    def oldest_first(self) -> list[QueuedPod]:
        """Its pods, in an order that every replica agrees on."""
        if self._in_order is None:
            self._in_order = sorted(self.pods.values(), key=lambda pod: (pod.created, pod.uid))
        return self._in_order

    def reranked(self, priority_of: PriorityOf) -> list[QueuedPod]:
        """Those of its pods that have another priority now, with it."""
        ranks = {uid: priority_of(uid) for uid in self.pods}
        return [
            _at_priority(pod, rank)
            for uid, pod in self.pods.items()
            if (rank := ranks[uid]) is not None and rank != pod.request.priority
        ]

    def members(self) -> list[QueuedPod]:
        """The pods that count: surplus ones, the youngest, do not."""
        return self.oldest_first()[: self.size]

    def surplus(self) -> list[QueuedPod]:
        """The pods beyond its size."""
        return self.oldest_first()[self.size :]

    @property
    def first(self) -> QueuedPod:
        """The pod that speaks for the gang."""
        return self.oldest_first()[0]

    @property
    def size(self) -> int:
        """How many members it says it has."""
        return self.first.gang_size

    @property
    def least(self) -> int:
        """How many must exist before it is looked at."""
        gang_min = self.first.request.gang_min
        return self.size if gang_min is None else min(gang_min, self.size)

    @property
    def has_begun(self) -> bool:
        """Some member runs: others come late, or replace one that failed."""
        return any(pod.node is not None for pod in self.pods.values())

    @property
    def starts_whole(self) -> bool:
        """All members that exist start together or none does."""
        return self.first.request.gang_min is None and not self.has_begun

    @property
    def is_complete(self) -> bool:
        """Enough members exist for a look."""
        return self.has_begun or len(self.pods) >= self.least

    def leaf_counts(self) -> tuple[int, ...]:
        """Leaf cells of every member; those that do not exist yet are taken to be like the first.

        Only the pods themselves know that a gang is of mixed sizes: no label says so. HiveD's
        annotation does, and is believed.
        """
        told = self.first.request.gang_leaf_counts
        if len(set(told)) > 1:
            return told
        there = [pod.request.leaf_count for pod in self.members()]
        missing = [self.first.request.leaf_count] * (self.size - len(there))
        return tuple(sorted([*there, *missing], reverse=True))

    def disagreeing(self) -> QueuedPod | None:
        """A member that does not ask for the same as the first."""
        theirs = gang_terms(self.first)
        return next((pod for pod in self.members() if gang_terms(pod) != theirs), None)

    def node_wishes(self) -> tuple[Hashable, ...]:
        """The different node wishes of its members."""
        return tuple(dict.fromkeys(pod.node_wish for pod in self.members()))

    def standing(self) -> Standing:
        """What its rank is made of."""
        request = self.first.request
        since = max(self.first.created, self.waits_since)
        return Standing(gang=self.key, vc=request.vc, priority=request.priority, since=since)

    def refuse_node(self, node: NodeName, *, now: float) -> None:
        """kube-scheduler would not use a node for it: we believe that for longer each time.

        There may be many such nodes, and each takes seconds to find out. It would come back to the
        first before it has tried the last, again and again.
        """
        seconds = min(_REFUSED_SECONDS * 2 ** self._refusals[node], _LONGEST_REFUSED_SECONDS)
        self._refusals[node] += 1
        self.refused_nodes[node] = now + seconds

    def shorten_refusals(self, *, now: float) -> None:
        """Where no other is left, refused nodes are worth a look as soon as the first time."""
        soon = now + _REFUSED_SECONDS
        self.refused_nodes = {node: min(end, soon) for node, end in self.refused_nodes.items()}

    def forget_refused_nodes(self, now: float) -> None:
        """Nodes refused long ago may have changed."""
        left = {node: until for node, until in self.refused_nodes.items() if until > now}
        self.refused_nodes = left


def _at_priority(pod: QueuedPod, rank: int) -> QueuedPod:
    alone = replace(pod.alone, priority=rank) if pod.alone else None
    return replace(pod, request=replace(pod.request, priority=rank), alone=alone)


def gang_terms(pod: QueuedPod) -> dict[str, int | str]:
    """What all members of a gang must agree on, by the words that users know."""
    return {"gang size": pod.gang_size, **terms(pod.request)}
