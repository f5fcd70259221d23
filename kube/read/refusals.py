"""Why kube-scheduler refused a pod, as far as the message in the pod's condition says.

The message is text for people, and may change with a version of Kubernetes. What is not recognised
is `OTHER`; nothing but a metric depends on it.
"""

from enum import StrEnum
from typing import Final


class RefusalKind(StrEnum):
    """What a refused pod lacks; the values are labels of a metric."""

    CPU = "cpu"
    MEMORY = "memory"
    STORAGE = "ephemeral-storage"
    RESOURCE = "other-resource"
    PODS = "pods"
    PORTS = "ports"
    TAINTS = "taints"
    NODE_AFFINITY = "node-affinity"
    POD_AFFINITY = "pod-affinity"
    VOLUMES = "volumes"
    OTHER = "other"


_PHRASES: Final = {
    "Insufficient cpu": RefusalKind.CPU,
    "Insufficient memory": RefusalKind.MEMORY,
    "Insufficient ephemeral-storage": RefusalKind.STORAGE,
    "Insufficient ": RefusalKind.RESOURCE,
    "Too many pods": RefusalKind.PODS,
    "free ports": RefusalKind.PORTS,
    "untolerated taint": RefusalKind.TAINTS,
    "volume": RefusalKind.VOLUMES,
    "pod affinity": RefusalKind.POD_AFFINITY,
    "anti-affinity": RefusalKind.POD_AFFINITY,
    "node affinity": RefusalKind.NODE_AFFINITY,
}


def classify(message: str) -> RefusalKind:
    """Return the first kind that the message names, in the order of the phrases above."""
    found = (kind for phrase, kind in _PHRASES.items() if phrase in message)
    return next(found, RefusalKind.OTHER)
