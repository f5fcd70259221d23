"""Policy documents: which changes are refused."""

import asyncio

import pytest

from kube.follow.priority_classes import PriorityClassSink
from policy.cluster.document import LiveNode
from policy.submission import NodeName
from service.clock import Clock
from state.nodes.node_facts import NodeFacts
from state.nodes.seen_nodes import SeenNodes
from tests.support.kube.config_maps import a_policy_map
from tests.support.policy.cluster_texts import hived_text
from tests.support.policy.documents import CLASSES_TEXT, HEAD
from tests.support.state.charges import TERM
from tests.support.twins.seen_nodes import MemorySeenNodes
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Responding, Webhook
from webhook.records.limit_changes import LimitChanges
from webhook.reviews import policy_reviews
from webhook.reviews.policy_reviews import PolicyReviews
from webhook.wire import ReviewResponse

CLUSTER = """
apiVersion: cellgate.io/v1
kind: Cluster
nodeTopology:
- {levels: [kubernetes.io/hostname], leafResource: nvidia.com/gpu, leafTypeLabel: type}
virtualClusters: {default: {}}
"""


def _reviews(webhook: Webhook, *, seen: SeenNodes | None = None, **values: int) -> Responding:
    priorities = PriorityClassSink()
    priorities.replace(
        [{"metadata": {"name": name}, "value": value} for name, value in values.items()]
    )
    ledger = webhook.world.ledger
    return Responding(
        PolicyReviews(
            webhook.sink,
            priorities=priorities,
            ledger=ledger,
            nodes=NodeFacts(
                seen, document=lambda: webhook.sink.policy.cluster, monotonic=lambda: 0.0
            ),
            admins=["root"],
            changes=LimitChanges(log=webhook.log, events=webhook.events, clock=Clock()),
        )
    )


async def test_classes_must_be_in_the_order_of_their_priority_classes() -> None:
    document = a_policy_map("classes", CLASSES_TEXT)
    good = _reviews(Webhook(), prod=3, test=2, oppo=1)
    assert (await good.validate(a_review(document, user="root"))).is_allowed
    bad = await _reviews(Webhook(), prod=1, test=2).validate(a_review(document, user="root"))
    assert bad.message == (
        "ConfigMap classes: classes[1].name: the value of PriorityClass test is 2, not lower than "
        "that of prod, which is 1"
    )


async def test_the_cluster_document_stays_while_gangs_run() -> None:
    webhook = Webhook({"cluster": CLUSTER})
    deletion = a_review(None, old=a_policy_map("cluster", CLUSTER), user="root")
    reviews = _reviews(webhook)
    assert (await reviews.validate(deletion)).is_allowed
    await webhook.world.replica().admit(webhook.world.ask())
    refused = await reviews.validate(deletion)
    assert (
        refused.message == "the Cluster document cannot be deleted while gangs run (1 gang charged)"
    )
    webhook.world.ledger.is_away = True
    assert not (await reviews.validate(deletion)).is_allowed


async def test_the_cluster_document_stays_while_the_ledger_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    webhook = Webhook({"cluster": CLUSTER})
    monkeypatch.setattr(webhook.world.ledger, "holdings", hang)
    monkeypatch.setattr(policy_reviews, "_LEDGER_SECONDS", 0.01)
    deletion = a_review(None, old=a_policy_map("cluster", CLUSTER), user="root")
    refused = await _reviews(webhook).validate(deletion)
    assert refused.message == "quota database unavailable: whether gangs run is unknown; try again"


def _promising(cells: int) -> str:
    promise = f"{{leafType: A100, level: kubernetes.io/hostname, cellNumber: {cells}}}"
    return CLUSTER.replace("default: {}", f"default: {{virtualCells: [{promise}]}}")


async def _four_nodes() -> MemorySeenNodes:
    seen = MemorySeenNodes()
    nodes = [
        LiveNode(
            name=NodeName(f"n{index}"), labels={"type": "A100"}, leaf_counts={"nvidia.com/gpu": 8}
        )
        for index in range(4)
    ]
    await seen.observe(nodes, gone=[], term=TERM)
    return seen


async def test_a_promise_beyond_the_nodes_is_refused_only_if_this_change_raises_it() -> None:
    seen, webhook = await _four_nodes(), Webhook({"cluster": _promising(2)})
    reviews = _reviews(webhook, seen=seen)

    async def apply(cells: int) -> ReviewResponse:
        return await reviews.validate(
            a_review(a_policy_map("cluster", _promising(cells)), user="root")
        )

    refused = await apply(5)
    assert refused.message == (
        "ConfigMap cluster: virtualClusters.default.virtualCells[0].cellNumber: 5 cells of level "
        '"kubernetes.io/hostname" promised, but nodes of leaf type "A100" seen in the last 7 days '
        'do not back it: of level "kubernetes.io/hostname", 5 are promised in all and 4 can be '
        "given; lower it, or declare nodes that will be added under expectedNodes"
    )
    assert (await apply(4)).is_allowed
    webhook.sink.upsert(a_policy_map("cluster", _promising(9)))  # while we were down
    assert (await apply(9)).is_allowed
    assert (await apply(8)).is_allowed
    assert not (await apply(10)).is_allowed


def _reserving(members: int) -> str:
    return f"""apiVersion: cellgate.io/v1
kind: Queues
levels: [{{name: all, strategy: fifo}}]
reservations:
- {{name: nightly, vc: default, members: {members}, leafCells: 8, who: {{users: [ann]}},
   from: "2026-11-20T20:00:00Z", until: "2026-11-21T06:00:00Z"}}
"""


async def test_an_advance_reservation_beyond_the_promise_is_refused() -> None:
    seen, webhook = await _four_nodes(), Webhook({"cluster": _promising(2)})
    reviews = _reviews(webhook, seen=seen)
    refused = await reviews.validate(a_review(a_policy_map("queues", _reserving(3)), user="root"))
    assert refused.message == (
        "ConfigMap queues: reservations[0]: reservations at 2026-11-20T20:00:00Z need 24 leaf "
        'cells (nightly 24), but VC "default" was promised 16; ask for less, for another time, or '
        "raise the promise in the Cluster document"
    )
    document = a_review(a_policy_map("queues", _reserving(2)), user="root")
    assert (await reviews.validate(document)).is_allowed
    seen.fails = True
    assert (await reviews.validate(document)).warnings


async def test_while_nodes_are_unknown_promises_are_not_compared_and_that_is_said() -> None:
    document = a_review(a_policy_map("cluster", _promising(500)), user="root")
    assert (await _reviews(Webhook(), seen=MemorySeenNodes()).validate(document)).is_allowed
    seen = await _four_nodes()
    seen.fails = True
    answer = await _reviews(Webhook(), seen=seen).validate(document)
    assert answer.is_allowed
    assert answer.warnings == [
        "cellgate: the promises were not compared with the nodes, because the database does not "
        "answer"
    ]


@pytest.mark.parametrize("user", ["root", "alice"])
async def test_other_config_maps_are_not_our_business(user: str) -> None:
    other = {"metadata": {"name": "x"}, "data": {"policy.yaml": "nonsense"}}
    assert (await _reviews(Webhook()).validate(a_review(other, user=user))).is_allowed


@pytest.mark.parametrize("deletes", [True, False], ids=["deleted", "replaced"])
async def test_what_cannot_be_read_is_not_for_a_groups_admin_to_change(deletes: bool) -> None:
    """It got in while we were down: the limits of before are in force, and would be gone."""
    groups = "[{name: vision, admins: [carol], limits: {leafCells: %d}}]"
    head = "apiVersion: cellgate.io/v1\nkind: Quotas\ngroups: "
    webhook = Webhook({"quotas": head + groups % 4})
    broken = a_policy_map("quotas", "nonsense")
    webhook.sink.upsert(broken)
    after = None if deletes else a_policy_map("quotas", head + groups % 400)
    reviews = _reviews(webhook)
    refused = await reviews.validate(a_review(after, old=broken, user="carol"))
    assert refused.message == (
        "the stored document cannot be parsed, so only a policy admin may change it"
    )
    assert (await reviews.validate(a_review(after, old=broken, user="root"))).is_allowed


async def test_what_has_no_effect_is_told_at_apply() -> None:
    reviews = _reviews(Webhook(), seen=await _four_nodes())
    unserved = CLUSTER.replace("nvidia.com/gpu", "google.com/tpu")
    answer = await reviews.validate(a_review(a_policy_map("cluster", unserved), user="root"))
    assert (answer.is_allowed, list(answer.warnings)) == (
        True,
        [
            'cellgate: nodeTopology[0].leafResource: "google.com/tpu" is not served: cells are '
            "built of amd.com/gpu, nvidia.com/gpu only"
        ],
    )
    settings = "".join(f"strange{place}: 1\n" for place in range(12))
    hived = f"{settings}physicalCluster: {{}}\n"
    answer = await reviews.validate(a_review(a_policy_map("cluster", hived), user="root"))
    assert (len(answer.warnings), answer.warnings[-1]) == (
        11,
        "cellgate: 2 more warnings; see cellgate check",
    )


async def test_a_rule_that_matches_no_gang_is_told_at_kubectl_apply() -> None:
    webhook = Webhook(policies={"cluster": hived_text(lab=4)})
    text = f"{HEAD}Rules\nrules: [{{vc: '^labs$', then: fail}}]"
    answer = await _reviews(webhook).validate(a_review(a_policy_map("rules", text), user="root"))
    assert (answer.is_allowed, list(answer.warnings)) == (
        True,
        [
            "cellgate: rules[0].vc: the rule never matches: ^labs$ is found in none of the VCs lab",
        ],
    )


async def test_a_group_to_which_no_gang_is_charged_is_told_at_kubectl_apply() -> None:
    """A misspelt group takes no gang, and what is reserved for it is of use to nobody."""
    text = f"""{HEAD}Queues
levels: [{{name: urgent, who: {{groups: [vison]}}, strategy: fifo}},
         {{name: all, strategy: fifo, promoteAfter: 1d}}]
groupLevels: {{gold: [vision, nlp]}}
fairShare: {{weights: {{speech: 2}}}}
reservations:
- {{name: nightly, vc: lab, leafCells: 4, who: {{groups: [nlp]}},
   from: "2026-11-20T20:00:00Z", until: "2026-11-21T06:00:00Z"}}
"""
    documents = {"cluster": hived_text(lab=4)}
    quotas = f"{HEAD}Quotas\ngroups: [{{name: vision, limits: {{leafCells: 8}}}}]"
    review = a_review(a_policy_map("queues", text), user="root")
    answer = await _reviews(Webhook(policies={**documents, "quotas": quotas})).validate(review)
    why = "the groups with quotas are vision"
    assert list(answer.warnings) == [
        f'cellgate: levels[0].who.groups: no gang is charged to group "vison": {why}',
        f'cellgate: groupLevels.gold: no gang is charged to group "nlp": {why}',
        f'cellgate: fairShare.weights: no gang is charged to group "speech": {why}',
        f'cellgate: reservations[0].who.groups: no gang is charged to group "nlp": {why}',
    ]
    answer = await _reviews(Webhook(policies=documents)).validate(review)
    assert "no Quotas document has groups" in answer.warnings[0]
    assert len(answer.warnings) == 5
