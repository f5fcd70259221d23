"""Requests that do not get a place: at least one for every sentence that the engine has."""

from dataclasses import replace

from extender.cells import answers, budget
from extender.cells.model import Argument, Decision, Reason, ReasonCode
from extender.cells.wording import explain
from policy.pod_resources import Shortage
from policy.submission import GangKey, NodeName, PodUid
from tests.support.cells.builders import ClusterBuilder, a_cluster, a_gang, a_node_cell
from tests.support.cells.engine_calls import observe_foreign
from tests.support.cells.engine_world import EngineWorld


def two_nodes() -> ClusterBuilder:
    return a_cluster("2 nodes x 2", leaf_type="A100").promising("a", node=1).promising("b", node=1)


def no_room() -> Decision:
    world = EngineWorld(two_nodes())
    world.place(a_gang("one").of(1).at(-1))
    return world.ask(a_gang("bert").of(2, 2).typed("A100").at(-1))


def vc_full() -> Decision:
    world = EngineWorld(two_nodes())
    world.place(a_gang("one").of(2))
    return world.ask(a_gang("bert").of(1))


def vc_full_in_all_chains() -> Decision:
    cluster = a_cluster("1 nodes x 2", name="one").chain("1 pods x 1 nodes x 4", name="two")
    world = EngineWorld(
        cluster.promising(
            "a",
            chain="one",
            node=1,
        ).promising("a", chain="two", node=1)
    )
    world.place(a_gang("left").of(4))
    world.place(a_gang("right").of(1))
    return world.ask(a_gang("bert").of(2))


def vc_without_promises() -> Decision:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a"))
    return world.ask(a_gang("bert").of(1))


def pinned_full() -> Decision:
    world = EngineWorld(a_cluster("2 nodes x 2").pin("n1", "PIN").promising("a", pinned=["PIN"]))
    world.place(a_gang("one").of(2).pinned("PIN"))
    return world.ask(a_gang("bert").of(1).pinned("PIN"))


def bad_cells() -> Decision:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.engine.observe_node(a_node_cell("n0", is_healthy=False))
    return world.ask(a_gang("bert").of(2, 2))


def quarantined() -> Decision:
    world = EngineWorld(a_cluster("3 nodes x 2").promising("a", node=3))
    world.engine.observe_node(a_node_cell("n0", bad=(1,)))
    world.engine.observe_node(a_node_cell("n2", is_quarantined=True))
    return world.ask(a_gang("bert").of(2, 2, 2))


def no_room_by_foreign_use() -> Decision:
    world = EngineWorld(two_nodes())
    observe_foreign(world.engine, a_gang("f").of(2).member(), node="n0")
    return world.ask(a_gang("bert").of(2, 2).at(-1))


def foreign_use() -> Decision:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    for node in ("n0", "n1"):
        observe_foreign(world.engine, a_gang(f"on-{node}").of(2).member(), node=node)
    return world.ask(a_gang("bert").of(2, 2))


def foreign_use_and_bad_cells() -> Decision:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    observe_foreign(world.engine, a_gang("f").of(1).member(), node="n0")
    world.engine.observe_node(a_node_cell("n1", is_healthy=False))
    return world.ask(a_gang("bert").of(2, 2))


def reclaimed() -> Reason:
    high = a_gang("high").of(2).at(9).member()
    return answers.preempted(GangKey("ns", "bert"), by=high, own=3, is_foreign=True)


def preempted_as_opportunistic() -> Reason:
    high = a_gang("high").of(2).at(9).member()
    return answers.preempted(GangKey("ns", "bert"), by=high, own=-1)


def preempted_below_its_priority() -> Reason:
    high = a_gang("high").of(2).at(9).member()
    return answers.preempted(GangKey("ns", "bert"), by=high, own=3)


def no_candidate() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").of(2).strict(), nodes=["elsewhere"])


def not_offered() -> Decision:
    world = EngineWorld(two_nodes())
    world.place(a_gang("bert").of(2))
    return world.ask(a_gang("bert").of(2), nodes=["n1"])


def lacks_cpu() -> Decision:
    return _lacking("cpu", asked=1500, free=500, total=8000)


def lacks_port() -> Decision:
    return _lacking("host port 80")


def lacks_space() -> Decision:
    return _lacking("")


def _lacking(resource: str, **amounts: int) -> Decision:
    decision = EngineWorld(two_nodes()).ask(a_gang("bert").of(2, 2).at(-1), nodes=["elsewhere"])
    facts = {"asked": 0, **amounts}
    shortage = Shortage(resource=resource, short=3, nodes=4, node="n0", **facts)
    return answers.for_lack(decision, shortage)


def gang_full() -> Decision:
    world = EngineWorld(two_nodes())
    world.place(a_gang("bert").of(2))
    extra = replace(a_gang("bert").of(2).member(), member=PodUid("bert-9"))
    return world.engine.plan(extra, candidate_nodes=world.nodes)


def members_ending() -> Decision:
    world = EngineWorld(two_nodes())
    request = world.place(a_gang("bert").of(2)).request
    world.engine.observe_ending(request.member)
    extra = replace(request, member=PodUid("bert-9"))
    return world.engine.plan(extra, candidate_nodes=world.nodes)


def being_preempted() -> Decision:
    world = EngineWorld(two_nodes())
    world.apply(world.ask(a_gang("bert").of(1, 1)))
    world.apply(world.ask(a_gang("urgent").of(2).at(9)))
    return world.ask(a_gang("bert").of(1, 1), member=1)


def preempting_one() -> Decision:
    world = EngineWorld(two_nodes())
    world.place(a_gang("low").of(2))
    return world.ask(a_gang("bert").of(2).at(9))


def preempting_two() -> Decision:
    world = EngineWorld(two_nodes())
    world.place(a_gang("low").of(1))
    world.place(a_gang("lower").of(1))
    return world.ask(a_gang("bert").of(2).at(9))


def too_large_for_its_vc() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").of(2, 2))


def _cut() -> EngineWorld:
    cluster = a_cluster("2 nodes x 2").promising("a", node=1)
    return EngineWorld(cluster.lacking("a", "node", promised=3, backed=1))


def too_large_for_a_cut_vc() -> Decision:
    return _cut().ask(a_gang("bert").of(2, 2))


def cut_vc_full() -> Decision:
    world = _cut()
    world.place(a_gang("one").of(2))
    return world.ask(a_gang("bert").of(1))


def too_large_for_the_cluster() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").of(2, 2, 2).typed("A100").at(-1))


def too_wide_for_a_cell() -> Decision:
    return EngineWorld(a_cluster("1 nodes x 4").promising("a", gpu=4)).ask(a_gang("bert").of(2, 1))


def too_wide_for_a_node() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").of(3).at(-1))


def too_many_members() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").times(budget.LARGEST_GANG + 1, 1))


def search_ended() -> Decision:
    world = EngineWorld(a_cluster("100 nodes x 4").promising("a", node=100))
    # Every bound holds, but a member of 3 leaves one leaf cell on its node, and none of 2 fits.
    return world.ask(a_gang("bert").of(*(3,) * 100, *(2,) * 50).at(-1))


def unknown_vc() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").in_vc("c"))


def unknown_pinned_cell() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").pinned("PIN"))


def unknown_leaf_type() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").typed("H100"))


def leaf_type_of_others() -> Decision:
    cluster = two_nodes().chain("1 pods x 1 nodes x 2", name="other", leaf_type="H100")
    return EngineWorld(cluster).ask(a_gang("bert").typed("H100"))


def bad_priority() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").at(1001))


def opportunistic_pinned() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").at(-1).pinned("PIN"))


def bad_gang_min() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").of(1, 1).at_least(3))


def bad_leaf_count() -> Decision:
    return EngineWorld(two_nodes()).ask(a_gang("bert").of(1, 0))


def no_members() -> Decision:
    request = replace(a_gang("bert").member(), gang_leaf_counts=())
    return EngineWorld(two_nodes()).engine.plan(request, candidate_nodes=[NodeName("n0")])


def not_listed() -> Decision:
    request = replace(a_gang("bert").of(2, 2).member(), leaf_count=1)
    return EngineWorld(two_nodes()).engine.plan(request, candidate_nodes=[NodeName("n0")])


def other_vc_and_priority() -> Decision:
    world = EngineWorld(two_nodes())
    world.apply(world.ask(a_gang("bert").of(1, 1)))
    return world.ask(a_gang("bert").of(1, 1).in_vc("b").at(7), member=1)


def other_sizes() -> Decision:
    world = EngineWorld(two_nodes())
    world.apply(world.ask(a_gang("bert").of(1, 1)))
    return world.ask(a_gang("bert").of(2, 2), member=1)


def other_wishes() -> Decision:
    world = EngineWorld(two_nodes())
    world.apply(world.ask(a_gang("bert").of(1, 1)))
    strange = a_gang("bert").of(1, 1).typed("A100").pinned("PIN").at_least(1)
    return world.ask(strange, member=1)


def pod_of_another_gang() -> Decision:
    world = EngineWorld(two_nodes())
    world.apply(world.ask(a_gang("other").of(1)))
    stray = replace(a_gang("bert").of(1).member(), member=PodUid("other-0"))
    return world.engine.plan(stray, candidate_nodes=world.nodes)


def unplanned() -> Reason:
    return explain(ReasonCode.UNPLANNED, gang="ns/bert")


def reserved() -> Decision:
    world = EngineWorld(a_cluster("1 nodes x 4").promising("a", node=1))
    world.place(a_gang("old").of(4))
    return answers.for_reservation(world.ask(a_gang("bert").of(2)), GangKey("ns", "large"))


def moved() -> Reason:
    large = next(iter(a_gang("large").of(2).at(-1).members()))
    return answers.moved(GangKey("ns", "bert"), by=large)


def minimum_run() -> Decision:
    world = EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1))
    world.place(a_gang("young").of(2).at(1))
    world.engine.observe_minimum_run(GangKey("ns", "young"), seconds=1800)
    return world.ask(a_gang("bert").of(2).at(5))


def gathering() -> Reason:
    return explain(ReasonCode.GATHERING, gang="ns/bert", members=2, needed=4, size=4)


def held_at_binding() -> Reason:
    return explain(ReasonCode.HELD_AT_BINDING, gang="ns/bert", members=2, needed=4)


def given_up_at_binding() -> Reason:
    return explain(ReasonCode.BINDING_GIVEN_UP, gang="ns/bert", cause="refused")


def gathering_a_minimum() -> Reason:
    return explain(ReasonCode.GATHERING, gang="ns/bert", members=2, needed=3, size=4)


def preempted() -> Reason:
    told = {"preemptor": "ns/urgent", "vc": "a"}
    return explain(ReasonCode.PREEMPTED, gang="ns/bert", priority=9, **told)


def over_quota() -> Reason:
    return explain(ReasonCode.QUOTA, gang="ns/bert", group="vision", leaf_cells=16)


def over_quota_of_unknown_size() -> Reason:
    return explain(ReasonCode.QUOTA, gang="ns/bert", group="vision", leaf_cells=0)


def other_gate() -> Reason:
    return explain(ReasonCode.OTHER_GATE, pod="ns/bert-0")


def no_pod_group() -> Reason:
    return explain(ReasonCode.NO_POD_GROUP, gang="ns/bert")


def no_scheduler() -> Reason:
    return explain(ReasonCode.NO_SCHEDULER, gang="ns/bert", scheduler="mine")


def held_by_its_owner() -> Reason:
    told = {"why": "data is copied", "role": "owner", "user": "alice"}
    return explain(ReasonCode.HELD_BY_USER, gang="ns/bert", **told)


def held_by_an_admin() -> Reason:
    told = {"why": "maintenance", "role": "group-admin", "user": "carol", "after": "ns/gpt"}
    return explain(ReasonCode.HELD_BY_ADMIN, gang="ns/bert", **told)


_WINDOW: dict[str, Argument] = {
    "needs": ((2, 8),),
    "members": 2,
    "window": "firmware",
    "begins": "2026-11-20T20:00:00Z",
    "ends": "2026-11-21T06:00:00Z",
}


def in_maintenance() -> Reason:
    return explain(ReasonCode.MAINTENANCE, gang="ns/bert", node="gpu-1", **_WINDOW)


def reserved_ahead() -> Reason:
    return explain(ReasonCode.RESERVED_AHEAD, gang="ns/bert", **_WINDOW)


def unknown_class() -> Reason:
    return explain(
        ReasonCode.UNKNOWN_CLASS, gang="ns/bert", problem="class x is not in the document"
    )
