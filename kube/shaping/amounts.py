"""CPU, memory and leaf cells that shapes set. Pure.

Leaf cells are fixed before the pod is read, so that the submitter is charged for the fixed number.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kube import marks
from kube.shaping.spec_draft import FIXED, SpecDraft, amounts_of
from kube.values.objects import mapping
from policy.shaping import Shape

_PARTS: Final = ("requests", "limits")
_LEAF_RESOURCES: Final = frozenset(marks.DEFAULT_LEAF_RESOURCES)


def fixing_shape(shapes: Sequence[Shape]) -> Shape | None:
    """Return the shape that fixes the leaf cells of a pod: the first that names a number."""
    return next((one for one in shapes if one.fixed_leaf_cells is not None), None)


def with_fixed_cells(pod: Mapping[str, Any], shapes: Sequence[Shape]) -> Mapping[str, Any]:
    """Return a pod that asks for the leaf cells that a shape fixes."""
    shape = fixing_shape(shapes)
    spec = pod.get("spec")
    if shape is None or not isinstance(spec, Mapping):
        return pod
    draft = SpecDraft({"spec": spec}, user=None)
    _set_cells(draft, shape)
    return {**pod, "spec": draft.spec}


def shape_amounts(draft: SpecDraft, shape: Shape) -> None:
    """Set what containers request."""
    if shape.fixed_leaf_cells is not None and draft.is_first("leaf cells"):
        own = _set_cells(draft, shape)
        what = f"leaf cells {shape.fixed_leaf_cells}"
        # Listed in any case, like each fixed field.
        draft.note(f"{what}{FIXED}", is_new=True)
        if own not in ("", str(shape.fixed_leaf_cells)):
            draft.warn(f"{what} instead of the requested {own}")
    _fix_requests(draft, shape.fixed_requests)
    _default_requests(draft, shape.requests)


def _set_cells(draft: SpecDraft, shape: Shape) -> str:
    """Let one container ask for the leaf cells, and no other; return what was asked for before."""
    askers = [one for one in draft.containers() if _LEAF_RESOURCES & amounts_of(one).keys()]
    taker = askers[0] if askers else draft.main()
    asked = [
        (name, amount)
        for one in askers
        for name, amount in amounts_of(one).items()
        if name in _LEAF_RESOURCES
    ]
    for one in askers:
        _without_cells(one)
    if shape.fixed_leaf_cells and taker is not None:
        resource = asked[0][0] if asked else shape.leaf_resource
        amount = {resource: str(shape.fixed_leaf_cells)}
        resources = mapping(taker.get("resources"))
        taker["resources"] = {
            **resources,
            **{part: {**mapping(resources.get(part)), **amount} for part in _PARTS},
        }
    return " and ".join(str(amount) for _, amount in asked)


def _without_cells(container: dict[str, Any]) -> None:
    resources = dict(mapping(container.get("resources")))
    for part in _PARTS:
        if part in resources:
            amounts = mapping(resources[part])
            kept = {key: one for key, one in amounts.items() if key not in _LEAF_RESOURCES}
            resources[part] = kept
    container["resources"] = {key: one for key, one in resources.items() if one}


def _fix_requests(draft: SpecDraft, wanted: Mapping[str, str]) -> None:
    for resource, quantity in wanted.items():
        if not draft.is_first("requests", resource):
            continue
        for container in draft.requesters():
            _fix_request(draft, container, resource=resource, quantity=quantity)
        _drop_pod_request(draft, resource)


def _fix_request(
    draft: SpecDraft, container: dict[str, Any], *, resource: str, quantity: str
) -> None:
    resources = mapping(container.get("resources"))
    requests, limits = mapping(resources.get("requests")), mapping(resources.get("limits"))
    own, fixed = limits.get(resource, requests.get(resource)), {resource: quantity}
    container["resources"] = {**resources, "requests": {**requests, **fixed}}
    if resource in limits:  # a limit must not be lower than the request
        container["resources"]["limits"] = {**limits, **fixed}
    is_new = container["resources"] != resources
    what = f"{resource} {quantity} for container {container.get('name')}"
    # Listed in any case: a later resize must not change it.
    draft.note(f"{what}{FIXED}", is_new=True)
    if is_new and own not in (None, quantity):
        draft.warn(f"{what} instead of the requested {own}")


def _drop_pod_request(draft: SpecDraft, resource: str) -> None:
    """Remove the pod-level request: it would count instead of the containers' requests."""
    resources = mapping(draft.spec.get("resources"))
    parts = {part: mapping(resources.get(part)) for part in _PARTS}
    own = parts["limits"].get(resource, parts["requests"].get(resource))
    if own is None:
        return
    kept = {
        part: {name: amount for name, amount in amounts.items() if name != resource}
        for part, amounts in parts.items()
    }
    rest = {key: value for key, value in {**resources, **kept}.items() if value}
    draft.spec["resources"] = rest
    draft.warn(f"{resource} for each container instead of the requested {own} for the pod")


def _default_requests(draft: SpecDraft, wanted: Mapping[str, str]) -> None:
    shared = amounts_of(draft.spec)
    for resource, quantity in wanted.items():
        # Containers share a pod-level request, and must not request more.
        if not draft.is_first("requests", resource) or resource in shared:
            continue
        for container in draft.requesters():
            resources = mapping(container.get("resources"))
            requests = mapping(resources.get("requests"))
            is_new = resource not in amounts_of(container)
            if is_new:
                requests = {**requests, resource: quantity}
                container["resources"] = {**resources, "requests": requests}
            if requests.get(resource) == quantity:
                what = f"{resource} {quantity} for container {container.get('name')}"
                draft.note(what, is_new=is_new)
