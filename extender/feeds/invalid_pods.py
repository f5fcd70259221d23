"""Pods that ask for devices and are not valid. If one runs, its devices count as foreign use."""

from dataclasses import dataclass

from extender.cells.model import ForeignPod, MemberRequest, PlacedMember
from kube import marks
from kube.api.client import Object
from kube.read.pods import has_finished, read_device_use
from kube.values.objects import mapping, marks_of
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import GangKey, PodUid


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidPod:
    """A pod that asks for devices, and what is wrong with it."""

    uid: PodUid
    namespace: str
    name: str
    problem: str
    use: PlacedMember | None
    """The devices that it uses; None while it is not bound."""


def read_invalid_pod(obj: Object, error: RequestError) -> InvalidPod | None:
    """Describe a pod that is not valid; None for one that has ended."""
    if has_finished(obj):
        return None
    metadata = obj["metadata"]
    namespace = str(metadata.get("namespace"))
    return InvalidPod(
        uid=PodUid(metadata["uid"]),
        namespace=namespace,
        name=str(metadata.get("name")),
        problem=str(error),
        use=_read_foreign_use(obj, namespace),
    )


def _read_foreign_use(obj: Object, namespace: str) -> PlacedMember | None:
    try:
        use = read_device_use(obj)
    except RequestError:
        use = None
    if use is None:
        return None
    request = MemberRequest(
        member=use.uid,
        gang=GangKey(namespace, f"misfit/{use.uid}"),
        leaf_count=use.device_count,
        gang_leaf_counts=(use.device_count,),
    )
    # It is never ended: what it belongs to cannot be read.
    name = f"{namespace}/{obj['metadata'].get('name')}"
    return PlacedMember(
        request=request,
        placement=Placement(node=use.node, leaf_cells=()),
        foreign=ForeignPod(name=name, owner=_read_owner(obj, namespace), is_protected=True),
    )


def _read_owner(obj: Object, namespace: str) -> str:
    submitter = marks_of(obj, "annotations").get(marks.SUBMITTER_ANNOTATION)
    account = mapping(obj.get("spec")).get("serviceAccountName")
    return str(submitter or f"system:serviceaccount:{namespace}:{account or 'default'}")
