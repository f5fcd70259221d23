"""Elastic Jobs: suspended, indexed Jobs that may start with several numbers of members. Pure.

The owner creates the Job suspended and lists other sizes in the Job's own annotation
`cellgate.io/alternatives: [{members: 4}, {members: 2}]`. A label, which the webhook writes, marks
the Job. The leader resumes it with the first size that fits. Kubernetes lets a Job change its size
if it is indexed and all its pods run at once (`completions` equal to `parallelism`), and its
template only while it is suspended and has not started.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube import marks
from kube.admission.patches import labels_patch
from kube.values.objects import Operation, mapping, marks_of
from kube.values.texts import parse_number
from policy.documents.alternatives_list import parse_sizes
from policy.errors import Problem, RequestError
from policy.wording import describe

ANNOTATION_PATH: Final = f"metadata.annotations[{marks.ALTERNATIVES_ANNOTATION}]"
WAITING: Final = "waiting"
STARTED: Final = "started"
_BEGUN: Final = ("active", "completedIndexes", "failed", "failedIndexes", "startTime", "succeeded")
"""What the status of a Job says once it has had pods."""
_LABEL_PATH: Final = f"spec.template.metadata.labels[{marks.GANG_SIZE_LABEL}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticJob:
    """A suspended Job, and the numbers of members that it may start with."""

    job: Mapping[str, Any]
    sizes: tuple[int, ...]
    """The one that its spec asks for, and then the others in the order of preference."""

    def pod(self, size: int) -> dict[str, Any]:
        """Return a pod that the Job would create with so many members."""
        template = mapping(mapping(self.job.get("spec")).get("template"))
        metadata = mapping(self.job.get("metadata"))
        labels = {**marks_of(template, "labels"), marks.GANG_SIZE_LABEL: str(size)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **mapping(template.get("metadata")),
                "labels": labels,
                "namespace": metadata.get("namespace"),
                "generateName": f"{metadata.get('name')}-",
            },
            "spec": template.get("spec"),
        }

    def start_patch(self, size: int) -> dict[str, Any]:
        """Return the merge patch that resumes the Job with so many members."""
        labels = {marks.GANG_SIZE_LABEL: str(size)}
        return {
            **started_patch(self.job),
            "spec": {
                "suspend": False,
                "parallelism": size,
                "completions": size,
                "template": {"metadata": {"labels": labels}},
            },
        }


def started_patch(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that says that a Job is not resized any more."""
    metadata = mapping(job.get("metadata"))
    return {
        "metadata": {
            "uid": metadata.get("uid"),
            "resourceVersion": metadata.get("resourceVersion"),
            "labels": {marks.ELASTIC_LABEL: STARTED},
        }
    }


def has_begun(job: Mapping[str, Any]) -> bool:
    """Tell whether a Job has, or may have had, pods.

    Its owner has resumed it then. If it is suspended again, that is not for Cellgate to end.
    """
    status = mapping(job.get("status"))
    return mapping(job.get("spec")).get("suspend") is not True or any(map(status.get, _BEGUN))


def read_elastic(job: Mapping[str, Any]) -> ElasticJob | None:
    """Read the sizes of a Job; None if it lists none. Raises RequestError with every problem."""
    text = marks_of(job, "annotations").get(marks.ALTERNATIVES_ANNOTATION)
    if text is None or (job.get("apiVersion"), job.get("kind")) != ("batch/v1", "Job"):
        return None
    sizes = parse_sizes(str(text), path=ANNOTATION_PATH)
    problems = list(_problems(job, sizes))
    if problems:
        raise RequestError(problems)
    return ElasticJob(job=job, sizes=(mapping(job.get("spec"))["parallelism"], *sizes))


def _problems(job: Mapping[str, Any], sizes: tuple[int, ...]) -> Iterator[Problem]:
    spec = mapping(job.get("spec"))
    labels = marks_of(mapping(spec.get("template")), "labels")
    size = spec.get("parallelism")
    if not isinstance(size, int):
        yield Problem("spec.parallelism", f"must be a whole number, not {describe(size)}")
    if spec.get("suspend") is not True:
        yield Problem("spec.suspend", "must be true: a Job that has pods is not resized")
    if marks_of(job, "labels").get(marks.KUEUE_QUEUE_LABEL) or spec.get("managedBy"):
        yield Problem("spec.suspend", "belongs to another controller, such as Kueue")
    if spec.get("completionMode") != "Indexed" or size != spec.get("completions"):
        told = "must be Indexed, with completions equal to parallelism: no other Job is elastic"
        yield Problem("spec.completionMode", told)
    if labels.get(marks.GANG_SIZE_LABEL) != str(size):
        yield Problem(_LABEL_PATH, f"must be the parallelism, {size}, as text")
    least = parse_number(str(labels.get(marks.GANG_MIN_LABEL) or "1")) or 1
    for index, one in enumerate(sizes):
        if isinstance(size, int) and not least <= one < size:
            told = f"must be less than the parallelism, {size}, and at least {least}"
            yield Problem(f"{ANNOTATION_PATH}[{index}].members", told)


def elastic_patch(job: Mapping[str, Any]) -> list[Operation]:
    """Return the patch that marks a new elastic Job. Raises RequestError."""
    is_elastic = read_elastic(job) is not None
    return labels_patch(job, {marks.ELASTIC_LABEL: WAITING}) if is_elastic else []
