"""Find changes of an existing pod that would undo what shapes set. Pure.

What they set is read from the pod's annotation, which only Cellgate may change; the current Shaping
document may differ from the one that the pod was created under.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kube.shaping.spec_draft import FIXED, VOLUME_PREFIX, read_lines
from kube.values.objects import containers_of, items, mapping
from policy.errors import Problem

_LINE: Final = re.compile(
    r"(?P<shape>[^:]+): (?P<resource>\S+) (?P<quantity>\S+) "
    rf"for container (?P<container>\S+){FIXED}"
)


class _Fixed(NamedTuple):
    """A line about a fixed request."""

    shape: str
    resource: str
    quantity: str
    container: str

    @property
    def message(self) -> str:
        return f"shape {self.shape} fixes {self.resource} at {self.quantity}"


def find_undone(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what a change would undo: fixed requests, and volumes that only shapes mount."""
    yield from _resized(before, after)
    yield from _mounted(before, after)


def _resized(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Problem]:
    for fixed in _read_fixed(before):
        old, new = (_container(pod, fixed.container) for pod in (before, after))
        if _amounts(old, fixed.resource) != _amounts(new, fixed.resource):
            yield Problem(f"spec.containers[{fixed.container}].resources", fixed.message)
        old, new = mapping(before.get("spec")), mapping(after.get("spec"))
        if _amounts(old, fixed.resource) != _amounts(new, fixed.resource):
            yield Problem("spec.resources", fixed.message)


def _read_fixed(pod: Mapping[str, Any]) -> Iterator[_Fixed]:
    for line in read_lines(pod):
        if found := _LINE.fullmatch(line):
            yield _Fixed(**found.groupdict())


def _container(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = containers_of(mapping(pod.get("spec")))
    return next((one for one in found if one.get("name") == name), {})


def _amounts(part: Mapping[str, Any], resource: str) -> list[Any]:
    resources = mapping(part.get("resources"))
    return [mapping(resources.get(key)).get(resource) for key in ("requests", "limits")]


def _mounted(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Problem]:
    """A debug container would see the parts of other users in a volume."""
    old, new = (
        items(mapping(pod.get("spec")).get("ephemeralContainers")) for pod in (before, after)
    )
    for container in new:
        if container in old:
            continue
        for key in ("volumeMounts", "volumeDevices"):
            for one in items(container.get(key)):
                volume = one.get("name")
                if isinstance(volume, str) and volume.startswith(VOLUME_PREFIX):
                    path = f"spec.ephemeralContainers[{container.get('name')}].{key}"
                    yield Problem(path, f"only shapes may mount volume {volume}")
