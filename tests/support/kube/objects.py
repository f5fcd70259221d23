"""The steps that builders of all kinds of Kubernetes objects share."""

from copy import deepcopy
from typing import Any, Self

NVIDIA = "nvidia.com/gpu"
AMD = "amd.com/gpu"


class ObjectBuilder(dict[str, Any]):
    """An object, as the API server's JSON; each step returns a changed copy."""

    def labelled(self, key: str, value: object) -> Self:
        """Put a label on it."""
        return self._changed("metadata", labels={**self["metadata"].get("labels", {}), key: value})

    def annotated(self, key: str, value: object) -> Self:
        """Put an annotation on it."""
        annotations = {**self["metadata"].get("annotations", {}), key: value}
        return self._changed("metadata", annotations=annotations)

    def controlled_by(self, kind: str, name: str, *, api_version: str = "batch/v1") -> Self:
        """Let a controller own it."""
        owner = {"apiVersion": api_version, "kind": kind, "name": name, "controller": True}
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
