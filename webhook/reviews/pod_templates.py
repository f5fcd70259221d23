"""Pod templates inside other objects, and the submitter's stamp on them. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from kube import marks
from kube.admission.patches import annotations_patch, escape_pointer, unmark_patch
from kube.read.submitters import format_submitter_groups
from kube.read.workloads import Workload
from kube.values.objects import Operation, mapping, marks_of
from policy.identity.identity import TemplateKind
from webhook.wire import ReviewRequest, UserInfo

MAX_TEMPLATES: Final = 200
_EVERY: Final = "*"
_NO_UID: Final = str(UUID(int=0))
"""Stands for the UID of an object that is being created."""

Pointer = tuple[str | int, ...]


def format_pointer(pointer: Pointer) -> str:
    """Write a position in the notation of field paths."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in pointer)
    return "".join(parts).removeprefix(".")


@dataclass(frozen=True, slots=True)
class Stamp:
    """The annotations that name a template's submitter, as written; None where one is missing."""

    user: str | None = None
    groups: str | None = None

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of the stamp."""
        written = {
            marks.SUBMITTER_ANNOTATION: self.user,
            marks.SUBMITTER_GROUPS_ANNOTATION: self.groups,
        }
        return {key: value for key, value in written.items() if value is not None}


def stamp_of(sender: UserInfo) -> Stamp:
    """Return the stamp of a user."""
    return Stamp(sender.username, format_submitter_groups(sender.groups))


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """A pod template, and its position in its object."""

    pointer: Pointer
    content: Mapping[str, Any]

    @property
    def path(self) -> str:
        """Its position, in the notation of field paths."""
        return format_pointer(self.pointer)

    @property
    def stamp(self) -> Stamp:
        """The stamp on it."""
        texts = marks_of(self.content, "annotations")
        keys = (marks.SUBMITTER_ANNOTATION, marks.SUBMITTER_GROUPS_ANNOTATION)
        return Stamp(*(text if isinstance(text := texts.get(key), str) else None for key in keys))

    def holder(self, obj: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the part of its object that it is a field of: the spec of a Job."""
        value: Any = obj
        for part in self.pointer[:-1]:
            value = value[part]
        return mapping(value)

    def stamp_patch(
        self, stamp: Stamp, more: Mapping[str, str] = MappingProxyType({})
    ) -> list[Operation]:
        """Return the patch that writes a stamp and more annotations; empty if they are there."""
        return self._within(annotations_patch(self.content, {**stamp.annotations, **more}))

    def unmark_patch(self, keys: Iterable[str]) -> list[Operation]:
        """Return the patch that removes annotations."""
        return self._within(unmark_patch(self.content, keys))

    def _within(self, steps: Iterable[Operation]) -> list[Operation]:
        where = "".join(f"/{escape_pointer(str(part))}" for part in self.pointer)
        return [{**step, "path": where + step["path"]} for step in steps]

    def to_pod(self, review: ReviewRequest, annotations: Mapping[str, str]) -> dict[str, Any]:
        """Return the pod that a controller would create from it, with these annotations."""
        metadata = {
            **mapping(self.content.get("metadata")),
            "annotations": {
                **marks_of(self.content, "annotations"),
                **annotations,
                marks.WORKLOAD_ANNOTATION: _workload_of(review).mark,
            },
            "namespace": review.namespace,
            "generateName": f"{(review.name or 'template')[:200].lower()}-",
            "name": "",
        }
        return {"metadata": metadata, "spec": self.content["spec"]}


def _workload_of(review: ReviewRequest) -> Workload:
    """Return the object as the workload of its pods."""
    obj = review.object or {}
    return Workload(
        group=str(obj.get("apiVersion")).rpartition("/")[0],
        kind=str(obj.get("kind")),
        name=review.name or "template",
        uid=str(mapping(obj.get("metadata")).get("uid") or _NO_UID),
    )


def find_templates(obj: Mapping[str, Any], kinds: Sequence[TemplateKind]) -> list[PodTemplate]:
    """Find the pod templates of an object in a defined order, MAX_TEMPLATES + 1 at the most."""
    found = (template for kind in kinds for template in _walk(obj, kind.path, ()))
    return list(islice(found, MAX_TEMPLATES + 1))


def find_marks(obj: object, keys: Collection[str]) -> Iterator[tuple[Pointer, object]]:
    """Yield where an object has annotations, or other fields, of these names, and their values."""
    waiting: list[tuple[Pointer, object]] = [((), obj)]
    while waiting:
        pointer, value = waiting.pop()
        if isinstance(value, Mapping):
            yield from (((*pointer, key), value[key]) for key in keys if key in value)
            waiting += (((*pointer, str(key)), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting += (((*pointer, place), inner) for place, inner in enumerate(value))


def _walk(value: object, path: tuple[str, ...], pointer: Pointer) -> Iterator[PodTemplate]:
    if not path:
        if isinstance(value, Mapping) and isinstance(value.get("spec"), Mapping):
            yield PodTemplate(pointer=pointer, content=value)
        return
    key, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        for name in sorted(map(str, value)) if key == _EVERY else (key,):
            if name in value:
                yield from _walk(value[name], rest, (*pointer, name))
    elif isinstance(value, list):
        # The path may omit the star of a list.
        remaining = rest if key == _EVERY else path
        for place, item in enumerate(value):
            yield from _walk(item, remaining, (*pointer, place))
