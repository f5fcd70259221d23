"""Pods: who is believed, what is written into them, what is refused."""

import asyncio
from typing import Any

import pytest

from kube.api.client import KubeClient, KubeError
from kube.hived.spec import HivedGang, HivedMembers, HivedSpec, parse_spec
from policy.submission import GangKey, VcName
from simulation.objects.patch import json_patch
from tests.support.kube.objects import ObjectBuilder, uid_of
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.kube.workloads import a_stored_owner, workload_mark
from tests.support.state.charges import TERM
from tests.support.webhook.admission_world import AdmissionWorld
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.wire import ReviewResponse

JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups:
- {name: vision, limits: {leafCells: 4}, over: queue, users: [{name: alice}]}
- {name: nlp, limits: {leafCells: 2}, users: [{name: alice}]}
"""
SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"


async def _create(
    webhook: Webhook, pod: PodBuilder, **who: Any
) -> tuple[ReviewResponse, dict[str, Any]]:
    answer = await webhook.pods.mutate(a_review(pod, **who))
    return answer, json_patch(dict(pod), list(answer.patch)) if answer.is_allowed else {}


def default_scheduler_pod(name: str = "bert") -> PodBuilder:
    return a_pod(name).with_gpus(1).with_spec(schedulerName="default-scheduler")


async def test_a_stamp_is_believed_of_a_trusted_controller_only() -> None:
    webhook = Webhook()
    pod = default_scheduler_pod().submitted_by("alice", "team-a")
    _, stored = await _create(webhook, pod, user=JOB_CONTROLLER)
    annotations = stored["metadata"]["annotations"]
    assert annotations["cellgate.io/submitter"] == "alice"
    assert annotations["cellgate.io/submitter-groups"] == '["team-a"]'
    refused, _ = await _create(webhook, pod, user="bob")
    assert refused.message.startswith(
        'metadata.annotations[cellgate.io/submitter]: names "alice", but the request comes from '
    )
    (live,) = await webhook.world.ledger.charges()
    assert live.charge.user == "alice"


async def test_a_controllers_pod_without_a_stamp_is_the_controllers() -> None:
    webhook = Webhook()
    _, stored = await _create(webhook, default_scheduler_pod(), user=JOB_CONTROLLER)
    assert stored["metadata"]["annotations"]["cellgate.io/submitter"] == JOB_CONTROLLER


async def test_a_label_names_the_group_that_pays() -> None:
    webhook = Webhook({"quotas": QUOTAS})
    _, stored = await _create(webhook, default_scheduler_pod("a"))
    assert stored["metadata"]["labels"] == {"cellgate.io/group": "vision"}
    await _create(webhook, default_scheduler_pod("b").charged_to("nlp"))
    refused, _ = await _create(webhook, default_scheduler_pod("c").charged_to("nlp"), user="bob")
    assert "is not a quota group of yours" in refused.message
    groups = [live.charge.group for live in await webhook.world.ledger.charges()]
    assert groups == ["vision", "nlp"]


async def test_a_queued_pod_is_gated_and_not_charged() -> None:
    webhook = Webhook({"quotas": QUOTAS})
    answer, stored = await _create(webhook, a_pod("big").with_gpus(5))
    assert stored["spec"]["schedulingGates"] == [{"name": "cellgate.io/queued"}]
    assert "waits for room in the quotas of group vision" in answer.warnings[0]
    assert await webhook.world.ledger.charges() == ()


async def test_gates_are_ours_to_set() -> None:
    other = {"name": "example.org/gate"}
    gated = default_scheduler_pod("a").with_spec(
        schedulingGates=[other, {"name": "cellgate.io/queued"}]
    )
    _, stored = await _create(Webhook(), gated)
    assert stored["spec"]["schedulingGates"] == [other]
    webhook = Webhook(gates_all=True)
    _, stored = await _create(
        webhook, default_scheduler_pod("b").with_spec(schedulingGates=[other])
    )
    assert stored["spec"]["schedulingGates"] == [other, {"name": "cellgate.io/queued"}]


async def test_a_pod_that_names_its_node_is_not_gated() -> None:
    webhook = Webhook(gates_all=True)
    pod = default_scheduler_pod("a").with_spec(nodeName="node-7")
    _, stored = await _create(webhook, pod, user="root")
    assert "schedulingGates" not in stored["spec"]


async def test_hived_pods_get_the_cell_priority_of_their_class() -> None:
    members = (HivedMembers(leaf_count=8, pod_count=2),)
    spec = HivedSpec(
        vc=VcName("lab"),
        priority=1000,
        leaf_count=8,
        gang=HivedGang(name="bert", members=members),
    )
    pod = a_pod().with_gpus(8).with_hived_spec(spec).of_class("oppo")
    _, stored = await _create(Webhook(), pod)
    written = parse_spec(stored["metadata"]["annotations"][SPEC])
    assert (written.priority, written.gang) == (-1, spec.gang)


async def test_hived_pods_cannot_have_more_devices_than_cells() -> None:
    spec = HivedSpec(vc=VcName("lab"), leaf_count=1)
    refused, _ = await _create(Webhook(), a_pod().with_gpus(8).with_hived_spec(spec))
    assert refused.message == (
        f"metadata.annotations[{SPEC}]: leafCellNumber is 1, but the containers ask for 8 "
        "nvidia.com/gpu; it must be at least as many"
    )


async def test_pods_without_a_name_are_charged_one_by_one() -> None:
    webhook = Webhook()
    for _ in range(3):
        await _create(webhook, default_scheduler_pod().unnamed("bert-"))
    assert len(await webhook.world.ledger.charges()) == 3


async def test_a_dry_run_leaves_no_trace() -> None:
    webhook = Webhook({"quotas": QUOTAS})
    answer, _ = await _create(webhook, a_pod("big").with_gpus(5), dry_run=True)
    assert "waits for room" in answer.warnings[0]
    assert await webhook.world.ledger.charges() == ()
    assert webhook.log.pending == 0


async def test_a_review_without_a_user_is_refused() -> None:
    refused, _ = await _create(Webhook(), default_scheduler_pod(), user="")
    assert refused.message.startswith("userInfo.username: is required")


@pytest.mark.parametrize("uid", ["x", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"])
async def test_the_id_of_another_gangs_decision_is_refused(uid: str) -> None:
    webhook = Webhook(world=AdmissionWorld())
    await _create(webhook, default_scheduler_pod("a"), uid=uid)
    refused, _ = await _create(webhook, default_scheduler_pod("b"), uid=uid)
    assert "belongs to another gang" in refused.message


async def test_the_policy_is_logged_with_the_first_decision_by_it() -> None:
    webhook = Webhook({"quotas": QUOTAS})
    await _create(webhook, default_scheduler_pod("a"))
    await _create(webhook, default_scheduler_pod("b"))
    await webhook.log.flush()
    first, second = webhook.decisions.records
    (known,) = webhook.decisions.documents.values()
    assert '"kind":"Quotas"' in known.content
    assert first.inputs["policy"] == second.inputs["policy"] == known.hash
    assert second.inputs["usage"] == [1, 1]


async def test_no_member_joins_a_running_gang_that_is_full() -> None:
    webhook = Webhook()
    members = [a_pod(name).with_gpus(1).in_gang("bert", size=2) for name in ("a", "b")]
    for pod in members:
        await webhook.pods.mutate(a_review(pod))
    late = a_review(a_pod("c").with_gpus(1).in_gang("bert", size=2))
    assert (await webhook.pods.mutate(late)).is_allowed  # the leader has not seen the others yet
    await webhook.world.ledger.confirm([GangKey("lab", "bert")], term=TERM)
    assert (await webhook.pods.mutate(late)).is_allowed  # the API server does not tell
    webhook.stored.extend(members)
    refused = await webhook.pods.mutate(late)
    assert refused.message == (
        "metadata.labels[cellgate.io/gang]: gang lab/bert already has all its 2 members; a new "
        "member is admitted once one of them has ended"
    )
    webhook.stored[0] = members[0].being_deleted()
    assert (await webhook.pods.mutate(late)).is_allowed


async def test_members_of_a_gang_may_ask_for_different_numbers() -> None:
    webhook = Webhook()
    for name, gpus in (("launcher", 1), ("worker-0", 4), ("worker-1", 4)):
        pod = a_pod(name).with_gpus(gpus).in_gang("bert", size=3)
        assert (await webhook.pods.mutate(a_review(pod))).is_allowed
    (live,) = await webhook.world.ledger.charges()
    assert live.charge.leaf_count == 9


async def test_a_class_that_kubernetes_gives_to_all_is_none_that_the_pod_named() -> None:
    webhook = Webhook()
    standard = {"metadata": {"name": "standard"}, "value": 0, "globalDefault": True}
    webhook.priorities.upsert(standard)
    _, pod = await _create(webhook, a_pod("a").with_gpus(1).of_class("standard"))
    assert pod["spec"]["priorityClassName"] == "test"
    assert pod["metadata"]["annotations"]["cellgate.io/requested-class"] == "test"
    webhook.priorities.upsert({**standard, "globalDefault": False})
    answer, _ = await _create(webhook, a_pod("b").with_gpus(1).of_class("standard"))
    assert 'class "standard" is not in the Classes document' in answer.message


async def test_a_decision_is_in_the_log_before_the_response_is_sent() -> None:
    """It is there even if the process is killed right after the response."""
    webhook = Webhook()
    await webhook.pods.mutate(a_review(default_scheduler_pod("a")))
    assert webhook.log.pending == 1


async def test_a_gang_may_be_lowered_into_a_class_that_counts_as_high() -> None:
    """Not as high where the rule looked, but where it is charged: nothing has changed meanwhile."""
    classes = """
apiVersion: cellgate.io/v1
kind: Classes
classes:
- {name: prod, cellPriority: 100}
- {name: test, cellPriority: 10, high: true}
- {name: oppo, cellPriority: -1, high: true}
default: prod
"""
    rules = """
apiVersion: cellgate.io/v1
kind: Rules
rules:
- {priority: prod, when: "occupiedHigh == 3", then: test}
- {priority: prod, occupiedHigh: "<= 0", then: test}
"""
    quotas = QUOTAS.replace("queue", "oppo").replace("leafCells: 4", "leafCells: 7")
    webhook = Webhook({"classes": classes, "rules": rules, "quotas": quotas})
    got = []
    for name in "abc":
        _, stored = await _create(webhook, default_scheduler_pod(name).with_gpus(3))
        got.append(stored["spec"]["priorityClassName"])
    assert got == ["test", "test", "oppo"]


def _a_member(of: str) -> PodBuilder:
    return default_scheduler_pod(f"{of}-0").in_gang("bert", size=2).controlled_by("Job", of)


async def test_jobs_with_the_same_label_are_charged_as_two_gangs() -> None:
    webhook = Webhook()
    for job in ("a", "b"):
        _, stored = await _create(webhook, _a_member(job), user=JOB_CONTROLLER)
        mark = stored["metadata"]["annotations"]["cellgate.io/workload"]
        assert mark == f"batch/Job/{job}/{uid_of(job)}"
    charged = [live.charge.gang for live in await webhook.world.ledger.charges()]
    assert sorted(charged) == sorted(GangKey("lab", "bert", uid_of(job)) for job in ("a", "b"))


async def test_a_mark_of_a_workload_that_an_author_wrote_is_dropped() -> None:
    webhook = Webhook()
    for pod in (default_scheduler_pod("x"), _a_member("a").controlled_by("Job", "b")):
        forged = pod.annotated("cellgate.io/workload", workload_mark("a"))
        _, stored = await _create(webhook, forged)
        assert stored["metadata"]["annotations"].get("cellgate.io/workload") in (
            None,
            workload_mark("b"),
        )


async def test_a_retry_joins_the_gang_of_its_job_that_was_admitted_before_an_upgrade() -> None:
    older = _a_member("a").annotated("cellgate.io/decision", "1")
    webhook = Webhook(stored=[older, older.controlled_by("Job", "c")])
    _, stored = await _create(webhook, _a_member("a"), user=JOB_CONTROLLER)
    assert "cellgate.io/workload" not in stored["metadata"]["annotations"]
    _, stored = await _create(webhook, _a_member("b"), user=JOB_CONTROLLER)
    assert "cellgate.io/workload" in stored["metadata"]["annotations"]
    charged = [live.charge.gang for live in await webhook.world.ledger.charges()]
    assert sorted(charged) == [GangKey("lab", "bert"), GangKey("lab", "bert", uid_of("b"))]


async def test_members_that_their_workload_creates_later_are_listed_on_each_pod() -> None:
    workers = {"metadata": {"labels": {"cellgate.io/gang-size": "3"}}, "spec": _GPU_SPEC}
    group = {"size": 3, "workerTemplate": workers}
    lws = a_stored_owner("vllm", kind="LeaderWorkerSet")
    lws["apiVersion"] = "leaderworkerset.x-k8s.io/v1"
    lws["spec"] = {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": group}
    webhook = Webhook(client=_Owners(lws))
    leader = default_scheduler_pod("vllm-0").labelled("cellgate.io/gang-size", "3")
    leader = leader.labelled("leaderworkerset.sigs.k8s.io/name", "vllm")
    version = "leaderworkerset.x-k8s.io/v1"
    leader = leader.controlled_by("LeaderWorkerSet", "vllm", api_version=version)
    _, stored = await _create(webhook, leader, user=JOB_CONTROLLER)
    assert stored["metadata"]["annotations"]["cellgate.io/late-members"] == "2x1"
    (live,) = await webhook.world.ledger.charges()
    assert live.charge.gang == GangKey("lab", "vllm-0", uid_of("vllm"))


_GPU_SPEC = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}


class _Owners(KubeClient):
    """Has one workload."""

    def __init__(self, owner: ObjectBuilder) -> None:
        self._owner = owner
        self.asked: list[str] = []

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        self.asked.append(path)
        if path.endswith(f"/{self._owner['metadata']['name']}"):
            return dict(self._owner)
        raise KubeError(f"{method} {path}: not found", status=404)


async def test_pods_of_workloads_that_are_younger_than_an_upgrade_are_not_looked_for() -> None:
    job = a_stored_owner("a").with_metadata(creationTimestamp="2999-01-01T00:00:00Z")
    client = _Owners(job)
    _, stored = await _create(Webhook(client=client), _a_member("a"), user=JOB_CONTROLLER)
    assert stored["metadata"]["annotations"]["cellgate.io/workload"] == workload_mark("a")
    assert client.asked == ["/apis/batch/v1/namespaces/lab/jobs/a"]


class _Failing(KubeClient):
    """An API server that fails."""

    def __init__(self) -> None:
        pass

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        raise KubeError(f"{method} {path}: overloaded", status=500)


async def test_a_member_whose_workload_cannot_be_read_is_created_again_later() -> None:
    webhook = Webhook(client=_Failing())
    refused, _ = await _create(webhook, _a_member("a"), user=JOB_CONTROLLER)
    assert (refused.is_allowed, refused.code) == (False, 429)
    assert refused.message == "the controller of Job a cannot be read now; try again"
    single = default_scheduler_pod("b").controlled_by("Job", "b")
    _, stored = await _create(webhook, single, user=JOB_CONTROLLER)
    assert stored["metadata"]["annotations"]["cellgate.io/workload"] == workload_mark("b")


class _Slow(_Owners):
    """An API server that takes long to list pods, of which it has one."""

    def __init__(self, pod: PodBuilder) -> None:
        super().__init__(a_stored_owner("a"))
        self._pod = pod

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        if not path.endswith("/pods"):
            return await super().request(method, path)
        self.asked.append(path)
        await asyncio.sleep(0.12)
        return {"items": [self._pod]}


async def test_a_slow_list_of_pods_divides_no_gang() -> None:
    """Its answer counts for the next attempt."""
    client = _Slow(_a_member("a").annotated("cellgate.io/decision", "1"))
    webhook = Webhook(client=client)
    refused, _ = await _create(webhook, _a_member("a"), user=JOB_CONTROLLER)
    assert (refused.is_allowed, refused.code) == (False, 429)
    assert refused.message == "the pods of gang bert cannot be read now; try again"
    await asyncio.sleep(0.1)
    _, stored = await _create(webhook, _a_member("a"), user=JOB_CONTROLLER)
    assert "cellgate.io/workload" not in stored["metadata"]["annotations"]
    assert len([path for path in client.asked if path.endswith("/pods")]) == 1


async def test_a_launcher_without_devices_is_gated_in_the_class_of_its_gang_and_not_charged() -> (
    None
):
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    worker = default_scheduler_pod("w").in_gang("mpi", size=2).of_class("test")
    launcher = a_pod("l").with_spec(schedulerName="default-scheduler").in_gang("mpi", size=2)
    await _create(webhook, worker)
    _, stored = await _create(webhook, launcher.of_class("prod"))
    assert stored["spec"]["schedulingGates"] == [{"name": "cellgate.io/queued"}]
    assert stored["spec"]["schedulerName"] == "cellgate-scheduler"
    assert stored["spec"]["priorityClassName"] == "test"
    (live,) = await webhook.world.ledger.charges()
    assert live.charge.leaf_count == 2, "as if both members were like the first"


async def test_a_launcher_that_comes_first_does_not_decide_for_its_gang() -> None:
    """The gang is decided about and queued by what its workers ask for."""
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    launcher = a_pod("l").in_gang("mpi", size=2)
    launcher["metadata"]["annotations"]["cellgate.io/released"] = "forged"
    _, stored = await _create(webhook, launcher)
    assert await webhook.world.ledger.charges() == ()
    assert "cellgate.io/uncharged" not in stored["metadata"]["annotations"]
    assert "cellgate.io/released" not in stored["metadata"]["annotations"]
    answer, stored = await _create(
        webhook, default_scheduler_pod("w").with_gpus(8).in_gang("mpi", size=2)
    )
    assert answer.is_allowed
    assert stored["metadata"]["annotations"]["cellgate.io/uncharged"] == "true"
