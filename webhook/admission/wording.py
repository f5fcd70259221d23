"""The sentences about a decision: warnings at `kubectl apply`, refusals, the reason in the log."""

from typing import Final

from policy.rules.decision import class_text
from webhook.admission.gang_decision import GangDecision

PREFIX: Final = "cellgate: "
"""Starts every warning, so that users see where it comes from."""
LEDGER_UNAVAILABLE: Final = "Quota database unavailable; last known usage applied"
USAGE_UNKNOWN: Final = "Quota database unavailable and usage unknown; quotas not applied"


def explain(decision: GangDecision) -> tuple[str, ...]:
    """Explain a decision in full, one or two sentences per element."""
    admission = decision.admission
    if decision.is_new:
        return admission.explain()
    return (f"{admission.rules.asked}.", f"The {_followed(decision)}.", *admission.notes)


def format_warnings(decision: GangDecision) -> tuple[str, ...]:
    """Write the lines that kubectl shows as `Warning:`."""
    admission = decision.admission
    if decision.is_new:
        return admission.format_warnings()
    is_worse = decision.is_lowered or decision.is_queued
    lines = (_followed(decision), *admission.notes) if is_worse else admission.notes
    return tuple(f"{PREFIX}{line}" for line in lines)


def _followed(decision: GangDecision) -> str:
    """Name the decision about the gang that a member before this one led to."""
    submission = decision.admission.rules.submission
    asked = f" instead of {class_text(submission.requested_class)}" if decision.is_lowered else ""
    waits = " and waits for quota" if decision.is_queued else ""
    has = f"has {class_text(decision.final_class)}{asked}{waits}"
    return f"gang {submission.gang} {has} by decision {decision.id}"
