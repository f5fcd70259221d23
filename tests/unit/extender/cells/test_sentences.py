"""Every sentence that the engine tells people: a change here is a change for users."""

import json
import zlib
from collections.abc import Callable

import pytest

from extender.cells.model import Decision, Place, Reason, ReasonCode
from extender.cells.wording import WORDING, explain
from tests.support.cells import refused_requests as requests
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.cells.engine_world import EngineWorld

SENTENCES: dict[Callable[[], Decision | Reason], tuple[ReasonCode, str]] = {
    requests.no_room: (
        ReasonCode.NO_ROOM,
        "gang ns/bert needs 2 x 2 leaf cells of type A100, each member on one node; room for 1 of "
        "2 members now; starts once enough leaf cells are free",
    ),
    requests.vc_full: (
        ReasonCode.VC_FULL,
        "gang ns/bert needs 1 leaf cell in one cell of VC a; 0 of the 2 leaf "
        "cells promised to VC a are unused; starts once other gangs of VC a have ended, or with a "
        "higher priority than theirs",
    ),
    requests.pinned_full: (
        ReasonCode.VC_FULL,
        "gang ns/bert needs 1 leaf cell in one node of pinned cell PIN; 0 of the "
        "2 leaf cells of pinned cell PIN are unused; starts once other gangs of VC a have ended, "
        "or with a higher priority than theirs",
    ),
    requests.vc_full_in_all_chains: (
        ReasonCode.VC_FULL,
        "gang ns/bert needs 2 leaf cells in one cell of VC a; 1 of the 2 leaf cells promised to VC "
        "a is unused (in chain one; no other chain has more); starts once other gangs of VC a have "
        "ended, or with a higher priority than theirs",
    ),
    requests.vc_without_promises: (
        ReasonCode.VC_FULL,
        "gang ns/bert has a guaranteed class, but VC a was promised no leaf cells; use an "
        "opportunistic class, or another VC (label `cellgate.io/vc`)",
    ),
    requests.bad_cells: (
        ReasonCode.BAD_CELLS,
        "gang ns/bert needs 2 x 2 leaf cells; 2 of the leaf cells that it could use are bad, on "
        "node n0; starts once these nodes are healthy again or other gangs have ended",
    ),
    requests.quarantined: (
        ReasonCode.BAD_CELLS,
        "gang ns/bert needs 3 x 2 leaf cells; 3 of the leaf cells that it could use are bad, on "
        "nodes n2 (in quarantine), n0; starts once these nodes are healthy again or other gangs "
        "have ended; an admin ends a quarantine by removing the annotation "
        "`cellgate.io/quarantine`",
    ),
    requests.no_room_by_foreign_use: (
        ReasonCode.NO_ROOM,
        "gang ns/bert needs 2 x 2 leaf cells, each member on one node; room for 1 of 2 members "
        "now; 2 of the leaf cells that it could use are in use by 1 pod that Cellgate did not "
        "place: ns/f-0 of alice on node n0 (2); starts once enough leaf cells are free; an admin "
        "can end these pods",
    ),
    requests.foreign_use: (
        ReasonCode.FOREIGN_USE,
        "gang ns/bert needs 2 x 2 leaf cells; 4 of the leaf cells that it could use are in use by "
        "2 pods that Cellgate did not place: ns/on-n0-0 of alice on node n0 (2), ns/on-n1-0 of "
        "alice on node n1 (2); starts once enough of these leaf cells are free; an admin can end "
        "these pods, and with `foreign: reclaim` in the Cluster document Cellgate ends those that "
        "it may end",
    ),
    requests.foreign_use_and_bad_cells: (
        ReasonCode.FOREIGN_USE,
        "gang ns/bert needs 2 x 2 leaf cells; 1 of the leaf cells that it could use is in use by "
        "1 pod that Cellgate did not place, and 2 are bad: ns/f-0 of alice on node n0 (1); starts "
        "once enough of these leaf cells are free; an admin can end these pods, and with "
        "`foreign: reclaim` in the Cluster document Cellgate ends those that it may end",
    ),
    requests.reclaimed: (
        ReasonCode.PREEMPTED,
        "gang ns/bert uses leaf cells that Cellgate did not give it, and gang ns/high (priority 9 "
        "in VC a), which was promised leaf cells, needs them; the Cluster document says "
        "`foreign: reclaim`; create its pods without spec.nodeName, and while the webhook answers: "
        "then they wait for free leaf cells",
    ),
    requests.no_candidate: (
        ReasonCode.NODE_NOT_OFFERED,
        "gang ns/bert needs 2 leaf cells; there is room, but not on nodes that its pods may "
        "use now; check the pods' node selectors, affinity and tolerations, and the nodes' free "
        "CPU and memory",
    ),
    requests.not_offered: (
        ReasonCode.NODE_NOT_OFFERED,
        "gang ns/bert has a place on node n0, but kube-scheduler does not offer this node to the "
        "pod; check the node's taints and the pod's node selector",
    ),
    requests.lacks_cpu: (
        ReasonCode.LACKS_RESOURCES,
        "gang ns/bert needs 2 x 2 leaf cells and 1.5 CPUs for each member; there are leaf cells "
        "for it, but 3 of the 4 nodes that it may use lack cpu, such as n0 with 0.5 CPUs free of "
        "8 CPUs; starts once pods on these nodes have ended, or with smaller requests",
    ),
    requests.lacks_space: (
        ReasonCode.LACKS_RESOURCES,
        "gang ns/bert needs 2 x 2 leaf cells; there are leaf cells for it, but 3 of the 4 nodes "
        "that it may use lack room for as many members as they have leaf cells for, such as n0; "
        "starts once pods on these nodes have ended, or with smaller requests",
    ),
    requests.lacks_port: (
        ReasonCode.LACKS_RESOURCES,
        "gang ns/bert needs 2 x 2 leaf cells; there are leaf cells for it, but 3 of the 4 nodes "
        "that it may use lack host port 80, such as n0; starts once pods on these nodes have "
        "ended, or with smaller requests",
    ),
    requests.gang_full: (
        ReasonCode.GANG_FULL,
        "gang ns/bert already has its only member with 2 leaf cells; starts once a member has "
        "ended; check `cellgate.io/gang-size`",
    ),
    requests.members_ending: (
        ReasonCode.MEMBERS_ENDING,
        "gang ns/bert still has 1 earlier pod that is terminating; starts once it has ended",
    ),
    requests.being_preempted: (
        ReasonCode.BEING_PREEMPTED,
        "gang ns/bert is being preempted by ns/urgent; continues if the preemption is withdrawn, "
        "otherwise starts again once there is room",
    ),
    requests.preempting_one: (
        ReasonCode.PREEMPTING,
        "gang ns/bert (priority 9 in VC a) preempts 1 gang; starts once ns/low has ended",
    ),
    requests.preempting_two: (
        ReasonCode.PREEMPTING,
        "gang ns/bert (priority 9 in VC a) preempts 2 gangs; starts once ns/low, ns/lower have "
        "ended",
    ),
    requests.preempted: (
        ReasonCode.PREEMPTED,
        "gang ns/bert is preempted by gang ns/urgent (priority 9 in VC a): a guaranteed gang "
        "preempts opportunistic gangs, and gangs of its own VC with a lower priority; pods that "
        "its controller creates again wait for free leaf cells",
    ),
    requests.preempted_as_opportunistic: (
        ReasonCode.PREEMPTED,
        "gang ns/bert is preempted by gang ns/high (priority 9 in VC a): it is opportunistic, and "
        "a guaranteed gang preempts such gangs; pods that its controller creates again wait for "
        "free leaf cells",
    ),
    requests.preempted_below_its_priority: (
        ReasonCode.PREEMPTED,
        "gang ns/bert (priority 3) is preempted by gang ns/high (priority 9 in VC a): a guaranteed "
        "gang preempts gangs of its own VC with a lower priority; pods that its controller creates "
        "again wait for free leaf cells",
    ),
    requests.unplanned: (
        ReasonCode.UNPLANNED,
        "gang ns/bert has not been planned yet; planned in its turn, usually within seconds",
    ),
    requests.reserved: (
        ReasonCode.RESERVED,
        "gang ns/bert needs 2 leaf cells; the leaf cells that it could use are reserved for "
        "gang ns/large; starts once that gang has started or other leaf cells are free, or before "
        "that gang if it is expected to end in time: set a limit with `activeDeadlineSeconds`",
    ),
    requests.gathering: (
        ReasonCode.GATHERING,
        "gang ns/bert is incomplete; scheduled once all members exist (2 of 4 so far); check "
        "`cellgate.io/gang-size`",
    ),
    requests.gathering_a_minimum: (
        ReasonCode.GATHERING,
        "gang ns/bert is incomplete; scheduled once enough members exist (2 of 3 so far); check "
        "`cellgate.io/gang-min`",
    ),
    requests.held_at_binding: (
        ReasonCode.HELD_AT_BINDING,
        "gang ns/bert is held at binding; bound once 4 members have passed kube-scheduler's checks "
        "(2 so far)",
    ),
    requests.given_up_at_binding: (
        ReasonCode.BINDING_GIVEN_UP,
        "no member of gang ns/bert is bound now: kube-scheduler refuses the node of a member; "
        "planned again; `kubectl describe pod` shows what kube-scheduler says about each member",
    ),
    requests.too_large_for_its_vc: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert needs 2 x 2 leaf cells, 4 in total; one gang can use at most 2 of VC a; "
        "starts once it is smaller or VC a is promised more cells",
    ),
    requests.too_large_for_a_cut_vc: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert needs 2 x 2 leaf cells, 4 in total; one gang can use at most 2 of VC a; of "
        "the promise to VC a, the nodes back only 1 of 3 cells of level node and type gpu; starts "
        "once it is smaller or VC a is promised more cells, or once the nodes back all of the "
        "promise",
    ),
    requests.cut_vc_full: (
        ReasonCode.VC_FULL,
        "gang ns/bert needs 1 leaf cell in one cell of VC a; 0 of the 2 leaf "
        "cells promised to VC a are unused; of the promise to VC a, the nodes back only 1 of 3 "
        "cells of level node and type gpu; starts once other gangs of VC a have ended, or with a "
        "higher priority than theirs, or once the nodes back all of the promise",
    ),
    requests.too_large_for_the_cluster: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert needs 3 x 2 leaf cells of type A100, 6 in total; one gang can use at most 4 "
        "of the cluster; starts once it is smaller or nodes are added",
    ),
    requests.too_wide_for_a_cell: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert has a member with 2 leaf cells; the largest cell of VC a within one node has "
        "1; starts once its members are smaller or larger cells are promised",
    ),
    requests.too_wide_for_a_node: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert has a member with 3 leaf cells; the largest node has 2; starts once its "
        "members are smaller or larger nodes are added",
    ),
    requests.too_many_members: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert has 10001 members; the limit is 10000; split it into several gangs",
    ),
    requests.search_ended: (
        ReasonCode.SEARCH_ENDED,
        "gang ns/bert needs 100 x 3 and 50 x 2 leaf cells; the search reached its step limit "
        "without finding a place, although one may exist; starts once more leaf cells are free; a "
        "smaller gang or equal members would need fewer steps",
    ),
    requests.unknown_vc: (
        ReasonCode.UNKNOWN_VC,
        "gang ns/bert asks for VC c, which does not exist; use one of a, b",
    ),
    requests.unknown_pinned_cell: (
        ReasonCode.UNKNOWN_PINNED_CELL,
        "gang ns/bert asks for pinned cell PIN, which VC a does not have; ask for no pinned cell: "
        "the VC has none",
    ),
    requests.unknown_leaf_type: (
        ReasonCode.UNKNOWN_LEAF_TYPE,
        "gang ns/bert asks for leaf cells of type H100, which the cluster does not have; "
        "use one of A100",
    ),
    requests.leaf_type_of_others: (
        ReasonCode.UNKNOWN_LEAF_TYPE,
        "gang ns/bert asks for leaf cells of type H100, which VC a does not have; use one of A100",
    ),
    requests.bad_priority: (
        ReasonCode.BAD_PRIORITY,
        "gang ns/bert asks for priority 1001; use a priority from -1 (opportunistic) to 1000",
    ),
    requests.opportunistic_pinned: (
        ReasonCode.OPPORTUNISTIC_PINNED,
        "gang ns/bert is opportunistic and asks for pinned cell PIN; use a guaranteed priority, or "
        "ask for no pinned cell",
    ),
    requests.bad_gang_min: (
        ReasonCode.BAD_GANG_MIN,
        "gang ns/bert has 2 members, but needs at least 3 to start; use a minimum from 1 to 2",
    ),
    requests.bad_leaf_count: (
        ReasonCode.BAD_LEAF_COUNT,
        "gang ns/bert has a member with 0 leaf cells; every member needs at least 1",
    ),
    requests.no_members: (
        ReasonCode.BAD_LEAF_COUNT,
        "gang ns/bert lists no members; list the leaf cells of every member",
    ),
    requests.not_listed: (
        ReasonCode.GANG_MISMATCH,
        "gang ns/bert lists members with 2 x 2 leaf cells; this pod asks for 1; list this pod's "
        "leaf cells among the gang's members",
    ),
    requests.other_vc_and_priority: (
        ReasonCode.GANG_MISMATCH,
        "a member of gang ns/bert has VC b, priority 7, but the first member has VC a, priority 0; "
        "use the same values for all members, or another gang name for this one",
    ),
    requests.other_sizes: (
        ReasonCode.GANG_MISMATCH,
        "a member of gang ns/bert has member sizes 2 x 2, but the first member has member sizes "
        "2 x 1; use the same values for all members, or another gang name for this one; if members "
        "differ in size, list all of them in HiveD's annotation",
    ),
    requests.other_wishes: (
        ReasonCode.GANG_MISMATCH,
        "a member of gang ns/bert has leaf type A100, pinned cell PIN, gang minimum 1, but the "
        "first member has leaf type any, pinned cell none, gang minimum none; use the same values "
        "for all members, or another gang name for this one",
    ),
    requests.pod_of_another_gang: (
        ReasonCode.GANG_MISMATCH,
        "the pod with UID other-0 asks for gang ns/bert, but is a member of gang ns/other; create "
        "another pod: a pod cannot change its gang",
    ),
    requests.over_quota: (
        ReasonCode.QUOTA,
        "gang ns/bert waits for quota of group vision; starts once the limits of the group, and of "
        "the user in it, have room for 16 more leaf cells",
    ),
    requests.over_quota_of_unknown_size: (
        ReasonCode.QUOTA,
        "gang ns/bert waits for quota of group vision; starts once the limits of the group, and of "
        "the user in it, have room for the gang",
    ),
    requests.other_gate: (
        ReasonCode.OTHER_GATE,
        "pod ns/bert-0 has a scheduling gate of another controller; scheduled once that controller "
        "has removed its gate",
    ),
    requests.no_pod_group: (
        ReasonCode.NO_POD_GROUP,
        "gang ns/bert has no PodGroup that gives its size; create the PodGroup, or correct its "
        "name in the pods",
    ),
    requests.no_scheduler: (
        ReasonCode.NO_SCHEDULER,
        "gang ns/bert names the scheduler mine, which has asked about no pod: it does not run, or "
        "does not use Cellgate's extender; create the pods without `schedulerName`, or start that "
        "scheduler",
    ),
    requests.held_by_its_owner: (
        ReasonCode.HELD_BY_USER,
        "its owner alice holds gang ns/bert: data is copied; released once the annotation "
        "`cellgate.io/hold` is removed from its pods; the owner, an admin of the owner's group or "
        "a policy admin may lift that",
    ),
    requests.held_by_an_admin: (
        ReasonCode.HELD_BY_ADMIN,
        "the group's admin carol holds gang ns/bert: maintenance; released once gang ns/gpt has "
        "ended, or once the annotation `cellgate.io/hold` is removed from its pods; an admin of "
        "the owner's group or a policy admin may lift that",
    ),
    requests.unknown_class: (
        ReasonCode.UNKNOWN_CLASS,
        "gang ns/bert is not valid: class x is not in the document; add the class to the document, "
        "or create the pods again with another class",
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


def test_another_sentence_is_another_version_of_the_wording() -> None:
    texts = sorted(text for _, text in SENTENCES.values())
    told = "raise WORDING if a sentence has changed; a sentence that is new needs no new version"
    assert (WORDING, zlib.crc32("\n".join(texts).encode())) == (7, 227400799), told


def test_long_lists_are_cut() -> None:
    many_vcs = a_cluster("20 nodes x 1")
    for index in range(20):
        many_vcs.promising(f"vc-{index:02}", node=1)
    reason = reason_of(lambda: EngineWorld(many_vcs).ask(a_gang("bert").in_vc("c")))

    assert reason.change == (
        "use one of vc-00, vc-01, vc-02, vc-03, vc-04, vc-05, vc-06, vc-07 and 12 more"
    )
    many_sizes = a_gang("bert").of(*range(1, 11)).in_vc("vc-00")
    assert (
        "needs 1 x 10 and 1 x 9 and"
        in reason_of(lambda: EngineWorld(many_vcs).ask(many_sizes)).text
    )
    assert "1 x 3 and 2 smaller leaf cells" in (
        reason_of(lambda: EngineWorld(many_vcs).ask(many_sizes)).text
    )
