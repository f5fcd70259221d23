"""Tells the owner of a Job what its preemption would cost, and what to add.

A Job counts each pod that is deleted as a failure, and fails for good after `backoffLimit`. That
does not happen to a Job whose `podFailurePolicy` ignores disruptions, nor to one that the extender
may suspend (`kube.read.suspension`). Where a shape says so, a new Job gets such a policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kube.follow.policies import PolicySink
from kube.read.suspension import SUSPENDABLE, obstacle
from kube.values.objects import Operation, items, mapping
from policy.admission.gang_decision import PREFIX
from policy.classes import OPPORTUNISTIC
from policy.rules.decision import WARNING_CHARS
from policy.submission import ClassName
from policy.wording import plain

_JOB: Final = SUSPENDABLE["batch", "Job"]
_CONDITION: Final = "DisruptionTarget"
_RULE: Final = f"{{action: Ignore, onPodConditions: [{{type: {_CONDITION}}}]}}"
_POLICY: Final = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": _CONDITION}]}]}
_FIELD: Final = "podFailurePolicy"
_REPLACEMENT: Final = "podReplacementPolicy"


@dataclass(frozen=True, slots=True)
class Advice:
    """What an object gets, and what its owner is told."""

    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()


class PreemptionAdvice:
    """Warns about Jobs that preemption would make fail."""

    def __init__(self, policies: PolicySink, *, is_gentle: bool) -> None:
        """`is_gentle`: the extender suspends and resumes Jobs, where it may."""
        self._policies = policies
        self._is_gentle = is_gentle

    def of(
        self, obj: Mapping[str, Any], class_name: ClassName, shape: str = "", *, is_new: bool = True
    ) -> Advice:
        """Advise about an object whose pods get this class, if it needs that.

        `shape` is the shape by which it gets a policy, if it has none. The policy of a Job cannot
        be changed after its creation.
        """
        classes = self._policies.policy.classes
        job = _job_of(obj)
        if job is None or classes.cell_priority(class_name) != OPPORTUNISTIC or _ignores(job):
            return Advice()
        if shape and is_new and _takes_policy(job):
            return _give_policy(obj, job, class_name=class_name, shape=shape)
        why = obstacle(job, _JOB)
        if self._is_gentle and why is None:
            return Advice()
        hindrance = f" (Cellgate cannot suspend it: {why})" if self._is_gentle else ""
        line = (
            f"{PREFIX}a Job in class {class_name} may be preempted{hindrance}, and then counts "
            f"each pod as a failure: add to its podFailurePolicy.rules {_RULE}"
        )
        return Advice(warnings=[plain(line, limit=WARNING_CHARS)])


def _takes_policy(job: Mapping[str, Any]) -> bool:
    """Tell whether a Job may have a policy, and has none: what its owner wrote stays."""
    spec = mapping(job.get("spec"))
    pod = mapping(mapping(spec.get("template")).get("spec"))
    return _FIELD not in spec and pod.get("restartPolicy") == "Never"


def _give_policy(
    obj: Mapping[str, Any], job: Mapping[str, Any], *, class_name: ClassName, shape: str
) -> Advice:
    path = "/spec/jobTemplate/spec" if obj.get("kind") == "CronJob" else "/spec"
    line = (
        f"{PREFIX}a Job in class {class_name} may be preempted: shape {shape} adds to its "
        f"podFailurePolicy.rules {_RULE}; it counts no failures then, but still waits before it "
        "creates pods again"
    )
    fields: dict[str, Any] = {_FIELD: _POLICY}
    if _REPLACEMENT in mapping(job.get("spec")):
        fields[_REPLACEMENT] = "Failed"  # its default is not allowed beside the policy
    patch = [
        {"op": "add", "path": f"{path}/{name}", "value": value} for name, value in fields.items()
    ]
    return Advice(patch=patch, warnings=[plain(line, limit=WARNING_CHARS)])


def _job_of(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the Job that an object is, or that it creates; None for any other object."""
    if obj.get("kind") == "CronJob":
        return mapping(mapping(obj.get("spec")).get("jobTemplate"))
    return obj if obj.get("kind") == "Job" and obj.get("apiVersion") == "batch/v1" else None


def _ignores(job: Mapping[str, Any]) -> bool:
    """Tell whether a Job does not count pods that are deleted by a preemption."""
    policy = mapping(mapping(job.get("spec")).get("podFailurePolicy"))
    return any(
        rule.get("action") == "Ignore"
        and any(one.get("type") == _CONDITION for one in items(rule.get("onPodConditions")))
        for rule in items(policy.get("rules"))
    )
