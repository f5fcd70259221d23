"""`MixedLoad`: a cluster under mixed load, whose log is replayed by tests."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from extender.cells.model import FreeMode, MemberRequest, Part, PlacedMember, Preempt, WaitFacts
from extender.cells.views.listings import run_to_end
from extender.cluster.cluster import Cluster
from extender.cluster.journal import DecisionContext, LogJournal
from kube.read.nodes import KubeNode
from policy.placement import Placement
from policy.pod_resources import Shortage
from policy.submission import GangKey, NodeName, PodUid, VcName
from service.clock import Clock
from state.log.log import DecisionLog
from state.log.records import RowKind
from tests.support.cells.engine_calls import check
from tests.support.kube.nodes import a_node
from tests.support.twins.log import MemoryDecisions

NODES = [NodeName(f"node-{index:02}") for index in range(8)]
_CPU = Shortage(resource="cpu", asked=2000, short=3, nodes=8, node="node-00", free=1, total=8000)


def node_of(name: NodeName, *, is_healthy: bool = True) -> KubeNode:
    node = a_node(name).of_type("A100").in_rack(f"rack-{int(name[-2:]) // 4}")
    return (node if is_healthy else node.unready()).read()


class MixedLoad:
    """A cluster under mixed load: gangs of all kinds come, run and go; nodes fail."""

    def __init__(
        self,
        seed: int,
        text: str,
        *,
        has_grace: bool = False,
        is_short: bool = False,
        changes_to: str | None = None,
        is_polite: bool = False,
    ) -> None:
        """`has_grace`: members are told to end some time before they have.

        `is_short`: nodes lack more than leaf cells, now and then. `changes_to`: another document
        that replaces the first one, and so on, step by step while all else happens.
        `is_polite`: gangs run for a minimum, and say what a preemption costs.
        """
        self.store = MemoryDecisions()
        self.log = DecisionLog(self.store)
        self.running: dict[PodUid, PlacedMember] = {}
        self.asking: dict[PodUid, MemberRequest] = {}
        self.ending: dict[PodUid, None] = {}
        self._words = {"gang": 3, "ask": 8, "bind": 4, "end": 3, "node": 1, "expire": 1}
        self._words |= {"refresh": 1, "rerank": 1} | (
            {"leave": 3, "linger": 1, "raise_one": 2, "budget": 2} if has_grace else {}
        )
        self._words |= {"change": 2, "advance": 6} if changes_to else {}
        self._words |= {"minimum_run": 3} if is_polite else {}
        self._is_polite = is_polite
        self._texts = [text, changes_to or text]
        self._change_under_way: Iterator[None] = iter(())
        self._random = Random(seed)
        self._room = Random(seed) if is_short else None
        self._text = text
        self._now = 0.0
        self._born = 0
        self._epoch = 0
        self._alive = dict.fromkeys(NODES, True)
        self.start()

    def start(self) -> None:
        """Start, or start again after a crash: leases are lost, what runs is not."""
        self._epoch += 1
        journal = LogJournal(self.log, epoch=self._epoch, clock=Clock())
        self.cluster = Cluster(lease_seconds=10, journal=journal)
        self._change_under_way = iter(())
        for name, is_healthy in self._alive.items():
            self.cluster.observe_node(node_of(name, is_healthy=is_healthy))
        self.cluster.use_document(self._text)
        running = list(self.running.values())
        run_to_end(self.cluster.recover_stepwise(running, released=[], now=0.0))
        for uid in self.ending:
            self.cluster.observe_ending(uid)

    def step(self) -> None:
        self._now += self._random.random()
        (word,) = self._random.choices([*self._words], [*self._words.values()])
        getattr(self, f"_{word}")()

    def _gang(self) -> None:
        self._born += 1
        sizes = self._random.choice([(1,), (8,), (4, 4), (8, 8), (2, 2, 2)])
        whole = MemberRequest(
            member=PodUid(""),
            gang=GangKey("lab", f"gang-{self._born}"),
            leaf_count=0,
            gang_leaf_counts=sizes,
            gang_min=self._random.choice([None, 1]),
            vc=VcName(self._random.choice(["a", "b", "nobody"])),
            priority=self._random.choice([-1, 0, 5]),
            is_lazy=self._random.random() < 0.3,
            ignores_candidates=self._random.random() < 0.5,
            free_mode=self._random.choice(list(FreeMode)),
            checkpoint_cost=self._born % 3 * 60 if self._is_polite else 0,
        )
        for index, size in enumerate(sizes):
            uid = PodUid(f"{whole.gang.name}-{index}")
            self.asking[uid] = replace(whole, member=uid, leaf_count=size)

    def _ask(self) -> None:
        if not self.asking:
            return
        request = self.asking[self._random.choice(sorted(self.asking))]
        offered = self._random.choice([NODES, NODES, self._random.sample(NODES, 3), NODES[:1]])
        context = DecisionContext(
            kind=self._random.choice([RowKind.PLACEMENT, RowKind.PREEMPTION]),
            now=self._now,
            applies_preemption=self._random.random() < 0.5,
        )
        if self._room is not None:
            limits = {name: 4 for name in NODES if self._room.random() < 0.1}
            shortage = _CPU if self._room.random() < 0.2 else None
            context = replace(context, limits=limits, facts=WaitFacts(shortage=shortage))
            if self._room.random() < 0.2 and len(request.gang_leaf_counts) > 1:
                others = list(request.gang_leaf_counts)
                others.remove(request.leaf_count)
                mine = Part(sizes=(request.leaf_count,), nodes=dict.fromkeys(NODES[:4]))
                rest = Part(sizes=tuple(others), nodes=dict.fromkeys(NODES[3:]))
                context, offered = replace(context, parts=(mine, rest)), NODES[:4]
        decision = self.cluster.decide(
            request, candidate_nodes=dict.fromkeys(offered), context=context
        )
        if isinstance(decision, Preempt) and context.applies_preemption:
            for victim in decision.victims:
                for uid in self.cluster.members.of_gang(victim):
                    self._forget(uid)

    def _bind(self) -> None:
        placed = [uid for uid in sorted(self.asking) if self.cluster.has_place(uid)]
        if not placed:
            return
        uid = self._random.choice(placed)
        placement = self.cluster.placement(uid)
        assert placement is not None
        if self._random.random() < 0.1:  # somebody else binds it elsewhere
            placement = Placement(node=self._random.choice(NODES), leaf_cells=())
        self.running[uid] = PlacedMember(request=self.asking.pop(uid), placement=placement)
        self.cluster.observe_bound(self.running[uid])

    def _end(self) -> None:
        alive = sorted({*self.running, *self.asking})
        if alive:
            self._forget(self._random.choice(alive))

    def _leave(self) -> None:
        """All members of a gang that run are told to end, more than once."""
        if not self.running:
            return
        gang = self._random.choice(list(self.running.values())).request.gang
        members = [uid for uid, bound in self.running.items() if bound.request.gang == gang]
        for uid in (*members, *members):
            self.ending[uid] = None
            self.cluster.observe_ending(uid)

    def _linger(self) -> None:
        """One that was told to end takes too long."""
        if self.ending:
            self.cluster.observe_overdue(self._random.choice([*self.ending]))

    def _budget(self) -> None:
        """A PodDisruptionBudget protects a gang, or not any more."""
        if self.running:
            gang = self._random.choice(list(self.running.values())).request.gang
            self.cluster.observe_budget(gang, breaks=self._random.random() < 0.7)
            check(self.cluster._engine)

    def _minimum_run(self) -> None:
        """A gang begins a minimum run, or it is over."""
        if self.running:
            gang = self._random.choice(list(self.running.values())).request.gang
            self.cluster.observe_minimum_run(gang, seconds=self._random.choice([0, 60, 60]))
            check(self.cluster._engine)

    def _forget(self, uid: PodUid) -> None:
        self.ending.pop(uid, None)
        self.running.pop(uid, None)
        self.asking.pop(uid, None)
        self.cluster.forget_member(uid)

    def _node(self) -> None:
        name = self._random.choice(NODES)
        self._alive[name] = not self._alive[name]
        self.cluster.observe_node(node_of(name, is_healthy=self._alive[name]))

    def _expire(self) -> None:
        self._now += self._random.choice([0, 12])
        self.cluster.expire(now=self._now)

    def _raise_one(self) -> None:
        """The effective class of one gang is raised."""
        gangs = sorted(gang.gang for gang in self.cluster.gangs())
        if not gangs:
            return
        gang, rank = self._random.choice(gangs), self._random.choice([0, 5, 9])
        for uid, request in self.asking.items():
            if request.gang == gang and request.priority < rank:
                self.asking[uid] = replace(request, priority=rank)
        for uid, bound in self.running.items():
            if bound.request.gang == gang and bound.request.priority < rank:
                raised = replace(bound.request, priority=rank)
                self.running[uid] = replace(bound, request=raised)
        self.cluster.raise_gang(gang, rank)
        check(self.cluster._engine)

    def _rerank(self) -> None:
        """Some gangs are of a class that counts otherwise from now on."""
        gangs = sorted(gang.gang for gang in self.cluster.gangs())
        some = self._random.sample(gangs, len(gangs) // 2)
        ranks = {gang: self._random.choice([-1, 0, 5, 9]) for gang in some}
        for uid, request in self.asking.items():
            rank = ranks.get(request.gang, request.priority)
            self.asking[uid] = replace(request, priority=rank)
        for uid, bound in self.running.items():
            rank = ranks.get(bound.request.gang, bound.request.priority)
            self.running[uid] = replace(bound, request=replace(bound.request, priority=rank))
        self._finish()
        self.cluster.rerank(ranks)
        check(self.cluster._engine)

    def _change(self) -> None:
        """Another document is to be in force."""
        self._finish()
        self._texts.reverse()
        self._change_under_way = self.cluster.use_document_stepwise(self._texts[0])

    def _advance(self) -> None:
        for _ in range(self._random.choice([1, 3, 10])):
            next(self._change_under_way, None)
        check(self.cluster._engine)

    def _finish(self) -> None:
        for _ in self._change_under_way:
            pass

    def _refresh(self) -> None:
        self._finish()
        name = self._random.choice(NODES)
        self.cluster.forget_node(name)
        if self.cluster.is_stale:
            self.cluster.refresh_topology()
        self.cluster.observe_node(node_of(name, is_healthy=self._alive[name]))
        if self.cluster.is_stale:
            self.cluster.refresh_topology()
