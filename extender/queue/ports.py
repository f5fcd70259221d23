"""The interfaces that the planner needs from other packages."""

from collections.abc import Collection, Hashable, Sequence
from typing import Protocol

from extender.cells.model import Decision, MemberRequest
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid


class Cells(Protocol):
    """The cells of the cluster."""

    def decide(
        self, request: MemberRequest, *, candidate_nodes: Collection[NodeName], now: float
    ) -> Decision:
        """Decide about a member, and apply the decision."""

    def forget_member(self, member: PodUid) -> None:
        """Withdraw a member's place."""

    def renew(self, gang: GangKey, *, now: float) -> None:
        """Start a gang's lease again."""

    def placement(self, member: PodUid) -> Placement | None:
        """Return where a member was placed."""

    def has_place(self, member: PodUid) -> bool:
        """Tell whether a member was placed."""

    def is_bound(self, member: PodUid) -> bool:
        """Tell whether a member is bound, even if its pod does not show it yet."""

    def is_foreign(self, member: PodUid) -> bool:
        """Tell whether a member runs in a place that we did not give it."""

    def members_of(self, gang: GangKey) -> Collection[PodUid]:
        """Return the members of a gang that have a place."""

    def leaf_counts(self, gang: GangKey) -> Sequence[int]:
        """Return the leaf cells of each member of a gang that has places; empty for any other."""

    def is_preempting(self, gang: GangKey) -> bool:
        """Tell whether cells are reserved for a gang until its victims have ended."""


class Nodes(Protocol):
    """The nodes that pods may use, apart from leaf cells."""

    def fitting(
        self, wishes: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Collection[NodeName]:
        """Return the nodes that fit all these wishes."""


class BindCalls(Protocol):
    """The calls by which kube-scheduler asks to bind pods."""

    def is_open(self, uid: PodUid) -> bool:
        """Tell whether kube-scheduler still waits for the answer about a pod."""
