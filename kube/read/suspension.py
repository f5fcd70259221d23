"""Workloads that can be suspended: which kinds, whether Cellgate may, and what marks them.

To suspend a workload ends all its pods and counts no failure; to resume it creates them anew. Only
one program may use the field: an object whose `suspend` another field manager owns is left alone.

A workload that Cellgate suspended carries a *mark*: an annotation that says why, for which gang and
since when the workload asks, and a label by which a new leader finds it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self
from uuid import UUID

import orjson

from kube.marks import KUEUE_QUEUE_LABEL, RECLAIMED_MARK, SUBMITTER_ANNOTATION
from kube.values.objects import items, mapping, marks_of
from policy.submission import UserName

FIELD_MANAGER: Final = "cellgate-reclaim"
"""Under this name, and no other, Cellgate writes `suspend`."""
SUSPENDED: Final = "suspended"
RESUMED: Final = "resumed"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_CONDITION: Final = "Suspended"
_FINISHED: Final = ("Complete", "Completed", "Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendableKind:
    """A kind of workload with a field that suspends it."""

    group: str
    kind: str
    parent: tuple[str, ...]
    """The path of the object that has the fields `suspend` and `managedBy`."""
    managed_by: str
    """The value of `managedBy` that names the kind's own controller."""
    needs: str = ""
    """A field of its spec that must be true: without it the controller refuses to suspend it."""

    def patch(self, *, is_suspended: bool) -> dict[str, Any]:
        """Return a merge patch that sets the field."""
        body: dict[str, Any] = {"suspend": is_suspended}
        for name in reversed(self.parent):
            body = {name: body}
        return body


_SPEC: Final = ("spec",)
_RUN_POLICY: Final = ("spec", "runPolicy")
_KUBEFLOW: Final = ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
_BY_SPEC: Final = (
    ("batch", "Job", "kubernetes.io/job-controller"),
    ("jobset.x-k8s.io", "JobSet", "jobset.sigs.k8s.io/jobset-controller"),
    ("trainer.kubeflow.org", "TrainJob", "trainer.kubeflow.org/trainjob-controller"),
)
_ALL: Final = (
    SuspendableKind(
        group="ray.io",
        kind="RayJob",
        parent=_SPEC,
        managed_by="ray.io/kuberay-operator",
        needs="shutdownAfterJobFinishes",
    ),
    *(
        SuspendableKind(group=group, kind=kind, parent=_SPEC, managed_by=own)
        for group, kind, own in _BY_SPEC
    ),
    *(
        SuspendableKind(
            group="kubeflow.org",
            kind=kind,
            parent=_RUN_POLICY,
            managed_by=f"kubeflow.org/{'mpi' if kind == 'MPIJob' else 'training'}-operator",
        )
        for kind in _KUBEFLOW
    ),
)
SUSPENDABLE: Final = {(one.group, one.kind): one for one in _ALL}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimMark:
    """What a workload says about its last reclaim."""

    why: str
    """The reason, as its owner reads it."""
    gang: str
    decision: str
    """The key of the row in the decision log."""
    at: float
    """When it was suspended, in seconds since 1970."""
    first_asked: float
    """When it first asked for its cells, also before earlier reclaims."""
    times: int = 1

    def to_text(self) -> str:
        """Write the annotation."""
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Self | None:
        """Read the mark of a workload; None if it has none that Cellgate could have written."""
        text = marks_of(obj, "annotations").get(RECLAIMED_MARK)
        try:
            found = cls(**orjson.loads(text)) if isinstance(text, str) else None
        except (orjson.JSONDecodeError, TypeError):
            return None
        return found if found is not None and found._is_valid else None

    @property
    def _is_valid(self) -> bool:
        texts, numbers = (self.why, self.gang, self.decision), (self.at, self.first_asked)
        has_types = all(isinstance(one, str) for one in texts) and isinstance(self.times, int)
        has_numbers = all(isinstance(one, int | float) and one >= 0 for one in numbers)
        return has_types and has_numbers and _is_key(self.decision)

    def following(self, before: "ReclaimMark | None") -> "ReclaimMark":
        """Return this mark with the age and the count of the one before it."""
        if before is None:
            return self
        return replace(
            self,
            first_asked=min(self.first_asked, before.first_asked),
            times=before.times + 1,
        )


def _is_key(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def is_suspended(obj: Mapping[str, Any], kind: SuspendableKind) -> bool:
    """Whether a workload is to be suspended, by its spec."""
    return _parent(obj, kind).get("suspend") is True


def has_suspended(obj: Mapping[str, Any]) -> bool:
    """Whether the controller of a workload says that it has suspended it."""
    status = mapping(obj.get("status"))
    return _has_condition(obj, _CONDITION) or status.get("jobDeploymentStatus") == _CONDITION


def has_ended(obj: Mapping[str, Any]) -> bool:
    """Whether a workload is finished: no controller resumes it."""
    of_ray = mapping(obj.get("status")).get("jobDeploymentStatus")
    return of_ray in _FINISHED or any(_has_condition(obj, one) for one in _FINISHED)


def state_of(obj: Mapping[str, Any]) -> object:
    """Return the label that says whether Cellgate has suspended or resumed a workload."""
    return marks_of(obj, "labels").get(RECLAIMED_MARK)


def obstacle(obj: Mapping[str, Any], kind: SuspendableKind) -> str | None:
    """Return why Cellgate must not suspend a workload, or resume it; None if it may."""
    own = _parent(obj, kind)
    if marks_of(obj, "labels").get(KUEUE_QUEUE_LABEL):
        return "Kueue suspends and resumes it"
    manager = own.get("managedBy")
    if isinstance(manager, str) and manager != kind.managed_by:
        return f"its managedBy is {manager}"
    if kind.needs and mapping(obj.get("spec")).get(kind.needs) is not True:
        return f"its controller suspends it only with {kind.needs}: true"
    claimant = next(_claimants(obj, kind), None)
    return None if claimant is None else f"{claimant} sets its suspend field"


def is_ours(obj: Mapping[str, Any], kind: SuspendableKind) -> bool:
    """Whether Cellgate wrote the `suspend` field last, as far as the object tells.

    A program that changes the field takes it over, also if it then writes the same value again.
    """
    entries = items(mapping(obj.get("metadata")).get("managedFields"))
    return not entries or any(
        entry.get("manager") == FIELD_MANAGER and _owns(entry, kind) for entry in entries
    )


def submitter_of(obj: Mapping[str, Any]) -> UserName:
    """Return the submitter that is stamped on the pod templates of a workload; empty if none is.

    Templates lie at different places in different kinds, so all of the spec is searched.
    """
    found, left = dict[str, None](), [obj.get("spec")]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            stamp = marks_of(value, "annotations").get(SUBMITTER_ANNOTATION)
            found |= {stamp: None} if isinstance(stamp, str) else {}
            left += value.values()
        elif isinstance(value, list):
            left += value
    return UserName(next(iter(found))) if len(found) == 1 else UserName("")


def _claimants(obj: Mapping[str, Any], kind: SuspendableKind) -> Iterator[str]:
    """Yield the programs that use the `suspend` field, other than Cellgate.

    A request that creates an object owns all its fields, with those that have their default. So an
    owner by an update counts only if it is not the creator, or if the object was ever suspended.
    """
    if _states_suspend(marks_of(obj, "annotations").get(_LAST_APPLIED), kind):
        yield "kubectl apply"
    metadata = mapping(obj.get("metadata"))
    for entry in items(metadata.get("managedFields")):
        manager = str(entry.get("manager"))
        if manager == FIELD_MANAGER or not _owns(entry, kind):
            continue
        is_creator = entry.get("time") == metadata.get("creationTimestamp")
        is_default = entry.get("operation") == "Update" and (is_creator or not _knows_suspend(obj))
        if not is_default:
            yield manager


def _owns(entry: Mapping[str, Any], kind: SuspendableKind) -> bool:
    fields = mapping(entry.get("fieldsV1"))
    for name in kind.parent:
        fields = mapping(fields.get(f"f:{name}"))
    return "f:suspend" in fields


def _states_suspend(applied: object, kind: SuspendableKind) -> bool:
    try:
        manifest = orjson.loads(applied) if isinstance(applied, str) else {}
    except orjson.JSONDecodeError:
        return False
    return "suspend" in _parent(mapping(manifest), kind)


def _knows_suspend(obj: Mapping[str, Any]) -> bool:
    """Whether a workload was ever suspended, whatever it is now."""
    return any(one.get("type") == _CONDITION for one in _conditions(obj))


def _has_condition(obj: Mapping[str, Any], kind: str) -> bool:
    return any(one.get("type") == kind and one.get("status") == "True" for one in _conditions(obj))


def _conditions(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return items(mapping(obj.get("status")).get("conditions"))


def _parent(obj: Mapping[str, Any], kind: SuspendableKind) -> Mapping[str, Any]:
    for name in kind.parent:
        obj = mapping(obj.get(name))
    return obj
