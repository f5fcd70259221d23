"""Every example of docs/submit.md is admitted, and read as the sentence under it says."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kube.api.client import KubeClient, KubeError
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from simulation.objects.patch import json_patch
from state.ledger.ledger import Charge
from tests.support.reviews import Webhook, a_review
from webhook.reviews.template_stamps import find_templates, to_pod
from webhook.wire import Answer, ReviewRequest

_PAGE: Final = Path(__file__).parents[3] / "docs" / "submit.md"
_EXAMPLE: Final = re.compile(
    r"^```yaml\n(.*?)^```\n\n(?:Read as: (.*?)\n\n)?", re.DOTALL | re.MULTILINE
)
_JOB_CONTROLLER: Final = "system:serviceaccount:kube-system:job-controller"
_POLICIES: Final = {
    "identity": """
apiVersion: cellgate.io/v1
kind: Identity
templates:
- {apiVersion: kubeflow.org/v1, kind: PyTorchJob, path: "spec.pytorchReplicaSpecs.*.template"}
""",
    "quotas": """
apiVersion: cellgate.io/v1
kind: Quotas
groups: [{name: vision, users: [{name: alice}]}]
""",
}


@dataclass(frozen=True)
class _Example:
    """One YAML block, and the sentence that says what Cellgate makes of it."""

    objects: list[dict[str, Any]]
    sentence: str

    def named(self, pattern: str) -> str | None:
        """What the sentence gives for a pattern with one group."""
        found = re.search(pattern, self.sentence)
        return found[1] if found else None

    def number(self, pattern: str) -> int | None:
        text = self.named(pattern)
        return int(text) if text is not None else None

    @property
    def size(self) -> int:
        return self.number(r"gang `.*?` of (\d+)") or 1

    @property
    def leaf_count(self) -> int | None:
        return self.number(r"(\d+) leaf cells?")


def _examples() -> list[Any]:
    text = _PAGE.read_text()
    return [
        pytest.param(
            _Example(list(yaml.safe_load_all(block)), " ".join(sentence.split())),
            id=yaml.safe_load_all(block).__next__()["metadata"]["name"],
        )
        for block, sentence in _EXAMPLE.findall(text)
    ]


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

    def __init__(self, example: _Example) -> None:
        self.webhook = Webhook(_POLICIES, client=_Cluster(example.objects))
        self.size = example.size
        self.pods: list[dict[str, Any]] = []

    async def submit(self, obj: dict[str, Any]) -> None:
        review = _review(obj, user="alice")
        if obj["kind"] == "Pod":
            self.pods.append(_stored(obj, await self.webhook.pods.mutate(review)))
            return
        stored = _stored(obj, await self.webhook.templates.mutate(review))
        kinds = self.webhook.sink.policy.identity.find_templates(
            api_version=stored["apiVersion"], kind=stored["kind"]
        )
        templates = find_templates(stored, kinds)
        for index in range(self.size if templates else 0):
            template = templates[min(index, len(templates) - 1)]
            pod = to_pod(review, template, {})
            made = _review(pod, user=_JOB_CONTROLLER)
            self.pods.append(_stored(pod, await self.webhook.pods.mutate(made)))

    def read(self) -> list[ManagedPod]:
        return [pod for one in self.pods if (pod := read_pod(one)) is not None]

    async def charges(self) -> list[Charge]:
        return [live.charge for live in await self.webhook.world.ledger.charges()]


def _review(obj: dict[str, Any], *, user: str) -> ReviewRequest:
    return a_review(obj, user=user)


def _stored(obj: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """The object as the API server stores it; refused or warned about, the example is wrong."""
    assert (answer.is_allowed, answer.message, list(answer.warnings)) == (True, "", [])
    return json_patch(obj, list(answer.patch))


def test_every_example_says_how_it_is_read() -> None:
    sentences = [one.values[0].sentence for one in _examples()]
    assert len(sentences) >= 10
    assert all(sentences)


@pytest.mark.parametrize("example", _examples())
async def test_an_example_is_read_as_the_page_says(example: _Example) -> None:
    submission = _Submission(example)
    for obj in example.objects:
        await submission.submit(obj)
    pods = submission.read()
    assert len(pods) == example.size
    gang = example.named("gang `(.*?)`")
    if gang is not None:
        assert {str(pod.gang.key) for pod in pods} == {gang}
    assert {pod.gang.min_size for pod in pods} == {example.number(r"at least (\d+)")}
    assert {pod.leaf_count for pod in pods} == {example.leaf_count}
    assert {pod.leaf_type for pod in pods} == {example.named("type `(.*?)`")}
    assert {pod.vc for pod in pods} == {example.named("VC `(.*?)`")}
    assert {pod.class_name for pod in pods} == {example.named("class `(.*?)`")}


@pytest.mark.parametrize("example", _examples())
async def test_an_example_is_charged_as_one_gang(example: _Example) -> None:
    submission = _Submission(example)
    for obj in example.objects:
        await submission.submit(obj)
    (charge,) = await submission.charges()
    assert example.leaf_count is not None
    assert charge.leaf_count == example.size * example.leaf_count
    assert charge.vc == example.named("VC `(.*?)`")
    assert charge.class_name == example.named("class `(.*?)`")
    assert charge.group == (example.named("group `(.*?)`") or "vision")
