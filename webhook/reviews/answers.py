"""From a verdict to what the API server is told: patch, warnings, refusal. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kube import marks
from kube.hived.spec import format_spec
from kube.read.pods import ManagedPod
from kube.read.submitters import format_submitter_groups
from kube.values.texts import LABEL_VALUE
from policy.rules.decision import Outcome
from webhook.admission.verdict import Request, Verdict
from webhook.reviews import patches
from webhook.reviews.decided_request import describe_request
from webhook.reviews.submitter import Submitter
from webhook.shaping.shaper import Shaped
from webhook.wire import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """What is written into every managed pod."""

    scheduler_name: str = marks.SCHEDULER_NAME
    gates_all: bool = False
    """Whether the planner holds every gang until it is planned. Without a planner that lifts gates,
    pods would wait for ever. Gangs that quotas queue are gated in any case."""


_CANNOT_WAIT = (
    "quota is used up, and a pod that names its node ({node}) cannot wait for it; "
    "leave spec.nodeName out"
)


def build_answer(
    obj: Mapping[str, Any],
    pod: ManagedPod,
    submitter: Submitter,
    verdict: Verdict,
    request: Request,
    *,
    shaped: Shaped,
    settings: AnswerSettings,
) -> Answer:
    """Refuse a pod, or write into it what was decided."""
    if verdict.outcome is Outcome.REFUSED:
        return Answer(is_allowed=False, message=verdict.admission.format_refusal())
    if pod.node is not None and verdict.outcome is Outcome.QUEUED:
        return Answer(is_allowed=False, message=_CANNOT_WAIT.format(node=pod.node))
    is_queued = verdict.outcome is Outcome.QUEUED
    annotations = {
        marks.SUBMITTER_ANNOTATION: submitter.user,
        marks.SUBMITTER_GROUPS_ANNOTATION: format_submitter_groups(submitter.groups),
        marks.REQUESTED_CLASS_ANNOTATION: request.submission.requested_class,
        marks.CLASS_ANNOTATION: verdict.final_class,
        marks.DECISION_ANNOTATION: str(verdict.decision),
        marks.REQUEST_ANNOTATION: describe_request(obj, pod),
        **_hived_annotation(pod, verdict, request),
        **shaped.annotations,
        **({marks.UNCHARGED_ANNOTATION: "true"} if is_queued else {}),
        **({marks.ALONE_ANNOTATION: "true"} if pod.is_charged_alone else {}),
    }
    # Kubernetes takes no gate on a pod that names its node: it goes there, and is counted there.
    is_gated = pod.node is None and (settings.gates_all or is_queued)
    patch = [
        *patches.class_patch(obj, verdict.final_class),
        *patches.annotations_patch(obj, annotations),
        *patches.labels_patch(obj, _group_label(verdict)),
        *patches.unmark_patch(obj, marks.PLACEMENT_ANNOTATIONS),
        *patches.unmark_patch(obj, () if is_queued else (marks.UNCHARGED_ANNOTATION,)),
        *patches.unmark_patch(obj, () if pod.is_charged_alone else (marks.ALONE_ANNOTATION,)),
        *patches.unmark_patch(obj, () if shaped.lines else (marks.SHAPED_ANNOTATION,)),
        *shaped.patch,
        *patches.scheduler_patch(obj, settings.scheduler_name),
        *patches.gate_patch(obj, marks.QUEUED_GATE, is_wanted=is_gated),
    ]
    return Answer(
        is_allowed=True, patch=patch, warnings=[*verdict.format_warnings(), *shaped.warnings]
    )


def forget_decision(obj: Mapping[str, Any]) -> Answer:
    """Let a pod pass that asks for nothing, without a decision that its author wrote.

    It would be believed if another webhook made the pod ask for leaf cells later.
    """
    return Answer(is_allowed=True, patch=patches.unmark_patch(obj, (marks.DECISION_ANNOTATION,)))


def _group_label(verdict: Verdict) -> dict[str, str]:
    """Name the group that pays, so that the pod tells all about its charge; if a label can."""
    if verdict.group is None or LABEL_VALUE.problem(verdict.group) is not None:
        return {}
    return {marks.GROUP_LABEL: verdict.group}


def _hived_annotation(pod: ManagedPod, verdict: Verdict, request: Request) -> dict[str, str]:
    """Write the class's cell priority, else an opportunistic pod could call itself guaranteed."""
    priority = request.policy.classes.cell_priority(verdict.final_class)
    if pod.hived is None or priority is None or pod.hived.priority == priority:
        return {}
    return {marks.HIVED_SPEC_ANNOTATION: format_spec(replace(pod.hived, priority=priority))}
