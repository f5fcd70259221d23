"""What the API server asks a webhook about an object."""

import uuid
from collections.abc import Sequence
from typing import Any

from webhook.wire import ReviewRequest


def review_request(
    obj: dict[str, Any] | None,
    *,
    user: str = "alice",
    groups: Sequence[str] = (),
    old: dict[str, Any] | None = None,
    dry_run: bool = False,
    uid: str = "",
    subresource: str = "",
) -> dict[str, Any]:
    """Return the request of an AdmissionReview, as JSON."""
    operation = "CREATE" if old is None else "UPDATE" if obj is not None else "DELETE"
    given = (obj or old or {}).get("metadata")
    metadata = given if isinstance(given, dict) else {}
    return {
        "uid": uid or str(uuid.uuid4()),
        "operation": operation,
        "namespace": metadata.get("namespace", "lab"),
        "name": metadata.get("name", ""),
        "userInfo": {"username": user, "groups": list(groups)},
        "object": obj,
        "oldObject": old,
        "dryRun": dry_run,
        **({"subResource": subresource} if subresource else {}),
    }


def a_review(obj: dict[str, Any] | None, **fields: Any) -> ReviewRequest:
    """Return the same as the webhook reads it."""
    return ReviewRequest.model_validate(review_request(obj, **fields))
