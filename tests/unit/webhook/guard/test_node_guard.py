"""A pod that names its node escapes every plan: only users that may bind pods create it."""

from typing import Any

import pytest

from simulation.objects.patch import json_patch
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.webhook.conditions import hook_of, is_asked
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

SCHEDULER = "system:serviceaccount:cellgate-system:cellgate-scheduler"
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
REFUSED = (
    'spec.nodeName: is "node-7"; only Cellgate, its kube-scheduler and admins choose the node of a '
    "pod that asks for leaf cells; leave spec.nodeName out, and choose nodes with "
    "spec.nodeSelector or spec.affinity.nodeAffinity; an admin can allow other schedulers with "
    "--binders"
)
MIRROR = "kubernetes.io/config.mirror"


def _on_a_node() -> PodBuilder:
    return a_pod("a").with_gpus(8).with_spec(nodeName="node-7")


async def _message(pod: PodBuilder, **who: Any) -> str:
    return (await Webhook().pods.mutate(a_review(pod, **who))).message


async def test_a_user_does_not_choose_the_node_of_a_managed_pod() -> None:
    webhook = Webhook()
    refused = await webhook.pods.mutate(a_review(_on_a_node()))
    assert refused.message == REFUSED
    assert await webhook.world.ledger.charges() == ()
    assert await _message(a_pod("cpu").with_spec(nodeName="node-7")) == ""


@pytest.mark.parametrize("user", ["root", SCHEDULER, "system:kube-scheduler"])
async def test_binders_and_admins_choose_nodes(user: str) -> None:
    assert await _message(_on_a_node(), user=user) == ""


async def test_a_kubelet_creates_the_mirror_pods_of_its_own_node_only() -> None:
    mirror = _on_a_node().annotated(MIRROR, "hash")
    node = {"user": "system:node:node-7", "groups": ["system:nodes"]}
    assert await _message(mirror, **node) == ""
    assert await _message(_on_a_node(), **node) == REFUSED
    assert await _message(mirror, user="system:node:node-7") == REFUSED
    assert await _message(mirror, user="system:node:node-8", groups=["system:nodes"]) == REFUSED
    assert await _message(mirror, user="alice") == REFUSED


async def test_a_controller_chooses_a_node_for_an_admin_only() -> None:
    of_admin = _on_a_node().submitted_by("root")
    assert await _message(of_admin, user=JOB_CONTROLLER) == ""
    assert await _message(_on_a_node().submitted_by("alice"), user=JOB_CONTROLLER) == REFUSED
    assert await _message(_on_a_node(), user=JOB_CONTROLLER) == REFUSED


async def test_a_template_with_a_node_is_refused_when_it_is_applied() -> None:
    template = {"metadata": {}, "spec": _on_a_node()["spec"]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "lab"},
        "spec": {"template": template},
    }
    refused = await Webhook().templates.mutate(a_review(job))
    assert refused.message == f"spec.template.{REFUSED}"
    assert (await Webhook().templates.mutate(a_review(job, user="root"))).is_allowed


async def test_another_webhook_does_not_choose_the_node_either() -> None:
    webhook = Webhook()
    pod = a_pod("a").with_gpus(8)
    answer = await webhook.pods.mutate(a_review(pod))
    stored = json_patch(dict(pod), list(answer.patch))
    assert (await webhook.guard.validate(a_review(stored))).is_allowed
    stored["spec"]["nodeName"] = "node-7"
    assert (await webhook.guard.validate(a_review(stored))).message == REFUSED
    assert is_asked(hook_of("Validating", "pods"), stored)
