"""PriorityClasses: the values that Kubernetes gives to our classes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


class PrioritySink:
    """Keeps the value of every PriorityClass."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}

    @property
    def values(self) -> Mapping[str, int]:
        """Values by name."""
        return self._values

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Take a whole list: what is not in it is gone."""
        self._values = {}
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Mapping[str, Any]) -> None:
        """Take note of a PriorityClass."""
        self._values[obj["metadata"]["name"]] = int(obj.get("value", 0))

    def remove(self, obj: Mapping[str, Any]) -> None:
        """Take note of a PriorityClass that is gone."""
        self._values.pop(obj["metadata"]["name"], None)
