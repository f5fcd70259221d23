"""A pod's spec while it is shaped: the fields, and what is told about them. Pure.

The first shape that sets a field wins. A line about a field is kept if a shape has just set it, or
if the pod's annotation lists it from an earlier review and it is still true.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from kube import marks
from kube.read.leaf_demand import MATCHED_RESOURCES
from kube.values.objects import Operation, mapping, marks_of
from policy.errors import Problem, RequestError
from policy.submission import UserName

VOLUME_PREFIX: Final = "cellgate-"
"""Starts the names of volumes that shapes add."""
FIXED: Final = ", fixed"
"""Ends the line of a field that only admins may change."""
_CONTAINERS: Final = ("containers", "initContainers")
_PLAIN_FIELDS: Final = (
    "nodeSelector",
    "tolerations",
    "imagePullSecrets",
    "serviceAccountName",
    "serviceAccount",
    "volumes",
    "activeDeadlineSeconds",
)


def read_lines(pod: Mapping[str, Any]) -> list[str]:
    """Return the lines that a pod's annotation lists."""
    listed = marks_of(pod, "annotations").get(marks.SHAPED_ANNOTATION)
    return listed.split("\n") if isinstance(listed, str) else []


class SpecDraft:
    """A copy of a pod's spec that shapes change."""

    def __init__(self, pod: Mapping[str, Any], *, user: UserName | None) -> None:
        self.before: Mapping[str, Any] = pod["spec"]
        self.spec = deepcopy(dict(self.before))
        self.user = user
        self.shape = ""
        """The name of the shape that is being applied."""
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.problems: list[Problem] = []
        self._listed = frozenset(read_lines(pod))
        self._set: set[tuple[str, str]] = set()

    def check(self) -> None:
        """Raise RequestError with all contradictions."""
        if self.problems:
            raise RequestError(self.problems)

    def is_first(self, kind: str, key: str = "") -> bool:
        """Tell whether no shape has set a field before, and note that one does now."""
        is_first = (kind, key) not in self._set
        self._set.add((kind, key))
        return is_first

    def note(self, what: str, *, is_new: bool) -> None:
        """List what a shape sets."""
        line = f"{self.shape}: {what}"
        if line not in self.lines and (is_new or line in self._listed):
            self.lines.append(line)

    def warn(self, what: str) -> None:
        """Tell the submitter what a shape sets differently."""
        self.warnings.append(f"cellgate: shape {self.shape} sets {what}")

    def containers(self) -> Iterator[dict[str, Any]]:
        """Yield all containers, init containers last, for changes in place."""
        for name in _CONTAINERS:
            yield from _dicts(self.spec.get(name))

    def main(self) -> dict[str, Any] | None:
        """Return the first container."""
        return next(iter(_dicts(self.spec.get("containers"))), None)

    def requesters(self) -> list[dict[str, Any]]:
        """Return the containers with leaf cells; in a pod without any, the first container."""
        found = [one for one in self.containers() if MATCHED_RESOURCES & amounts_of(one).keys()]
        main = self.main()
        return found or ([main] if main is not None else [])

    def patch(self) -> list[Operation]:
        """Return the patch of all changed fields."""
        patch: list[Operation] = [
            {"op": "add", "path": f"/spec/{name}", "value": self.spec[name]}
            for name in _PLAIN_FIELDS
            if name in self.spec and self.spec[name] != self.before.get(name)
        ]
        patch += self._resources_patch()
        for name in _CONTAINERS:
            patch += _items_patch(name, self.before.get(name), self.spec.get(name))
        return patch

    def _resources_patch(self) -> list[Operation]:
        left = self.spec.get("resources")
        if left == self.before.get("resources"):
            return []
        if not left:
            return [{"op": "remove", "path": "/spec/resources"}]
        return [{"op": "replace", "path": "/spec/resources", "value": left}]


def _items_patch(name: str, before: object, after: object) -> Iterator[Operation]:
    """Yield the containers that changed; the list itself stays as long as it was."""
    old, new = (one if isinstance(one, Sequence) else () for one in (before, after))
    for place, (was, is_now) in enumerate(zip(old, new, strict=True)):
        if was != is_now:
            yield {"op": "replace", "path": f"/spec/{name}/{place}", "value": is_now}


def amounts_of(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the requests and limits of a container, or of a pod."""
    resources = mapping(part.get("resources"))
    return {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}


def _dicts(value: object) -> list[dict[str, Any]]:
    """Return the mappings of a list, for changes in place."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
