"""Namespaces: the VC that each gives to its pods that name none."""

from collections.abc import Mapping, Sequence

from kube import marks
from kube.api.client import Object


class NamespaceSink:
    """Keeps the VC label of every namespace."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}

    def labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace that we read; empty for one that is not known."""
        return self._labels.get(namespace, {})

    def replace(self, objects: Sequence[Object]) -> None:
        """Take all namespaces there are; any other is gone."""
        self._labels = {}
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """A namespace appeared or changed."""
        vc = (obj["metadata"].get("labels") or {}).get(marks.VC_LABEL)
        if vc:
            self._labels[obj["metadata"]["name"]] = {marks.VC_LABEL: vc}
        else:
            self.remove(obj)

    def remove(self, obj: Object) -> None:
        """A namespace is gone."""
        self._labels.pop(obj["metadata"]["name"], None)
