"""Only Cellgate and its kube-scheduler say where a managed pod runs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kube import marks
from kube.api.client import KubeError
from tests.support.kube.pods import a_pod
from tests.support.webhook.conditions import hook_of, is_asked
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.ledger_access.time_budget import time_budget
from webhook.wire import ReviewResponse

EXTENDER = "system:serviceaccount:cellgate-system:cellgate-extender"
SCHEDULER = "system:serviceaccount:cellgate-system:cellgate-scheduler"
KUBE_SCHEDULER = "system:kube-scheduler"


def _binding(name: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "lab", "annotations": annotations}
    return {"metadata": metadata, "target": {"kind": "Node", "name": "node-0"}}


async def _bind(name: str, *, user: str = "bob", **annotations: str) -> ReviewResponse:
    webhook = Webhook(stored=[a_pod("managed").with_gpus(1), a_pod("other")])
    return await webhook.bindings.validate(a_review(_binding(name, **annotations), user=user))


async def test_a_stranger_binds_no_managed_pod() -> None:
    refused = await _bind("managed")
    assert refused.message == (
        "pod lab/managed asks for leaf cells, and only Cellgate and its kube-scheduler may bind "
        "it; an admin can allow other schedulers with --binders"
    )
    for name in ("other", "missing"):
        assert (await _bind(name)).is_allowed
    for user in (EXTENDER, SCHEDULER, KUBE_SCHEDULER, "root"):
        assert (await _bind("managed", user=user)).is_allowed


@pytest.mark.parametrize("user", ["bob", SCHEDULER, KUBE_SCHEDULER])
async def test_no_user_writes_marks_with_a_binding(user: str) -> None:
    for key in marks.PLACEMENT_ANNOTATIONS:
        refused = await _bind("managed", user=user, **{key: "forged", "example.org/note": "x"})
        assert refused.message == f"metadata.annotations[{key}]: only Cellgate may write it"
        assert (await _bind("managed", user=EXTENDER, **{key: "node-0"})).is_allowed


async def _fail() -> None:
    raise KubeError("no answer")


async def _hang() -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize("trouble", [_fail, _hang], ids=["refused", "no answer"])
async def test_a_pod_that_cannot_be_looked_up_is_a_failed_call(
    monkeypatch: pytest.MonkeyPatch, trouble: Callable[[], Awaitable[None]]
) -> None:
    """For which the API server follows the failure policy."""
    webhook = Webhook()

    async def request(*_: object, **__: object) -> None:
        await trouble()

    monkeypatch.setattr(webhook.bindings.reviews._client, "request", request)
    with pytest.raises(KubeError, match="no answer"), time_budget(0.01):
        await webhook.bindings.validate(a_review(_binding("managed"), user="bob"))


async def test_a_binding_of_nothing_is_left_to_the_api_server() -> None:
    assert (await _bind("", user="bob")).is_allowed


def test_schedulers_do_not_depend_on_us() -> None:
    plain, marked = _binding("a"), _binding("a", **{marks.PLACEMENT_ANNOTATION: "x"})
    strangers = hook_of("Validating", "bindings")
    marking = hook_of("Validating", "marks-on-bindings")
    for user in (EXTENDER, SCHEDULER, KUBE_SCHEDULER):
        assert not is_asked(strangers, plain, user=user)
        assert not is_asked(marking, plain, user=user)
    assert not is_asked(marking, marked, user=EXTENDER)
    assert is_asked(strangers, plain, user="bob")
    assert is_asked(marking, marked, user="bob")
    assert (strangers["failurePolicy"], marking["failurePolicy"]) == ("Ignore", "Fail")
