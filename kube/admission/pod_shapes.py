"""Which shapes apply to a pod, and pods that get nothing but shapes. Pure.

A pod without leaf cells has no class, charge or gate. It is shaped where its namespace opts in, or
where a shape took its leaf cells away.
"""

from collections.abc import Mapping
from typing import Any

from kube import marks
from kube.admission.submitter import Sender, identify
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from kube.shaping.amounts import fixing_shape, with_fixed_cells
from kube.shaping.shaper import Shaped, shape_pod
from policy.errors import RequestError
from policy.identity.identity import Identity
from policy.policy import Policy
from policy.shaping import PodOrigin, Shape
from policy.submission import GroupName, UserName, VcName

Obj = Mapping[str, Any]
LONGEST_RUN = "longest-run"
"""The name under which a limit of the Queues document is listed among the shapes of a pod."""
_VC_PATH = f"metadata.labels[{marks.VC_LABEL}]"


def fix_leaf_cells(
    obj: Obj, *, sender: Sender, policy: Policy, namespace_labels: Mapping[str, str]
) -> Obj:
    """Return a pod with the leaf cells that a shape fixes, if one does. Raises RequestError."""
    if not policy.shapes.fix_leaf_cells:
        return obj
    origin = _find_origin(obj, sender=sender, policy=policy, namespace_labels=namespace_labels)
    return with_fixed_cells(obj, policy.shapes.matching(origin))


def shape_only(
    obj: Obj, *, sender: Sender, policy: Policy, namespace_labels: Mapping[str, str]
) -> Shaped:
    """Shape a pod without leaf cells. Raises RequestError if it contradicts its shapes."""
    origin = _find_origin(obj, sender=sender, policy=policy, namespace_labels=namespace_labels)
    return shape_pod(obj, policy.shapes.matching(origin), user=origin.user)


def origin_of(
    pod: ManagedPod, *, user: UserName, groups: tuple[GroupName, ...], identity: Identity
) -> PodOrigin:
    """Return the facts about a pod that decide about its shapes. Raises RequestError.

    A controller is not the submitter of what it creates for users, so its name counts for none.
    """
    is_known = not identity.is_trusted(user)
    return PodOrigin(
        user=user if is_known else None,
        groups=groups if is_known else (),
        vc=_open_vc(pod, user, groups, identity=identity),
        namespace=pod.namespace,
        labels=pod.labels,
    )


def longest_run(pod: ManagedPod, policy: Policy) -> tuple[Shape, ...]:
    """Return the shape that limits the run of a pod by the Queues document, if that enforces it.

    It goes by the class that the pod asks for: its shapes are known before its class is decided.
    """
    rules = policy.queues.run_time
    longest = rules.longest_of(pod.class_name or policy.classes.default)
    if not rules.enforce or longest is None:
        return ()
    return (Shape(name=LONGEST_RUN, max_run_seconds=int(longest)),)


def check_fixed(pod: ManagedPod, shapes: tuple[Shape, ...]) -> None:
    """Raise RequestError if HiveD's annotation asks for other leaf cells than a shape fixes."""
    shape = fixing_shape(shapes)
    if shape is None or pod.hived is None or pod.leaf_count == shape.fixed_leaf_cells:
        return
    path = f"metadata.annotations[{marks.HIVED_SPEC_ANNOTATION}]"
    fixed = f"but shape {shape.name} fixes the leaf cells at {shape.fixed_leaf_cells}"
    raise RequestError.at(path, f"leafCellNumber is {pod.leaf_count}, {fixed}")


def _find_origin(
    obj: Obj, *, sender: Sender, policy: Policy, namespace_labels: Mapping[str, str]
) -> PodOrigin:
    pod = read_pod(obj, namespace_labels=namespace_labels, reads_all=True)
    assert pod is not None  # all pods are read
    user, groups = identify(pod, sender, policy.identity)
    return origin_of(pod, user=user, groups=groups, identity=policy.identity)


def _open_vc(
    pod: ManagedPod, user: UserName, groups: tuple[GroupName, ...], *, identity: Identity
) -> VcName | None:
    """Return the VC of a pod; None for one that is not open and that the pod does not name."""
    try:
        identity.check_vc(pod.vc, user=user, groups=groups, path=_VC_PATH)
    except RequestError:
        if pod.labels.get(marks.VC_LABEL) or pod.hived is not None:
            raise
        return None
    return pod.vc
