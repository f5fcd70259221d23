"""Every sentence that the engine tells people: a change here is a change for users."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from extender.cells import budget
from extender.cells.model import Decision, Place, Reason, ReasonCode
from extender.cells.wording import explain
from policy.submission import NodeName, PodUid
from tests.support.cells.builders import ClusterBuilder, a_cluster, a_gang, a_node
from tests.support.cells.world import World


def two_nodes() -> ClusterBuilder:
    return a_cluster("2 nodes x 2", leaf_type="A100").promising("a", node=1).promising("b", node=1)


def no_room() -> Decision:
    world = World(two_nodes())
    world.place(a_gang("one").of(1).at(-1))
    return world.ask(a_gang("bert").of(2, 2).typed("A100").at(-1))


def vc_full() -> Decision:
    world = World(two_nodes())
    world.place(a_gang("one").of(2))
    return world.ask(a_gang("bert").of(1))


def pinned_full() -> Decision:
    world = World(a_cluster("2 nodes x 2").pin("n1", "PIN").promising("a", pinned=["PIN"]))
    world.place(a_gang("one").of(2).pinned("PIN"))
    return world.ask(a_gang("bert").of(1).pinned("PIN"))


def bad_cells() -> Decision:
    world = World(a_cluster("2 nodes x 2").promising("a", node=2))
    world.engine.observe_node(a_node("n0", is_healthy=False))
    return world.ask(a_gang("bert").of(2, 2))


def no_candidate() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").of(2).strict(), nodes=["elsewhere"])


def not_offered() -> Decision:
    world = World(two_nodes())
    world.place(a_gang("bert").of(2))
    return world.ask(a_gang("bert").of(2), nodes=["n1"])


def gang_full() -> Decision:
    world = World(two_nodes())
    world.place(a_gang("bert").of(2))
    extra = replace(a_gang("bert").of(2).member(), member=PodUid("bert-9"))
    return world.engine.plan(extra, candidate_nodes=world.nodes)


def being_preempted() -> Decision:
    world = World(two_nodes())
    world.apply(world.ask(a_gang("bert").of(1, 1)))
    world.apply(world.ask(a_gang("urgent").of(2).at(9)))
    return world.ask(a_gang("bert").of(1, 1), member=1)


def preempting_one() -> Decision:
    world = World(two_nodes())
    world.place(a_gang("low").of(2))
    return world.ask(a_gang("bert").of(2).at(9))


def preempting_two() -> Decision:
    world = World(two_nodes())
    world.place(a_gang("low").of(1))
    world.place(a_gang("lower").of(1))
    return world.ask(a_gang("bert").of(2).at(9))


def too_large_for_its_vc() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").of(2, 2))


def too_large_for_the_cluster() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").of(2, 2, 2).typed("A100").at(-1))


def too_wide_for_a_cell() -> Decision:
    return World(a_cluster("1 nodes x 4").promising("a", gpu=4)).ask(a_gang("bert").of(2, 1))


def too_wide_for_a_node() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").of(3).at(-1))


def too_many_members() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").times(budget.LARGEST_GANG + 1, 1))


def search_ended() -> Decision:
    world = World(a_cluster("100 nodes x 4").promising("a", node=100))
    # Every bound holds, but a member of 3 leaves one leaf cell on its node, and none of 2 fits.
    return world.ask(a_gang("bert").of(*(3,) * 100, *(2,) * 50).at(-1))


def unknown_vc() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").in_vc("c"))


def unknown_pinned_cell() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").pinned("PIN"))


def unknown_leaf_type() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").typed("H100"))


def leaf_type_of_others() -> Decision:
    cluster = two_nodes().chain("1 pods x 1 nodes x 2", name="other", leaf_type="H100")
    return World(cluster).ask(a_gang("bert").typed("H100"))


def bad_priority() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").at(1001))


def opportunistic_pinned() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").at(-1).pinned("PIN"))


def bad_gang_min() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").of(1, 1).at_least(3))


def bad_leaf_count() -> Decision:
    return World(two_nodes()).ask(a_gang("bert").of(1, 0))


def no_members() -> Decision:
    request = replace(a_gang("bert").member(), gang_leaf_counts=())
    return World(two_nodes()).engine.plan(request, candidate_nodes=[NodeName("n0")])


def not_listed() -> Decision:
    request = replace(a_gang("bert").of(2, 2).member(), leaf_count=1)
    return World(two_nodes()).engine.plan(request, candidate_nodes=[NodeName("n0")])


def other_vc_and_priority() -> Decision:
    world = World(two_nodes())
    world.apply(world.ask(a_gang("bert").of(1, 1)))
    return world.ask(a_gang("bert").of(1, 1).in_vc("b").at(7), member=1)


def other_sizes() -> Decision:
    world = World(two_nodes())
    world.apply(world.ask(a_gang("bert").of(1, 1)))
    return world.ask(a_gang("bert").of(2, 2), member=1)


def other_wishes() -> Decision:
    world = World(two_nodes())
    world.apply(world.ask(a_gang("bert").of(1, 1)))
    strange = a_gang("bert").of(1, 1).typed("A100").pinned("PIN").at_least(1)
    return world.ask(strange, member=1)


def pod_of_another_gang() -> Decision:
    world = World(two_nodes())
    world.apply(world.ask(a_gang("other").of(1)))
    stray = replace(a_gang("bert").of(1).member(), member=PodUid("other-0"))
    return world.engine.plan(stray, candidate_nodes=world.nodes)


def gathering() -> Reason:
    return explain(ReasonCode.GATHERING, gang="ns/bert", members=2, needed=4)


def preempted() -> Reason:
    told = {"preemptor": "ns/urgent", "vc": "a"}
    return explain(ReasonCode.PREEMPTED, gang="ns/bert", priority=9, **told)


SENTENCES: dict[Callable[[], Decision | Reason], tuple[ReasonCode, str]] = {
    no_room: (
        ReasonCode.NO_ROOM,
        "gang ns/bert needs 2 x 2 leaf cells of type A100, each member's on one node; "
        "there is room for 1 of 2 members now; it starts when enough of them are free",
    ),
    vc_full: (
        ReasonCode.VC_FULL,
        "gang ns/bert needs 1 x 1 leaf cells, each member's in one cell of VC a; of 2 "
        "leaf cells that the VC was promised 0 are unused; it starts when gangs of VC a "
        "end, or at a higher priority than theirs",
    ),
    pinned_full: (
        ReasonCode.VC_FULL,
        "gang ns/bert needs 1 x 1 leaf cells, each member's in one node of pinned cell "
        "PIN; of 2 leaf cells that the pinned cell has 0 are unused; it starts when gangs"
        " of VC a end, or at a higher priority than theirs",
    ),
    bad_cells: (
        ReasonCode.BAD_CELLS,
        "gang ns/bert needs 2 x 2 leaf cells; of the leaf cells where they could be 2 are"
        " bad; it starts when nodes are healthy again or other gangs end",
    ),
    no_candidate: (
        ReasonCode.NODE_NOT_OFFERED,
        "gang ns/bert needs 1 x 2 leaf cells; there is room, but not on the nodes that "
        "kube-scheduler offers; check taints, node selectors and what else runs there",
    ),
    not_offered: (
        ReasonCode.NODE_NOT_OFFERED,
        "gang ns/bert has a place on node n0, which kube-scheduler does not offer to this"
        " pod; check the node's taints and the pod's node selector",
    ),
    gang_full: (
        ReasonCode.GANG_FULL,
        "gang ns/bert has 1 member of 2 leaf cells, and all are there already; raise the "
        "gang's size, or end one of them",
    ),
    being_preempted: (
        ReasonCode.BEING_PREEMPTED,
        "gang ns/bert is being preempted by ns/urgent; it goes on if that is withdrawn, "
        "else it starts again when there is room",
    ),
    preempting_one: (
        ReasonCode.PREEMPTING,
        "gang ns/bert at priority 9 in VC a preempts 1 gang; it starts when ns/low ended",
    ),
    preempting_two: (
        ReasonCode.PREEMPTING,
        "gang ns/bert at priority 9 in VC a preempts 2 gangs; it starts when ns/low, "
        "ns/lower ended",
    ),
    preempted: (
        ReasonCode.PREEMPTED,
        "gang ns/bert is preempted by gang ns/urgent, which has a better claim to these leaf cells "
        "at priority 9 in VC a; if its controller creates pods again, they wait for free leaf "
        "cells",
    ),
    gathering: (
        ReasonCode.GATHERING,
        "gang ns/bert has 2 of the 4 members that it needs to start; it is looked at when they "
        "exist: create them, or correct the gang's size",
    ),
    too_large_for_its_vc: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert needs 2 x 2 leaf cells, 4 in all; VC a has 2 that one gang can use;"
        " it starts when it is made smaller, or when VC a is promised more",
    ),
    too_large_for_the_cluster: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert needs 3 x 2 leaf cells of type A100, 6 in all; the cluster has 4 of"
        " type A100 that one gang can use; it starts when it is made smaller, or when "
        "nodes are added",
    ),
    too_wide_for_a_cell: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert has a member of 2 leaf cells, and the largest cell of VC a inside "
        "one node has 1; it starts when its members are made smaller, or when larger "
        "cells are promised",
    ),
    too_wide_for_a_node: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert has a member of 3 leaf cells, and the largest node has 2; it starts"
        " when its members are made smaller, or when larger cells are added",
    ),
    too_many_members: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert has 10001 members, and 10000 are the most; split it into several gangs",
    ),
    search_ended: (
        ReasonCode.SEARCH_ENDED,
        "gang ns/bert needs 100 x 3 and 50 x 2 leaf cells; no place was found within the "
        "steps that one decision may take, though there may be one; it starts when more "
        "leaf cells are free; a smaller gang, or one whose members are equal, takes "
        "fewer steps",
    ),
    unknown_vc: (
        ReasonCode.UNKNOWN_VC,
        "gang ns/bert asks for VC c, which does not exist; use one of a, b",
    ),
    unknown_pinned_cell: (
        ReasonCode.UNKNOWN_PINNED_CELL,
        "gang ns/bert asks for pinned cell PIN, which VC a does not have; ask for none: "
        "the VC has no pinned cells",
    ),
    unknown_leaf_type: (
        ReasonCode.UNKNOWN_LEAF_TYPE,
        "gang ns/bert asks for leaf cells of type H100, which the cluster does not have; "
        "use one of A100",
    ),
    leaf_type_of_others: (
        ReasonCode.UNKNOWN_LEAF_TYPE,
        "gang ns/bert asks for leaf cells of type H100, which VC a does not have; use one of A100",
    ),
    bad_priority: (
        ReasonCode.BAD_PRIORITY,
        "gang ns/bert asks for priority 1001; use -1 (opportunistic) to 1000",
    ),
    opportunistic_pinned: (
        ReasonCode.OPPORTUNISTIC_PINNED,
        "gang ns/bert is opportunistic and asks for pinned cell PIN; ask for no pinned "
        "cell, or for a guaranteed priority",
    ),
    bad_gang_min: (
        ReasonCode.BAD_GANG_MIN,
        "gang ns/bert has 2 members and says that 3 are enough to start; use 1 to 2",
    ),
    bad_leaf_count: (
        ReasonCode.BAD_LEAF_COUNT,
        "gang ns/bert has a member of 0 leaf cells; every member needs at least 1",
    ),
    no_members: (
        ReasonCode.BAD_LEAF_COUNT,
        "gang ns/bert lists no members; list the leaf cells of every member",
    ),
    not_listed: (
        ReasonCode.GANG_MISMATCH,
        "gang ns/bert has members of 2 x 2 leaf cells, and this pod asks for 1; list this"
        " pod's leaf cells among the gang's members",
    ),
    other_vc_and_priority: (
        ReasonCode.GANG_MISMATCH,
        "gang ns/bert has VC a, priority 0, and this pod says VC b, priority 7; all"
        " members must say the same: correct this pod, or give it another gang",
    ),
    other_sizes: (
        ReasonCode.GANG_MISMATCH,
        "gang ns/bert has members 2 x 1, and this pod says members 2 x 2; all members must say "
        "the same: correct this pod, or give it another gang; members of different sizes must all "
        "list all of them, as HiveD's annotation does (affinityGroup.members)",
    ),
    other_wishes: (
        ReasonCode.GANG_MISMATCH,
        "gang ns/bert has leaf type any, pinned cell none, gang minimum none, and "
        "this pod says leaf type A100, pinned cell PIN, gang minimum 1; all members "
        "must say the same: correct this pod, or give it another gang",
    ),
    pod_of_another_gang: (
        ReasonCode.GANG_MISMATCH,
        "pod other-0 asks for gang ns/bert and is a member of gang ns/other; a pod "
        "belongs to one gang as long as it lives",
    ),
}


@pytest.mark.parametrize(
    ("ask", "code", "sentence"),
    [(ask, code, sentence) for ask, (code, sentence) in SENTENCES.items()],
    ids=[ask.__name__ for ask in SENTENCES],
)
def test_the_sentence_stands(
    ask: Callable[[], Decision | Reason], code: ReasonCode, sentence: str
) -> None:
    reason = reason_of(ask)

    assert (reason.code, reason.text) == (code, sentence)
    assert reason.text.endswith(f"; {reason.change}")
    assert reason_of(ask) == reason


@pytest.mark.parametrize("ask", SENTENCES, ids=[ask.__name__ for ask in SENTENCES])
def test_the_sentence_is_made_of_the_code_and_the_arguments_as_a_row_stores_them(
    ask: Callable[[], Decision | Reason],
) -> None:
    reason = reason_of(ask)
    stored = json.loads(json.dumps(dict(reason.arguments)))

    assert explain(reason.code, **stored).text == reason.text


def reason_of(ask: Callable[[], Decision | Reason]) -> Reason:
    answer = ask()
    assert not isinstance(answer, Place)
    return answer if isinstance(answer, Reason) else answer.reason


def test_every_code_has_a_sentence() -> None:
    assert {code for code, _ in SENTENCES.values()} == set(ReasonCode)


def test_long_lists_are_cut() -> None:
    many_vcs = a_cluster("20 nodes x 1")
    for index in range(20):
        many_vcs.promising(f"vc-{index:02}", node=1)
    reason = reason_of(lambda: World(many_vcs).ask(a_gang("bert").in_vc("c")))

    assert reason.change == (
        "use one of vc-00, vc-01, vc-02, vc-03, vc-04, vc-05, vc-06, vc-07 and 12 more"
    )
    many_sizes = a_gang("bert").of(*range(1, 11)).in_vc("vc-00")
    assert "needs 1 x 10 and 1 x 9 and" in reason_of(lambda: World(many_vcs).ask(many_sizes)).text
    assert "1 x 3 and 2 smaller leaf cells" in (
        reason_of(lambda: World(many_vcs).ask(many_sizes)).text
    )
