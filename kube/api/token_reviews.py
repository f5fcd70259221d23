"""Asking the API server who a token is, and what they may do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube.api.client import KubeClient, Object

_WHO = "/apis/authentication.k8s.io/v1/tokenreviews"
_RIGHTS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiUser:
    """Whom the API server knows by a token: a user, or a service account."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What else an authenticator said of them; authorizers may look at it."""


class AccessReviews:
    """TokenReview and SubjectAccessReview; KubeError if the API server does not say."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def identify(self, token: str) -> ApiUser | None:
        """Whose token it is; None if it is nobody's, or has expired."""
        status = await self._ask(_WHO, "authentication.k8s.io", "TokenReview", {"token": token})
        user = status.get("user") or {}
        if status.get("authenticated") is not True or not user.get("username"):
            return None
        return _read_user(user)

    async def may(self, user: ApiUser, *, verb: str, path: str) -> bool:
        """Whether they may do that to a path that is no Kubernetes resource."""
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
