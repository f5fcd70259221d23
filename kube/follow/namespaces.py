"""Namespaces: the VC that each gives to its pods that name none."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kube import marks
from kube.api.client import Object
from kube.values.texts import parse_time

_YOUNG_SECONDS: Final = 10.0
"""How long after its creation a namespace may get its labels, or our copy may lack them."""


class NamespaceSink:
    """Keeps the VC label of every namespace."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}
        self._created: dict[str, float] = {}
        """When each namespace was created, in seconds since 1970."""
        self.on_label: list[Callable[[str], None]] = []
        """Callbacks that run with the name of a namespace that names another VC than before."""

    def labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace that we read; empty for one that is not known."""
        return self._labels.get(namespace, {})

    def is_settled(self, namespace: str, *, now: float) -> bool:
        """Whether the labels of a namespace are known, or it is too old to get them any moment."""
        if namespace in self._labels:
            return True
        created = self._created.get(namespace)
        return created is not None and now - created > _YOUNG_SECONDS

    def replace(self, objects: Sequence[Object]) -> None:
        """Take all namespaces there are; any other is gone."""
        names = {obj["metadata"]["name"] for obj in objects}
        for name in [name for name in self._created if name not in names]:
            self.remove({"metadata": {"name": name}})
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """A namespace appeared or changed."""
        name = obj["metadata"]["name"]
        vc = (obj["metadata"].get("labels") or {}).get(marks.VC_LABEL)
        before = self._labels.pop(name, {})
        if vc:
            self._labels[name] = {marks.VC_LABEL: vc}
        self._created[name] = parse_time(str(obj["metadata"].get("creationTimestamp")))
        if vc and self._labels[name] != before:
            for tell in self.on_label:
                tell(name)

    def remove(self, obj: Object) -> None:
        """A namespace is gone."""
        self._labels.pop(obj["metadata"]["name"], None)
        self._created.pop(obj["metadata"]["name"], None)
