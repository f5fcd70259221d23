"""AdmissionReview v1 on the wire: the request of the API server, and our response."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from pydantic import Field

from kube.values.objects import Operation
from policy.errors import ConflictError, SpecError
from policy.identity.ownership import Editor
from service.bodies import Body, parse_body

_LONGEST_WARNING = 256
"""The API server may truncate longer ones."""
_FORBIDDEN, _TOO_MANY_REQUESTS = 403, 429
_REASONS = {_FORBIDDEN: "Forbidden", _TOO_MANY_REQUESTS: "TooManyRequests"}


class UserInfo(Body):
    """The user that sent the request to the API server."""

    username: str = ""
    groups: tuple[str, ...] = ()

    def is_any_of(self, names: Iterable[str]) -> bool:
        """Tell whether a list of users and groups contains this user."""
        return Editor(user=self.username, groups=self.groups).is_any_of(names)


class ReviewRequest(Body):
    """What the API server wants reviewed: one operation on one object."""

    uid: str = Field(min_length=1)
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    namespace: str = ""
    name: str = ""
    subresource: str = Field(default="", alias="subResource")
    """Such as the status of the object; empty for the object itself."""
    user: UserInfo = Field(alias="userInfo")
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = Field(default=None, alias="oldObject")
    dry_run: bool = Field(default=False, alias="dryRun")
    options: dict[str, Any] | None = None
    """Of the operation: whether a deletion leaves the dependents of an object alone."""


class _Review(Body):
    request: ReviewRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewResponse:
    """What the API server gets: allowed, perhaps with a patch, or refused."""

    is_allowed: bool
    message: str = ""
    code: int = _FORBIDDEN
    """Of a refusal."""
    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()
    is_recorded: bool = False
    """Whether a refusal is in the decision log, with the decision that led to it."""


ALLOWED = ReviewResponse(is_allowed=True)


def refuse(reason: object) -> ReviewResponse:
    """Refuse an object; `reason` is shown to the user. After a conflict, a retry may succeed."""
    if isinstance(reason, ConflictError):
        message = f"{reason}; try again"
        return ReviewResponse(is_allowed=False, message=message, code=_TOO_MANY_REQUESTS)
    if isinstance(reason, SpecError) and len(reason.problems) > 1:
        lines = "".join(f"\n- {problem}" for problem in reason.problems)
        return ReviewResponse(is_allowed=False, message=f"{len(reason.problems)} problems:{lines}")
    return ReviewResponse(is_allowed=False, message=str(reason))


def parse_review(body: bytes) -> ReviewRequest:
    """Parse a review. Raises RequestError with all problems."""
    return parse_body(_Review, body).request


def format_review(uid: str, response: ReviewResponse) -> dict[str, Any]:
    """Build the AdmissionReview that answers the request `uid`."""
    body: dict[str, Any] = {"uid": uid, "allowed": response.is_allowed}
    if not response.is_allowed:
        body["status"] = {
            "code": response.code,
            "reason": _REASONS[response.code],
            "message": response.message,
        }
    if response.patch:
        body["patchType"] = "JSONPatch"
        body["patch"] = base64.b64encode(orjson.dumps(response.patch)).decode()
    if response.warnings:
        body["warnings"] = [_cut(warning) for warning in response.warnings]
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": body}


def _cut(warning: str) -> str:
    """Shorten a warning at a word; the API server would cut anywhere."""
    if len(warning) <= _LONGEST_WARNING:
        return warning
    return warning[: _LONGEST_WARNING - 2].rsplit(" ", 1)[0] + " …"
