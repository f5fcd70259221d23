"""Pod templates inside other objects, and the submitter's stamp on them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from kube import marks
from kube.read.submitters import format_submitter_groups
from kube.values.objects import mapping, marks_of
from policy.identity.identity import TemplateKind
from webhook.reviews.patches import annotations_patch, escape_pointer
from webhook.wire import Operation, ReviewRequest, UserInfo

MAX_TEMPLATES: Final = 200
_EVERY: Final = "*"

Pointer = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A pod template, and where it stands in its object."""

    pointer: Pointer
    content: Mapping[str, Any]

    @property
    def path(self) -> str:
        """Where it stands, as people write it."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.pointer)
        return "".join(parts).removeprefix(".")

    def annotation_path(self, key: str) -> str:
        """Where one of its annotations stands."""
        return f"{self.path}.metadata.annotations[{key}]"


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who submitted a template: the annotations as they are written, None where one is missing."""

    user: str | None
    groups: str | None

    @property
    def annotations(self) -> dict[str, str]:
        """What to write on a template."""
        written = {
            marks.SUBMITTER_ANNOTATION: self.user,
            marks.SUBMITTER_GROUPS_ANNOTATION: self.groups,
        }
        return {key: value for key, value in written.items() if value is not None}


def stamp_of(sender: UserInfo) -> Stamp:
    """Make the stamp of whoever sends a template."""
    return Stamp(sender.username, format_submitter_groups(sender.groups))


def find_templates(obj: Mapping[str, Any], kinds: Sequence[TemplateKind]) -> list[Template]:
    """Find the pod templates of an object, in a defined order; too many are cut off."""
    found = (template for kind in kinds for template in _walk(obj, kind.path, ()))
    return list(islice(found, MAX_TEMPLATES + 1))


def _walk(value: object, path: tuple[str, ...], pointer: Pointer) -> Iterator[Template]:
    if not path:
        if isinstance(value, Mapping) and isinstance(value.get("spec"), Mapping):
            yield Template(pointer=pointer, content=value)
        return
    key, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        for name in sorted(map(str, value)) if key == _EVERY else (key,):
            if name in value:
                yield from _walk(value[name], rest, (*pointer, name))
    elif isinstance(value, list):
        # A path may leave out the star of a list.
        remaining = rest if key == _EVERY else path
        for place, item in enumerate(value):
            yield from _walk(item, remaining, (*pointer, place))


def to_pod(
    review: ReviewRequest, template: Template, annotations: Mapping[str, str]
) -> dict[str, Any]:
    """Make the pod that a controller would make of a template, with these annotations on it."""
    metadata = mapping(template.content.get("metadata"))
    merged = {**marks_of(template.content, "annotations"), **annotations}
    prefix = f"{(review.name or 'template')[:200].lower()}-"
    return {
        "metadata": {
            **metadata,
            "annotations": merged,
            "namespace": review.namespace,
            "generateName": prefix,
            "name": "",
        },
        "spec": template.content["spec"],
    }


def read_stamp(template: Template) -> Stamp:
    """Read the stamp on a template, as far as it is text."""
    texts = marks_of(template.content, "annotations")
    user, groups = (
        texts.get(key) for key in (marks.SUBMITTER_ANNOTATION, marks.SUBMITTER_GROUPS_ANNOTATION)
    )
    return Stamp(
        user if isinstance(user, str) else None, groups if isinstance(groups, str) else None
    )


def stamp_patch(template: Template, stamp: Stamp) -> list[Operation]:
    """Write a stamp on a template; nothing if it has it."""
    where = "".join(f"/{escape_pointer(str(part))}" for part in template.pointer)
    steps = annotations_patch(template.content, stamp.annotations)
    return [{**step, "path": where + step["path"]} for step in steps]
