"""The steps that builders of all kinds of Kubernetes objects share."""

from copy import deepcopy
from typing import Any, Self
from uuid import NAMESPACE_URL, uuid5

NVIDIA = "nvidia.com/gpu"
AMD = "amd.com/gpu"


def uid_of(name: str) -> str:
    """Return the UID that an object of this name has in tests."""
    return str(uuid5(NAMESPACE_URL, name))


class ObjectBuilder(dict[str, Any]):
    """An object, as the API server's JSON; each step returns a changed copy."""

    def labelled(self, key: str, value: object) -> Self:
        """Put a label on it."""
        return self._changed("metadata", labels={**self["metadata"].get("labels", {}), key: value})

    def annotated(self, key: str, value: object) -> Self:
        """Put an annotation on it."""
        annotations = {**self["metadata"].get("annotations", {}), key: value}
        return self._changed("metadata", annotations=annotations)

    def controlled_by(
        self, kind: str, name: str, *, api_version: str = "batch/v1", is_controller: bool = True
    ) -> Self:
        """Let a controller own it, or an object that is not its controller."""
        owner = {
            "apiVersion": api_version,
            "kind": kind,
            "name": name,
            "uid": uid_of(name),
            "controller": is_controller,
        }
        return self._changed("metadata", ownerReferences=[owner])

    def with_metadata(self, **fields: object) -> Self:
        """Set fields of its metadata."""
        return self._changed("metadata", **fields)

    def with_spec(self, **fields: object) -> Self:
        """Set fields of its spec."""
        return self._changed("spec", **fields)

    def _changed(self, part: str, **fields: object) -> Self:
        changed = deepcopy(self)
        changed.setdefault(part, {}).update(fields)
        return changed
