"""Asks the API server whose token it is, and what that user may do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube.api.client import KubeClient, Object

_WHO = "/apis/authentication.k8s.io/v1/tokenreviews"
_RIGHTS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiUser:
    """The user of a token, or the service account."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Further facts from the authenticator, which authorizers may use."""


class AccessReviews:
    """TokenReview and SubjectAccessReview; KubeError if the API server does not answer."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def identify(self, token: str) -> ApiUser | None:
        """The user of a token; None if it is not valid."""
        status = await self._ask(_WHO, "authentication.k8s.io", "TokenReview", {"token": token})
        user = status.get("user") or {}
        if status.get("authenticated") is not True or not user.get("username"):
            return None
        return _read_user(user)

    async def may(self, user: ApiUser, *, verb: str, path: str) -> bool:
        """Whether a user may use a verb on a path that is no Kubernetes resource."""
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        status = await self._ask(_RIGHTS, "authorization.k8s.io", "SubjectAccessReview", spec)
        return status.get("allowed") is True

    async def _ask(self, path: str, group: str, kind: str, spec: Object) -> Mapping[str, Any]:
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        answer = await self._client.request("POST", path, body=body)
        return answer.get("status") or {}


def _read_user(user: Mapping[str, Any]) -> ApiUser:
    extra = user.get("extra") or {}
    return ApiUser(
        name=str(user["username"]),
        uid=str(user.get("uid") or ""),
        groups=tuple(map(str, user.get("groups") or ())),
        extra=tuple((str(key), tuple(map(str, extra[key] or ()))) for key in sorted(extra)),
    )
