"""Looking into JSON that somebody else wrote, where it does not matter what is wrong with it.

What is not as expected is as good as not there. Where it does matter, `kube.values.fields` tells.
"""

from collections.abc import Mapping
from typing import Any, Literal


def mapping(value: object) -> Mapping[str, Any]:
    """Return a mapping; an empty one for anything else."""
    # Nearly always one of Python's own, which is told without the cost of asking an ABC.
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def items(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings of a list; none for anything else."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def containers_of(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the containers of a pod spec, init containers last; not those for debugging."""
    return [*items(spec.get("containers")), *items(spec.get("initContainers"))]


def marks_of(obj: Mapping[str, Any], part: Literal["labels", "annotations"]) -> Mapping[str, Any]:
    """Return the labels or annotations of an object."""
    return mapping(mapping(obj.get("metadata")).get(part))
