"""Swaps: two gangs of one owner or group exchange their places in the queue.

The user names the other gang on the pods of one of them: `lab/bert-2`. The webhook finds that gang,
and writes which one it is, who asked for the swap, as what and when, in one line:
`owner 2026-11-18T12:00:00Z lab/bert-2@0b1c alice`.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from policy.queues.holds import Holder, HoldRole, describe_holder
from policy.submission import GangKey
from policy.wording import describe, moment

_LONGEST: Final = 512
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
"""Of an object, or the value of a label: nothing else may become part of a request."""
_PARTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapRequest:
    """A swap that the webhook has allowed."""

    other: GangKey
    """The gang whose place a gang takes, and that takes its place."""
    role: HoldRole
    user: str
    at: float
    """In seconds since 1970."""

    def describe_user(self) -> str:
        """Say who asked for it."""
        return describe_holder(Holder(role=self.role, user=self.user))


def parse_swap(text: str, *, namespace: str) -> tuple[str, str]:
    """Return the namespace and the name of the gang that a swap names. Raises ValueError."""
    where, _, gang = text.rpartition("/")
    names = [gang] if "/" not in text else [where, gang]
    if len(text) > _LONGEST or not all(map(_NAME.fullmatch, names)):
        raise ValueError(f"must be <gang> or <namespace>/<gang>, not {describe(text)}")
    return where or namespace, gang


def format_swap(swap: SwapRequest) -> str:
    """Write a swap as one line."""
    other = f"{swap.other.namespace}/{swap.other.stored_name}"
    return f"{swap.role} {moment(swap.at)} {other} {swap.user}"


def read_swap(text: str) -> SwapRequest | None:
    """Read the line that `format_swap` writes; None if it is another text."""
    parts = text.split(" ", _PARTS - 1)
    if len(parts) < _PARTS or parts[0] not in tuple(HoldRole):
        return None
    namespace, _, name = parts[2].partition("/")
    try:
        at = datetime.fromisoformat(parts[1]).timestamp()
    except ValueError:
        return None
    other = GangKey.from_stored(namespace, name)
    return SwapRequest(other=other, role=HoldRole(parts[0]), user=parts[3], at=at)
