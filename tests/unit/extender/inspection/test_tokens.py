"""Tokens are checked by the API server, which is not asked more than need be."""

import asyncio

import pytest

from extender.inspection.tokens import TokenCheck
from kube.api.token_reviews import AccessReviews, ApiUser
from policy.errors import BackendError

ALICE = ApiUser(name="alice", groups=("team-a",))


class FakeReviews(AccessReviews):
    """An API server that knows alice, and counts what it is asked."""

    def __init__(self) -> None:
        self.identified: list[str] = []
        self.rights: list[tuple[str, str]] = []
        self.open = 0
        self.most_open = 0
        self.is_hung = False

    async def identify(self, token: str) -> ApiUser | None:
        self.identified.append(token)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await (asyncio.Event().wait() if self.is_hung else asyncio.sleep(0))
        finally:
            self.open -= 1
        return ALICE if token == "alice" else None

    async def may(self, person: ApiUser, *, verb: str, path: str) -> bool:
        self.rights.append((verb, path))
        return path == "/v1/gangs"


class TokenCheckWorld:
    """A check with a clock that tests move."""

    def __init__(self, *, deadline_seconds: float = 3.0) -> None:
        self.now = 0.0
        self.reviews = FakeReviews()
        self.check = TokenCheck(
            self.reviews, monotonic=lambda: self.now, deadline_seconds=deadline_seconds
        )


async def test_yes_and_no_are_remembered_for_some_seconds() -> None:
    world = TokenCheckWorld()
    for _ in range(3):
        assert await world.check.identify("alice") == ALICE
        assert await world.check.identify("mallory") is None
        assert await world.check.may(ALICE, verb="get", path="/v1/gangs")
        assert not await world.check.may(ALICE, verb="get", path="/metrics")
    assert world.reviews.identified == ["alice", "mallory"]
    assert world.reviews.rights == [("get", "/v1/gangs"), ("get", "/metrics")]

    world.now += 10
    await world.check.identify("alice")
    await world.check.identify("mallory")
    assert world.reviews.identified == ["alice", "mallory"] * 2


async def test_a_right_to_read_is_no_right_to_send() -> None:
    world = TokenCheckWorld()
    await world.check.may(ALICE, verb="get", path="/v1/gangs")
    await world.check.may(ALICE, verb="post", path="/v1/gangs")
    assert world.reviews.rights == [("get", "/v1/gangs"), ("post", "/v1/gangs")]


async def test_a_flood_of_bad_tokens_pushes_no_good_one_out() -> None:
    world = TokenCheckWorld(deadline_seconds=3600)
    await world.check.identify("alice")
    await asyncio.gather(*(world.check.identify(f"x{number}") for number in range(5_000)))
    asked = len(world.reviews.identified)

    assert await world.check.identify("alice") == ALICE
    assert len(world.reviews.identified) == asked
    assert world.reviews.most_open == 16


async def test_a_hung_api_server_keeps_nobody_beyond_the_deadline() -> None:
    world = TokenCheckWorld(deadline_seconds=0.05)
    world.reviews.is_hung = True
    waiting = (world.check.identify(f"x{number}") for number in range(100))
    answers = await asyncio.gather(*waiting, return_exceptions=True)

    assert {(type(answer), str(answer)) for answer in answers} == {
        (
            BackendError,
            "cannot check the token: the API server did not answer within 0.05 seconds",
        )
    }
    assert world.reviews.open == 0

    world.reviews.is_hung = False
    assert await world.check.identify("alice") == ALICE


async def test_what_was_not_said_is_not_remembered() -> None:
    world = TokenCheckWorld(deadline_seconds=0.01)
    world.reviews.is_hung = True
    with pytest.raises(BackendError):
        await world.check.identify("alice")
    world.reviews.is_hung = False
    assert await world.check.identify("alice") == ALICE
