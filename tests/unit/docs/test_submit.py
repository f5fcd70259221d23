"""Every example of docs/submit.md is admitted, and read as the sentence under it says."""

from typing import Any, Final

import pytest

from kube.api.client import KubeClient, KubeError
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from policy.quotas.charge import Charge
from simulation.objects.patch import json_patch
from tests.support.documents.submit_page import Example, examples
from tests.support.kube.objects import uid_of
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.reviews.pod_templates import find_templates
from webhook.wire import ReviewResponse

_JOB_CONTROLLER: Final = "system:serviceaccount:kube-system:job-controller"
_POLICIES: Final = {
    "identity": """
apiVersion: cellgate.io/v1
kind: Identity
templates:
- {apiVersion: kubeflow.org/v1, kind: PyTorchJob, path: "spec.pytorchReplicaSpecs.*.template"}
- apiVersion: jobset.x-k8s.io/v1alpha2
  kind: JobSet
  path: "spec.replicatedJobs.*.template.spec.template"
""",
    "quotas": """
apiVersion: cellgate.io/v1
kind: Quotas
groups: [{name: vision, users: [{name: alice}]}]
""",
}
_EXAMPLES: Final = [pytest.param(example, id=example.name) for example in examples()]


class _Cluster(KubeClient):
    """A cluster that has the PodGroups of an example."""

    def __init__(self, objects: list[dict[str, Any]]) -> None:
        self._groups: dict[str, dict[str, Any]] = {}
        for one in objects:
            if one["kind"] == "PodGroup":
                group, version = one["apiVersion"].split("/")
                api = f"/apis/{group}/{version}"
                self._groups[f"/apis/{group}"] = {"versions": [{"version": version}]}
                self._groups[api] = {"resources": [{"name": "podgroups"}]}
                metadata = one["metadata"]
                name = f"namespaces/{metadata['namespace']}/podgroups/{metadata['name']}"
                self._groups[f"{api}/{name}"] = one

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        if path not in self._groups:
            raise KubeError(f"{method} {path}: not found", status=404)
        return self._groups[path]


class _Submission:
    """Submits an example as a user does, and makes its pods as controllers do."""

    def __init__(self, example: Example) -> None:
        self._example = example
        self._webhook = Webhook(_POLICIES, client=_Cluster(example.objects))
        self._pods: list[dict[str, Any]] = []

    async def run(self) -> list[ManagedPod]:
        """Submit it; the pods as they are stored."""
        for obj in self._example.objects:
            await self._submit(obj)
        return [pod for one in self._pods if (pod := read_pod(one)) is not None]

    async def _submit(self, obj: dict[str, Any]) -> None:
        review = a_review(obj, user="alice")
        if obj["kind"] == "Pod":
            self._pods.append(_stored(obj, await self._webhook.pods.mutate(review)))
            return
        stored = _stored(obj, await self._webhook.templates.mutate(review))
        kinds = self._webhook.sink.policy.identity.find_templates(
            api_version=stored["apiVersion"], kind=stored["kind"]
        )
        templates = find_templates(stored, kinds)
        for index in range(self._example.size if templates else 0):
            pod = templates[min(index, len(templates) - 1)].to_pod(review, {})
            pod["metadata"]["ownerReferences"] = [_owner_of(obj)]
            answer = await self._webhook.pods.mutate(a_review(pod, user=_JOB_CONTROLLER))
            self._pods.append(_stored(pod, answer))

    async def charges(self) -> list[Charge]:
        """What the ledger holds."""
        return [live.charge for live in await self._webhook.world.ledger.charges()]


def _owner_of(obj: dict[str, Any]) -> dict[str, Any]:
    """The controller of its pods: the object itself."""
    name = obj["metadata"]["name"]
    known = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": name}
    return {**known, "uid": uid_of(name), "controller": True}


def _stored(obj: dict[str, Any], answer: ReviewResponse) -> dict[str, Any]:
    """The object as the API server stores it; refused or warned about, the example is wrong."""
    assert (answer.is_allowed, answer.message, list(answer.warnings)) == (True, "", [])
    return json_patch(obj, list(answer.patch))


def test_every_example_says_how_it_is_read() -> None:
    found = examples()
    assert len(found) >= 10
    assert [example.name for example in found if not example.sentence] == []


@pytest.mark.parametrize("example", _EXAMPLES)
async def test_an_example_is_read_as_the_page_says(example: Example) -> None:
    pods = await _Submission(example).run()
    assert len(pods) == example.size
    gang = example.said("gang `(.*?)`")
    if gang is not None:
        assert {str(pod.gang.key) for pod in pods} == {gang}
    assert {pod.gang.min_size for pod in pods} == {example.number(r"at least (\d+)")}
    counts = [pod.leaf_count for pod in pods]
    assert counts.count(0) == (example.number(r"except (\d+) member") or 0)
    assert {count for count in counts if count} == {example.leaf_count}
    assert {pod.leaf_type for pod in pods} == {example.said("type `(.*?)`")}
    assert {pod.vc for pod in pods} == {example.said("VC `(.*?)`")}
    assert {pod.class_name for pod in pods} == {example.said("class `(.*?)`")}


@pytest.mark.parametrize("example", _EXAMPLES)
async def test_an_example_is_charged_as_one_gang(example: Example) -> None:
    submission = _Submission(example)
    await submission.run()
    (charge,) = await submission.charges()
    assert charge.leaf_count == example.size * example.leaf_count
    assert charge.vc == example.said("VC `(.*?)`")
    assert charge.class_name == example.said("class `(.*?)`")
    assert charge.group == (example.said("group `(.*?)`") or "vision")
