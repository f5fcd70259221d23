"""The engine as the planner uses it: every decision is recorded as an outcome."""

from collections.abc import Collection, Mapping, Sequence

from extender.cells.model import NO_FACTS, NO_LIMITS, Decision, Part, Seat, WaitFacts
from extender.cluster.cluster import Cluster
from extender.cluster.journal import DecisionContext
from extender.feeds.pod_feed import PodSink
from extender.outcomes.outcomes import EndedBy, Outcomes
from extender.planning.held_calls import HeldCalls
from policy.submission import GangKey, NodeName, PodUid
from state.log.records import RowKind


class ClusterCells:
    """Implements `extender.queue.ports.Cells` on the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        pods: PodSink,
        *,
        outcomes: Outcomes,
        calls: HeldCalls,
    ) -> None:
        self.cluster = cluster
        self._pods = pods
        self.outcomes = outcomes
        self.calls = calls
        self.plan = cluster.plan
        self.is_ready = cluster.is_ready
        self.renew = cluster.renew
        self.placement = cluster.placement
        self.has_place = cluster.has_place
        self.is_preempting = cluster.is_preempting
        self.known_sizes = cluster.known_sizes
        self.victim_priority = cluster.victim_priority
        self.domain = cluster.domain
        self.holders = cluster.holders
        self.shadow = cluster.shadow
        self.moves = cluster.moves
        self.view_seats = cluster.view_seats
        self.count_kept = cluster.count_kept
        self.kept_cells = cluster.kept_cells
        self.most_leaf_cells = cluster.most_leaf_cells
        self.is_foreign = cluster.members.is_foreign

    def apply(
        self,
        decision: Decision,
        *,
        candidate_nodes: Collection[NodeName],
        now: float,
        limits: Mapping[NodeName, int] = NO_LIMITS,
        parts: Sequence[Part] = (),
        kept: Sequence[Seat] = (),
        facts: WaitFacts = NO_FACTS,
    ) -> Decision:
        """Apply a decision about a member, and record it."""
        pod = self._pods.get(decision.request.member)
        may_preempt = pod is None or pod.may_preempt
        context = DecisionContext(
            kind=RowKind.PLACEMENT,
            now=now,
            applies_preemption=may_preempt,
            pod=pod.display_name if pod else "",
            limits=limits,
            parts=parts,
            kept=kept,
            facts=facts,
        )
        decision = self.cluster.apply(decision, candidate_nodes=candidate_nodes, context=context)
        self.outcomes.decided(decision, ended_by=EndedBy.CELLGATE if may_preempt else None)
        return decision

    def forget_member(self, member: PodUid) -> None:
        """Withdraw a member's place; a helper has none."""
        if member not in self._pods.helpers.pods:
            self.cluster.forget_member(member)

    def members_of(self, gang: GangKey) -> list[PodUid]:
        """Return the members of a gang that have a place, and its helpers."""
        helpers = (pod.uid for pod in self._pods.helpers.of_gang(gang))
        return [*self.cluster.members.of_gang(gang), *helpers]

    def is_bound(self, member: PodUid) -> bool:
        """Whether a member is bound or being bound, even if the feed does not say so yet."""
        helper = self._pods.helpers.pods.get(member)
        if helper is not None and helper.node is not None:
            return True
        known = self.cluster.members.get(member)
        return member in self.calls.under_way or (known is not None and known.is_bound)
