"""Classes that change under running gangs."""

import asyncio
from collections.abc import Mapping

import pytest

from extender.cells.model import Decision, Place, Preempt
from extender.cells.views.listings import Stepwise, run_to_end
from extender.cluster.journal import DecisionContext
from extender.upkeep.reranker import Reranker
from kube.follow.policies import PolicySink
from policy.submission import GangKey, NodeName, PodUid
from state.log.records import RowKind
from tests.support.cells.engine_calls import check
from tests.support.extender.shell import Shell
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.events import KeptEvents
from tests.support.kube.pods import a_pod
from tests.support.policy.cluster_texts import hived_text

NODES = dict.fromkeys(NodeName(f"node-{index:02}") for index in range(4))


def classes(priorities: Mapping[str, int]) -> dict[str, object]:
    listed = sorted(priorities, key=lambda name: -priorities[name])
    entries = "\n".join(f"- {{name: {name}, cellPriority: {priorities[name]}}}" for name in listed)
    head = "apiVersion: cellgate.io/v1\nkind: Classes\nclasses:\n"
    return a_policy_map("classes", f"{head}{entries}\ndefault: {listed[0]}\n")


class Ranks:
    """A full cluster of one-pod gangs `low-N` of class `low`, and documents that change."""

    def __init__(self) -> None:
        self.policies = PolicySink(KeptEvents())
        self.shell = Shell(classes=lambda: self.policies.policy.classes)
        self.policies.upsert(classes({"high": 10, "low": 5, "oppo": -1}))
        self.shell.recover()
        self.reranker = Reranker(
            cluster=self.shell.cluster,
            pods=self.shell.pods,
            policies=self.policies,
            to_request=self.shell.to_request,
            to_bound=self.shell.to_bound,
            turn=asyncio.Lock(),
        )
        self.reranker.start()

    def change(self, **priorities: int) -> Stepwise[None]:
        """A Classes document that gangs have not followed yet."""
        self.policies.upsert(classes(priorities))
        return self.reranker.rerank()

    def use(self, **priorities: int) -> None:
        run_to_end(self.change(**priorities))

    def ask(self, name: str, class_name: str, *, gang_size: int = 1) -> Decision:
        pod = a_pod(name).with_gpus(8).in_vc("lab").of_class(class_name)
        self.shell.pods.upsert(pod.in_gang(name.split("-")[0], size=gang_size))
        found = self.shell.pods.get(PodUid(f"uid-of-{name}"))
        assert found is not None
        return self.shell.cluster.decide(
            self.shell.to_request(found),
            candidate_nodes=NODES,
            context=DecisionContext(kind=RowKind.PLACEMENT, now=0.0, applies_preemption=True),
        )

    def priorities(self) -> dict[str, int]:
        gangs = self.shell.cluster.gangs()
        return {gang.gang.name: gang.priority for gang in gangs}


@pytest.fixture
def ranks() -> Ranks:
    return Ranks()


def test_no_gang_is_preempted_while_only_some_gangs_have_their_new_priorities(
    ranks: Ranks,
) -> None:
    for name in ("a", "b", "c", "d"):
        assert isinstance(ranks.ask(name, "high"), Place)
    steps = ranks.change(high=100, low=50, oppo=-1)
    for _ in range(3):
        assert not isinstance(ranks.ask("e", "low"), Preempt), "50 is less than 100, not than 10"
        next(steps)
    run_to_end(steps)
    assert not isinstance(ranks.ask("e", "low"), Preempt)
    ranks.use(high=10, low=50, oppo=-1)
    assert isinstance(ranks.ask("e", "low"), Preempt)


def test_a_gang_counts_at_the_priority_that_its_class_has_now(ranks: Ranks) -> None:
    for name in ("a", "b", "c", "d"):
        assert isinstance(ranks.ask(name, "low"), Place)
    ranks.use(high=10, low=20, oppo=-1)
    assert set(ranks.priorities().values()) == {20}
    member = ranks.shell.cluster.members.get(PodUid("uid-of-a"))
    assert member is not None
    assert member.request.priority == 20
    assert not isinstance(ranks.ask("e", "high"), Preempt), "they rank above it by now"

    ranks.use(high=10, low=5, oppo=-1)
    assert isinstance(ranks.ask("f", "high"), Preempt)
    check(ranks.shell.cluster._engine)


def test_a_late_member_still_belongs_to_its_gang_when_its_class_has_changed(ranks: Ranks) -> None:
    assert isinstance(ranks.ask("g-0", "low", gang_size=2), Place)
    ranks.use(high=10, low=7, oppo=-1)
    assert isinstance(ranks.ask("g-1", "low", gang_size=2), Place)
    check(ranks.shell.cluster._engine)


def test_a_gang_that_borrowed_is_guaranteed_where_its_vc_has_room(ranks: Ranks) -> None:
    ranks.ask("a", "oppo")
    ranks.use(high=10, low=5, oppo=0)
    (gang,) = ranks.shell.cluster.gangs()
    assert (gang.priority, gang.is_guaranteed) == (0, True)

    ranks.use(high=10, low=5, oppo=-1)
    (gang,) = ranks.shell.cluster.gangs()
    assert (gang.priority, gang.is_guaranteed) == (-1, False)
    check(ranks.shell.cluster._engine)


def test_a_refusal_is_not_repeated_once_classes_have_changed(ranks: Ranks) -> None:
    before = ranks.shell.cluster.version
    ranks.use(high=11, low=5, oppo=-1)
    assert ranks.shell.cluster.version > before


def test_documents_are_judged_by_the_cluster_document_in_force(ranks: Ranks) -> None:
    identity = "apiVersion: cellgate.io/v1\nkind: Identity\nvcs: {nobodys: {users: [dave]}}\n"
    ranks.policies.upsert(a_policy_map("identity", identity))
    assert list(ranks.policies.problems) == []
    ranks.policies.use_cluster_file(hived_text(lab=4), path="cluster.yaml")
    told = [problem.message for problem in ranks.policies.problems]
    assert told == ['the Cluster document has no VC "nobodys"']


def test_a_gang_of_a_class_that_is_gone_goes_on(ranks: Ranks) -> None:
    bound = a_pod("a").with_gpus(8).in_vc("lab").of_class("low").bound_to("node-00")
    ranks.shell.pods.upsert(bound)
    waiting = ranks.ask("b", "low")
    assert isinstance(waiting, Place)
    ranks.use(high=10, oppo=-1)
    assert ranks.shell.cluster.placement(PodUid("uid-of-a")) is not None
    assert GangKey("lab", "b") in {gang.gang for gang in ranks.shell.cluster.gangs()}
    check(ranks.shell.cluster._engine)
