"""The one door to the engine: whatever it is told or asked passes here, and is written down.

`Cluster` holds the engine, the cluster document and the nodes that the engine's cells are built
from. It is deterministic: a replay feeds a second one with the rows that the first one wrote, and
gets the same answers. Single writer, nothing is awaited.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from extender.cells.engine import Engine
from extender.cells.model import (
    Decision,
    MemberRequest,
    NodeCell,
    Place,
    Preempt,
    Reject,
    Wait,
)
from extender.cells.observe.bound_pods import PlacedMember
from extender.cells.observe.reconfiguration import GangEffect
from extender.cells.views.listings import Stepwise, run_to_end
from extender.cluster.derivation import Derivation, has_same_shape
from extender.cluster.document_text import ClusterText
from extender.cluster.journal import Journal, Question
from extender.cluster.members import Member, Members
from kube.read.nodes import KubeNode
from policy.cluster.document import BuiltCluster
from policy.errors import Problem
from policy.submission import GangKey, NodeName, PodUid
from policy.topology import Topology
from state.log.records import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a question is about, beside the request itself."""

    kind: Kind
    now: float
    applies_preemption: bool = False
    """Whether cells are reserved when others have to end first; else that is only said."""
    pod: str = ""
    """`namespace/name`, for people."""


class Cluster:
    """Engine, document and nodes."""

    def __init__(self, *, lease_seconds: float, journal: Journal) -> None:
        self._lease_seconds = lease_seconds
        self._journal = journal
        self._journal.begin(lease_seconds=lease_seconds)
        self._nodes: dict[NodeName, KubeNode] = {}
        self._document: ClusterText | None = None
        self._derivation = Derivation(None, ())
        self._last_words: dict[PodUid, str] = {}
        self._members = Members()
        self._overdue: set[PodUid] = set()
        self.engine = Engine(lease_seconds=lease_seconds)
        self.topology: Topology | None = None
        self.problems: tuple[Problem, ...] = ()
        """Promises that the nodes which are alive cannot hold."""
        self.version = 0
        """Grows with every change that a plan could see."""
        self.on_room: list[Callable[[], None]] = []
        """Who wants to know when leaf cells may have come free or joined."""
        self.on_expiry: list[Callable[[Sequence[GangKey]], None]] = []
        """Who wants to know whose leases ended."""
        self.on_loss: list[Callable[[Sequence[GangKey]], None]] = []
        """Who wants to know whose leases are gone with the cells that they were of."""
        self.on_overdue: list[Callable[[GangKey], None]] = []
        """Who wants to know of gangs that were told to end and take too long."""
        self.on_node_lost: list[Callable[[NodeName], None]] = []
        """Who wants to know of nodes that left, or may not be used for now."""

    def write_to(self, journal: Journal) -> None:
        """Write everything down from now on, beginning with what is known: a term begins."""
        self._journal = journal
        journal.begin(lease_seconds=self._lease_seconds)
        for node in self._nodes.values():
            journal.observe_node(node)

    @property
    def journal(self) -> Journal:
        """Where everything is written down."""
        return self._journal

    # -- nodes and documents

    @property
    def nodes(self) -> Mapping[NodeName, KubeNode]:
        """The nodes that are known."""
        return MappingProxyType(self._nodes)

    def observe_node(self, node: KubeNode) -> None:
        """A node joined or changed."""
        before = self._nodes.get(node.name)
        if before == node:
            return
        self._nodes[node.name] = node
        self._journal.observe_node(node)
        self._pass_on(node)
        if not has_same_shape(before, node):
            self._derivation.observe(node)
        self.version += 1
        if not node.is_healthy:
            self._tell_of_loss(node.name)
        self.tell_of_room()

    def _tell_of_loss(self, node: NodeName) -> None:
        for tell in self.on_node_lost:
            tell(node)

    def forget_node(self, name: NodeName) -> None:
        """A node left."""
        if self._nodes.pop(name, None) is None:
            return
        self._journal.forget_node(name)
        self.engine.forget_node(name)
        self._derivation.forget(name)
        self.version += 1
        self._tell_of_loss(name)

    def use_document(self, document: ClusterText | None) -> list[GangEffect]:
        """Work by another cluster document from now on; says what became of each gang."""
        self._document = document
        self._journal.use_document(document.text if document else None)
        self._derivation = Derivation(document.document if document else None, self._nodes.values())
        return self._move_to(self._derivation.build())

    @property
    def is_stale(self) -> bool:
        """Whether nodes have changed since the cells were built from them."""
        return self._derivation.is_stale

    def refresh_topology(self) -> list[GangEffect]:
        """Let the cells follow the nodes that are known now; says what became of gangs there.

        The cost is that of the nodes that have changed. Most changes, such as a label that names no
        level, leave all cells as they are.
        """
        self._journal.build_topology()
        built = self._derivation.build()
        if built is None:
            return self._move_to(None)
        self.problems = built.problems
        if built.topology == self.topology:
            return []
        self.topology = built.topology
        effects = self.engine.follow_topology(built.topology)
        self.version += 1
        self._follow_engine(self._members.items_of(one.gang for one in effects))
        self.tell_of_room()
        return effects

    def _move_to(self, built: BuiltCluster | None) -> list[GangEffect]:
        self.version += 1
        effects: list[GangEffect] = []
        if built is None:
            self.topology, self.problems = None, ()
            self.engine = Engine(lease_seconds=self._lease_seconds)
        else:
            self.topology, self.problems = built.topology, built.problems
            effects = self.engine.change_topology(built.topology)
        for node in self._nodes.values():
            self._pass_on(node)
        self._follow_engine(self._members.items())
        self.tell_of_room()
        return effects

    def rerank(self, priorities: Mapping[GangKey, int]) -> list[GangEffect]:
        """Let gangs count at other priorities from now on; says what became of each gang."""
        self._journal.rerank(priorities)
        effects = self.engine.rerank(priorities)
        for gang, priority in priorities.items():
            self._members.rerank(gang, priority)
        self.version += 1
        self._follow_engine(self._members.items())
        self.tell_of_room()
        return effects

    def _follow_engine(self, members: Iterable[tuple[PodUid, Member]]) -> None:
        """Gangs were taken over: members may count on other cells, or have lost their lease."""
        lost: dict[GangKey, None] = {}
        for uid, member in members:
            placement = self.engine.placement(uid)
            if placement is not None:
                self._members.add(replace(member, placement=placement))
            elif not member.is_bound:
                self._members.remove(uid)
                lost[member.request.gang] = None
        for tell in self.on_loss:
            tell(list(lost))

    def _pass_on(self, node: KubeNode) -> None:
        """Tell the engine; without a document, a node without devices is none of its business."""
        if self._document is None and not node.leaf_count:
            self.engine.forget_node(node.name)
        else:
            self.engine.observe_node(self._cell(node))

    def _cell(self, node: KubeNode) -> NodeCell:
        is_listed = self._document is not None and not self._derivation.depends_on_nodes
        return NodeCell(
            name=node.name,
            leaf_type=node.leaf_type,
            leaf_count=node.leaf_count,
            is_healthy=node.is_healthy,
            # Which devices are bad is the kubelet's secret: the last ones stand for them. Devices
            # that a document lists have numbers of their own.
            bad_leaf_cells=() if is_listed else tuple(range(node.usable_count, node.leaf_count)),
        )

    # -- pods

    def recover(
        self,
        running: Iterable[PlacedMember],
        *,
        released: Iterable[PlacedMember] = (),
        now: float = 0.0,
    ) -> None:
        """Take in all that runs or was released to run, after a start."""
        run_to_end(self.recovering(list(running), released=list(released), now=now))

    def recovering(
        self, running: Sequence[PlacedMember], *, released: Sequence[PlacedMember], now: float
    ) -> Stepwise[None]:
        """Do the same bit by bit, while nothing else is told or asked."""
        for one in running:
            self._journal.prepare(one)
            yield
        for one in released:
            self._journal.prepare_released(one)
        self._journal.recover(len(running) + len(released), now=now)
        lost = dict.fromkeys(
            (yield from self.engine.recover_stepwise(running, released=released, now=now))
        )
        for one in running:
            self._join_bound(one)
            yield
        for one in released:
            if one.request.member not in lost:
                self._join(Member(request=one.request, placement=one.placement, is_bound=False))
        self.version += 1

    def observe_bound(self, running: PlacedMember) -> None:
        """A member runs on a node, whoever put it there."""
        self._journal.observe_bound(running)
        self.engine.observe_bound(
            running.request,
            node=running.placement.node,
            leaf_cells=running.placement.leaf_cells,
            placement=running.placement,
        )
        self._join_bound(running)
        self.version += 1

    def touch(self) -> None:
        """Something that the engine is not told, yet is asked with, has changed."""
        self.version += 1

    def has_member(self, member: PodUid) -> bool:
        """Whether a member has a place, bound or not."""
        return self.engine.has_place(member)

    def observe_ending(self, member: PodUid) -> None:
        """A member that runs was told to end; told again, nothing is new or written down."""
        if member not in self._overdue and self.engine.observe_ending(member):
            self._journal.observe_ending(member)
            self.version += 1

    def observe_overdue(self, member: PodUid) -> None:
        """A member that was told to end takes too long: from now on nobody counts on its end."""
        known = self._members.get(member)
        if known is not None and self.engine.observe_overdue(member):
            self._overdue.add(member)
            self._journal.observe_overdue(member)
            self.version += 1
            for tell in self.on_overdue:
                tell(known.request.gang)

    def forget_member(self, member: PodUid) -> None:
        """A member ended or was deleted."""
        self._journal.forget_member(member)
        self.engine.forget_member(member)
        self._leave(member)
        self.version += 1
        self.tell_of_room()

    def renew(self, gang: GangKey, *, now: float) -> None:
        """Let a gang's lease begin anew."""
        self._journal.renew(gang, now=now)
        self.engine.renew(gang, now=now)

    def tell_of_room(self) -> None:
        """Leaf cells may be of use to somebody who could not use them before."""
        for tell in self.on_room:
            tell()

    @property
    def members(self) -> Members:
        """Who was given places, to look things up quickly."""
        return self._members

    def _join_bound(self, running: PlacedMember) -> None:
        placement = self.engine.placement(running.request.member) or running.placement
        is_foreign = not running.placement.leaf_cells
        self._join(
            Member(
                request=running.request, placement=placement, is_bound=True, is_foreign=is_foreign
            )
        )

    def _join(self, member: Member) -> None:
        self._members.add(member)
        self._last_words.pop(member.request.member, None)

    def _leave(self, member: PodUid) -> None:
        self._overdue.discard(member)
        self._last_words.pop(member, None)
        self._members.remove(member)

    # -- deciding

    def decide(
        self, request: MemberRequest, *, candidate_nodes: Collection[NodeName], asked: Asked
    ) -> Decision:
        """Plan, and make true what was planned."""
        decision = self.engine.plan(request, candidate_nodes=candidate_nodes, now=asked.now)
        is_applied = not isinstance(decision, Preempt) or _is_preempting(decision, asked)
        if is_applied:
            self.engine.apply(decision, now=asked.now)
        if isinstance(decision, Place):
            # Only now is it known which cell of its VC it counts against.
            placement = self.engine.placement(request.member) or decision.placement
            self._join(Member(request=request, placement=placement, is_bound=False))
        if not self._is_news(decision):
            return decision
        self.version += is_applied and not isinstance(decision, Reject)
        self._journal.decide(
            Question(
                kind=asked.kind,
                request=request,
                candidate_nodes=candidate_nodes,
                now=asked.now,
                applies_preemption=asked.applies_preemption,
                decision=decision,
                pod=asked.pod,
            )
        )
        return decision

    def _is_news(self, decision: Decision) -> bool:
        """A refusal that is only repeated changes nothing, and is written down once."""
        member = decision.request.member
        if not isinstance(decision, Wait | Reject) or getattr(decision, "cancels_own", False):
            self._last_words.pop(member, None)
            return True
        if self._last_words.get(member) == decision.reason:
            return False
        if len(self._last_words) >= _MOST_REMEMBERED:
            self._last_words.clear()
        self._last_words[member] = decision.reason
        return True

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time."""
        expired = self.engine.expire(now=now)
        if expired:
            self._journal.expire(expired, now=now)
            self._drop_unplaced(expired)
            self.version += 1
            for tell in self.on_expiry:
                tell(expired)
        return expired

    def _drop_unplaced(self, gangs: Iterable[GangKey]) -> None:
        for uid in [uid for gang in gangs for uid in self._members.of_gang(gang)]:
            if not self.engine.has_place(uid):
                self._members.remove(uid)


_MOST_REMEMBERED = 200_000
"""Members whose last refusal is remembered: as many pods as a cluster can have, and some."""


def _is_preempting(decision: Preempt, asked: Asked) -> bool:
    """Whether cells are to be reserved; without seats they are already, and are kept for longer."""
    return asked.applies_preemption or not decision.seats
