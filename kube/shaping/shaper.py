"""Apply shapes to a pod. Pure: pod and shapes in, patch, lines and warnings out.

Shaping a shaped pod changes nothing and lists the same lines again: a line of the pod's annotation
that is still true is kept, and any other text of the submitter there is dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kube import marks
from kube.shaping.amounts import shape_amounts
from kube.shaping.container_fields import shape_containers
from kube.shaping.pod_fields import limit_run_time, shape_pod_fields
from kube.shaping.spec_draft import SpecDraft
from kube.values.objects import Operation
from policy.shaping import Shape
from policy.submission import UserName


@dataclass(frozen=True, slots=True)
class Shaped:
    """What shapes do to a pod."""

    patch: Sequence[Operation] = ()
    lines: Sequence[str] = ()
    """What the shapes set, in their order."""
    warnings: Sequence[str] = ()
    """What the submitter had specified differently."""
    spec: Mapping[str, Any] | None = None
    """The shaped spec; None if nothing shapes the pod."""
    ignores_disruptions: str = ""
    """The shape that lets a Job of such pods ignore disruptions; empty if none does."""

    @property
    def annotations(self) -> dict[str, str]:
        """The annotation that lists the lines."""
        return {marks.SHAPED_ANNOTATION: "\n".join(self.lines)} if self.lines else {}


def shape_pod(pod: Mapping[str, Any], shapes: Sequence[Shape], *, user: UserName | None) -> Shaped:
    """Apply shapes to a pod. Raises RequestError if the pod contradicts them."""
    if not shapes:
        return Shaped()
    draft = SpecDraft(pod, user=user)
    for shape in shapes:
        draft.shape = shape.name
        shape_pod_fields(draft, shape)
        shape_amounts(draft, shape)
        shape_containers(draft, shape)
        if shape.max_run_seconds is not None:
            limit_run_time(draft, shape.max_run_seconds)
    draft.check()
    ignores = next((shape.name for shape in shapes if shape.ignores_disruptions), "")
    return Shaped(draft.patch(), draft.lines, draft.warnings, draft.spec, ignores)
