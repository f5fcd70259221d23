"""What a simulation says beyond what random histories cover: what is missing, or cannot be read."""

import time
from typing import Any

import pytest

from extender.cells.model import Decision, MemberRequest, Preempt, Reason, ReasonCode
from policy.errors import RequestError
from policy.submission import GangKey
from tests.support.background import background
from tests.support.extender.simulating import PriorityClasses, SimulatedWorld, foretold
from tests.support.kube.pods import a_new_pod
from tests.support.policy.documents import HEAD
from tests.support.state.charges import a_charge

QUOTAS = f"""{HEAD}Quotas
groups:
- {{name: ml, over: fail, limits: {{leafCells: 8}}, users: [{{name: alice}}]}}
"""


def _pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    pod = a_new_pod(name, namespace="lab").with_gpus(8).in_vc("lab").of_class("prod")
    return dict(pod.with_spec(**spec))


def _gang(*, size: int) -> list[dict[str, Any]]:
    pods = (a_new_pod(f"g-{index}", namespace="lab") for index in range(3))
    return [dict(pod.with_gpus(8).in_vc("lab").in_gang("g", size=size)) for pod in pods]


async def test_a_ledger_that_does_not_answer_is_named() -> None:
    world = SimulatedWorld(quotas=QUOTAS)
    world.ledger.is_away = True
    told = await world.simulate(_pod(), user="alice")
    assert told.admission.problems == (
        "the ledger cannot be read now: the ledger is unavailable; usage is unknown, so neither "
        "quotas nor rules about usage were applied; the webhook would apply the usage that it knew "
        "last",
    )
    assert foretold(told) == [("node-00", 8)]


_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def _affinity(*terms: object) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"nodeSelector": "zone"}, "spec.nodeSelector"),
        ({"nodeSelector": {"zone": 1}}, "spec.nodeSelector[zone]"),
        ({"tolerations": {"a": "b"}}, "spec.tolerations"),
        ({"tolerations": [{"key": []}]}, "spec.tolerations[0].key"),
        ({"affinity": True}, "spec.affinity"),
        ({"affinity": {"nodeAffinity": -1}}, "spec.affinity.nodeAffinity"),
        ({"affinity": _affinity(5)}, f"{_TERMS}.nodeSelectorTerms[0]"),
        (
            {"affinity": _affinity({"matchExpressions": [{"operator": "Exists"}]})},
            f"{_TERMS}.nodeSelectorTerms[0].matchExpressions[0].key",
        ),
        (
            {
                "affinity": _affinity(
                    {"matchFields": [{"key": "a", "operator": "Gt", "values": ["9" * 5000]}]}
                )
            },
            f"{_TERMS}.nodeSelectorTerms[0].matchFields[0].values[0]",
        ),
        (
            {
                "affinity": _affinity(
                    {"matchExpressions": [{"key": "a", "operator": "In", "values": [None]}]}
                )
            },
            f"{_TERMS}.nodeSelectorTerms[0].matchExpressions[0].values[0]",
        ),
    ],
    ids=lambda value: value[-40:] if isinstance(value, str) else "",
)
async def test_rules_for_nodes_that_no_api_server_stores_are_refused(
    spec: dict[str, Any], path: str
) -> None:
    """These fields are read as the API server has checked them: here it has not."""
    with pytest.raises(RequestError) as caught:
        await SimulatedWorld().simulate(_pod(**spec), user="alice")
    assert [problem.path for problem in caught.value.problems] == [path]


async def test_usage_at_the_limit_refuses_as_the_webhook_does() -> None:
    world = SimulatedWorld(quotas=QUOTAS)
    async with background(world.plans.planner.run()):
        assert (await world.create(_pod("first"), user="alice")).is_allowed
        told = await world.simulate(_pod("second"), user="alice")
        answer = await world.create(_pod("second"), user="alice")
    assert told.plan is None
    assert told.admission.refusal == answer.message
    assert "the limit is 8" in answer.message


async def test_a_simulation_charges_nothing() -> None:
    world = SimulatedWorld(quotas=QUOTAS)
    for _ in range(3):
        assert foretold(await world.simulate(_pod(), user="alice")) == [("node-00", 8)]
    assert await world.ledger.charges() == ()


async def test_a_simulation_of_a_gang_keeps_no_charge_from_expiring() -> None:
    world = SimulatedWorld(quotas=QUOTAS)
    await world.ledger.charge(a_charge(GangKey("lab", "g"), group="ml"))
    world.webhook.world.clock.advance(seconds=11)
    before = await world.ledger.charges()
    await world.simulate(_gang(size=3)[0], user="alice")
    assert await world.ledger.charges() == before


async def test_a_gang_that_cannot_be_charged_is_refused_as_the_webhook_does() -> None:
    told = await SimulatedWorld(quotas=QUOTAS).simulate(_pod(), user="a" * 3000)
    assert told.admission.refusal is not None
    assert "the pod cannot be charged: the names of a gang" in told.admission.refusal


async def test_a_class_without_a_priority_class_is_refused_as_the_api_server_does() -> None:
    world = SimulatedWorld()
    world.simulator._admission._client = PriorityClasses("test")
    told = await world.simulate(_pod(), user="alice")
    expected = 'spec.priorityClassName: no PriorityClass with name "prod" was found'
    assert told.admission.refusal == expected


async def test_a_job_in_place_of_a_pod_is_told_so() -> None:
    job = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"template": _pod()}}
    with pytest.raises(RequestError, match=r'pod.kind: must be Pod, not "Job": give one of its'):
        await SimulatedWorld().simulate(job, user="alice")


async def test_a_pod_that_names_its_node_cannot_be_simulated() -> None:
    with pytest.raises(RequestError, match="no scheduler looks at a pod that names its node"):
        await SimulatedWorld().simulate(_pod(nodeName="node-00"), user="alice")


async def test_a_pod_beyond_its_gang_is_told_so() -> None:
    world = SimulatedWorld()
    pods = _gang(size=2)
    async with background(world.plans.planner.run()):
        for pod in pods[:2]:
            assert (await world.create(pod, user="alice")).is_allowed
        told = await world.simulate(pods[2], user="alice")
    assert foretold(told) == (
        "gang lab/g already has all of its 2 members with 8 leaf cells; starts once a member has "
        "ended; check `cellgate.io/gang-size`"
    )


async def test_a_gang_of_which_members_exist_is_simulated_with_them() -> None:
    world = SimulatedWorld()
    pods = _gang(size=3)
    async with background(world.plans.planner.run()):
        assert (await world.create(pods[0], user="alice")).is_allowed
        told = await world.simulate(pods[1], user="alice")
        for pod in pods[1:]:
            assert (await world.create(pod, user="alice")).is_allowed
        await world.settle()
        assert world.happened("lab/g") == foretold(told)
        other = await world.simulate(pods[1], user="bob")
    assert other.admission.refusal is not None
    assert "submitter bob instead of alice" in other.admission.refusal


async def test_bins_are_ranked_step_by_step_before_a_preemption_is_simulated() -> None:
    world = SimulatedWorld()
    async with background(world.plans.planner.run()):
        for index in range(4):
            low = a_new_pod(f"low-{index}", namespace="lab").with_gpus(8).in_vc("lab")
            assert (await world.create(dict(low.of_class("test")), user="alice")).is_allowed
        await world.settle()
    cells, ready = world.simulator._places._cells, list[bool]()
    plan = cells.plan

    def note(request: MemberRequest, **given: Any) -> Decision:
        ready.append(cells.is_ready(request))
        return plan(request, **given)

    cells.plan = note
    told = await world.simulate(_pod("q"), user="alice")
    assert isinstance(told.plan, Preempt)
    assert ready
    assert all(ready)


async def test_a_very_large_gang_does_not_block_the_leader() -> None:
    began = time.perf_counter()
    told = await SimulatedWorld().simulate(_gang(size=150_000)[0], user="alice")
    assert foretold(told) == (
        "gang lab/g has 150000 members; the limit is 10000; split it into several gangs"
    )
    assert time.perf_counter() - began < 2
    told = await SimulatedWorld().simulate(_gang(size=9_999)[0], user="alice")
    assert "needs 9999 x 8 leaf cells" in str(foretold(told))
    assert time.perf_counter() - began < 10  # the time grew with the square of the size


async def test_a_pod_with_a_hold_would_be_held() -> None:
    world = SimulatedWorld(quotas=QUOTAS)
    pod = _pod()
    pod["metadata"]["annotations"] = {"cellgate.io/hold": "data is copied"}
    told = await world.simulate(pod, user="alice")
    assert isinstance(told.plan, Reason)
    assert told.plan.code is ReasonCode.HELD_BY_USER
    assert told.plan.text.startswith("its owner alice holds gang lab/p: data is copied;")
    pod["metadata"]["annotations"] = {"cellgate.io/hold": "second; after=lab/none"}
    assert foretold(await world.simulate(pod, user="alice")) == [("node-00", 8)]
