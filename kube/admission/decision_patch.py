"""The patch that writes a decision into a pod: its class, marks, scheduler and gate. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kube import marks
from kube.admission import patches
from kube.admission.request_line import describe_request
from kube.hived.spec import format_spec
from kube.read.gangs import GangForm
from kube.read.late_members import format_late
from kube.read.managed_pod import ManagedPod
from kube.read.submitters import format_submitter_groups
from kube.shaping.shaper import Shaped
from kube.values.objects import Operation, mapping, marks_of
from kube.values.texts import LABEL_VALUE
from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import GangDecision
from policy.queues.holds import Holder, HoldRole, format_holder
from policy.rules.decision import Outcome


def decision_patch(
    obj: Mapping[str, Any],
    *,
    asked: Mapping[str, Any],
    pod: ManagedPod,
    request: ChargeRequest,
    decision: GangDecision,
    shaped: Shaped,
    gates_all: bool,
) -> list[Operation]:
    """Return the patch of a pod that may be created; `gates_all` lets every gang wait.

    `asked` is the pod with the leaf cells that it was decided with; a shape may have fixed them.
    """
    is_queued = decision.outcome is Outcome.QUEUED
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
        **_held_by(obj, submission.user),
        **({marks.LATE_ANNOTATION: format_late(pod.gang.late)} if pod.gang.late else {}),
    }
    # Kubernetes refuses a gate on a pod with a node: it runs there, and is counted there.
    is_gated = pod.node is None and (gates_all or is_queued)
    return [
        *patches.class_patch(obj, decision.final_class),
        *patches.annotations_patch(obj, annotations),
        *patches.labels_patch(obj, _group_label(decision)),
        *patches.unmark_patch(obj, _stale_marks(annotations)),
        *shaped.patch,
        *patches.scheduler_patch(obj, marks.SCHEDULER_NAME),
        *patches.gate_patch(obj, marks.QUEUED_GATE, is_wanted=is_gated),
    ]


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
        marks.HELD_BY_ANNOTATION,
        marks.HELD_SECONDS_ANNOTATION,
        marks.SWAPPED_BY_ANNOTATION,
        marks.PLACE_ANNOTATION,
        marks.ALTERNATIVE_ANNOTATION,
    )
    return [key for key in (*marks.PLACEMENT_ANNOTATIONS, *optional) if key not in written]


def _held_by(obj: Mapping[str, Any], owner: str) -> dict[str, str]:
    """Say who holds the gang of a pod that is created with a hold."""
    if marks.HOLD_ANNOTATION not in marks_of(obj, "annotations"):
        return {}
    holder = Holder(role=HoldRole.OWNER, user=owner)
    return {marks.HELD_BY_ANNOTATION: format_holder(holder)}


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
