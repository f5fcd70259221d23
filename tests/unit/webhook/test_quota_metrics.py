"""What groups hold of their quotas, as metrics."""

import pytest
from prometheus_client import CollectorRegistry

from tests.support.state.charges import a_charge
from tests.support.webhook.admission_world import AdmissionWorld, a_policy
from webhook.quota_metrics import QuotaMetrics

_QUOTAS = """groups:
- name: vision
  limits: {leafCells: 20, cpu: 8, memory: 4Gi, byLeafType: {A100: 4}, leafCellHours: {day: 12}}
  over: fail
  users: [{name: alice, limits: {cpu: 2}}]
- {name: nlp, over: fail, users: [{name: bob}]}
"""


@pytest.fixture
def world() -> AdmissionWorld:
    return AdmissionWorld(a_policy(quotas=_QUOTAS))


def _samples(world: AdmissionWorld) -> dict[tuple[str, ...], float]:
    registry = CollectorRegistry()
    QuotaMetrics(registry, usage=world.usage, policy=lambda: world.policy)
    return {
        (sample.name.removeprefix("cellgate_webhook_quota_"), *sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


async def test_every_limit_of_a_group_is_measured_in_its_unit(world: AdmissionWorld) -> None:
    await world.ledger.charge(a_charge(cpu_millis=1500, memory_bytes=2**30))
    world.clock.advance(hours=1)
    assert _samples(world) == {
        ("limit", "vision", "leafCells", ""): 20,
        ("used", "vision", "leafCells", ""): 4,
        ("limit", "vision", "leafCells", "A100"): 4,
        ("used", "vision", "leafCells", "A100"): 4,
        ("limit", "vision", "cpu", ""): 8,
        ("used", "vision", "cpu", ""): 1.5,
        ("limit", "vision", "memory", ""): 4 * 2**30,
        ("used", "vision", "memory", ""): 2**30,
        ("limit", "vision", "leafCellHours.day", ""): 12,
        ("used", "vision", "leafCellHours.day", ""): 4,
    }


def test_use_that_was_never_read_is_not_zero(world: AdmissionWorld) -> None:
    world.usage.is_known = False
    assert {key[0] for key in _samples(world)} == {"limit"}
