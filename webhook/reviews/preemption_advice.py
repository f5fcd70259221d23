"""Tells the owner of a Job what its preemption would cost, and what to add.

A Job counts each pod that is deleted as a failure, and fails for good after `backoffLimit`. That
does not happen to a Job whose `podFailurePolicy` ignores disruptions, nor to one that the extender
may suspend (`kube.read.suspension`).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kube.follow.policies import PolicySink
from kube.read.suspension import SUSPENDABLE, obstacle
from kube.values.objects import items, mapping
from policy.admission.gang_decision import PREFIX
from policy.classes import OPPORTUNISTIC
from policy.rules.decision import WARNING_CHARS
from policy.submission import ClassName
from policy.wording import plain

_JOB: Final = SUSPENDABLE["batch", "Job"]
_CONDITION: Final = "DisruptionTarget"
_RULE: Final = f"{{action: Ignore, onPodConditions: [{{type: {_CONDITION}}}]}}"


class PreemptionAdvice:
    """Warns about Jobs that preemption would make fail."""

    def __init__(self, policies: PolicySink, *, is_gentle: bool) -> None:
        """`is_gentle`: the extender suspends and resumes Jobs, where it may."""
        self._policies = policies
        self._is_gentle = is_gentle

    def of(self, obj: Mapping[str, Any], class_name: ClassName) -> Iterator[str]:
        """Yield the warning for an object whose pods get this class, if it needs one."""
        classes = self._policies.policy.classes
        job = _job_of(obj)
        if job is None or classes.cell_priority(class_name) != OPPORTUNISTIC or _ignores(job):
            return
        why = obstacle(job, _JOB)
        if self._is_gentle and why is None:
            return
        hindrance = f" (Cellgate cannot suspend it: {why})" if self._is_gentle else ""
        line = (
            f"{PREFIX}a Job in class {class_name} may be preempted{hindrance}, and then counts "
            f"each pod as a failure: add to its podFailurePolicy.rules {_RULE}"
        )
        yield plain(line, limit=WARNING_CHARS)


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
