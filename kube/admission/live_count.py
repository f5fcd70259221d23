"""Refuse a pod of a running gang that already has all its members. Pure.

Asked only about gangs of which pods were seen running, and whose members share a label. Of members
that are created together, the extender starts no more than the gang's size.
"""

from typing import Final

from kube import marks
from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError

_LABELS: Final = {GangForm.CELLGATE: marks.GANG_LABEL, GangForm.KUEUE: marks.KUEUE_GROUP}


def shared_label(pod: ManagedPod) -> str | None:
    """Return the label that the members of a pod's gang share; None if they need not be counted."""
    return None if pod.gang.size is None else _LABELS.get(pod.gang.form)


def check_count(pod: ManagedPod, count: int) -> None:
    """Raise RequestError if a pod would be one member too many; `count` members are live."""
    label, size = shared_label(pod), pod.gang.size
    if label is not None and size is not None and count >= size:
        message = f"gang {pod.gang.key} already has all its {size} members"
        hint = "a new member is admitted once one of them has ended"
        raise RequestError.at(f"metadata.labels[{label}]", f"{message}; {hint}")
