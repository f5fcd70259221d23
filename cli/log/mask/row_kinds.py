"""Every kind of row: what its subject names, and its fields. A row of another kind is emptied."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cli.log.mask.admission_rows import ADMISSION_DETAILS, ADMISSION_INPUTS
from cli.log.mask.engine_rows import DECISION_INPUTS, ENGINE_INPUTS, decision
from cli.log.mask.fields import (
    Mask,
    Pass,
    each,
    moment,
    name,
    number,
    text_of,
    words,
)
from cli.log.mask.names import Kind
from cli.log.mask.queue_rows import (
    FOLLOWED_INPUTS,
    ORDER_DETAILS,
    ORDER_INPUTS,
    RANK_DETAILS,
    RANK_INPUTS,
    RELEASE_DETAILS,
    RELEASE_INPUTS,
    RESERVATION_DETAILS,
    RESERVATION_INPUTS,
    reservation_subject,
)
from cli.log.mask.structures import (
    class_name,
    gang_text,
    group,
    node,
    object_text,
    pod_text,
    sentence,
    uid,
    user,
    vc,
)
from extender.cells.model import ReasonCode
from extender.cluster.journal import SERVICE
from extender.outcomes.gang_ends import EndWay
from extender.queue.reserve.model import ReservationStep
from extender.runs.model import Ending
from policy.queues.holds import HoldRole
from policy.rules.decision import Outcome
from state.log.records import RowKind

WEBHOOK: Final = "webhook"
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_OBJECTS: Final = ("", "Pod", "Job", "CronJob", "ConfigMap", "Deployment", "StatefulSet")
_API_GROUPS: Final = ("batch", "apps")

_object: Final = name(Kind.OBJECT)
_role: Final = words(*HoldRole)


def _object_kind(value: object, now: Pass, where: str) -> str:
    """Mask a kind of objects, unless Kubernetes defines it."""
    text = text_of(value, where)
    return text if text in (*_OBJECTS, *_API_GROUPS) else now.names.of(Kind.OBJECT, text)


def _workload(value: object, now: Pass, where: str) -> str:
    """Mask `group/Kind/name/uid`, or `Kind/name`."""
    *kinds, last = text_of(value, where).split("/")
    if len(kinds) < 2:
        return "/".join(
            [*(_object_kind(one, now, where) for one in kinds), _object(last, now, where)]
        )
    *kinds, named = kinds
    shown = [_object_kind(one, now, where) for one in kinds]
    return "/".join([*shown, _object(named, now, where), uid(last, now, where)])


def _edited(value: object, now: Pass, where: str) -> str:
    """Mask `billing/<user>`."""
    begin, _, editor = text_of(value, where).partition("/")
    return f"{words('billing')(begin, now, where)}/{user(editor, now, where)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMask:
    """How the rows of a kind with an outcome are masked."""

    subject: Mask
    details: Mapping[str, Mask] = field(default_factory=dict)
    inputs: Mapping[str, Mask] = field(default_factory=dict)


RowKey = tuple[str, str, str]
"""The service, the kind and the outcome."""


def _rows(
    service: str, kind: RowKind | str, outcomes: Iterable[str], mask: RowMask
) -> dict[RowKey, RowMask]:
    return {(service, str(kind), str(outcome)): mask for outcome in outcomes}


def _engine(kind: RowKind, outcomes: str, subject: Mask, *inputs: str) -> dict[RowKey, RowMask]:
    known = {one: ENGINE_INPUTS[one] for one in inputs}
    return _rows(SERVICE, kind, outcomes.split(), RowMask(subject=subject, inputs=known))


_OBSERVATIONS: Final = {
    **_engine(RowKind.NODE, "observed", node, "node"),
    **_engine(RowKind.NODE, "gone", node),
    **_engine(RowKind.DOCUMENT, "begun", words("settings"), "leaseSeconds"),
    **_engine(RowKind.DOCUMENT, "changing in-force", words("cluster"), "document"),
    **_engine(RowKind.DOCUMENT, "removing removed building built", words("cluster")),
    **_engine(RowKind.DOCUMENT, "advanced", words("cluster"), "steps", "isLast"),
    **_engine(RowKind.DOCUMENT, "reranking reranked", words("classes"), "priorities"),
    **_engine(RowKind.DOCUMENT, "suspended resumed", words("classes")),
    **_engine(RowKind.DOCUMENT, "raised", words("classes"), "gang", "priority"),
    **_engine(RowKind.POD, "found released runs", gang_text, "request", "placement", "foreign"),
    **_engine(RowKind.POD, "recovered", words("cluster"), "now"),
    **_engine(RowKind.POD, "ending overdue ended", uid),
    **_engine(RowKind.POD, "budget", gang_text, "gang", "breaks"),
    **_engine(RowKind.POD, "minimum-run", gang_text, "gang", "seconds"),
    **_engine(RowKind.EXPIRY, "expired", words("leases"), "now"),
    **_engine(RowKind.EXPIRY, "renewed", gang_text, "now", "owner"),
}
_DECIDED: Final = RowMask(
    subject=gang_text,
    details={"pod": pod_text, "leafCount": number, "decision": decision},
    inputs=DECISION_INPUTS,
)
_DECISIONS: Final = {
    **_rows(SERVICE, RowKind.PLACEMENT, ("placed", *ReasonCode), _DECIDED),
    **_rows(SERVICE, RowKind.PREEMPTION, ("placed", *ReasonCode), _DECIDED),
}


_queue: Final = words("queue", "queues")
_QUEUE: Final = {
    **_rows(
        SERVICE,
        RowKind.DOCUMENT,
        ("followed",),
        RowMask(subject=_queue, inputs=FOLLOWED_INPUTS),
    ),
    **_rows(
        SERVICE,
        RowKind.ORDERING,
        ("ranked", "left"),
        RowMask(subject=reservation_subject, details=RANK_DETAILS, inputs=RANK_INPUTS),
    ),
    **_rows(
        SERVICE,
        RowKind.ORDERING,
        ("reordered",),
        RowMask(subject=_queue, details=ORDER_DETAILS, inputs=ORDER_INPUTS),
    ),
    **_rows(
        SERVICE,
        RowKind.RESERVATION,
        ReservationStep,
        RowMask(
            subject=reservation_subject, details=RESERVATION_DETAILS, inputs=RESERVATION_INPUTS
        ),
    ),
    **_rows(
        SERVICE,
        RowKind.RELEASE,
        ("released",),
        RowMask(subject=gang_text, details=RELEASE_DETAILS, inputs=RELEASE_INPUTS),
    ),
}


def _noted(
    kind: RowKind, outcomes: str, subject: Mask = gang_text, **details: Mask
) -> dict[RowKey, RowMask]:
    return _rows(SERVICE, kind, outcomes.split(), RowMask(subject=subject, details=details))


_ENDED: Final[Mapping[str, Mask]] = {
    "pod": pod_text,
    "workload": _workload,
    "firstAsked": moment,
    "times": number,
}
_NOTES: Final = {
    **_noted(RowKind.PREEMPTION, "moves", victims=each(gang_text), nodes=each(node)),
    **_noted(RowKind.PREEMPTION, "warned", pod=pod_text, graceSeconds=number),
    **_noted(RowKind.PREEMPTION, " ".join(EndWay), **_ENDED),
    **_noted(RowKind.BIND, "bound", pod_text, node=node, leafCells=each(number), charge=gang_text),
    **_noted(RowKind.BIND, "given-up"),
    **_noted(RowKind.RELEASE, "resized", object_text, members=number, asked=number),
    **_noted(RowKind.HOLD, "released"),
    **_noted(RowKind.START_BY, "missed", startBy=moment),
    **_noted(
        RowKind.ADMISSION,
        "raised",
        decisionId=uid,
        user=user,
        group=group,
        vc=vc,
        **{"class": class_name, "raisedFrom": class_name},
        leafCount=number,
    ),
    **_noted(
        RowKind.RUN,
        " ".join(("running", "waiting", *Ending)),
    ),
}


def _webhook(
    kind: RowKind | str,
    outcomes: str,
    subject: Mask,
    details: Mapping[str, Mask],
    inputs: Mapping[str, Mask] | None = None,
) -> dict[RowKey, RowMask]:
    mask = RowMask(subject=subject, details=details, inputs=inputs or {})
    return _rows(WEBHOOK, kind, outcomes.split(), mask)


_ADMITTED: Final[Mapping[str, Mask]] = {
    **ADMISSION_DETAILS,
    "operation": words(*_OPERATIONS),
    "kind": _object_kind,
    "object": object_text,
}
_CANCELLED: Final[Mapping[str, Mask]] = {
    "user": user,
    "role": _role,
    "why": sentence,
    "pod": pod_text,
    "workload": _workload,
    "workloadUid": uid,
}
_REVIEWS: Final = {
    **_webhook(
        RowKind.ADMISSION, "lowered " + " ".join(Outcome), gang_text, _ADMITTED, ADMISSION_INPUTS
    ),
    **_webhook(
        RowKind.HOLD, "held released", gang_text, {"user": user, "role": _role, "hold": sentence}
    ),
    **_webhook(RowKind.SWAP, "swapped undone", gang_text, {"user": user, "with": gang_text}),
    **_webhook(RowKind.CANCEL, "cancelled", gang_text, _CANCELLED),
    **_webhook("limits", "changed", _edited, {"editor": user}),
}
ROWS: Final[Mapping[RowKey, RowMask]] = {
    **_OBSERVATIONS,
    **_DECISIONS,
    **_QUEUE,
    **_NOTES,
    **_REVIEWS,
}
"""All kinds of rows."""
