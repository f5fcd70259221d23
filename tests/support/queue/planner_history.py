"""The planner, whatever becomes of its events and actions.

No leaf cell twice at any moment; and when the world works again, every gang that is complete and
fits is placed whole.
"""

from collections.abc import Hashable
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from policy.queues.alternatives import Alternative
from policy.submission import LeafType, PodUid, VcName
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.queue.room_world import RoomWorld, a_need

NEEDS = st.sampled_from(
    [a_need(), a_need(cpus=1), a_need(cpus=4), a_need(zone="east"), a_need(zone="west", cpus=2)]
)
ALTERNATIVES: list[tuple[Alternative, ...]] = [
    (),
    (),
    (Alternative(vc=VcName("b")),),
    (Alternative(vc=VcName("b")), Alternative(vc=VcName("a"), min_members=1)),
    (Alternative(leaf_type=LeafType("unknown")), Alternative(min_members=1)),
]
CLUSTERS = {
    "one rack": lambda: (
        a_cluster("1 racks x 3 nodes x 4").promising("a", node=2).promising("b", node=1)
    ),
    "two racks": lambda: (
        a_cluster("2 racks x 2 nodes x 4").promising("a", rack=1).promising("b", node=2)
    ),
}


class PlannerHistory(RuleBasedStateMachine):
    """Random histories of a small cluster."""

    @initialize(cluster=st.sampled_from(sorted(CLUSTERS)))
    def start(self, cluster: str) -> None:
        self.world = RoomWorld(CLUSTERS[cluster]().build())
        self.born = 0

    @rule(
        sizes=st.lists(st.sampled_from([1, 2, 4, 0]), min_size=1, max_size=4),
        missing=st.sampled_from([0, 0, 0, 1]),
        vc=st.sampled_from("ab"),
        priority=st.sampled_from([-1, 0, 5]),
        gang_min=st.sampled_from([None, None, 1, 2]),
        needs=st.lists(NEEDS, min_size=1, max_size=2),
        may_preempt=st.sampled_from([True, True, False]),
        alternatives=st.sampled_from(ALTERNATIVES),
    )
    def submit(
        self,
        *,
        sizes: list[int],
        missing: int,
        vc: str,
        priority: int,
        gang_min: int | None,
        needs: list[Hashable],
        may_preempt: bool,
        alternatives: tuple[Alternative, ...],
    ) -> None:
        self.born += 1
        gang = a_gang(f"g{self.born}").of(*sizes).in_vc(vc).at(priority)
        gang = gang.losing(self.born % 3 * 60)
        if gang_min is not None and gang_min < len(sizes):
            gang = gang.at_least(gang_min)
        for index, request in enumerate(gang.members()[missing:]):
            need = needs[index % len(needs)]
            self.world.create(
                request,
                size=len(sizes),
                node_wish=need,
                may_preempt=may_preempt,
                alternatives=alternatives,
            )

    @rule(data=st.data(), cpus=st.sampled_from([0, 3, 7]))
    def load(self, data: st.DataObject, cpus: int) -> None:
        """Pods that ask for no leaf cells come and go."""
        self.world.load(data.draw(st.sampled_from(sorted(self.world.nodes))), cpus)

    @rule(data=st.data(), breaks=st.booleans())
    def protect(self, data: st.DataObject, breaks: bool) -> None:
        gangs = sorted(gang.gang for gang in self.world.engine.gangs())
        if gangs:
            self.world.protect(data.draw(st.sampled_from(gangs)), breaks=breaks)

    @rule(data=st.data(), seconds=st.sampled_from([0, 60]))
    def begin_run(self, data: st.DataObject, seconds: int) -> None:
        gangs = sorted(gang.gang for gang in self.world.engine.gangs())
        if gangs:
            self.world.begin_run(data.draw(st.sampled_from(gangs)), seconds=seconds)

    @rule(data=st.data())
    def start_again(self, data: st.DataObject) -> None:
        """A controller makes a new pod in the place of one that is gone."""
        if self.world.pods:
            uid = data.draw(st.sampled_from(sorted(self.world.pods)))
            lost = self.world.pods[uid].seen_as
            self.world.delete(uid)
            self.born += 1
            request = replace(lost.in_form(0).request, member=PodUid(f"again-{self.born}"))
            kept = {"node_wish": lost.node_wish, "may_preempt": lost.may_preempt}
            alternatives = lost.alternatives
            self.world.create(request, size=lost.gang_size, alternatives=alternatives, **kept)

    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        if self.world.undelivered:
            self.world.deliver(data.draw(st.sampled_from(sorted(self.world.undelivered))))

    @rule()
    def deliver_all(self) -> None:
        for uid in sorted(self.world.undelivered):
            self.world.deliver(uid)

    @rule(data=st.data())
    def deliver_again(self, data: st.DataObject) -> None:
        known = sorted(uid for uid, pod in self.world.pods.items() if pod.is_known)
        if known:
            self.world.deliver(data.draw(st.sampled_from(known)))

    @rule()
    def think(self) -> None:
        self.world.step()

    @rule(data=st.data(), is_done=st.booleans(), is_told_done=st.booleans())
    def perform(self, data: st.DataObject, is_done: bool, is_told_done: bool) -> None:
        if self.world.actions:
            index = data.draw(st.integers(0, len(self.world.actions) - 1))
            self.world.perform(index, is_done=is_done, is_told_done=is_told_done and is_done)

    @rule(data=st.data())
    def tear(self, data: st.DataObject) -> None:
        if self.world.actions:
            self.world.tear(data.draw(st.integers(0, len(self.world.actions) - 1)))

    @rule(data=st.data())
    def schedule(self, data: st.DataObject) -> None:
        if self.world.pods:
            self.world.schedule(data.draw(st.sampled_from(sorted(self.world.pods))))

    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        if self.world.being_bound:
            self.world.bind(data.draw(st.sampled_from(sorted(self.world.being_bound))))

    @rule(data=st.data())
    def hang_up(self, data: st.DataObject) -> None:
        if self.world.held:
            self.world.hang_up(data.draw(st.sampled_from(sorted(self.world.held))))

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if self.world.pods:
            self.world.delete(data.draw(st.sampled_from(sorted(self.world.pods))))

    @rule(data=st.data(), is_healthy=st.booleans())
    def turn_node(self, data: st.DataObject, is_healthy: bool) -> None:
        node = data.draw(st.sampled_from(sorted(self.world.nodes)))
        self.world.set_health(node, is_healthy=is_healthy)

    @rule(seconds=st.sampled_from([0.2, 4.0, 25.0]))
    def wait(self, seconds: float) -> None:
        self.world.now += seconds

    @rule()
    def take_over(self) -> None:
        self.world.lead()

    @invariant()
    def no_leaf_cell_twice(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            for node in self.world.nodes:
                self.world.set_health(node, is_healthy=True)
            self.world.settle()
            check_every_gang_is_whole_or_does_not_fit(self.world)


def check_every_gang_is_whole_or_does_not_fit(world: RoomWorld) -> None:
    """What must be true when everything works and nothing changes any more."""
    assert not world.actions
    for key, pods in world.gangs().items():
        bound = [pod for pod in pods if pod.seen_as.node is not None]
        is_complete = len(pods) >= pods[0].seen_as.gang_size
        if is_complete and not bound:
            assert not world.fits(pods), f"{key} fits and was not placed"
        elif is_complete and len(bound) < len(pods):
            late = [pod for pod in pods if pod.seen_as.node is None]
            assert not world.fits(late), f"{key} was placed by half"
        assert bound or all(world.engine.placement(pod.uid) is None for pod in pods)
