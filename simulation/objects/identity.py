"""The user of a request: by bearer token or impersonation. There is no authorization.

A request without credentials has the rights of an administrator: the server is on loopback only.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from multidict import CIMultiDictProxy

from simulation.objects.fields import Object
from simulation.objects.status import ApiError, bad_request


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user, as webhooks see it."""

    name: str
    groups: tuple[str, ...] = ()

    def to_user_info(self) -> Object:
        """Return the userInfo of an AdmissionReview."""
        groups = [*self.groups, "system:authenticated"]
        return {"username": self.name, "uid": self.name, "groups": groups}


ADMIN = User(name="admin", groups=("system:masters",))


class Tokens:
    """The users of bearer tokens."""

    def __init__(self) -> None:
        self._users: dict[str, User] = {}

    def issue(self, user: User) -> str:
        """Return the token of a user, which is always the same."""
        token = f"simulated:{user.name}"
        self._users[token] = user
        return token

    def identify(self, headers: CIMultiDictProxy[str]) -> User:
        """Return the user of a request; 401 for an unknown token."""
        user = self._authenticate(headers)
        name, groups = headers.get("Impersonate-User"), headers.getall("Impersonate-Group", [])
        if groups and not name:
            raise bad_request("requested groups without impersonating a user")
        return User(name=name, groups=tuple(groups)) if name else user

    def _authenticate(self, headers: Mapping[str, str]) -> User:
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if not scheme:
            return ADMIN
        user = self.find(token) if scheme.lower() == "bearer" else None
        if user is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return user

    def find(self, token: str) -> User | None:
        """Return the user of a token; None for an unknown token."""
        return self._users.get(token)
