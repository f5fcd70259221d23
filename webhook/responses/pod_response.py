"""The response about a pod: the patch with its class and gate, warnings, or a refusal. Pure."""

from collections.abc import Mapping, Sequence
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
    pod: ManagedPod,
    request: ChargeRequest,
    decision: GangDecision,
    shaped: Shaped,
    gates_all: bool,
) -> ReviewResponse:
    """Refuse a pod, or write the decision into it."""
    if decision.outcome is Outcome.REFUSED:
        return respond_with(decision)
    if pod.node is not None and decision.outcome is Outcome.QUEUED:
        return refuse(_CANNOT_WAIT.format(node=pod.node))
    patch = decision_patch(
        obj, pod=pod, request=request, decision=decision, shaped=shaped, gates_all=gates_all
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


def forget_decision(obj: Mapping[str, Any]) -> ReviewResponse:
    """Allow a pod that is not managed, without a decision that its author wrote.

    The guard would believe it if another webhook made the pod ask for leaf cells later.
    """
    patch = patches.unmark_patch(obj, (marks.DECISION_ANNOTATION,))
    return ReviewResponse(is_allowed=True, patch=patch)
