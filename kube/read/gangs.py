"""Which gang a pod belongs to.

HiveD's annotation comes first: it is a complete scheduling spec, and such a pod must be treated as
HiveD would treat it. Then come the forms of other projects, the native one first, and last our own
labels. Only the first form found counts. A pod without any mark is a gang of one. A native PodGroup
that is no gang does not count beside our labels; the webhook, which knows it, says so on the pod.

A gang's key is the pod's namespace and the gang's name. This holds for HiveD's gangs too, although
HiveD's names are global: a pod must not be able to join a gang of another namespace. A gang by our
labels also belongs to one workload, the topmost controller of its pods, where they have one: two
Jobs with the same labels are two gangs. Each group of a LeaderWorkerSet is a gang. The gangs of all
other forms are named by objects, or by annotations that name one gang each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from kube import marks
from kube.hived.spec import HivedSpec
from kube.read.late_members import parse_late
from kube.read.workloads import Workload
from kube.values.fields import Fields
from kube.values.size_limits import MAX_GANG_SIZE
from kube.values.texts import LABEL_VALUE, OBJECT_NAME
from policy.submission import GangKey


class GangForm(StrEnum):
    """By which labels, annotations or fields a gang was recognised."""

    NATIVE = "native"
    COSCHEDULING = "coscheduling"
    KUEUE = "kueue"
    VOLCANO = "volcano"
    HIVED = "hived"
    CELLGATE = "cellgate"
    SINGLE = "single"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredGang:
    """A gang as one of its members describes it."""

    key: GangKey
    size: int | None
    """How many members it has; None if only a PodGroup can say so."""
    min_size: int | None = None
    """How many are enough to start; None if all are needed or only a PodGroup can say so."""
    form: GangForm
    late: tuple[int, ...] = ()
    """The leaf cells of each member that is created only after others are Ready."""


class PodMarks(NamedTuple):
    """The parts of a pod that can name a gang."""

    spec: Fields
    labels: Fields
    annotations: Fields
    name: str = ""
    workload: Workload | None = None


class _Named(NamedTuple):
    name: str
    size: int | None = None
    min_size: int | None = None
    late: tuple[int, ...] = ()


def read_gang(
    pod: PodMarks, *, namespace: str, single_name: str, hived: HivedSpec | None
) -> DeclaredGang:
    """Recognise a pod's gang; `single_name` names it if it is a gang of one. Problems are noted."""
    if hived is not None:
        name = hived.gang.name if hived.gang else single_name
        size = hived.gang.size if hived.gang else 1
        return DeclaredGang(key=GangKey(namespace, name), size=size, form=GangForm.HIVED)
    for form, read in _READERS if _has_marks(pod) else ():
        named = read(pod)
        if named is not None:
            is_owned = form is GangForm.CELLGATE and pod.workload is not None
            owner = pod.workload.uid if is_owned and pod.workload else ""
            return DeclaredGang(
                key=GangKey(namespace, named.name, owner),
                size=named.size,
                min_size=named.min_size,
                form=form,
                late=named.late,
            )
    return DeclaredGang(key=GangKey(namespace, single_name), size=1, form=GangForm.SINGLE)


def _has_marks(pod: PodMarks) -> bool:
    """Recognise the common case of a pod without any mark quickly."""
    return not (
        pod.labels.values.keys().isdisjoint(_LABELS)
        and pod.annotations.values.keys().isdisjoint(_ANNOTATIONS)
        and pod.spec.values.get("schedulingGroup") is None
    )


def _read_native(pod: PodMarks) -> _Named | None:
    if pod.spec.values.get("schedulingGroup") is None:
        return None
    if pod.annotations.values.get(marks.GANG_BY_ANNOTATION) == marks.BY_LABELS:
        return None
    name = pod.spec.fields("schedulingGroup").text("podGroupName", OBJECT_NAME)
    return _Named(name) if name else None


def _read_coscheduling(pod: PodMarks) -> _Named | None:
    for key in (marks.COSCHEDULING_LABEL, marks.COSCHEDULING_OLD_LABEL):
        name = pod.labels.text(key, LABEL_VALUE)
        if name:
            return _Named(name)
    name = pod.labels.text(marks.COSCHEDULING_LIGHT_LABEL, LABEL_VALUE)
    if not name:
        return None
    min_size = pod.labels.number_text(marks.COSCHEDULING_LIGHT_MIN_LABEL, maximum=MAX_GANG_SIZE)
    return _Named(name, min_size=min_size)


def _read_kueue(pod: PodMarks) -> _Named | None:
    name = pod.annotations.text(marks.KUEUE_GROUP, OBJECT_NAME)
    name = name or pod.labels.text(marks.KUEUE_GROUP, LABEL_VALUE)
    if not name:
        return None
    return _Named(name, size=_required_size(pod.annotations, marks.KUEUE_COUNT_ANNOTATION))


def _read_volcano(pod: PodMarks) -> _Named | None:
    for key in (marks.VOLCANO_ANNOTATION, marks.VOLCANO_OWN_ANNOTATION):
        name = pod.annotations.text(key, OBJECT_NAME)
        if name:
            return _Named(name)
    return None


def _read_cellgate(pod: PodMarks) -> _Named | None:
    name = pod.labels.text(marks.GANG_LABEL, LABEL_VALUE)
    if not pod.labels.text(marks.GANG_LABEL):
        if pod.workload is None or not pod.labels.text(marks.GANG_SIZE_LABEL):
            _note_nameless(pod)
            return None
        name = pod.workload.name
    name = f"{name}{_group_suffix(pod)}"
    size = _required_size(pod.labels, marks.GANG_SIZE_LABEL)
    min_size = pod.labels.number_text(marks.GANG_MIN_LABEL, maximum=size or MAX_GANG_SIZE)
    return _Named(name, size=size, min_size=min_size, late=_read_late(pod, size))


def _read_late(pod: PodMarks, size: int | None) -> tuple[int, ...]:
    """Read how many members are created later; some must be created at once."""
    text = pod.annotations.text(marks.LATE_ANNOTATION)
    late = parse_late(text) if text else ()
    if late is None or len(late) >= (size or MAX_GANG_SIZE):
        fewer = f"fewer than {size}" if size else "a number"
        wanted = f"must be {fewer}, the number of members that are created after others are Ready"
        pod.annotations.note(marks.LATE_ANNOTATION, wanted)
        return ()
    return late


def _note_nameless(pod: PodMarks) -> None:
    """Note labels that say something of a gang that no label and no workload names."""
    for key in (marks.GANG_SIZE_LABEL, marks.GANG_MIN_LABEL):
        if pod.labels.text(key):
            needed = marks.GANG_SIZE_LABEL if pod.workload else marks.GANG_LABEL
            why = (
                "" if pod.workload else ", which names the gang of pods that no controller creates"
            )
            pod.labels.note(key, f"needs the label {needed} beside it{why}")


def _group_suffix(pod: PodMarks) -> str:
    """Return what tells the groups of a LeaderWorkerSet apart; empty for all other pods.

    A leader has no index while it is being created, but a name that ends with it.
    """
    if not pod.labels.text(marks.LWS_NAME_LABEL):
        return ""
    index = pod.labels.text(marks.LWS_GROUP_LABEL, LABEL_VALUE)
    index = index or pod.name.rpartition("-")[2]
    return f"-{index}" if index.isdecimal() else ""


def _required_size(texts: Fields, key: str) -> int | None:
    if not texts.text(key):
        texts.note(key, "is required: the number of pods in the gang")
        return None
    return texts.number_text(key, maximum=MAX_GANG_SIZE)


_LABELS: Final = frozenset(
    (
        marks.COSCHEDULING_LABEL,
        marks.COSCHEDULING_OLD_LABEL,
        marks.COSCHEDULING_LIGHT_LABEL,
        marks.KUEUE_GROUP,
        marks.GANG_LABEL,
        marks.GANG_SIZE_LABEL,
        marks.GANG_MIN_LABEL,
    )
)
_ANNOTATIONS: Final = frozenset(
    (marks.KUEUE_GROUP, marks.VOLCANO_ANNOTATION, marks.VOLCANO_OWN_ANNOTATION)
)
_READERS: Final[tuple[tuple[GangForm, Callable[[PodMarks], _Named | None]], ...]] = (
    (GangForm.NATIVE, _read_native),
    (GangForm.COSCHEDULING, _read_coscheduling),
    (GangForm.KUEUE, _read_kueue),
    (GangForm.VOLCANO, _read_volcano),
    (GangForm.CELLGATE, _read_cellgate),
)
