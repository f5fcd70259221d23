"""Pods that ask for devices and are not valid. If one runs, its devices count as foreign use."""

from collections.abc import Callable
from dataclasses import dataclass

from extender.cells.model import PlacedMember
from kube.api.client import Object
from kube.read.pods import has_finished, read_device_use
from policy.errors import RequestError
from policy.submission import PodUid

ToForeignUse = Callable[..., PlacedMember]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidPod:
    """A pod that asks for devices, and what is wrong with it."""

    uid: PodUid
    namespace: str
    name: str
    problem: str
    use: PlacedMember | None
    """The devices that it uses; None while it is not bound."""


def read_invalid_pod(
    obj: Object, error: RequestError, to_foreign_use: ToForeignUse
) -> InvalidPod | None:
    """Describe a pod that is not valid; None for one that has ended."""
    if has_finished(obj):
        return None
    metadata = obj["metadata"]
    namespace = str(metadata.get("namespace"))
    try:
        use = read_device_use(obj)
    except RequestError:
        use = None
    return InvalidPod(
        uid=PodUid(metadata["uid"]),
        namespace=namespace,
        name=str(metadata.get("name")),
        problem=str(error),
        use=None if use is None else to_foreign_use(use, namespace=namespace),
    )
