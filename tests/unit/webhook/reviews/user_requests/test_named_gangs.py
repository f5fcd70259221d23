"""A name that a user writes becomes no other request than the one for that name."""

from typing import Any

import pytest

from kube.follow.namespaces import NamespaceSink
from tests.support.webhook.reviews import NoCluster
from webhook.reviews.user_requests.named_gangs import NamedGangs


class _Paths(NoCluster):
    def __init__(self) -> None:
        super().__init__({}, [])
        self.asked: list[str] = []

    async def request(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        self.asked.append(path)
        return {}


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("..", "x"), ("lab", "../secrets"), ("lab", "x?y"), ("lab", "%2e%2e"), ("lab", "a,b=c")],
)
async def test_a_name_that_no_object_has_is_not_asked_for(namespace: str, name: str) -> None:
    client = _Paths()
    assert await NamedGangs(client, NamespaceSink()).find(namespace, name) == []
    assert client.asked == []


async def test_the_name_of_a_gang_may_be_no_name_of_a_pod() -> None:
    client = _Paths()
    await NamedGangs(client, NamespaceSink()).find("lab", "Bert_1")
    assert set(client.asked) == {"/api/v1/namespaces/lab/pods"}
