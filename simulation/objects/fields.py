"""Helpers for Kubernetes objects as plain JSON.

Objects of the store are shared and must not be changed: `clone` them first.
"""

from datetime import UTC, datetime
from typing import Any

import orjson

Object = dict[str, Any]
Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


def clone(obj: Object) -> Object:
    """Return a deep copy of a JSON object."""
    copy: Object = orjson.loads(orjson.dumps(obj))
    return copy


def key_of(obj: Object) -> Key:
    """Return the key of an object among those of its kind."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def version_of(obj: Object) -> str:
    """Return the resource version; empty if the object has none."""
    return str(obj["metadata"].get("resourceVersion") or "")


def format_time(seconds: float) -> str:
    """Format a Unix time as Kubernetes does: UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> float:
    """Parse the result of `format_time`."""
    return datetime.fromisoformat(text).timestamp()


def set_condition(status: Object, condition: Object, *, now: float) -> bool:
    """Set a condition; its transition time stays the same while its status does.

    Returns whether anything changed.
    """
    conditions = status.setdefault("conditions", [])
    old: Object = next((one for one in conditions if one["type"] == condition["type"]), {})
    same_status = old.get("status") == condition["status"]
    since = old["lastTransitionTime"] if same_status else format_time(now)
    new = {**condition, "lastTransitionTime": since}
    status["conditions"] = [one for one in conditions if one is not old] + [new]
    return bool(new != old)
