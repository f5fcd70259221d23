"""The examples of docs/submit.md, and what the sentence under each one says."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from policy.identity.identity import Identity, TemplateKind
from webhook.reviews.pod_templates import find_templates

_PAGE: Final = Path(__file__).parents[3] / "docs" / "submit.md"
_EXAMPLE: Final = re.compile(
    r"^```yaml\n(.*?)^```\n\n(?:Read as: (.*?)\n\n)?", re.DOTALL | re.MULTILINE
)
_KUBEFLOW: Final = TemplateKind(
    "kubeflow.org/v1", "PyTorchJob", ("spec", "pytorchReplicaSpecs", "*", "template")
)
_JOB_SET: Final = TemplateKind(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    ("spec", "replicatedJobs", "*", "template", "spec", "template"),
)
IDENTITY: Final = Identity(templates=(_KUBEFLOW, _JOB_SET))
"""Which kinds have pod templates, and where."""


@dataclass(frozen=True)
class Example:
    """One YAML block, and the sentence that says what Cellgate makes of it."""

    objects: list[dict[str, Any]]
    sentence: str

    @property
    def name(self) -> str:
        """The name of its first object."""
        return str(self.objects[0]["metadata"]["name"])

    def said(self, pattern: str) -> str | None:
        """What the sentence gives for a pattern with one group."""
        found = re.search(pattern, self.sentence)
        return found[1] if found else None

    def number(self, pattern: str) -> int | None:
        """The same, where it is a number."""
        text = self.said(pattern)
        return int(text) if text is not None else None

    @property
    def size(self) -> int:
        """How many members its gang has."""
        return self.number(r"gang `.*?` of (\d+)") or 1

    @property
    def leaf_count(self) -> int:
        """How many leaf cells each member asks for."""
        count = self.number(r"(\d+) leaf cells?")
        assert count is not None, self.sentence
        return count

    def pods(self) -> Iterator[Mapping[str, Any]]:
        """Its pods, and as many pods of its templates as its gang has members."""
        for obj in self.objects:
            if obj["kind"] == "Pod":
                yield obj
            yield from self._pods_of(obj)

    def _pods_of(self, obj: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        kinds = IDENTITY.find_templates(api_version=obj["apiVersion"], kind=obj["kind"])
        templates = [template.content for template in find_templates(obj, kinds)]
        for index in range(self.size if templates else 0):
            yield templates[min(index, len(templates) - 1)]


def examples() -> list[Example]:
    """All examples of the page."""
    return [
        Example(list(yaml.safe_load_all(block)), " ".join(sentence.split()))
        for block, sentence in _EXAMPLE.findall(_PAGE.read_text())
    ]
