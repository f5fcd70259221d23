"""What the planner needs of others, as narrow as it can be."""

from collections.abc import Collection, Hashable, Sequence
from typing import Protocol

from extender.cells.model import Decision, MemberRequest
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid


class Cells(Protocol):
    """What the planner needs of the engine."""

    def decide(
        self, request: MemberRequest, *, candidate_nodes: Collection[NodeName], now: float
    ) -> Decision:
        """Plan, and make true what was planned."""

    def forget_member(self, member: PodUid) -> None:
        """Take back what a member was given."""

    def renew(self, gang: GangKey, *, now: float) -> None:
        """Let a gang's lease begin anew."""

    def placement(self, member: PodUid) -> Placement | None:
        """Where a member was placed."""

    def has_place(self, member: PodUid) -> bool:
        """Whether a member was placed."""

    def is_bound(self, member: PodUid) -> bool:
        """Whether we bound a member, though the pod we see may not say so yet."""

    def members_of(self, gang: GangKey) -> Collection[PodUid]:
        """The members of a gang that have a place."""

    def is_preempting(self, gang: GangKey) -> bool:
        """Whether cells are reserved for a gang until its victims have ended."""


class Nodes(Protocol):
    """Which nodes a pod may use, by everything but leaf cells."""

    def fitting(
        self, wishes: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Collection[NodeName]:
        """The nodes that suit all these wishes."""
