"""Cancelled gangs: a user deletes a workload or its pods, perhaps with a reason.

Kubernetes' own deletion ends the gang, with the rights that the user has there. The reason is an
annotation that the user writes before.
"""

from typing import Final

from policy.queues.holds import Holder, HoldRole, describe_holder
from policy.wording import name, plain

LONGEST_REASON: Final = 256


def read_reason(text: object) -> str:
    """Return the reason that a user gave; empty if there is none."""
    return plain(text, limit=LONGEST_REASON) if isinstance(text, str) else ""


def describe_cancel(user: str, role: HoldRole | None, reason: str) -> str:
    """Say who cancelled a gang, and why."""
    who = describe_holder(Holder(role=role, user=user)) if role else f"user {name(user)}"
    return f"{who} cancelled it{f': {reason}' if reason else ''}"
