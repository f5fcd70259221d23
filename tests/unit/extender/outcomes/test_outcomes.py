"""Every decision passes one place: metrics, Events and the list of what waits agree."""

import pytest

from extender.cells.model import Decision, Place, Preempt, Reason, ReasonCode, Wait
from extender.cells.wording import explain
from extender.cluster.journal import DecisionContext
from extender.inspection.hived_views import show_group
from extender.outcomes.outcomes import EndedBy
from policy.submission import GangKey, NodeName
from state.log.records import RowKind
from tests.support.extender.gang_pods import bound, member
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder, a_hived_pod
from tests.support.policy.cluster_texts import hived_text

NODES = [NodeName(f"node-{index:02}") for index in range(4)]
BERT = GangKey("lab", "bert")


@pytest.fixture
def shell() -> Shell:
    shell = Shell()
    shell.recover()
    return shell


def add(shell: Shell, pod: PodBuilder) -> None:
    shell.pods.upsert(pod)


def because(code: ReasonCode) -> Reason:
    return Reason(code=code, arguments={}, text=f"because {code}", change="more nodes")


def refusal(shell: Shell, name: str, code: ReasonCode) -> Wait:
    return Wait(request=shell.to_request(shell.pod(name)), reason=because(code))


def refuse(shell: Shell, name: str, code: ReasonCode = ReasonCode.NO_ROOM) -> None:
    shell.outcomes.pod_decided(shell.pod(name), refusal(shell, name, code), offered=NODES)


def gang_waits(shell: Shell, name: str, code: ReasonCode = ReasonCode.NO_ROOM) -> None:
    shell.outcomes.gang_waits(BERT, shell.pod(name), because(code))


def decide(shell: Shell, name: str, *, applies_preemption: bool = True) -> Decision:
    context = DecisionContext(
        kind=RowKind.PLACEMENT, now=0.0, applies_preemption=applies_preemption
    )
    request = shell.to_request(shell.pod(name))
    return shell.cluster.decide(request, candidate_nodes=dict.fromkeys(NODES), context=context)


def waiting(shell: Shell) -> list[tuple[str, str]]:
    return [(entry.pod.name, entry.reason.code) for entry in shell.waiting]


def test_a_pod_is_told_once_per_reason(shell: Shell) -> None:
    add(shell, member("a", gang="bert"))
    for code in (ReasonCode.NO_ROOM, ReasonCode.NO_ROOM, ReasonCode.VC_FULL):
        refuse(shell, "a", code)
    assert shell.events.said("Waiting") == [("a", "because no-room"), ("a", "because vc-full")]
    assert waiting(shell) == [("a", "vc-full")]


def test_what_is_wrong_with_one_nominated_node_is_no_news(shell: Shell) -> None:
    add(shell, member("a", gang="bert"))
    refuse(shell, "a")
    one = refusal(shell, "a", ReasonCode.BAD_CELLS)
    shell.outcomes.pod_decided(shell.pod("a"), one, offered=NODES[:1])
    assert waiting(shell) == [("a", "no-room")]


def test_a_member_that_runs_does_not_carry_what_others_wait_for(shell: Shell) -> None:
    for name in "ab":
        add(shell, member(name, gang="bert"))
    gang_waits(shell, "a")
    assert isinstance(decide(shell, "a"), Place)
    gang_waits(shell, "b")
    assert shell.events.said("Waiting") == [("a", "because no-room"), ("b", "because no-room")]
    assert waiting(shell) == [("b", "no-room")]


def test_a_gang_is_told_once_per_reason_whichever_member_is_named(shell: Shell) -> None:
    for name in "ab":
        add(shell, member(name, gang="bert"))
        gang_waits(shell, name)
    assert shell.events.said("Waiting") == [("a", "because no-room")]
    gang_waits(shell, "b", code=ReasonCode.VC_FULL)
    assert waiting(shell) == [("b", "vc-full")]
    assert shell.waiting.of_pod(shell.pod("a")) is shell.waiting.gangs[BERT]


def test_a_gang_shows_the_present_numbers_and_is_told_once(shell: Shell) -> None:
    add(shell, member("a", gang="bert"))
    for room in (1, 0):
        reason = explain(ReasonCode.NO_ROOM, gang="lab/bert", needs=((2, 8),), members=2, room=room)
        shell.outcomes.gang_waits(BERT, shell.pod("a"), reason)
        shell.now += 60
    entry = shell.waiting.gangs[BERT]
    assert "room for 0 of 2 members now" in entry.reason.text
    assert len(shell.events.said("Waiting")) == 1


def test_a_pod_that_waited_is_told_its_place(shell: Shell) -> None:
    add(shell, member("a", gang="bert", size=1))
    for expected in (0, 1):
        decision = decide(shell, "a")
        shell.outcomes.pod_decided(shell.pod("a"), decision, offered=NODES)
        assert len(shell.events.said("Placed")) == expected, "only if it waited"
        refuse(shell, "a")
    add(shell, bound("a", "node-00", gang="bert", size=1))
    assert waiting(shell) == []


def test_a_gang_that_waited_is_told_its_place(shell: Shell) -> None:
    add(shell, member("a", gang="bert", size=1))
    gang_waits(shell, "a")
    decide(shell, "a")
    shell.outcomes.gang_resumed(BERT)
    ((name, message),) = shell.events.said("Placed")
    assert (name, message) == ("a", "placed on node node-00, leaf cells 0, 1, 2, 3, 4, 5, 6, 7")
    assert waiting(shell) == []


def test_a_gang_that_waits_for_something_else_now_has_no_place(shell: Shell) -> None:
    add(shell, member("a", gang="bert"))
    gang_waits(shell, "a")
    shell.outcomes.gang_resumed(BERT)
    assert (waiting(shell), shell.events.said("Placed")) == ([], [])


def test_an_entry_lasts_as_long_as_pods_of_the_gang(shell: Shell) -> None:
    for name in "ab":
        add(shell, member(name, gang="bert"))
    gang_waits(shell, "a")
    shell.pods.remove(member("a"))
    assert waiting(shell) == [("b", "no-room")]
    shell.pods.remove(member("b"))
    assert waiting(shell) == []


def test_an_entry_goes_with_its_pod(shell: Shell) -> None:
    add(shell, member("a", gang="bert"))
    refuse(shell, "a")
    shell.pods.remove(member("a"))
    assert waiting(shell) == []


@pytest.mark.parametrize(
    ("victim_priority", "cause"), [(-1, "borrowed"), (0, "priority")], ids=["borrowed", "priority"]
)
def test_a_preemption_is_counted_once_with_its_cause(
    shell: Shell, victim_priority: int, cause: str
) -> None:
    for index in range(4):
        add(shell, a_hived_pod(f"low-{index}", priority=victim_priority))
        assert isinstance(decide(shell, f"low-{index}"), Place)
    add(shell, a_hived_pod("high", priority=5))
    for _ in range(3):
        decision = decide(shell, "high")
        assert isinstance(decision, Preempt)
        shell.outcomes.decided(decision, ended_by=EndedBy.CELLGATE)
    assert shell.metrics.preemptions.labels("cellgate", cause)._value.get() == 1
    assert shell.metrics.decisions.labels("preempting")._value.get() == 3


def test_a_preemption_that_is_only_possible_is_not_counted(shell: Shell) -> None:
    for index in range(4):
        add(shell, a_hived_pod(f"low-{index}", priority=0))
        decide(shell, f"low-{index}")
    add(shell, a_hived_pod("high", priority=5))
    decision = decide(shell, "high", applies_preemption=False)
    shell.outcomes.pod_decided(shell.pod("high"), decision, offered=NODES)
    assert shell.metrics.preemptions.labels("cellgate", "priority")._value.get() == 0
    (entry,) = shell.waiting.pods.values()
    assert (entry.asks_to_preempt, len(entry.victims)) == (True, 1)


def test_a_gang_that_is_downgraded_is_told_by_whom(shell: Shell) -> None:
    shell.cluster.use_document(hived_text(lab=1))
    add(shell, a_hived_pod("low", priority=0, is_lazy=True))
    decide(shell, "low")
    add(shell, a_hived_pod("high", priority=5))
    decision = decide(shell, "high")
    shell.outcomes.decided(decision)
    (low,) = [gang for gang in shell.cluster.gangs() if gang.downgraded_by is not None]
    at = shell.outcomes.downgrades.get(low.gang)
    shown = show_group(low, name="low", leaves=None, downgraded_at=at)["status"]
    assert at is not None
    assert shown["lazyPreemptionStatus"] == {
        "preemptor": "high",
        "preemptionTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    ((name, message),) = shell.events.said("Downgraded")
    assert name == "low"
    assert "gang lab/high has a higher priority" in message


def test_two_thousand_gangs_that_wait_cost_nothing_until_their_reason_changes(shell: Shell) -> None:
    """The list is not touched, and no Event is made: an unchanged reason is dropped at the door."""
    for index in range(2_000):
        add(shell, member(f"p{index}", gang=f"g{index}", size=1))
        gang = GangKey("lab", f"g{index}")
        for _ in range(2):
            pod = shell.pod(f"p{index}")
            shell.outcomes.gang_waits(gang, pod, because(ReasonCode.NO_ROOM))
    assert (len(shell.waiting), len(shell.events)) == (2_000, 2_000)
