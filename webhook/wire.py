"""The words of AdmissionReview v1: what the API server asks, and how it is answered."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from pydantic import Field

from policy.errors import ConflictError
from service.bodies import Body, parse_body

Operation = dict[str, Any]
"""One step of a JSON patch."""

# The API server may cut a warning that is longer.
_LONGEST_WARNING = 256
_FORBIDDEN, _TOO_MANY_REQUESTS = 403, 429
_REASONS = {_FORBIDDEN: "Forbidden", _TOO_MANY_REQUESTS: "TooManyRequests"}


class UserInfo(Body):
    """Who sent the request to the API server."""

    username: str = ""
    groups: tuple[str, ...] = ()


class ReviewRequest(Body):
    """What the API server asks about one object."""

    uid: str = Field(min_length=1)
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    namespace: str = ""
    name: str = ""
    user: UserInfo = Field(alias="userInfo")
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = Field(default=None, alias="oldObject")
    dry_run: bool = Field(default=False, alias="dryRun")


class _Review(Body):
    request: ReviewRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the API server is told."""

    is_allowed: bool
    message: str = ""
    code: int = _FORBIDDEN
    """Of a refusal."""
    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()


ALLOWED = Answer(is_allowed=True)


def try_again(lost: ConflictError) -> Answer:
    """Refuse what lost a race: the same may well pass a moment later."""
    return Answer(is_allowed=False, message=f"{lost}; try again", code=_TOO_MANY_REQUESTS)


def parse_review(body: bytes) -> ReviewRequest:
    """Parse a review; RequestError lists everything that is wrong with it."""
    return parse_body(_Review, body).request


def format_review(uid: str, answer: Answer) -> dict[str, Any]:
    """Build the review that answers the request `uid`."""
    response: dict[str, Any] = {"uid": uid, "allowed": answer.is_allowed}
    if not answer.is_allowed:
        response["status"] = {
            "code": answer.code,
            "reason": _REASONS[answer.code],
            "message": answer.message,
        }
    if answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(answer.patch)).decode()
    if answer.warnings:
        response["warnings"] = [_cut(warning) for warning in answer.warnings]
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": response,
    }


def _cut(warning: str) -> str:
    """Shorten a warning here, where a whole word can be kept, not where it is shown."""
    if len(warning) <= _LONGEST_WARNING:
        return warning
    return warning[: _LONGEST_WARNING - 2].rsplit(" ", 1)[0] + " …"
