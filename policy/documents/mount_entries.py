"""Mounts in the Shaping document: as fields, or as one text, such as `workspace(pvc):/mnt`.

A text names a source, its kind in parentheses, and the path in the containers. A claim is then
mounted by parts: each submitter gets the own folder in it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from policy.documents.models import Location, Strict, items_of, mapping_of
from policy.documents.names import DNS_NAME, check_quantity, matching
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.shaping import USER_PLACEHOLDER, Mount
from policy.wording import describe, join_path, listing, quote

_SOURCES: Final = ("persistentVolumeClaim", "configMap", "hostPath", "memory")
_NOTATION: Final = re.compile(r"(?P<source>[^()]+)\((?P<kind>[a-z]+)\):(?P<path>.+)")
_KINDS: Final = {
    "pvc": "persistentVolumeClaim",
    "configmap": "configMap",
    "hostpath": "hostPath",
    "memory": "memory",
}


def _check_path(value: object) -> str:
    path = matching(r"/[^:\x00-\x1f]*", "an absolute path without a colon", most=1024)(value)
    if ".." in path.split("/"):
        raise ValueError(f"must not contain .., as {quote(path)} does")
    return path


def _check_sub_path(value: object) -> str:
    sub_path = matching(r"[^/\x00-\x1f][^\x00-\x1f]*", "a relative path", most=1024)(value)
    if ".." in sub_path.split("/"):
        raise ValueError(f"must not contain .., as {quote(sub_path)} does")
    return check_placeholders(sub_path)


def check_placeholders(text: str) -> str:
    """Pass a text whose only placeholder is that of the submitter."""
    if set("{}") & set(text.replace(USER_PLACEHOLDER, "")):
        raise ValueError(f"may contain no other placeholder than {USER_PLACEHOLDER}")
    return text


def _read_notation(value: object) -> object:
    """Return the fields of a mount that is written as one text; all else as it is."""
    if not isinstance(value, str):
        return value
    found = _NOTATION.fullmatch(value)
    if found is None or found["kind"] not in _KINDS:
        kinds = listing([f"({kind})" for kind in _KINDS])
        what = f"SOURCE(KIND):PATH with one of {kinds}, such as workspace(pvc):/mnt"
        raise ValueError(f"must be a mapping or {what}, not {describe(value)}")
    source = {_KINDS[found["kind"]]: found["source"], "path": found["path"]}
    return {**source, "subPath": USER_PLACEHOLDER} if found["kind"] == "pvc" else source


Quantity = Annotated[str, BeforeValidator(check_quantity)]
ObjectName = Annotated[str, BeforeValidator(matching(DNS_NAME, "the name of an object"))]
AbsolutePath = Annotated[str, BeforeValidator(_check_path)]


class MountEntry(Strict):
    """A volume for all containers, from exactly one source; also as a text `workspace(pvc):/mnt`,
    `4G(memory):/dev/shm`, `site(configmap):/etc/site` or `/data/sets(hostpath):/data`.
    """

    path: AbsolutePath = Field(description="The path in the containers.")
    persistent_volume_claim: ObjectName | None = Field(
        default=None,
        description="The name of a claim in the pod's namespace. In the form "
        "`workspace(pvc):/mnt`, `subPath` is `{user}`.",
    )
    config_map: ObjectName | None = Field(
        default=None, description="The name of a ConfigMap in the pod's namespace."
    )
    host_path: AbsolutePath | None = Field(
        default=None, description="A directory of the node, below one of `allowed.hostPaths`."
    )
    memory: Quantity | None = Field(default=None, description="The size of a disk in memory.")
    sub_path: Annotated[str, BeforeValidator(_check_sub_path)] | None = Field(
        default=None, description="The part that is mounted; `{user}` is replaced by the submitter."
    )
    read_only: bool = Field(default=False, description="Whether it is mounted read-only.")

    def build(self) -> Mount:
        """Build the shapes for pods."""
        return Mount(
            path=self.path,
            source=self._source(),
            origin=self._origin(),
            sub_path=self.sub_path or "",
            is_read_only=self.read_only,
        )

    def _source(self) -> dict[str, Any]:
        if self.persistent_volume_claim:
            return {"persistentVolumeClaim": {"claimName": self.persistent_volume_claim}}
        if self.config_map:
            return {"configMap": {"name": self.config_map}}
        if self.host_path:
            return {"hostPath": {"path": self.host_path}}
        return {"emptyDir": {"medium": "Memory", "sizeLimit": self.memory}}

    def _origin(self) -> str:
        given = self.model_dump(by_alias=True)
        return next(f"{source} {given[source]}" for source in _SOURCES if given[source])


MountField = Annotated[MountEntry, BeforeValidator(_read_notation)]


def read_mounts(entry: Mapping[str, Plain]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the mounts of a shape that can be read, with their places."""
    for place, item in enumerate(items_of(entry, "mounts")):
        try:
            read = _read_notation(item)
        except ValueError:
            continue
        if isinstance(read, dict):
            yield place, read


def mount_problems(entry: Mapping[str, Plain], where: Location) -> Iterator[Problem]:
    """Yield mounts without a source or with several, and paths that are mounted twice."""
    first: dict[str, str] = {}
    for place, mount in read_mounts(entry):
        path = join_path((*where, "mounts", place))
        given = [source for source in _SOURCES if mount.get(source)]
        if len(given) != 1:
            found = f"not {listing(given)}" if given else "it has none"
            yield Problem(path, f"must have exactly one of {listing(_SOURCES)}; {found}")
        target = mount.get("path")
        if isinstance(target, str) and first.setdefault(target, path) != path:
            yield Problem(f"{path}.path", f"duplicate of {first[target]}.path")


def host_path_problems(
    entry: Mapping[str, Plain], where: Location, *, allowed: Iterable[str]
) -> Iterator[Problem]:
    """Yield directories of nodes that the admins do not allow."""
    prefixes = list(allowed)
    for place, mount in read_mounts(entry):
        host_path = mount.get("hostPath")
        if isinstance(host_path, str) and not any(_is_below(host_path, one) for one in prefixes):
            known = f"is not below one of allowed.hostPaths ({listing(prefixes) or 'none'})"
            path = join_path((*where, "mounts", place, "hostPath"))
            yield Problem(path, f"{quote(host_path)} {known}")


def allowed_of(data: Mapping[str, Plain], key: str) -> list[str]:
    """Return the texts of a list under `allowed`."""
    return [one for one in items_of(mapping_of(data.get("allowed")), key) if isinstance(one, str)]


def _is_below(path: str, prefix: str) -> bool:
    """Tell whether a path is a prefix or below it: `/data` allows `/data/a`, not `/database`."""
    parts, wanted = _parts(path), _parts(prefix)
    return ".." not in parts and parts[: len(wanted)] == wanted


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
