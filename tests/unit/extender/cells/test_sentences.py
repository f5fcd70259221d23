"""Every sentence that the engine tells people: a change here is a change for users."""

import json
import zlib
from collections.abc import Callable

import pytest

from extender.cells.model import Decision, Place, Reason, ReasonCode
from extender.cells.wording import WORDING, explain
from tests.support.cells import refused_requests as requests
from tests.support.cells.queue_sentences import QUEUE_SENTENCES

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
    requests.moved: (
        ReasonCode.PREEMPTED,
        "gang ns/bert is moved for gang ns/large, for which leaf cells are reserved: both are "
        "opportunistic, and there is room for both once this one runs elsewhere "
        "(`defragmentation` of the Queues document); pods that its controller creates again keep "
        "its age and are expected to start at once",
    ),
    requests.minimum_run: (
        ReasonCode.MINIMUM_RUN,
        "gang ns/bert needs 2 leaf cells; it may preempt ns/young of its own VC a once that gang "
        "has run for 30 min (`preemption.minimumRun` of the Queues document); starts then, or once "
        "other gangs of the VC have ended",
    ),
    **QUEUE_SENTENCES,
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
    assert (WORDING, zlib.crc32("\n".join(texts).encode())) == (8, 1014642163), told
