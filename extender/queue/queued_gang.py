"""One gang as the planner sees it: its pods that exist, and the planner's notes about it."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from extender.cells.answers import disagreement, terms
from extender.cells.model import Reason, Reject
from extender.queue.model import LeafCounts, MembersLeft, QueuedPod
from policy.submission import GangKey, NodeName, PodUid

PriorityOf = Callable[[PodUid], int | None]
"""The current priority of a pod; None if it is unknown."""

_REFUSED_SECONDS = 60.0
_LONGEST_REFUSED_SECONDS = 480.0
_PAUSE_SECONDS = 5.0
_LATE_SECONDS = 1800.0
"""How long leaf cells are leased for members that are created later: they may never be."""


@dataclass(slots=True, eq=False)
class QueuedGang:
    """The pods of one gang, oldest first in every list."""

    key: GangKey
    pods: dict[PodUid, QueuedPod] = field(default_factory=dict)
    refused_nodes: dict[NodeName, float] = field(default_factory=dict)
    """Nodes that kube-scheduler refused for it, and when they may be tried again."""
    _refusals: Counter[NodeName] = field(default_factory=Counter)
    _refused_for: dict[NodeName, PodUid] = field(default_factory=dict)
    """The member that was last refused on each of them."""
    resumes_at: float = 0.0
    """When it may be planned again, after its helpers did not arrive to be bound."""
    _pauses: int = 0
    asleep: set[PodUid] = field(default_factory=set)
    """Helpers whose gate is lifted, and that were refused because the gang had no places."""
    victims: tuple[GangKey, ...] = ()
    """The gangs that it preempts at present."""
    moved: Mapping[PodUid, GangKey] = field(default_factory=dict)
    """The pods of opportunistic gangs that are ended so that it starts earlier. The gangs fit
    elsewhere: pods that are created in their place are left alone."""
    has_reserved: bool = False
    """Whether the cells of its victims are reserved for it. Where the cells must first be mapped in
    another way they cannot be reserved: the victims end, and the gang is planned again."""
    has_reservation: bool = False
    """Whether cells are reserved for it until others have ended."""
    run_class: int = 0
    """A class of expected run times, the shortest first; only short runs use reserved cells."""
    covered: tuple[str, ...] = ()
    """The advance reservations whose cells it may use."""
    waits_since: float = -inf
    """The gang is ranked as if it had asked then, unless it is younger; until it is planned."""
    noticed: Reason | None = None
    """The last notice to its owner; None if the gang has resumed since."""
    noticed_uid: PodUid | None = None
    """The member that carried the last notice."""
    finished: Mapping[str, LeafCounts] = field(default_factory=dict)
    """Members that have succeeded, by the UID of their workload."""
    late: tuple[int, ...] = ()
    """The leaf cells of each member that is created only after others are Ready."""
    form: int = 0
    """The alternative by which it is planned or has its places; 0: as its pods ask."""
    form_note: str = ""
    """Why it has its places by an alternative, for its pods; empty: as they ask."""
    _awaits_since: float | None = None
    """Since when only members are missing that are created later."""
    _in_order: list[QueuedPod] | None = None
    """Its pods, sorted; None after a change."""
    _first: QueuedPod | None = None
    _has_begun: bool | None = None

    def put(self, pod: QueuedPod) -> None:
        """Note a pod that appeared or changed."""
        self.pods[pod.uid] = pod.in_form(self.form)
        self.late = max(self.late, pod.late, key=len)
        self._forget_derived()

    def take_form(self, number: int, note: str = "") -> None:
        """Change what its members ask for to one of its alternatives; 0: to what they ask."""
        self.form_note = note
        if number != self.form:
            self.form = number
            self.pods = {uid: pod.in_form(number) for uid, pod in self.pods.items()}
            self._forget_derived()

    def remove(self, uid: PodUid) -> None:
        """Remove a pod."""
        del self.pods[uid]
        self.asleep.discard(uid)
        self._forget_derived()

    def _forget_derived(self) -> None:
        self._in_order = self._first = self._has_begun = None

    def lowest_first(self) -> list[QueuedPod]:
        """Return the oldest pods, up to the gang's size, in the order of their ranks."""
        return sorted(self.members(), key=lambda pod: pod.rank)

    def oldest_first(self) -> list[QueuedPod]:
        """Return its pods, in an order that is the same in every replica."""
        if self._in_order is None:
            self._in_order = sorted(self.pods.values(), key=lambda pod: (pod.created, pod.uid))
        return self._in_order

    def reranked(self, priority_of: PriorityOf) -> list[QueuedPod]:
        """Return the pods whose priority has changed, with their new priority."""
        ranks = {uid: priority_of(uid) for uid in self.pods}
        return [
            _at_priority(pod, rank)
            for uid, pod in self.pods.items()
            if (rank := ranks[uid]) is not None and rank != pod.request.priority
        ]

    def deciding(self) -> list[QueuedPod]:
        """Return its pods with leaf cells, or all where it has helpers only."""
        return [pod for pod in self.pods.values() if not pod.is_helper] or [*self.pods.values()]

    def members(self) -> list[QueuedPod]:
        """Return the oldest pods, up to the gang's size."""
        return self.oldest_first()[: self.size]

    def surplus(self) -> list[QueuedPod]:
        """Return the pods beyond the gang's size."""
        return self.oldest_first()[self.size :]

    @property
    def first(self) -> QueuedPod:
        """The oldest pod with leaf cells, or else the oldest: its values count for the gang."""
        if self._first is None:
            pods = self.oldest_first()
            self._first = next((pod for pod in pods if not pod.is_helper), pods[0])
        return self._first

    @property
    def size(self) -> int:
        """The number of members that the first pod states."""
        return self.first.gang_size

    @property
    def least(self) -> int:
        """The number of members that must exist before the gang is planned."""
        return self.left.least(self.first.request.gang_min)

    @property
    def awaits_members(self) -> bool:
        """Whether members will be created later, for which leaf cells are leased."""
        return bool(self.pods and self.late) and len(self.pods) < self.left.count

    def is_unfinished(self, now: float) -> bool:
        """Tell whether its leases are renewed: only some members run, or its victims are ending."""
        if self.victims or not self.has_begun:
            return bool(self.victims)
        has_unbound = any(pod.node is None for pod in self.pods.values())
        if has_unbound or not self.awaits_members:
            self._awaits_since = None
            return has_unbound
        if self._awaits_since is None:
            self._awaits_since = now
        return now - self._awaits_since < _LATE_SECONDS

    @property
    def left(self) -> MembersLeft:
        """The members that have not succeeded yet; only those of the workload count."""
        first = self.first
        return MembersLeft(
            size=first.gang_size,
            each=first.request.leaf_count,
            late=self.late,
            finished=self.finished.get(first.workload, {}),
        )

    @property
    def has_begun(self) -> bool:
        """Whether a member with leaf cells runs; others are late, or replace one that failed."""
        if self._has_begun is None:
            self._has_begun = any(pod.node is not None for pod in self.deciding())
        return self._has_begun

    @property
    def starts_whole(self) -> bool:
        """Whether all members that exist must start together."""
        return self.first.request.gang_min is None and not self.has_begun

    @property
    def is_complete(self) -> bool:
        """Whether enough members exist to plan the gang."""
        return self.has_begun or len(self.pods) >= self.least

    def missing_late(self) -> tuple[int, ...]:
        """Return the leaf cells of the members that are created later and do not exist yet."""
        return self.left.missing_late(len(self.members())) if self.late else ()

    def leaf_counts(self) -> tuple[int, ...]:
        """Return the leaf cells of every member that has some.

        Missing members are assumed to equal the first.

        No label says that members differ in size; only the pods together do. HiveD's annotation
        lists all members, and is used where it lists different sizes.
        """
        listed = tuple(count for count in self.first.request.gang_leaf_counts if count)
        if len(set(listed)) > 1:
            return listed
        members = self.members()
        existing = [pod.request.leaf_count for pod in members]
        missing = self.left.missing(len(members), each=self.first.request.leaf_count)
        return tuple(sorted(filter(None, [*existing, *missing]), reverse=True))

    def disagreement(self) -> Reject | None:
        """Reject the gang if a member has other values for it than the first member."""
        first = _gang_terms(self.first)
        for pod in self.members():
            own = _gang_terms(pod) if not pod.is_helper else first | _helper_terms(pod)
            if own != first:
                return disagreement(pod.request, first=first, own=own)
        return None

    def node_wishes(self) -> tuple[Hashable, ...]:
        """Return the different node wishes of its members with leaf cells."""
        return tuple(dict.fromkeys(pod.node_wish for pod in self.members() if not pod.is_helper))

    def refuse_node(self, node: NodeName, *, member: PodUid, now: float) -> None:
        """Avoid a node that kube-scheduler refused, for longer after each refusal.

        It takes seconds to find out that a node is refused. With many such nodes and a fixed
        pause, the gang would return to the first node before it has tried the last one.
        """
        seconds = min(_REFUSED_SECONDS * 2 ** self._refusals[node], _LONGEST_REFUSED_SECONDS)
        self._refusals[node] += 1
        self._refused_for[node] = member
        self.refused_nodes[node] = now + seconds

    def accept_nodes(self, nodes: Collection[NodeName], *, member: PodUid) -> bool:
        """Use nodes again that kube-scheduler now offers to the member that it had refused there.

        A gang that pauses because a helper did not arrive resumes when nodes are offered to it.
        Return whether anything has changed.
        """
        if self.pods[member].is_helper and nodes and self.resumes_at:
            self.resumes_at = 0.0
            return True
        accepted = [
            node
            for node in self.refused_nodes
            if self._refused_for.get(node) == member and node in nodes
        ]
        for node in accepted:
            del self.refused_nodes[node]
        return bool(accepted)

    def reopen_node(self, node: NodeName) -> bool:
        """Use a node again that has changed since it was refused; return whether it was refused.

        The number of refusals is kept: if it is refused again, it is avoided for longer.
        """
        return self.refused_nodes.pop(node, None) is not None

    def pause(self, *, now: float) -> None:
        """Plan it later, because a helper did not arrive: for longer after each time."""
        self.resumes_at = now + min(_PAUSE_SECONDS * 2**self._pauses, _REFUSED_SECONDS)
        self._pauses += 1

    def shorten_refusals(self, *, now: float) -> None:
        """Retry refused nodes after the shortest pause, because no other node is left."""
        soon = now + _REFUSED_SECONDS
        self.refused_nodes = {node: min(end, soon) for node, end in self.refused_nodes.items()}

    def forget_refused_nodes(self, now: float) -> None:
        """Drop refusals whose pause is over: the nodes may have changed."""
        left = {node: until for node, until in self.refused_nodes.items() if until > now}
        self.refused_nodes = left


def _at_priority(pod: QueuedPod, rank: int) -> QueuedPod:
    alone = replace(pod.alone, priority=rank) if pod.alone else None
    return replace(pod, request=replace(pod.request, priority=rank), alone=alone)


def _gang_terms(pod: QueuedPod) -> dict[str, int | str | None]:
    """Return what all members of a gang must agree on, by the names that users know."""
    listed = "; ".join(map(str, pod.alternatives)) if pod.alternatives else None
    asked = pod.in_form(0).request
    return {"gang size": pod.gang_size, **terms(asked), "alternatives": listed}


def _helper_terms(pod: QueuedPod) -> dict[str, int | str | None]:
    """Return what a member without leaf cells must agree on: its class and leaf type do not count.

    A helper may be created before its gang is decided about, and its class cannot change then.
    """
    terms_of_all = ("gang size", "VC", "gang minimum")
    return {name: term for name, term in _gang_terms(pod).items() if name in terms_of_all}
