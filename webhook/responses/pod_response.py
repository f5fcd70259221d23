"""The response about a pod: the patch with its class and gate, warnings, or a refusal. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kube import marks
from kube.hived.spec import format_spec
from kube.read.gangs import GangForm
from kube.read.late_members import format_late
from kube.read.managed_pod import ManagedPod
from kube.read.submitters import format_submitter_groups
from kube.shaping.shaper import Shaped
from kube.values.objects import Operation, mapping
from kube.values.texts import LABEL_VALUE
from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import GangDecision
from policy.rules.decision import Outcome
from webhook.responses import patches
from webhook.responses.request_line import describe_request
from webhook.wire import ReviewResponse, refuse

_CANNOT_WAIT = (
    "must wait for quota, but a pod with spec.nodeName ({node}) cannot have a scheduling gate; "
    "leave spec.nodeName out"
)


def respond_to_pod(
    obj: Mapping[str, Any],
    *,
    asked: Mapping[str, Any],
    pod: ManagedPod,
    request: ChargeRequest,
    decision: GangDecision,
    shaped: Shaped,
    gates_all: bool,
) -> ReviewResponse:
    """Refuse a pod, or write the decision into it.

    `asked` is the pod with the leaf cells that it was decided with; a shape may have fixed them.
    """
    if decision.outcome is Outcome.REFUSED:
        return replace(respond_with(decision), is_recorded=True)
    is_queued = decision.outcome is Outcome.QUEUED
    if pod.node is not None and is_queued:
        return refuse(_CANNOT_WAIT.format(node=pod.node))
    submission = request.submission
    annotations = {
        marks.SUBMITTER_ANNOTATION: submission.user,
        marks.SUBMITTER_GROUPS_ANNOTATION: format_submitter_groups(submission.groups),
        marks.REQUESTED_CLASS_ANNOTATION: submission.requested_class,
        marks.CLASS_ANNOTATION: decision.final_class,
        marks.DECISION_ANNOTATION: str(decision.decision_id),
        marks.REQUEST_ANNOTATION: describe_request(asked, pod),
        **_hived_annotation(pod, decision, request),
        **shaped.annotations,
        **_quota_annotations(decision),
        **({marks.UNCHARGED_ANNOTATION: "true"} if is_queued and not pod.is_helper else {}),
        **({marks.ALONE_ANNOTATION: "true"} if pod.is_charged_alone else {}),
        **({marks.WORKLOAD_ANNOTATION: pod.workload.mark} if pod.workload else {}),
        **_gang_by(obj, pod),
        **({marks.LATE_ANNOTATION: format_late(pod.gang.late)} if pod.gang.late else {}),
    }
    # Kubernetes refuses a gate on a pod with a node: it runs there, and is counted there.
    is_gated = pod.node is None and (gates_all or is_queued)
    patch = [
        *patches.class_patch(obj, decision.final_class),
        *patches.annotations_patch(obj, annotations),
        *patches.labels_patch(obj, _group_label(decision)),
        *patches.unmark_patch(obj, _stale_marks(annotations)),
        *shaped.patch,
        *patches.scheduler_patch(obj, marks.SCHEDULER_NAME),
        *patches.gate_patch(obj, marks.QUEUED_GATE, is_wanted=is_gated),
    ]
    return respond_with(decision, patch=patch, warnings=shaped.warnings)


def respond_with(
    decision: GangDecision, *, patch: Sequence[Operation] = (), warnings: Sequence[str] = ()
) -> ReviewResponse:
    """Refuse an object with the reasons of the decision, or allow it with this patch.

    The warnings follow those of the decision.
    """
    if decision.outcome is Outcome.REFUSED:
        return refuse(decision.admission.format_refusal())
    told = (*decision.format_warnings(), *warnings)
    return ReviewResponse(is_allowed=True, patch=patch, warnings=told)


def respond_shaped(obj: Mapping[str, Any], shaped: Shaped) -> ReviewResponse:
    """Allow a pod that is not managed, with its shapes, without marks that its author wrote.

    The guard would believe a decision if another webhook made the pod ask for leaf cells later.
    """
    written = shaped.annotations
    ours = (marks.DECISION_ANNOTATION, marks.SHAPED_ANNOTATION)
    patch = [
        *(patches.annotations_patch(obj, written) if written else ()),
        *patches.unmark_patch(obj, [key for key in ours if key not in written]),
        *shaped.patch,
    ]
    return ReviewResponse(is_allowed=True, patch=patch, warnings=shaped.warnings)


def _stale_marks(written: Mapping[str, str]) -> list[str]:
    """Return the marks that only we write, and that this decision does not."""
    optional = (
        marks.UNCHARGED_ANNOTATION,
        marks.RELEASED_ANNOTATION,
        marks.ALONE_ANNOTATION,
        marks.SHAPED_ANNOTATION,
        marks.OVER_QUOTA_ANNOTATION,
        marks.EFFECTIVE_CLASS_ANNOTATION,
        marks.WORKLOAD_ANNOTATION,
        marks.GANG_BY_ANNOTATION,
    )
    return [key for key in (*marks.PLACEMENT_ANNOTATIONS, *optional) if key not in written]


def _gang_by(obj: Mapping[str, Any], pod: ManagedPod) -> dict[str, str]:
    """Say that our labels name the gang, if the pod also has a PodGroup, which is none then."""
    has_group = mapping(obj.get("spec")).get("schedulingGroup") is not None
    is_by_labels = has_group and pod.gang.form is GangForm.CELLGATE
    return {marks.GANG_BY_ANNOTATION: marks.BY_LABELS} if is_by_labels else {}


def _quota_annotations(decision: GangDecision) -> dict[str, str]:
    """Say which class quotas keep from the gang, or that the gang was raised since."""
    told = {
        marks.OVER_QUOTA_ANNOTATION: decision.rises_to,
        marks.EFFECTIVE_CLASS_ANNOTATION: decision.effective_class,
    }
    return {key: class_name for key, class_name in told.items() if class_name is not None}


def _group_label(decision: GangDecision) -> dict[str, str]:
    """Name the group that pays, if a label can, so that the pod says all about its charge."""
    if decision.group is None or LABEL_VALUE.problem(decision.group) is not None:
        return {}
    return {marks.GROUP_LABEL: decision.group}


def _hived_annotation(
    pod: ManagedPod, decision: GangDecision, request: ChargeRequest
) -> dict[str, str]:
    """Write the class's cell priority, else an opportunistic pod could call itself guaranteed."""
    priority = request.policy.classes.cell_priority(decision.final_class)
    if pod.hived is None or priority is None or pod.hived.priority == priority:
        return {}
    return {marks.HIVED_SPEC_ANNOTATION: format_spec(replace(pod.hived, priority=priority))}
