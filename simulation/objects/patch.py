"""The three kinds of patches: JSON patch, JSON merge patch and strategic merge patch.

Every function returns a new document and does not change its input. PatchError means that the patch
does not match the document. Strategic directives that are not simulated are refused (501).
"""

from collections.abc import Callable, Sequence
from typing import Any

from policy.errors import CellgateError
from simulation.objects.fields import Object, clone
from simulation.objects.status import not_simulated

# The merge keys of lists; lists that are not named here are replaced.
_MERGE_KEYS = {
    "conditions": "type",
    "addresses": "type",
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "webhooks": "name",
    "podIPs": "ip",
    "hostIPs": "ip",
    "ownerReferences": "uid",
}
# A real API server merges these lists in ways that are not simulated.
_NOT_SIMULATED = ("ports", "finalizers", "podCIDRs", "topologySpreadConstraints", "hostAliases")


class PatchError(CellgateError):
    """A patch does not match the document."""


def merge_patch(document: Object, patch: Object) -> Object:
    """Apply a JSON merge patch (RFC 7386)."""
    merged: Object = _merge(clone(document), clone(patch))
    return merged


def _merge(document: Any, patch: Any) -> Any:  # noqa: ANN401 - any JSON value
    if not isinstance(patch, dict):
        return patch
    result = document if isinstance(document, dict) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = _merge(result.get(field), value)
    return result


def strategic_merge_patch(document: Object, patch: Object) -> Object:
    """Apply a strategic merge patch, with the merge keys of the served kinds."""
    return _strategic(clone(document), clone(patch))


def _strategic(document: Object, patch: Object) -> Object:
    if patch.get("$patch") == "replace":
        return {field: value for field, value in patch.items() if field != "$patch"}
    for field, value in patch.items():
        if field.startswith("$"):
            raise not_simulated(f"the directive {field} of a strategic merge patch")
        if value is None:
            document.pop(field, None)
        elif isinstance(value, dict):
            old = document.get(field)
            document[field] = _strategic(old if isinstance(old, dict) else {}, value)
        elif isinstance(value, list):
            document[field] = _strategic_list(field, old=document.get(field) or [], patch=value)
        else:
            document[field] = value
    return document


def _strategic_list(field: str, *, old: list[Any], patch: list[Any]) -> list[Any]:
    if field in _NOT_SIMULATED:
        raise not_simulated(f"a strategic merge of {field}")
    key = _MERGE_KEYS.get(field)
    if key is None:
        return patch
    if {"$patch": "replace"} in patch:
        return [element for element in patch if element != {"$patch": "replace"}]
    result = list(old)
    for element in patch:
        _merge_element(result, element, key=key)
    return result


def _merge_element(elements: list[Any], patch: Object, *, key: str) -> None:
    if key not in patch:
        raise PatchError(f"map: {patch} does not contain declared merge key: {key}")
    at = next((i for i, one in enumerate(elements) if one.get(key) == patch[key]), None)
    if patch.get("$patch") == "delete":
        if at is not None:
            del elements[at]
    elif at is None:
        elements.append(_strategic({}, patch))
    else:
        elements[at] = _strategic(elements[at], patch)


def json_patch(document: Object, operations: Sequence[Object]) -> Object:
    """Apply a JSON patch (RFC 6902): all operations, or PatchError."""
    holder = clone({"": document, "operations": list(operations)})
    for operation in holder["operations"]:
        try:
            _OPERATIONS[operation["op"]](holder, operation)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as exc:
            raise PatchError(f"cannot apply {operation!r}: {exc!r}") from exc
    result: Object = holder[""]
    return result


def _parent(holder: Object, path: str) -> tuple[Any, Any]:
    """Return the container that a JSON pointer ends in, and the key or index within it.

    Paths start at the holder, whose empty key is the document, so that the root has a parent too.
    """
    if path and not path.startswith("/"):
        raise ValueError(f"{path!r} is not a JSON pointer")
    *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
    container: Any = holder
    for step in steps:
        container = container[_position(container, step)]
    return container, _position(container, last)


def _position(container: Any, step: str) -> str | int:  # noqa: ANN401 - any JSON value
    if not isinstance(container, list):
        return step
    if step != "-" and not step.isdigit():
        raise ValueError(f"{step!r} is not an index")
    return len(container) if step == "-" else int(step)


def _find(holder: Object, path: str) -> Any:  # noqa: ANN401 - any JSON value
    container, at = _parent(holder, path)
    return container[at]


def _put(holder: Object, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
    container, at = _parent(holder, path)
    if isinstance(container, list):
        if at > len(container):
            raise IndexError(f"{at} is beyond the end")
        container.insert(at, value)
    else:
        container[at] = value


def _take(holder: Object, path: str) -> Any:  # noqa: ANN401 - any JSON value
    container, at = _parent(holder, path)
    return container.pop(at)


def _replace(holder: Object, operation: Object) -> None:
    container, at = _parent(holder, operation["path"])
    _ = container[at]  # raises if there is nothing to replace
    container[at] = operation["value"]


def _test(holder: Object, operation: Object) -> None:
    found = _find(holder, operation["path"])
    if found != operation["value"]:
        raise ValueError(f"testing value {operation['path']} failed")


def _copy(holder: Object, operation: Object) -> None:
    value = clone({"value": _find(holder, operation["from"])})["value"]
    _put(holder, operation["path"], value)


_OPERATIONS: dict[str, Callable[[Object, Object], Any]] = {
    "add": lambda holder, operation: _put(holder, operation["path"], operation["value"]),
    "remove": lambda holder, operation: _take(holder, operation["path"]),
    "replace": _replace,
    "test": _test,
    "move": lambda holder, operation: _put(
        holder, operation["path"], _take(holder, operation["from"])
    ),
    "copy": _copy,
}
