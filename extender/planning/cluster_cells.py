"""The engine as the planner uses it, through the one door that writes everything down."""

from collections.abc import Callable, Collection, Sequence

from extender.cells.model import Decision, MemberRequest
from extender.cluster.cluster import Cluster
from extender.cluster.journal import DecisionContext
from extender.feeds.pod_feed import PodSink
from extender.outcomes.outcomes import EndedBy, Outcomes
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid
from state.log.records import RowKind

ToldOf = Callable[[Sequence[GangKey]], None]


class ClusterCells:
    """What `extender.queue` needs of the engine, and whom to tell what became of cells."""

    def __init__(
        self,
        cluster: Cluster,
        pods: PodSink,
        *,
        outcomes: Outcomes,
        being_bound: Collection[PodUid],
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._outcomes = outcomes
        self._being_bound = being_bound
        self.forget_member = cluster.forget_member
        self.renew = cluster.renew

    def follow(self, *, on_room: Callable[[], None], on_expiry: ToldOf, on_loss: ToldOf) -> None:
        """Tell when leaf cells may have come free, whose leases ended, and who lost its cells."""
        self._cluster.on_room.append(on_room)
        self._cluster.on_expiry.append(on_expiry)
        self._cluster.on_loss.append(on_loss)

    def follow_ends(self, on_overdue: Callable[[GangKey], None]) -> None:
        """Tell which gangs were told to end and take too long."""
        self._cluster.on_overdue.append(on_overdue)

    def follow_nodes(self, on_node_lost: Callable[[NodeName], None]) -> None:
        """Tell which nodes left, or may not be used for now."""
        self._cluster.on_node_lost.append(on_node_lost)

    def decide(
        self, request: MemberRequest, *, candidate_nodes: Collection[NodeName], now: float
    ) -> Decision:
        """Decide about a member, apply the decision and record it."""
        pod = self._pods.get(request.member)
        may_preempt = pod is None or pod.may_preempt
        context = DecisionContext(
            kind=RowKind.PLACEMENT,
            now=now,
            applies_preemption=may_preempt,
            pod=pod.display_name if pod else "",
        )
        decision = self._cluster.decide(request, candidate_nodes=candidate_nodes, context=context)
        self._outcomes.decided(decision, ended_by=EndedBy.CELLGATE if may_preempt else None)
        return decision

    def placement(self, member: PodUid) -> Placement | None:
        """Where a member was placed."""
        return self._cluster.placement(member)

    def has_place(self, member: PodUid) -> bool:
        """Whether a member was placed."""
        return self._cluster.has_place(member)

    def is_bound(self, member: PodUid) -> bool:
        """Whether we bound a member or are about to, though its feed may not say so yet."""
        known = self._cluster.members.get(member)
        return member in self._being_bound or (known is not None and known.is_bound)

    def members_of(self, gang: GangKey) -> Collection[PodUid]:
        """The members of a gang that have a place."""
        return self._cluster.members.of_gang(gang)

    def is_preempting(self, gang: GangKey) -> bool:
        """Whether cells are reserved for a gang until its victims have ended."""
        return self._cluster.is_preempting(gang)
