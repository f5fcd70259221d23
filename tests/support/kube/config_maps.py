"""ConfigMaps that hold policy documents."""

from typing import Any

from kube import marks
from tests.support.kube.objects import ObjectBuilder


def a_policy_map(kind: str, text: object, *, name: str = "", version: str = "7") -> ObjectBuilder:
    """The ConfigMap of one policy document; its name is the document's kind, or `name`."""
    metadata: dict[str, Any] = {
        "name": name or kind,
        "namespace": "cellgate-system",
        "uid": f"uid-of-{name or kind}",
        "resourceVersion": version,
        "labels": {marks.POLICY_LABEL: kind},
    }
    return ObjectBuilder(
        apiVersion="v1", kind="ConfigMap", metadata=metadata, data={"policy.yaml": text}
    )
