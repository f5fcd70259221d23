"""No change of a pod undoes what shapes set."""

from typing import Any

import pytest

from kube import marks
from tests.support.kube.pods import a_pod
from tests.support.webhook.conditions import hook_of, is_asked
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.wire import ReviewResponse

GUARD = hook_of("Validating", "pods")
SHAPED = "train: cpu 2 for container main\ntrain: memory 4Gi for container main, fixed"


def _pod(*, shaped: str = SHAPED, **spec: Any) -> dict[str, Any]:
    pod = a_pod().with_gpus(1).annotated(marks.SHAPED_ANNOTATION, shaped)
    return dict(pod.with_spec(**spec))


def _sized(
    requests: dict[str, str], *, shaped: str = SHAPED, whole: dict[str, str] | None = None
) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1"}
    main = {"name": "main", "resources": {"requests": requests, "limits": limits}}
    return _pod(shaped=shaped, containers=[main], resources={"requests": whole or {}})


async def _change(
    new: dict[str, Any], old: dict[str, Any], *, user: str = "alice"
) -> ReviewResponse:
    return await Webhook().guard.validate(a_review(new, old=old, user=user))


async def test_what_a_shape_fixed_cannot_be_resized() -> None:
    old = _sized({"memory": "4Gi", "cpu": "2"})
    larger = _sized({"memory": "8Gi", "cpu": "2"})
    refused = await _change(larger, old)
    told = "shape train fixes memory at 4Gi"
    assert refused.message == f"spec.containers[main].resources: {told}"
    whole = _sized({"memory": "4Gi", "cpu": "2"}, whole={"memory": "8Gi"})
    assert (await _change(whole, old)).message == f"spec.resources: {told}"
    assert (await _change(larger, old, user="root")).is_allowed
    assert (await _change(_sized({"memory": "4Gi", "cpu": "8"}), old)).is_allowed


def test_only_resizes_of_what_is_fixed_reach_us() -> None:
    old, new = _sized({"memory": "4Gi"}), _sized({"memory": "8Gi"})
    assert is_asked(GUARD, new, old=old, subresource="resize")
    assert not is_asked(GUARD, new, old=old)
    free = _sized({"memory": "4Gi"}, shaped="train: cpu 2 for container main")
    assert not is_asked(GUARD, free, old=free, subresource="resize")
    plain = dict(a_pod().with_gpus(1))
    assert not is_asked(GUARD, plain, old=plain, subresource="resize")


@pytest.mark.parametrize("key", ["volumeMounts", "volumeDevices"])
async def test_a_container_for_debugging_does_not_see_what_is_others(key: str) -> None:
    peeking = {"name": "debug", key: [{"name": "cellgate-home-0", "mountPath": "/all"}]}
    new, old = _pod(ephemeralContainers=[peeking]), _pod()
    assert is_asked(GUARD, new, old=old, subresource="ephemeralcontainers")
    refused = await _change(new, old)
    path = f"spec.ephemeralContainers[debug].{key}"
    assert refused.message == f"{path}: only shapes may mount volume cellgate-home-0"
    assert (await _change(new, old, user="root")).is_allowed
    assert (await _change(new, new)).is_allowed


async def test_a_container_for_debugging_is_free_otherwise() -> None:
    looking = {"name": "debug", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    new, old = _pod(ephemeralContainers=[looking, {"name": "bare"}]), _pod()
    assert not is_asked(GUARD, new, old=old, subresource="ephemeralcontainers")
    assert (await _change(new, old)).is_allowed


@pytest.mark.parametrize(
    "spec",
    [
        {"ephemeralContainers": [{"volumeMounts": [{"name": 5}, 7]}, "x"], "containers": 5},
        {"ephemeralContainers": {}, "resources": 7, "initContainers": [{"name": []}]},
    ],
)
async def test_garbage_does_no_harm(spec: dict[str, Any]) -> None:
    assert (await _change(_pod(**spec), _pod(**spec))).is_allowed
