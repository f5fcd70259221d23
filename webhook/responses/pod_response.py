"""The response about a pod: the patch with its class and gate, warnings, or a refusal. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kube import marks
from kube.admission import patches
from kube.admission.decision_patch import decision_patch
from kube.read.managed_pod import ManagedPod
from kube.shaping.shaper import Shaped
from kube.values.objects import Operation
from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import GangDecision
from policy.rules.decision import Outcome
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
    if pod.node is not None and decision.outcome is Outcome.QUEUED:
        return refuse(_CANNOT_WAIT.format(node=pod.node))
    patch = decision_patch(
        obj,
        asked=asked,
        pod=pod,
        request=request,
        decision=decision,
        shaped=shaped,
        gates_all=gates_all,
    )
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
