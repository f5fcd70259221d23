"""What was asked for, from the webhook's rows of the decision log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from policy.rules.decision import Outcome
from state.log.records import DecisionRecord, RowKind

SERVICE: Final = "webhook"
_RETRY_SECONDS: Final = 900.0
"""A controller submits a refused pod again after at most some minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One gang as it was submitted."""

    gang: str
    at: float
    user: str
    groups: tuple[str, ...]
    vc: str
    requested_class: str
    leaf_cells: int
    members: int
    leaf_type: str | None
    labels: Mapping[str, str]
    cpu_millis: int
    memory_bytes: int
    is_refused: bool
    retries: int = 0
    """How often it was refused before, and submitted again."""


def read_submission(record: DecisionRecord) -> Asked | None:
    """Read a row; None for one of another kind, or without what a gang asked for."""
    details, inputs = record.details, record.inputs
    is_decision = record.service == SERVICE and record.kind == RowKind.ADMISSION
    if not is_decision or not details.get("leafCount") or inputs.get("isHelper"):
        return None
    if "held" in inputs:
        return None  # a member that was refused, of a gang that was admitted before
    leaf_cells, members = int(details["leafCount"]), max(1, int(inputs.get("gangSize") or 1))
    own = max(1, int(inputs.get("ownLeafCount") or leaf_cells // members))
    return Asked(
        gang=record.subject,
        at=record.at.timestamp(),
        user=_text(details, "user"),
        groups=tuple(map(str, inputs.get("groups") or ())),
        vc=_text(details, "vc"),
        requested_class=_text(details, "requestedClass"),
        leaf_cells=leaf_cells,
        members=members,
        leaf_type=inputs.get("leafType"),
        labels=inputs.get("labels") or {},
        cpu_millis=_of_gang(inputs, "cpuMillis", "gangCpuMillis", leaf_cells, own=own),
        memory_bytes=_of_gang(inputs, "memoryBytes", "gangMemoryBytes", leaf_cells, own=own),
        is_refused=record.outcome == Outcome.REFUSED,
    )


def _of_gang(inputs: Mapping[str, Any], each: str, whole: str, leaf_cells: int, *, own: int) -> int:
    """Return what a gang requests; without a sum, its members request alike by leaf cell."""
    if whole in inputs:
        return int(inputs[whole])
    return int(inputs.get(each) or 0) * leaf_cells // own


def _text(row: Mapping[str, Any], name: str) -> str:
    return str(row.get(name) or "")


def without_retries(found: Iterable[Asked]) -> list[Asked]:
    """Return one submission for each gang that was refused and submitted again, in their order.

    A gang that was admitted at last counts from then on, any other from its first refusal.
    """
    refused: dict[tuple[str, str], tuple[Asked, float]] = {}
    done: list[Asked] = []
    for asked in sorted(found, key=lambda one: (one.at, one.gang)):
        known, at = refused.pop((asked.gang, asked.user), (None, asked.at))
        if known is not None and asked.at - at > _RETRY_SECONDS:
            done.append(known)
            known = None
        retries = 0 if known is None else known.retries + 1
        if not asked.is_refused:
            done.append(replace(asked, retries=retries))
        else:
            first = known or asked
            refused[asked.gang, asked.user] = replace(first, retries=retries), asked.at
    done += [asked for asked, _ in refused.values()]
    return sorted(done, key=lambda one: (one.at, one.gang))
