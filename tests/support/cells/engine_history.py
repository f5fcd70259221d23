"""A random history of an engine, step by step; each decision is compared with brute force."""

from dataclasses import replace
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from extender.cells.engine import Engine
from extender.cells.model import (
    ForeignPod,
    FreeMode,
    GangState,
    GangView,
    MemberRequest,
    Place,
    PlacedMember,
    Preempt,
    Reject,
)
from extender.cells.state.placed_gangs import PlacedGang
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid, VcName
from policy.topology import PinnedCellId, Topology
from tests.support.cells.builders import a_node_cell, nodes_of
from tests.support.cells.comparison import Comparison
from tests.support.cells.engine_calls import check, list_cells, list_vcs, observe_bound, recover
from tests.support.cells.random_clusters import clusters

SIZES = st.lists(st.sampled_from([1, 1, 2, 2, 3, 4]), min_size=1, max_size=3)


class EngineHistory(RuleBasedStateMachine):
    """Plays kube-scheduler and the cluster at random."""

    @initialize(topology=clusters(), reclaims=st.booleans())
    def start(self, topology: Topology, reclaims: bool) -> None:
        self.topology = topology
        self.reclaims = reclaims
        self.foreign_pods: dict[PodUid, ForeignPod] = {}
        self.nodes = nodes_of(topology)
        self.engine = self.new_engine()
        self.now = 0.0
        self.requests: dict[PodUid, MemberRequest] = {}
        self.bad: dict[NodeName, tuple[int, ...] | None] = {}
        self.numbers = 0
        self.told: dict[PodUid, Placement] = {}
        """What the annotation of a pod says since it was bound."""
        self.ending: dict[PodUid, None] = {}
        """Pods that were told to end and have not yet."""
        self.is_changed = False
        for node in self.nodes:
            self.engine.observe_node(a_node_cell(node))

    def new_engine(self) -> Engine:
        return Engine(lease_seconds=10, topology=self.topology, reclaims_foreign=self.reclaims)

    # -- rules

    @rule(
        sizes=SIZES,
        vc=st.sampled_from("aabbc"),
        priority=st.sampled_from([-1, -1, 0, 5, 9]),
        flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
        pinned=st.booleans(),
        left_out=st.lists(st.integers(0, 5), max_size=2),
    )
    def arrive(
        self,
        *,
        sizes: list[int],
        vc: str,
        priority: int,
        flags: tuple[bool, bool, bool],
        pinned: bool,
        left_out: list[int],
    ) -> None:
        self.numbers += 1
        has_pinned = bool(
            self.topology.vcs.get(VcName(vc), None) and self.topology.vcs[VcName(vc)].pinned
        )
        request = MemberRequest(
            member=PodUid(f"g{self.numbers}-0"),
            gang=GangKey("ns", f"g{self.numbers}"),
            leaf_count=sizes[0],
            gang_leaf_counts=tuple(sizes),
            vc=VcName(vc),
            priority=priority,
            is_lazy=flags[0],
            ignores_candidates=flags[1],
            free_mode=FreeMode.WHOLE if flags[2] else FreeMode.EACH,
            pinned=PinnedCellId("PIN") if pinned and has_pinned and priority >= 0 else None,
            created=self.numbers * 7 % 5,
            checkpoint_cost=self.numbers * 5 % 3 * 60,
            gang_min=1 + self.numbers % len(sizes) if self.numbers % 3 == 0 else None,
        )
        candidates = [node for i, node in enumerate(self.nodes) if i not in left_out]
        self.ask(request, candidates)

    @rule(seed=st.integers(0, 2**16), count=st.integers(2, 8))
    def crowd(self, seed: int, count: int) -> None:
        """Many gangs arrive and are bound."""
        random = Random(seed)
        for _ in range(count):
            self.arrive(
                sizes=random.choices([1, 1, 2, 2, 3, 4], k=random.choice([1, 1, 2, 3])),
                vc=random.choice("aabbc"),
                priority=random.choice([-1, 0, 5, 9]),
                flags=(random.random() < 0.4, random.random() < 0.6, random.random() < 0.4),
                pinned=random.random() < 0.3,
                left_out=random.sample(range(6), random.choice([0, 0, 1])),
            )
            gangs = [gang for gang in self.ours() if not gang.victims]
            if gangs and random.random() < 0.7:
                self.complete(random.choice(gangs))

    @precondition(lambda self: self.ours())
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        """Another member of a gang that is known asks, or the same one again."""
        gang = data.draw(st.sampled_from(self.ours()))
        first = self.engine._table.gangs[gang.gang].request
        index = data.draw(st.integers(0, len(first.gang_leaf_counts)))
        size = data.draw(st.sampled_from(first.gang_leaf_counts))
        request = replace(first, member=PodUid(f"{gang.gang.name}-{index}"), leaf_count=size)
        known = self.requests.get(request.member)
        self.ask(known or request, self.nodes)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        self.bind_member(data.draw(st.sampled_from(sorted(self.requests))))

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.end_member(data.draw(st.sampled_from(sorted(self.requests))))

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def tell_to_end(self, data: st.DataObject) -> None:
        """A member is in its grace period from now on."""
        self.tell_member_to_end(data.draw(st.sampled_from(sorted(self.requests))))

    @rule(seed=st.integers(0, 2**16), count=st.integers(1, 4), seconds=st.sampled_from([0, 60]))
    def begin_runs(self, seed: int, count: int, seconds: int) -> None:
        """Gangs with members that run must not be ended for a while, or may be ended again."""
        gangs = [gang.gang for gang in self.ours() if gang.bound]
        for key in Random(seed).sample(gangs, min(count, len(gangs))):
            self.engine.observe_minimum_run(key, seconds=seconds)
            assert not self.engine.observe_minimum_run(key, seconds=seconds), "nothing is new"

    @rule(seed=st.integers(0, 2**16), count=st.integers(1, 4))
    def leave(self, seed: int, count: int) -> None:
        """Gangs of which all members run are in their grace period from now on."""
        gangs = [gang for gang in self.ours() if not gang.victims]
        for gang in Random(seed).sample(gangs, min(count, len(gangs))):
            for uid in self.complete(gang):
                self.bind_member(uid)
                self.tell_member_to_end(uid)

    @rule()
    def evict(self) -> None:
        """All victims of the first preempting gang end."""
        for gang in self.engine.gangs():
            for victim in gang.victims:
                for uid in [u for u, r in self.requests.items() if r.gang == victim]:
                    del self.requests[uid]
                    self.engine.forget_member(uid)

    @rule(seconds=st.sampled_from([1, 12]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.engine.expire(now=self.now)

    @rule(data=st.data(), is_healthy=st.booleans(), bad=st.sampled_from([(), (), (0,), (1,)]))
    def change_node(self, data: st.DataObject, is_healthy: bool, bad: tuple[int, ...]) -> None:
        node = data.draw(st.sampled_from(self.nodes))
        self.bad[node] = bad if is_healthy else None
        self.engine.observe_node(a_node_cell(node, is_healthy=is_healthy, bad=bad))

    @rule(data=st.data(), priority=st.sampled_from([0, -1, 5]), is_protected=st.booleans())
    def foreign(self, data: st.DataObject, priority: int, is_protected: bool) -> None:
        """A user binds a pod by hand."""
        node = data.draw(st.sampled_from(self.nodes))
        self.numbers += 1
        uid = PodUid(f"g{self.numbers}-0")
        request = MemberRequest(
            member=uid,
            gang=GangKey("ns", f"g{self.numbers}"),
            leaf_count=1,
            gang_leaf_counts=(1,),
            priority=priority,
        )
        self.requests[uid] = request
        pod = ForeignPod(name=f"ns/{uid}", owner="alice", is_protected=is_protected)
        self.foreign_pods[uid] = pod
        where = Placement(node=node, leaf_cells=())
        self.engine.observe_bound(PlacedMember(request=request, placement=where, foreign=pod))

    @rule(order=st.booleans())
    def crash(self, order: bool) -> None:
        """The engine is lost; another one is told what runs, before or after the nodes."""
        before = self.engine
        self.engine = self.new_engine()
        bound: list[tuple[MemberRequest, Placement, bool]] = []
        for gang in before.gangs():
            for uid in gang.bound:
                bound.append((self.requests[uid], gang.members[uid], gang.is_guaranteed))
        foreign = {g.key for g in before._table.gangs.values() if g.is_foreign}
        if order:
            bound.reverse()
            self.observe_nodes()
        running = [
            PlacedMember(
                request=request,
                placement=replace(placement, leaf_cells=())
                if request.gang in foreign
                else self.told.get(request.member, placement),
                foreign=self.foreign_pods.get(request.member),
            )
            for request, placement, _ in bound
        ]
        recover(self.engine, running)
        self.observe_nodes()
        for uid in self.ending:
            self.tell_member_to_end(uid)
        alive = {request.member for request, _, _ in bound}
        self.requests = {uid: r for uid, r in self.requests.items() if uid in alive}
        after = {gang.gang: gang for gang in self.engine.gangs()}
        for request, placement, was_guaranteed in bound:
            if request.gang not in foreign and not foreign:
                now = self.engine.placement(request.member)
                assert now is not None
                assert now.leaf_cells == placement.leaf_cells
                if was_guaranteed and not self.is_changed:
                    assert after[request.gang].is_guaranteed

    @rule(topology=clusters())
    def reconfigure(self, topology: Topology) -> None:
        """The topology changes under what runs: nothing that is bound is lost."""
        bound = {uid: g.members[uid] for g in self.engine.gangs() for uid in g.bound}
        self.engine.change_topology(topology)
        self.is_changed = True
        self.topology, self.nodes = topology, nodes_of(topology)
        self.observe_nodes()
        for uid, placement in bound.items():
            now = self.engine.placement(uid)
            assert now is not None
            assert now.node == placement.node
        alive = {uid for gang in self.engine.gangs() for uid in gang.members}
        self.requests = {uid: r for uid, r in self.requests.items() if uid in alive}

    # -- helpers

    def bind_member(self, uid: PodUid) -> None:
        request = self.requests[uid]
        if placement := self.engine.placement(request.member):
            self.told[request.member] = placement
            observe_bound(
                self.engine,
                request,
                node=placement.node,
                leaf_cells=placement.leaf_cells,
                placement=placement,
            )

    def end_member(self, uid: PodUid) -> None:
        del self.requests[uid]
        self.engine.forget_member(uid)

    def complete(self, gang: GangView) -> list[PodUid]:
        """Let all members of a gang ask; returns those that are known."""
        first = self.engine._table.gangs[gang.gang].request
        for index, size in enumerate(first.gang_leaf_counts):
            member = PodUid(f"{gang.gang.name}-{index}")
            request = replace(first, member=member, leaf_count=size)
            self.ask(self.requests.get(member) or request, self.nodes)
        return [uid for uid, request in self.requests.items() if request.gang == gang.gang]

    def tell_member_to_end(self, uid: PodUid) -> None:
        if self.engine.observe_ending(uid):
            self.ending[uid] = None
        assert not self.engine.observe_ending(uid), "told again, nothing is new"

    def ours(self) -> list[GangView]:
        """Gangs that the engine placed."""
        gangs = self.engine._table.gangs
        return [gang for gang in self.engine.gangs() if not gangs[gang.gang].is_foreign]

    def observe_nodes(self) -> None:
        for node in self.nodes:
            bad = self.bad.get(node, ())
            self.engine.observe_node(a_node_cell(node, is_healthy=bad is not None, bad=bad or ()))

    def ask(self, request: MemberRequest, candidates: list[NodeName]) -> None:
        offered = dict.fromkeys(candidates)
        gang = self.engine._table.gangs.get(request.gang)
        asked = request if gang is None else self.late(request, gang)
        before = self.engine.gangs(), list_cells(self.engine), list_vcs(self.engine)
        decision = self.engine.plan(request, candidate_nodes=offered)
        assert (self.engine.gangs(), list_cells(self.engine), list_vcs(self.engine)) == before
        assert self.engine.plan(request, candidate_nodes=offered) == decision
        check(self.engine)
        if asked is not None and not isinstance(decision, Reject):
            Comparison(self.engine, self.topology).check(asked, decision, frozenset(candidates))
        self.engine.apply(decision, now=self.now)
        if isinstance(decision, Place | Preempt):
            self.requests[request.member] = request
        if isinstance(decision, Place):
            assert decision.placement.node in candidates
            assert len(decision.placement.leaf_cells) == request.leaf_count

    def late(self, request: MemberRequest, gang: PlacedGang) -> MemberRequest | None:
        """What a member for which its gang has no slot asks for: a place for itself."""
        size = request.leaf_count
        own, is_open = gang.slot_of(request.member), any(gang.slots.open(size))
        has_slot = own or is_open or gang.reserved_slots()
        is_full = gang.slots.count(size) >= gang.member_count(size)
        if has_slot or is_full or gang.is_being_preempted():
            return None
        alone = replace(request, gang_leaf_counts=(size,), gang_min=None, ignores_candidates=False)
        return alone if gang.is_guaranteed else replace(alone, priority=-1, pinned=None)

    @invariant()
    def everything_holds(self) -> None:
        if hasattr(self, "engine"):
            check(self.engine)

    @invariant()
    def victims_and_preemptors_agree(self) -> None:
        if not hasattr(self, "engine"):
            return
        gangs = {gang.gang: gang for gang in self.engine.gangs()}
        for gang in gangs.values():
            for victim in gang.victims:
                assert gangs[victim].state is GangState.BEING_PREEMPTED
