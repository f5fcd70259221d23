"""Checks of Kubernetes tokens: who the owner is, and what the owner may read here.

Invalid tokens cost the API server little. Its answers are remembered for some seconds, positive and
negative ones apart, so that a flood of invalid tokens does not push a valid one out. Only a few
checks run at a time, and a caller that waits longer than the deadline gets an error.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from kube.api.client import KubeError
from kube.api.token_reviews import AccessReviews, ApiUser
from policy.errors import BackendError
from service.memory import ExpiringMap

T = TypeVar("T")

_REMEMBER_SECONDS: Final = 10.0
"""A revoked token or right still works for this long."""
_MOST_PEOPLE: Final = 1_024
_MOST_STRANGERS: Final = 4_096
_MOST_RIGHTS: Final = 8_192
_MOST_CHECKS: Final = 16
_DEADLINE_SECONDS: Final = 3.0


class TokenCheck:
    """Asks the API server and remembers its answers, by a hash of the token."""

    def __init__(
        self,
        reviews: AccessReviews,
        *,
        monotonic: Callable[[], float],
        deadline_seconds: float = _DEADLINE_SECONDS,
    ) -> None:
        remember = partial(ExpiringMap, seconds=_REMEMBER_SECONDS, monotonic=monotonic)
        self._people: ExpiringMap[bytes, ApiUser] = remember(_MOST_PEOPLE)
        self._strangers: ExpiringMap[bytes, None] = remember(_MOST_STRANGERS)
        self._rights: ExpiringMap[tuple[ApiUser, str, str], bool] = remember(_MOST_RIGHTS)
        self._reviews = reviews
        self._deadline_seconds = deadline_seconds
        self._checks = asyncio.Semaphore(_MOST_CHECKS)

    async def identify(self, token: str) -> ApiUser | None:
        """Return the owner of a token, None if it is not valid; BackendError if not known."""
        key = hashlib.sha256(token.encode()).digest()
        known = self._people.get(key)
        if known is not None or key in self._strangers:
            return known
        person = await self._ask(lambda: self._reviews.identify(token))
        if person is None:
            self._strangers[key] = None
        else:
            self._people[key] = person
        return person

    async def may(self, person: ApiUser, *, verb: str, path: str) -> bool:
        """Whether a person may do this. Raises BackendError if that is not known."""
        key = (person, verb, path)
        known = self._rights.get(key)
        if known is None:
            known = await self._ask(lambda: self._reviews.may(person, verb=verb, path=path))
            self._rights[key] = known
        return known

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self._deadline_seconds), self._checks:
                return await question()
        except TimeoutError as exc:
            seconds = f"{self._deadline_seconds:g} seconds"
            raise BackendError(
                f"cannot check the token: the API server did not answer within {seconds}"
            ) from exc
        except KubeError as exc:
            raise BackendError(f"cannot check the token: {exc}") from exc
