"""What a simulation says of a pod is what the webhook and the planner then do with it."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cells.model import Preempt
from policy.rules.decision import Outcome
from tests.support.background import background
from tests.support.examples import at_most_in_ci
from tests.support.extender.simulating import SimulatedWorld, foretold
from tests.support.kube.pods import a_new_pod
from tests.support.policy.cluster_texts import hived_text
from tests.support.policy.documents import HEAD

RULES = f"""{HEAD}Rules
impossible: refuse
rules:
- {{user: mallory, then: fail}}
- {{user: alice, priority: prod, occupiedHigh: '>= 12', then: test}}
- {{user: bob, occupied: '>= 24', then: fail}}
"""
QUOTAS = f"""{HEAD}Quotas
groups:
- name: ml
  limits: {{leafCells: 20}}
  over: queue
  users: [{{name: alice, limits: {{leafCells: 16}}}}]
- name: vision
  limits: {{leafCells: 8}}
  over: oppo
  users: [{{name: bob}}]
- name: audio
  limits: {{gangs: 1}}
  over: fail
  users: [{{name: carol}}]
"""
IDENTITY = f"""{HEAD}Identity
vcs:
  closed: {{users: [alice]}}
"""

asks = st.fixed_dictionaries(
    {
        "user": st.sampled_from(["alice", "bob", "carol", "dave", "dave", "mallory"]),
        "class_name": st.sampled_from(
            ["prod", "prod", "prod", "test", "oppo", "oppo", "unknown", ""]
        ),
        "vc": st.sampled_from(["lab"] * 8 + ["closed", "missing"]),
        "leaves": st.sampled_from([1, 4, 8, 8, 16]),
        "size": st.sampled_from([1, 1, 2, 4]),
        "cpu": st.sampled_from(["1", "1", "1", "20", "60", "900"]),
    }
)


def _pods(number: int, ask: dict[str, Any]) -> list[dict[str, Any]]:
    pods = []
    for member in range(ask["size"]):
        pod = a_new_pod(f"p{number}-{member}", namespace="lab").with_gpus(ask["leaves"])
        pod = pod.with_cpu(ask["cpu"]).in_vc(ask["vc"])
        if ask["size"] > 1:
            pod = pod.in_gang(f"p{number}", size=ask["size"])
        if ask["class_name"]:
            pod = pod.of_class(ask["class_name"])
        pods.append(dict(pod))
    return pods


async def _compare(world: SimulatedWorld, number: int, ask: dict[str, Any]) -> None:
    pods, user = _pods(number, ask), ask["user"]
    told = await world.simulate(pods[0], user=user)
    again = await world.simulate(pods[0], user=user)
    assert foretold(again) == foretold(told), "a simulation changes nothing"
    answers = [await world.create(pod, user=user) for pod in pods]
    assert answers[0].is_allowed == (told.admission.refusal is None), answers[0]
    if not answers[0].is_allowed:
        assert answers[0].message == told.admission.refusal
        return
    assert all(answer.is_allowed for answer in answers)
    assert told.admission.warnings == tuple(answers[0].warnings)
    decision = told.admission.decision
    assert decision is not None
    stored = world.objects[f"uid-of-{pods[0]['metadata']['name']}"]  # type: ignore[index]
    assert stored["spec"].get("priorityClassName", "") == decision.final_class
    await world.settle()
    gang = f"lab/p{number}" if ask["size"] > 1 else f"lab/p{number}-0"
    assert world.happened(gang) == foretold(told)
    if isinstance(told.plan, Preempt):
        assert decision.outcome is Outcome.ADMITTED


@settings(max_examples=at_most_in_ci(100))
@given(st.lists(asks, min_size=1, max_size=10))
def test_a_simulation_says_what_then_happens(history: list[dict[str, Any]]) -> None:
    async def run() -> None:
        cluster = hived_text(lab=3, closed=1)
        world = SimulatedWorld(cluster, rules=RULES, quotas=QUOTAS, identity=IDENTITY)
        await world.webhook.facts.refresh()
        async with background(world.plans.planner.run()):
            for number, ask in enumerate(history):
                await _compare(world, number, ask)

    asyncio.run(run())
