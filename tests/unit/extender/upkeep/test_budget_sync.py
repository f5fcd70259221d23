"""PodDisruptionBudgets: which gangs break one, and what their owners are told."""

from typing import Any

import pytest

from extender.upkeep.budget_sync import BudgetSync
from kube.follow.disruption_budgets import DisruptionBudgetSink
from policy.submission import GangKey
from tests.support.extender.gang_pods import bound
from tests.support.extender.shell import Shell

GANG = GangKey("lab", "g")


def a_budget(name: str = "web", *, allowed: int, **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "lab", "name": name},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }


class BudgetWorld:
    """A gang of two bound pods, and what the engine is told of it."""

    def __init__(self) -> None:
        self.shell = Shell()
        self.shell.recover()
        self.budgets = DisruptionBudgetSink()
        self.sync = BudgetSync(
            budgets=self.budgets, cluster=self.shell.cluster, pods=self.shell.pods
        )
        for name, node in (("a", "node-00"), ("b", "node-01")):
            self.shell.pods.upsert(bound(name, node))

    def look(self) -> bool:
        self.sync.look()
        gang = self.shell.cluster._engine._table.gangs[GANG]
        return gang.breaks_budget

    def note(self) -> str:
        return self.sync.note_for(self.shell.pod("a"))


@pytest.fixture
def world() -> BudgetWorld:
    return BudgetWorld()


@pytest.mark.parametrize(("allowed", "breaks"), [(0, True), (1, True), (2, False)])
def test_a_gang_breaks_a_budget_that_allows_fewer_pods_than_it_has(
    world: BudgetWorld, allowed: int, *, breaks: bool
) -> None:
    world.budgets.upsert(a_budget(allowed=allowed))
    assert world.look() is breaks
    assert ("PodDisruptionBudget lab/web, which allows" in world.note()) is breaks


def test_budgets_of_other_pods_and_namespaces_do_not_matter(world: BudgetWorld) -> None:
    elsewhere = a_budget("other", allowed=0)
    elsewhere["metadata"]["namespace"] = "team"
    world.budgets.replace([a_budget(allowed=0, app="db"), elsewhere])
    assert not world.look()


def test_a_budget_that_changes_or_goes_is_followed(world: BudgetWorld) -> None:
    world.budgets.replace([a_budget(allowed=1)])
    assert world.look()
    world.budgets.upsert(a_budget(allowed=2))
    assert not world.look()
    world.budgets.upsert(a_budget(allowed=0))
    assert world.look()
    world.budgets.remove(a_budget(allowed=0))
    assert not world.look()
    assert world.note() == ""


def test_pods_that_end_already_do_not_count(world: BudgetWorld) -> None:
    world.budgets.upsert(a_budget(allowed=1))
    assert world.look()
    world.shell.pods.upsert(bound("b", "node-01").being_deleted())
    assert not world.look()


def test_a_new_list_tells_only_what_is_different(world: BudgetWorld) -> None:
    told: list[str] = []
    world.budgets.on_change.append(told.append)
    world.budgets.replace([a_budget(allowed=1)])
    world.budgets.replace([a_budget(allowed=1)])
    world.budgets.upsert(a_budget(allowed=1))
    assert told == ["lab"]
    world.budgets.replace([])
    assert told == ["lab", "lab"]
