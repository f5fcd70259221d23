"""PriorityClasses: the values that Kubernetes gives to classes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


class PriorityClassSink:
    """Keeps the value of every PriorityClass."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        """By name."""
        self.never_preempting: set[str] = set()
        """Those with `preemptionPolicy: Never`."""
        self.is_known = False
        """Whether all PriorityClasses are known."""
        self._defaults: set[str] = set()

    @property
    def default(self) -> str | None:
        """The class of pods that name none: of several, the one with the smallest value."""
        return min(self._defaults, key=lambda name: (self.values[name], name), default=None)

    def is_default(self, name: str | None) -> bool:
        """Whether the API server gives this class to pods that name none, before the webhook."""
        return name in self._defaults

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Take all PriorityClasses there are; any other is gone."""
        self.values, self.never_preempting, self._defaults = {}, set(), set()
        self.is_known = True
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Mapping[str, Any]) -> None:
        """A PriorityClass appeared or changed."""
        name = obj["metadata"]["name"]
        self.values[name] = int(obj.get("value", 0))
        self.never_preempting.discard(name)
        if obj.get("preemptionPolicy") == "Never":
            self.never_preempting.add(name)
        self._defaults.discard(name)
        if obj.get("globalDefault") is True:
            self._defaults.add(name)

    def remove(self, obj: Mapping[str, Any]) -> None:
        """A PriorityClass is gone."""
        name = obj["metadata"]["name"]
        self.values.pop(name, None)
        self.never_preempting.discard(name)
        self._defaults.discard(name)
