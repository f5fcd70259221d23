"""The words of AdmissionReview v1: what the API server asks, and how it is answered."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from policy.errors import Problem, RequestError

Operation = dict[str, Any]
"""One step of a JSON patch."""

# The API server may cut a warning that is longer.
_LONGEST_WARNING = 256


class _Part(BaseModel):
    # The review grows with Kubernetes: what we do not know is not ours to refuse.
    model_config = ConfigDict(extra="ignore", frozen=True)


PartT = TypeVar("PartT", bound=_Part)


class UserInfo(_Part):
    """Who sent the request to the API server."""

    username: str = ""
    groups: tuple[str, ...] = ()


class ReviewRequest(_Part):
    """What the API server asks about one object."""

    uid: str = Field(min_length=1)
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    namespace: str = ""
    name: str = ""
    user: UserInfo = Field(alias="userInfo")
    object: dict[str, Any] | None = None
    dry_run: bool = Field(default=False, alias="dryRun")


class _Metadata(_Part):
    name: str = ""
    labels: dict[str, str] | None = None


class ConfigMap(_Part):
    """As much of a ConfigMap as a policy document needs."""

    metadata: _Metadata
    data: dict[str, str] | None = None

    def label(self, key: str) -> str | None:
        """One label, None if it is not there."""
        return (self.metadata.labels or {}).get(key)


class _Review(_Part):
    request: ReviewRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the API server is told."""

    is_allowed: bool
    message: str = ""
    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()


def parse_review(body: bytes) -> ReviewRequest:
    """Parse a review; RequestError lists everything that is wrong with it."""
    try:
        return _validate(_Review, orjson.loads(body)).request
    except orjson.JSONDecodeError as exc:
        raise RequestError.at("", f"the review is not JSON: {exc}") from exc


def parse_config_map(obj: Mapping[str, Any]) -> ConfigMap:
    """Read a ConfigMap; RequestError lists everything that is wrong with it."""
    return _validate(ConfigMap, obj)


def _validate(kind: type[PartT], content: object) -> PartT:
    try:
        return kind.model_validate(content)
    except ValidationError as exc:
        problems = [
            Problem(".".join(map(str, error["loc"])), error["msg"]) for error in exc.errors()
        ]
        raise RequestError(problems) from exc


def format_review(uid: str, answer: Answer) -> dict[str, Any]:
    """Build the review that answers the request `uid`."""
    response: dict[str, Any] = {"uid": uid, "allowed": answer.is_allowed}
    if not answer.is_allowed:
        response["status"] = {"code": 403, "reason": "Forbidden", "message": answer.message}
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
