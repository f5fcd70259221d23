"""What was let in without the ledger is in it as soon as it is back."""

from typing import Any

import pytest

from policy.errors import BackendError
from policy.quotas.limits import Scope
from policy.submission import UserName
from tests.support.webhook.admission_world import AdmissionWorld
from webhook.ledger_access.catch_up import catch_up

ALICE = Scope(UserName("alice"))


async def test_a_ledger_that_is_back_hears_of_everything() -> None:
    world = AdmissionWorld()
    replica = world.replica()
    world.ledger.is_away = True
    for name in ("a", "b"):
        await replica.admit(world.ask(name, cells=2))
    world.ledger.is_away = False
    await catch_up(world.ledger, world.usage.assumed)
    assert (await world.ledger.usage(ALICE)).leaf_cells == 4


async def test_a_ledger_that_fails_again_is_charged_later() -> None:
    world = AdmissionWorld()
    world.ledger.is_away = True
    await world.replica().admit(world.ask("a"))
    with pytest.raises(BackendError):
        await catch_up(world.ledger, world.usage.assumed)
    assert len(world.usage.assumed) == 1


async def test_what_is_admitted_meanwhile_is_charged_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = AdmissionWorld()
    replica, charge = world.replica(), world.ledger.charge
    world.ledger.is_away = True
    await replica.admit(world.ask("a", cells=2))

    async def charge_slowly(*told: Any, **limits: Any) -> object:
        monkeypatch.undo()
        await replica.admit(world.ask("b", cells=2))  # while the ledger hears of the first
        world.ledger.is_away = False
        return await charge(*told, **limits)

    monkeypatch.setattr(world.ledger, "charge", charge_slowly)
    await catch_up(world.ledger, world.usage.assumed)
    assert (await world.ledger.usage(ALICE)).leaf_cells == 4


async def test_nothing_is_charged_where_nothing_is_missing() -> None:
    world = AdmissionWorld()
    world.ledger.is_away = True
    await catch_up(world.ledger, world.usage.assumed)
