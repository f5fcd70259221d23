"""A pod of a namespace that was created a moment ago gets the VC that the namespace names."""

from typing import Any

import pytest

from kube import marks
from kube.api.client import KubeClient, KubeError
from kube.follow.namespaces import NamespaceSink
from service.clock import Clock
from tests.support.kube.pods import a_new_pod
from tests.support.policy.cluster_texts import hived_text
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.reviews.young_namespaces import YoungNamespaces


class _Namespaces(KubeClient):
    """An API server that knows one namespace, and counts how often it is asked."""

    def __init__(self, error: KubeError | None = None) -> None:
        self._error = error
        self.asked = 0

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        if path != "/api/v1/namespaces/young":
            raise KubeError(f"{method} {path}: not found", status=404)
        self.asked += 1
        if self._error is not None:
            raise self._error
        return _namespace(vc="lab")


def _namespace(*, vc: str | None = None, created: str = "2999-01-01T00:00:00Z") -> dict[str, Any]:
    labels = {marks.VC_LABEL: vc} if vc else {}
    return {"metadata": {"name": "young", "labels": labels, "creationTimestamp": created}}


POD = a_new_pod("p", namespace="young").with_gpus(1).of_class("prod")


async def test_a_pod_gets_the_vc_of_a_namespace_that_is_not_in_memory_yet() -> None:
    webhook = Webhook(policies={"cluster": hived_text(lab=4)}, client=_Namespaces())
    assert (await webhook.pods.mutate(a_review(POD))).is_allowed, "there is no VC default"


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (None, 1),
        (_namespace(), 1),
        (_namespace(vc="lab"), 0),
        (_namespace(created="2020-01-01T00:00:00Z"), 0),
    ],
    ids=["unknown", "young", "with a label", "old"],
)
async def test_only_young_namespaces_without_a_label_are_read(
    known: dict[str, Any] | None, asked: int
) -> None:
    client, sink = _Namespaces(), NamespaceSink()
    if known is not None:
        sink.upsert(known)
    young = YoungNamespaces(client, sink, clock=Clock())
    await young.settle("young")
    await young.settle("young")
    assert client.asked == asked, "not again once the label is known"
    assert sink.labels("young") == ({} if known and not asked and "2020" in str(known) else LABELS)


LABELS = {marks.VC_LABEL: "lab"}


async def test_without_an_answer_what_is_known_counts() -> None:
    client = _Namespaces(KubeError("forbidden", status=403))
    sink = NamespaceSink()
    await YoungNamespaces(client, sink, clock=Clock()).settle("young")
    assert (client.asked, sink.labels("young")) == (1, {})
