"""Shadow times on random clusters: nothing changes, and they are what really ending gangs gives."""

from dataclasses import replace
from random import Random
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from extender.cells.budget import SHADOW_ENDS
from extender.cells.decide import shadow as shadows
from extender.cells.engine import Engine
from extender.cells.model import (
    Decision,
    MemberRequest,
    Place,
    Preempt,
    Seat,
    Shadow,
    Victims,
)
from policy.submission import GangKey, NodeName, PodUid
from policy.topology import Topology
from tests.support.cells.builders import GangBuilder, a_gang, an_engine, nodes_of
from tests.support.cells.engine_calls import check
from tests.support.cells.random_clusters import a_random_cluster
from tests.support.cells.snapshot import snapshot

_PRIORITIES = (-1, 0, 0, 5)


@given(st.integers(0, 2**32))
def test_a_shadow_time_changes_nothing(seed: int) -> None:
    world = _World(seed)
    before = snapshot(world.engine)

    world.shadow()

    assert snapshot(world.engine) == before
    check(world.engine)


@given(st.integers(0, 2**32))
def test_a_shadow_time_is_what_really_ending_the_gangs_gives(seed: int) -> None:
    world, twin = _World(seed), _World(seed)

    shadow = world.shadow()

    first = twin.end_until_it_fits()
    if shadow is None:
        assert not isinstance(first, Place), first
        return
    ended = [key for key, end in world.ends if end <= shadow.time]
    other = _World(seed)
    other.end(ended)
    decision = other.plan()
    assert isinstance(decision, Place | Preempt)
    assert decision.seats == shadow.seats
    if isinstance(first, Place) or not twin.has_lower():
        assert shadow.time <= twin.time  # a preemption of its own VC is not looked for each time
    if not twin.has_lower():
        assert shadow.time == twin.time


@given(st.integers(0, 2**32), st.sampled_from([0, 1, SHADOW_ENDS]))
@example(1, 0)
def test_with_the_ends_that_it_waits_for_alone_it_is_found_again(seed: int, few: int) -> None:
    """With few ends, whole nodes become empty one after the other."""
    world = _World(seed)
    with patch.object(shadows, "SHADOW_ENDS", few):
        found = world.shadow()
        if found is None:
            return
        again = world.engine.shadow(
            world.request,
            ends=found.ends,
            candidate_nodes=world.nodes,
            now=0.0,
            is_by_nodes=found.is_by_nodes,
        )
    assert again == found
    waits_for = found.ends[-1][0] if found.ends else None
    assert found.waits_for == waits_for


@given(st.integers(0, 2**32))
def test_kept_seats_stay_usable_for_their_gang(seed: int) -> None:
    world = _World(seed)
    shadow = world.shadow()
    if shadow is None or world.engine.domain(world.request) is None:
        return
    other = a_gang("other").in_vc(world.request.vc).of(world.random.choice([1, 2])).member()

    decision = world.plan(other, kept=shadow)

    before = [key for key, end in world.ends if end <= shadow.time]
    if isinstance(decision, Place) and not decision.downgraded:
        world.engine.apply(decision, now=0.0)
        check(world.engine)
        world.end(before)
        assert isinstance(world.plan(), Place | Preempt)


@given(st.integers(0, 2**32))
@example(172236)  # a gang of another VC leaves the cell that the first one gets
@example(203405674)  # one of the cells that are left is used again, another one is drained
def test_two_gangs_of_a_vc_get_different_seats_and_both_can_use_them(seed: int) -> None:
    world = _World(seed)
    first = world.shadow()
    if first is None or world.engine.domain(world.request) is None:
        return
    second = a_gang("second").in_vc(world.request.vc).of(world.random.choice([1, 2, 4])).member()
    before = snapshot(world.engine)

    found = world.shadow(second, kept=first)

    assert snapshot(world.engine) == before
    if found is None:
        return
    assert not _leaves(first) & _leaves(found)
    until = max(first.time, found.time)
    world.end([key for key, end in world.ends if end <= until])
    starts = world.plan(second, kept=first)
    assert isinstance(starts, Place | Preempt)
    if isinstance(starts, Place) and not starts.downgraded:
        world.engine.apply(starts, now=0.0)
        assert isinstance(world.plan(), Place | Preempt)


@given(st.integers(0, 2**32))
@example(1)
def test_beside_kept_seats_no_gang_gets_more_than_the_bound(seed: int) -> None:
    world = _World(seed)
    kept: list[Seat] = []
    for number in range(world.random.choice([1, 2])):
        head = world._gang(f"head{number}").in_vc(world.request.vc).member()
        shadow = world.engine.shadow(
            head, ends=world.ends, candidate_nodes=world.nodes, now=0.0, kept=kept
        )
        if shadow is not None and world.engine.domain(head) == world.engine.domain(world.request):
            kept += [*shadow.seats, *shadow.drained]

    counted = world.engine.kept_cells(world.engine.domain(world.request), kept)
    for times in (1, 2, 3):
        for size in (1, 2):
            request = replace(world.request, gang=GangKey("ns", f"{times} of {size}"))
            request = replace(request, leaf_count=size, gang_leaf_counts=(size,) * times)
            most = world.engine.most_leaf_cells(request, counted)
            decision = world.engine.plan(request, candidate_nodes=world.nodes, kept=kept)
            if isinstance(decision, Place | Preempt):
                assert most is None or times * size <= most


@given(st.integers(0, 2**32))
def test_it_is_the_same_whether_a_gang_fits_whichever_victims_are_looked_for(seed: int) -> None:
    world = _World(seed)
    best = world.plan()
    any_, none = (
        world.engine.plan(world.request, candidate_nodes=world.nodes, victims=victims)
        for victims in (Victims.ANY, Victims.NONE)
    )
    assert type(any_) is type(best)
    assert isinstance(none, Place) == isinstance(best, Place)
    if not isinstance(best, Preempt):
        assert any_ == best


def _leaves(shadow: Shadow) -> set[tuple[str, str]]:
    return {(seat.chain, leaf) for seat in shadow.seats for leaf in seat.leaves}


class _World:
    """A random cluster with gangs that run, and a gang that waits."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        topology: Topology = a_random_cluster(self.random)
        self.engine: Engine = an_engine(topology)
        self.nodes = dict.fromkeys(nodes_of(topology))
        self.vcs = sorted(topology.vcs)
        self.members: dict[GangKey, list[PodUid]] = {}
        for number in range(self.random.randint(2, 12)):
            self._place(self._gang(f"gang{number}"))
        self.request: MemberRequest = self._gang("head").member()
        order = self.random.sample(sorted(self.members), len(self.members))
        self.ends = [(key, float(index + 1)) for index, key in enumerate(order)]
        self.time = 0.0

    def _gang(self, name: str) -> GangBuilder:
        count, size = self.random.choice([1, 1, 2, 3]), self.random.choice([1, 1, 2, 4])
        gang = a_gang(name).in_vc(self.random.choice(self.vcs)).times(count, size)
        return gang.at(self.random.choice(_PRIORITIES))

    def _place(self, gang: GangBuilder) -> None:
        for request in gang.members():
            decision = self.plan(request)
            if not isinstance(decision, Place):
                return
            self.engine.apply(decision, now=0.0)
            self.members.setdefault(request.gang, []).append(request.member)

    def plan(self, request: MemberRequest | None = None, *, kept: Shadow | None = None) -> Decision:
        seats = (*kept.seats, *kept.drained) if kept is not None else ()
        asked = request or self.request
        return self.engine.plan(asked, candidate_nodes=self.nodes, kept=seats)

    def shadow(
        self, request: MemberRequest | None = None, *, kept: Shadow | None = None
    ) -> Shadow | None:
        seats = (*kept.seats, *kept.drained) if kept is not None else ()
        nodes: dict[NodeName, None] = self.nodes
        asked = request or self.request
        return self.engine.shadow(asked, ends=self.ends, candidate_nodes=nodes, now=0.0, kept=seats)

    def end(self, gangs: list[GangKey]) -> None:
        for key in gangs:
            for member in self.members[key]:
                self.engine.forget_member(member)

    def end_until_it_fits(self) -> Decision:
        decision = self.plan()
        for key, end in self.ends:
            if isinstance(decision, Place | Preempt) and decision.seats:
                break
            self.end([key])
            self.time = end
            decision = self.plan()
        return decision

    def has_lower(self) -> bool:
        """Whether gangs of its VC had lower priorities when it began to wait."""
        return self.request.priority > 0
