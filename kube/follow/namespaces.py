"""Labels of namespaces: they name the VC of pods that name none."""

from collections.abc import Mapping, Sequence

from kube import marks
from kube.api.client import Object


class NamespaceSink:
    """Keeps what the labels of every namespace say about its pods."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}

    def labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace that matter to us, none for one that is not known."""
        return self._labels.get(namespace, {})

    def replace(self, objects: Sequence[Object]) -> None:
        """Take a whole list: what is not in it is gone."""
        self._labels = {}
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """Take note of a namespace that appeared or changed."""
        vc = (obj["metadata"].get("labels") or {}).get(marks.VC_LABEL)
        if vc:
            self._labels[obj["metadata"]["name"]] = {marks.VC_LABEL: vc}
        else:
            self.remove(obj)

    def remove(self, obj: Object) -> None:
        """Take note of a namespace that is gone."""
        self._labels.pop(obj["metadata"]["name"], None)
