"""The interfaces that the planner needs from other packages."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Protocol

from extender.cells.model import (
    NO_FACTS,
    NO_LIMITS,
    NONE_KEPT,
    Decision,
    KeptCells,
    KnownSizes,
    MemberRequest,
    MovableGang,
    Moves,
    Part,
    Seat,
    SeatsView,
    Shadow,
    Victims,
    WaitFacts,
)
from extender.queue.forecast.model import NOTHING_KNOWN, RunTime
from policy.placement import Placement
from policy.pod_resources import Shortage
from policy.submission import GangKey, NodeName, PodUid, VcName


class Cells(Protocol):
    """The cells of the cluster."""

    def plan(
        self,
        request: MemberRequest,
        *,
        candidate_nodes: Collection[NodeName],
        now: float,
        limits: Mapping[NodeName, int] = NO_LIMITS,
        parts: Sequence[Part] = (),
        kept: Sequence[Seat] = (),
        victims: Victims = Victims.BEST,
    ) -> Decision:
        """Decide about a member; nothing changes.

        `limits` says of some nodes how many idle leaf cells its gang may use there at most. With
        `parts` each part of a gang without places is placed on its own nodes. `kept` are seats of
        other gangs of its domain that it leaves alone. A decision that does not look for the best
        victims is not to be applied if it names victims or a reason.
        """

    def domain(self, request: MemberRequest) -> VcName | None:
        """Return the VC whose cells a gang must use; None if it may use all idle cells."""

    def holders(self, domain: VcName | None) -> list[GangKey]:
        """Return the gangs whose end may give cells to a gang of a domain."""

    def shadow(
        self,
        request: MemberRequest,
        *,
        ends: Iterable[tuple[GangKey, float]],
        candidate_nodes: Collection[NodeName],
        now: float,
        kept: Sequence[Seat] = (),
        may_preempt: bool = True,
    ) -> Shadow | None:
        """Return when and where a gang could start if others end then; nothing changes."""

    def moves(
        self,
        request: MemberRequest,
        *,
        movable: Sequence[MovableGang],
        most_cost: float,
        candidate_nodes: Collection[NodeName],
        kept: Sequence[Seat] = (),
    ) -> Moves | None:
        """Return which opportunistic gangs could run elsewhere, so that one of them fits."""

    def view_seats(self, domain: VcName | None, seats: Iterable[Seat]) -> SeatsView:
        """Return the state of seats that are kept for a gang of a domain."""

    def count_kept(self, domain: VcName | None, seats: Iterable[Seat]) -> int:
        """Count the free leaf cells of seats that other gangs of a domain leave alone."""

    def kept_cells(self, domain: VcName | None, seats: Iterable[Seat]) -> KeptCells:
        """Count the leaf cells that seats at least keep from other gangs of a domain."""

    def most_leaf_cells(self, request: MemberRequest, kept: KeptCells = NONE_KEPT) -> int | None:
        """Return an upper bound of the leaf cells that a gang without places can get now.

        Without those that are kept from it; None if there is no such bound.
        """

    def is_ready(self, request: MemberRequest) -> bool:
        """Tell whether a decision about a gang takes no long time to prepare."""

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
        """Apply what `plan` decided last; return it with its final reason.

        `facts` are what the reason says beyond what the engine knows.
        """

    def forget_member(self, member: PodUid) -> None:
        """Withdraw a member's place; the planner is told by `wake` what becomes free."""

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

    def known_sizes(self, gang: GangKey) -> KnownSizes | None:
        """Return the sizes with which a gang got its places; None if it has none."""

    def victim_priority(self, gang: GangKey) -> int | None:
        """Return the priority at which a gang counts as a victim; None if it has no places."""

    def is_preempting(self, gang: GangKey) -> bool:
        """Tell whether cells are reserved for a gang until its victims have ended."""


class Nodes(Protocol):
    """The nodes that members may use, apart from leaf cells.

    A need is what a member asks of its node: a selector, tolerations, CPU, memory and so on.
    """

    def fitting(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Collection[NodeName]:
        """Return the nodes that have room for a member with any of these needs."""

    def freeable(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Collection[NodeName]:
        """Return the nodes that would have room if all pods that may be ended had ended."""

    def suiting(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Collection[NodeName]:
        """Return the nodes that would do, whatever room they have."""

    def closed_to(self, members: Iterable[PodUid]) -> Collection[NodeName]:
        """Return the nodes with pods that keep one of these members off."""

    def crowded(
        self,
        seats: Iterable[tuple[PodUid, NodeName]],
        *,
        needs: Sequence[Hashable],
        ending: Collection[PodUid],
    ) -> Mapping[NodeName, int]:
        """Return the nodes that lack room for all members that are to be there together.

        With each node comes how many of them have room there, the first ones.
        """

    def shortage(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Shortage | None:
        """Return what most nodes lack, if any node lacks anything."""

    def take_grown(self) -> Collection[Hashable]:
        """Return the needs for which nodes have more room than when this was last asked."""


class BindCalls(Protocol):
    """The calls by which kube-scheduler asks to bind pods."""

    longest_seconds: float
    """How long the calls of a gang are held at most."""

    def is_open(self, uid: PodUid) -> bool:
        """Tell whether kube-scheduler still waits for the answer about a pod."""


class RunTimes(Protocol):
    """How long gangs run, as far as that is known."""

    def expected(self, gang: GangKey) -> RunTime:
        """Return how long a gang that waits is expected to run once it has started."""

    def remaining(self, gang: GangKey, *, now: float) -> RunTime:
        """Return how long a gang that runs is expected to run from now on."""

    def elapsed(self, gang: GangKey) -> float | None:
        """Return for how long a gang has run; None if that is not known."""


class UnknownRunTimes:
    """Nothing is known about any run time: no gang is expected to end."""

    def expected(self, gang: GangKey) -> RunTime:
        """Say that nothing is known."""
        return NOTHING_KNOWN

    def remaining(self, gang: GangKey, *, now: float) -> RunTime:
        """Say that nothing is known."""
        return NOTHING_KNOWN

    def elapsed(self, gang: GangKey) -> float | None:
        """Say that nothing is known."""
        return None
