"""Victims and leases at awkward moments: pods that are being bound, classes that are gone."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from extender.cells.model import MemberRequest, Preempt, Wait
from extender.cluster.journal import DecisionContext
from extender.outcomes.evictions import Evictions
from extender.upkeep.lease_expiry import expire_unused
from extender.verbs.pod_decider import PodDecider
from extender.verbs.preempt import PreemptVerb
from extender.verbs.wire import PreemptArguments
from kube.api.binder import PodRef
from kube.api.pod_ender import Ended
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError, RequestError
from policy.submission import GangKey, NodeName, PodUid
from state.log.records import RowKind
from tests.support.background import background
from tests.support.eventually import eventually
from tests.support.extender.shell import Shell
from tests.support.kube.pods import a_hived_pod, a_pod

NODES = dict.fromkeys(NodeName(f"node-{index:02}") for index in range(4))


class EndedPods(list[str]):
    """Would end pods, while the API server is there."""

    is_away = False

    async def end(self, pod: PodRef, *, why: str, is_wanted: Callable[[], bool]) -> Ended:
        if self.is_away or not is_wanted():
            raise BackendError("away, or not wanted")
        self.append(pod.name)
        return Ended.NOW


class Verbs:
    """Preempt on a cluster whose four nodes are leased to pods of priority 0."""

    def __init__(self) -> None:
        self.shell = Shell()
        self.shell.recover()
        self.being_bound: set[PodUid] = set()
        self.planned: set[PodUid] = set()
        self.enders = EndedPods()
        self.classes_are_gone = False
        self.may_suspend = False
        cluster, pods = self.shell.cluster, self.shell.pods
        self.decider = PodDecider(
            cluster=cluster,
            pods=pods,
            to_request=self._to_request,
            outcomes=self.shell.outcomes,
            clock=self.shell.clock,
        )
        self.evictions = Evictions(
            self.enders,
            pods=pods,
            outcomes=self.shell.outcomes,
            reclaims=self.shell.reclaims(),
        )
        self.preemption = PreemptVerb(
            plans_for=self.planned.__contains__,
            decider=self.decider,
            pods=pods,
            waiting=self.shell.waiting,
            cluster=cluster,
            evictions=self.evictions,
            may_suspend=lambda _: self.may_suspend,
            is_bound=self.being_bound.__contains__,
        )
        for index in range(4):
            self.shell.pods.upsert(a_hived_pod(f"low-{index}", priority=0))
            self.place(f"low-{index}")

    def _to_request(self, pod: ManagedPod) -> MemberRequest:
        if self.classes_are_gone:
            raise RequestError.at("spec.priorityClassName", "class prod is not listed")
        return self.shell.to_request(pod)

    def place(self, name: str) -> None:
        pod = self.shell.pods.get(PodUid(f"uid-of-{name}"))
        assert pod is not None
        self.decider.decide(pod, NODES, kind=RowKind.PLACEMENT)

    def preempt(self, pod: dict[str, Any], nodes: Sequence[str] = tuple(NODES)) -> Any:
        victims: dict[str, Any] = {node: {"Pods": []} for node in nodes}
        body = {"Pod": pod, "NodeNameToMetaVictims": victims}
        return self.preemption.preempt(PreemptArguments.model_validate(body))

    @property
    def ending(self) -> list[str]:
        return [one.pod.name for one in self.evictions._evictions.values()]

    def leased(self) -> list[str]:
        return sorted(str(uid) for uid, _ in self.shell.cluster.members.items())


@pytest.fixture
def verbs() -> Verbs:
    return Verbs()


def test_a_victim_that_is_not_bound_only_loses_its_place(verbs: Verbs) -> None:
    verbs.preempt(a_hived_pod("high", priority=5))
    assert verbs.ending == []
    assert len(verbs.leased()) == 3


def test_a_victim_that_is_being_bound_is_ended_like_a_bound_one(verbs: Verbs) -> None:
    verbs.being_bound.update(PodUid(f"uid-of-low-{index}") for index in range(4))
    verbs.preempt(a_hived_pod("high", priority=5))
    assert len(verbs.ending) == 1
    assert len(verbs.leased()) == 4, "what is being bound keeps its leaf cells"


@pytest.mark.parametrize("is_wanted_by_others", [False, True], ids=["spared", "ended"])
async def test_who_was_not_ended_yet_is_spared_when_nobody_wants_it_any_more(
    verbs: Verbs, monkeypatch: pytest.MonkeyPatch, *, is_wanted_by_others: bool
) -> None:
    monkeypatch.setattr("extender.outcomes.evictions._FIRST_PAUSE_SECONDS", 0)
    verbs.being_bound.update(PodUid(f"uid-of-low-{index}") for index in range(4))
    high = a_hived_pod("high", priority=5)
    verbs.shell.pods.upsert(high)
    verbs.preempt(high)
    (victim,) = verbs.ending
    verbs.enders.is_away = True
    async with background(verbs.evictions.run()):
        await asyncio.sleep(0)
        verbs.shell.pods.remove(high)
        if is_wanted_by_others:
            pod = verbs.shell.pod(victim)
            verbs.evictions.start(pod, why="half of its gang is gone", is_wanted=lambda: True)
        verbs.enders.is_away = False
        await eventually(lambda: bool(verbs.enders) or not verbs.ending)
    assert verbs.enders == ([victim] if is_wanted_by_others else [])


def test_nobody_is_ended_for_a_pod_that_the_planner_places(verbs: Verbs) -> None:
    verbs.planned.add(PodUid("uid-of-high"))
    before = verbs.shell.cluster.version
    answer = verbs.preempt(a_hived_pod("high", priority=5))
    assert answer == {"NodeNameToMetaVictims": {}}
    assert verbs.shell.cluster.version == before


def test_a_pod_whose_class_is_gone_is_passed_over_while_nobody_asks(verbs: Verbs) -> None:
    high = a_hived_pod("high", priority=5)
    verbs.shell.pods.upsert(high)
    verbs.being_bound.update(PodUid(f"uid-of-low-{index}") for index in range(4))
    verbs.preempt(high)
    (waiting,) = verbs.shell.waiting.pods.values()
    verbs.classes_are_gone = True
    verbs.preemption.preempt_unasked(waiting)
    verbs.preemption.renew(waiting)
    assert len(verbs.ending) == 1


def test_a_pod_that_gets_a_place_which_kube_scheduler_does_not_know_of_is_still_woken(
    verbs: Verbs,
) -> None:
    """The answer to preempt names no place: kube-scheduler must ask filter again."""
    high = a_hived_pod("high", priority=5)
    verbs.shell.pods.upsert(high)
    verbs.decider.decide(verbs.shell.pod("high"), NODES, kind=RowKind.PLACEMENT)
    verbs.shell.pods.remove(a_hived_pod("low-0", priority=0))
    assert verbs.preempt(high) == {"NodeNameToMetaVictims": {}}
    assert verbs.shell.cluster.has_place(PodUid("uid-of-high"))
    assert list(verbs.shell.waiting.pods) == ["uid-of-high"]
    verbs.decider.decide(verbs.shell.pod("high"), NODES, kind=RowKind.PLACEMENT)
    assert list(verbs.shell.waiting.pods) == []


def test_a_lease_that_is_being_used_does_not_end() -> None:
    shell = Shell(lease_seconds=60)
    shell.recover()
    for name in ("used", "unused"):
        pod = shell.pods.read(a_pod(name).with_gpus(8).in_vc("lab"))
        assert pod is not None
        context = DecisionContext(kind=RowKind.PLACEMENT, now=0.0)
        decision = shell.cluster.decide(
            shell.to_request(pod), candidate_nodes=NODES, context=context
        )
        assert not isinstance(decision, Wait | Preempt)

    being_bound = [PodUid("uid-of-used")]
    assert expire_unused(shell.cluster, being_bound=being_bound, now=61.0) == [
        GangKey("lab", "unused")
    ]
    assert shell.cluster.has_place(PodUid("uid-of-used"))
    assert expire_unused(shell.cluster, being_bound=(), now=122.0) == [GangKey("lab", "used")]


def test_a_pod_without_leaf_cells_preempts_as_kube_scheduler_decides(verbs: Verbs) -> None:
    victims = {"n0": {"Pods": [{"UID": "v"}], "NumPDBViolations": 1}, "n1": None}
    body = {"Pod": a_pod("web"), "NodeNameToMetaVictims": victims}
    answer = verbs.preemption.preempt(PreemptArguments.model_validate(body))
    assert answer == {"NodeNameToMetaVictims": {"n0": victims["n0"]}}
    full = {"n0": {"Pods": [{"metadata": {"uid": "v"}}], "NumPDBViolations": 1}}
    body = {"Pod": a_pod("web"), "NodeNameToVictims": full}
    assert verbs.preemption.preempt(PreemptArguments.model_validate(body)) == answer


def test_the_launcher_of_a_victim_is_ended_with_it(verbs: Verbs) -> None:
    for index in range(4):
        key = f"low-{index}"
        launcher = a_pod(f"launcher-{index}").in_gang(key, size=2).bound_to("cpu-00")
        verbs.shell.pods.upsert(launcher)
    verbs.being_bound.update(PodUid(f"uid-of-low-{index}") for index in range(4))
    verbs.preempt(a_hived_pod("high", priority=5))
    worker, launcher_name = sorted(verbs.ending, reverse=True)
    assert launcher_name == worker.replace("low", "launcher")
