"""Pods that shapes give leaf cells or take them from, and pods that get nothing but shapes."""

from copy import deepcopy
from typing import Any

import pytest

from kube import marks
from policy.quotas.limits import Scope
from policy.submission import GroupName
from simulation.objects.patch import json_patch
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.policy.documents import HEAD
from tests.support.webhook.conditions import hook_of, is_asked
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

ALLOWED = "allowed: {serviceAccounts: [runner]}"
LAUNCHER = """
- name: launcher
  fixedLeafCells: 0
  fixedRequests: {cpu: 2}
  serviceAccountName: runner
  imagePullSecrets: ["hub-{user}"]
"""


async def _mutated(webhook: Webhook, pod: PodBuilder, *, by: str = "mutate") -> dict[str, Any]:
    answer = await getattr(webhook.pods, by)(a_review(pod))
    assert answer.is_allowed, answer.message
    return json_patch(dict(pod), list(answer.patch))


def _webhook(shapes: str, **more: str) -> Webhook:
    return Webhook({"shaping": f"{HEAD}Shaping\n{ALLOWED}\nshapes:\n{shapes}", **more})


@pytest.mark.parametrize("asked", [0, 1, 4])
async def test_the_fixed_number_of_leaf_cells_is_charged(asked: int) -> None:
    webhook = _webhook("- {name: two, fixedLeafCells: 2}")
    pod = a_pod("bert").with_gpus(asked) if asked else a_pod("bert").with_container({})
    stored = await _mutated(webhook, pod, by="mutate" if asked else "shape")
    (holding,) = await webhook.world.ledger.holdings()
    assert holding.leaf_cells == 2
    main = stored["spec"]["containers"][0]
    assert main["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    line = stored["metadata"]["annotations"]["cellgate.io/request"]
    assert line.startswith("2 leaf cells, ")
    assert (await webhook.guard.validate(a_review(stored))).is_allowed


async def test_a_pod_whose_leaf_cells_a_shape_takes_away_is_not_charged() -> None:
    webhook = _webhook(LAUNCHER)
    stored = await _mutated(webhook, a_pod("bert").with_gpus(4))
    assert await webhook.world.ledger.holdings() == ()
    assert "cellgate.io/decision" not in stored["metadata"]["annotations"]
    assert (
        "launcher: leaf cells 0, fixed" in stored["metadata"]["annotations"]["cellgate.io/shaped"]
    )
    again = await _mutated(webhook, PodBuilder(stored), by="shape")
    assert again == stored


async def test_what_shapes_fix_counts_for_limits_of_cpu_and_memory() -> None:
    quotas = f"""{HEAD}Quotas
groups: [{{name: vision, limits: {{cpu: 10, memory: 1Ti}}, users: [{{name: alice}}]}}]
"""
    webhook = _webhook("- {name: a, fixedRequests: {cpu: 3, memory: 1Gi}}", quotas=quotas)
    gang = a_pod("a").with_container({"nvidia.com/gpu": "1", "cpu": "64"}).in_gang("g", size=3)
    await _mutated(webhook, gang)
    usage = await webhook.world.ledger.usage(Scope(None, GroupName("vision")))
    assert (usage.cpu_millis, usage.memory_bytes) == (9000, 3 * 2**30)
    answer = await webhook.pods.mutate(a_review(a_pod("b").with_gpus(1)))
    assert "Group vision holds 9 CPUs and the gang asks for 3 CPUs more; the limit is 10 CPUs." in (
        answer.message
    )


async def test_hiveds_annotation_cannot_ask_for_other_leaf_cells() -> None:
    webhook = _webhook("- {name: two, fixedLeafCells: 2}")
    text = "{virtualCluster: default, leafCellNumber: 4, priority: 0}"
    pod = a_pod("bert").with_gpus(4).annotated(marks.HIVED_SPEC_ANNOTATION, text)
    answer = await webhook.pods.mutate(a_review(pod))
    assert "leafCellNumber is 4, but shape two fixes" in answer.message


async def test_a_pod_without_leaf_cells_is_shaped_where_it_is_asked_for() -> None:
    webhook = _webhook(LAUNCHER)
    pod = a_pod("notebook").with_container({}).annotated("cellgate.io/shaped", "all mine")
    stored = await _mutated(webhook, pod, by="shape")
    assert stored["spec"]["serviceAccountName"] == "runner"
    assert "all mine" not in stored["metadata"]["annotations"]["cellgate.io/shaped"]
    assert not stored["spec"].get("schedulingGates")


async def test_a_vc_that_is_not_open_gives_no_shape() -> None:
    identity = f"{HEAD}Identity\nvcs: {{lab: {{users: [bob]}}, default: {{users: [bob]}}}}"
    shapes = "- {name: lab, vc: ., requests: {cpu: 1}}"
    webhook = _webhook(shapes, identity=identity)
    answer = await webhook.pods.shape(a_review(a_pod().with_container({}).in_vc("lab")))
    assert "is not open to" in answer.message
    stored = await _mutated(webhook, a_pod().with_container({}), by="shape")
    assert "cellgate.io/shaped" not in stored["metadata"].get("annotations", {})


def _job(pod: PodBuilder) -> dict[str, Any]:
    template = {"metadata": {"annotations": {}}, "spec": pod["spec"]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", "namespace": "lab"}}
    return {**job, "spec": {"template": template}}


async def test_the_template_of_a_launcher_names_its_submitter() -> None:
    webhook = _webhook(LAUNCHER)
    job = _job(a_pod().with_container({}))
    assert (await webhook.templates.mutate(a_review(job))).patch == []
    answer = await webhook.templates.shape(a_review(job))
    stamped = json_patch(job, list(answer.patch))
    marked = stamped["spec"]["template"]["metadata"]["annotations"]
    assert marked[marks.SUBMITTER_ANNOTATION] == "alice"
    # Another user may change the rest of it.
    changed = deepcopy(stamped)
    changed["spec"]["template"]["spec"]["priorityClassName"] = "prod"
    answer = await webhook.templates.shape(a_review(changed, user="bob", old=stamped))
    assert (answer.is_allowed, list(answer.patch)) == (True, [])


@pytest.mark.parametrize("by", ["mutate", "shape"])
async def test_no_author_names_another_submitter_on_a_launcher(by: str) -> None:
    webhook = _webhook(LAUNCHER)
    job = _job(a_pod().with_container({}))
    job["spec"]["template"]["metadata"]["annotations"][marks.SUBMITTER_ANNOTATION] = "bob"
    answer = await getattr(webhook.templates, by)(a_review(job))
    assert 'names "bob", but the request comes from "alice"' in answer.message


async def test_what_a_shape_gave_is_guarded_on_pods_without_leaf_cells_too() -> None:
    """A debug container would see other users' parts of a volume."""
    guard, pod = hook_of("Validating", "pods"), a_pod().with_container({})
    shaped = pod.annotated(marks.SHAPED_ANNOTATION, "home: mount /mnt from persistentVolumeClaim w")
    assert is_asked(guard, dict(pod), old=dict(shaped)), "the annotation must not be removed"
    debug = {"name": "d", "volumeMounts": [{"name": "cellgate-home-0", "mountPath": "/all"}]}
    debugged = dict(shaped.with_spec(ephemeralContainers=[debug]))
    assert is_asked(guard, debugged, old=dict(shaped), subresource="ephemeralcontainers")
    answer = await Webhook().guard.validate(a_review(debugged, old=dict(shaped)))
    assert "only shapes may mount volume cellgate-home-0" in answer.message
    assert not is_asked(guard, dict(shaped.labelled("a", "b")), old=dict(shaped))


def test_the_api_server_asks_about_each_new_pod_once() -> None:
    managed, others = hook_of("Mutating", "pods"), hook_of("Mutating", "shaped-pods")
    for pod in (a_pod(), a_pod().with_gpus(1), a_pod().in_gang("a", size=2), a_pod().for_hived()):
        assert is_asked(managed, dict(pod)) != is_asked(others, dict(pod))
    assert (managed["failurePolicy"], others["failurePolicy"]) == ("Fail", "Ignore")
    assert others["namespaceSelector"]["matchLabels"] == {marks.SHAPING_LABEL: "enabled"}


def test_templates_whose_authors_write_a_submitter_are_reviewed() -> None:
    plain, forged = _job(a_pod()), _job(a_pod())
    forged["spec"]["template"]["metadata"]["annotations"][marks.SUBMITTER_ANNOTATION] = "bob"
    changed = deepcopy(forged)
    changed["spec"]["template"]["spec"]["priorityClassName"] = "prod"
    for name, wrap in (("templates", False), ("cronjobs", True)):
        hook = hook_of("Mutating", name)
        one, two, three = (
            {"spec": {"jobTemplate": job}} if wrap else job for job in (plain, forged, changed)
        )
        assert not is_asked(hook, one)
        assert is_asked(hook, two)
        assert is_asked(hook, two, old=one)
        assert not is_asked(hook, three, old=two), "a change of it depends on no webhook"


_LONGEST = "levels: [{name: all, strategy: fifo}]\nrunTime: {longest: {default: 1h, prod: 2h}"


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        (a_pod().with_gpus(1).of_class("prod"), 7200),
        (a_pod().with_gpus(1).of_class("test"), 3600),
        (a_pod().with_gpus(1), 3600),
        (a_pod().with_gpus(1).with_spec(activeDeadlineSeconds=60), 60),
    ],
    ids=["of its class", "of all other classes", "without a class", "its own is shorter"],
)
async def test_the_longest_run_of_the_queues_document_is_enforced(
    pod: PodBuilder, seconds: int
) -> None:
    webhook = Webhook({"queues": f"{HEAD}Queues\n{_LONGEST}, enforce: true}}"})
    stored = await _mutated(webhook, pod)
    assert stored["spec"]["activeDeadlineSeconds"] == seconds
    assert (await webhook.guard.validate(a_review(stored))).is_allowed
    assert await _mutated(webhook, PodBuilder(stored)) == stored


async def test_the_longest_run_is_an_assumption_unless_it_is_enforced() -> None:
    webhook = Webhook({"queues": f"{HEAD}Queues\n{_LONGEST}}}"})
    stored = await _mutated(webhook, a_pod().with_gpus(1))
    assert "activeDeadlineSeconds" not in stored["spec"]
