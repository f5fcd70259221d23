"""Parts of JSON objects that others wrote, where problems do not matter.

A value of another type than expected counts as missing. Where problems matter, use
`kube.values.fields`.
"""

from collections.abc import Mapping
from typing import Any, Literal

Operation = dict[str, Any]
"""One operation of a JSON patch."""


def mapping(value: object) -> Mapping[str, Any]:
    """Return a mapping; an empty one for anything else."""
    # Nearly always a dict, which needs no check by the slower abstract class.
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def items(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings of a list; none for anything else."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def containers_of(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the containers of a pod spec, init containers last, without ephemeral ones."""
    return [*items(spec.get("containers")), *items(spec.get("initContainers"))]


def marks_of(obj: Mapping[str, Any], part: Literal["labels", "annotations"]) -> Mapping[str, Any]:
    """Return the labels or annotations of an object."""
    return mapping(mapping(obj.get("metadata")).get(part))
