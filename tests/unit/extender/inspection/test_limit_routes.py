"""What a user holds, compared with the limits that concern the user."""

import pytest

from extender.inspection.limit_routes import LimitRoutes
from kube.api.token_reviews import ApiUser
from policy.errors import BackendError, RequestError
from policy.parser import DocumentKind
from policy.store import PolicyStore, PolicyText
from policy.submission import GroupName, UserName
from tests.support.policy.documents import HEAD, classes
from tests.support.state.charges import a_charge
from tests.support.twins.ledger import MemoryLedger

QUOTAS = f"""{HEAD}Quotas
groups:
- name: vision
  limits: {{leafCells: 64}}
  users:
  - {{name: alice, limits: {{leafCells: 16, leafCellsHigh: 8}}}}
- name: other
  limits: {{leafCells: 4}}
"""


def _routes(ledger: MemoryLedger | None) -> LimitRoutes:
    store = PolicyStore()
    quotas = PolicyText(kind=DocumentKind.QUOTAS, source="cm/quotas", text=QUOTAS)
    store.update([classes(), quotas])
    return LimitRoutes(ledger, lambda: store.policy)


async def test_every_limit_of_a_user_is_shown_with_what_is_used() -> None:
    ledger = MemoryLedger()
    for name, user in (("bert", "alice"), ("t5", "bob")):
        charge = a_charge(name, user=UserName(user), group=GroupName("vision"), leaf_count=4)
        await ledger.charge(charge)

    shown = await _routes(ledger).show({"user": "alice"})

    assert shown["held"]["leafCells"] == 4
    limits = shown["limits"]
    assert [(one.get("user"), one["measure"], one["used"], one["most"]) for one in limits] == [
        ("alice", "leafCells", 4, 16),
        ("alice", "leafCellsHigh", 4, 8),
        (None, "leafCells", 8, 64),
    ]
    assert limits[2]["text"] == "group vision holds 8 of 64 leaf cells within quota"
    assert limits[2]["over"] == "fail"


async def test_groups_that_only_the_api_server_knows_can_be_named() -> None:
    routes = _routes(MemoryLedger())
    assert (await routes.show({"user": "bob"}))["limits"] == []
    shown = await routes.show({"user": "bob", "groups": "x,other"})
    assert [one["group"] for one in shown["limits"]] == ["other"]
    assert shown["groups"] == ["other", "x"]


async def test_a_caller_sees_the_own_limits_with_the_groups_of_the_token() -> None:
    bob = ApiUser(name="bob", groups=("other",))
    shown = await _routes(MemoryLedger()).show({}, caller=bob)
    assert [(one["group"], one["measure"]) for one in shown["limits"]] == [("other", "leafCells")]
    asked = await _routes(MemoryLedger()).show({"user": "alice"}, caller=bob)
    assert asked["groups"] == ["vision"], "the caller's groups say nothing about another user"


async def test_a_request_without_a_user_and_a_ledger_that_is_away_are_told() -> None:
    ledger = MemoryLedger()
    with pytest.raises(RequestError, match="user: must name a user"):
        await _routes(ledger).show({"groups": "x"})
    ledger.is_away = True
    with pytest.raises(BackendError):
        await _routes(ledger).show({"user": "alice"})
    with pytest.raises(BackendError, match="has no ledger"):
        await _routes(None).show({"user": "alice"})
