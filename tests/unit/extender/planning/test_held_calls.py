"""Bind calls that are held by the planner's loop: answered together, or given up."""

import asyncio

from extender.queue.held_bindings import GivenUp, Verdict
from policy.submission import GangKey, PodUid
from tests.support.extender.planning import Planning, planning
from tests.support.kube.pods import a_pod

A, B = PodUid("uid-of-a"), PodUid("uid-of-b")


async def _ask(plans: Planning, uid: PodUid, *, is_open: bool = True) -> Verdict:
    async with plans.planner.verdict(uid, is_open=lambda: is_open) as verdict:
        return verdict


async def _place_two(plans: Planning) -> None:
    plans.add_nodes()
    for name in "ab":
        plans.shell.pods.upsert(a_pod(name).with_gpus(8).in_vc("lab").in_gang("g", size=2).gated())
    await plans.looked()


async def test_the_first_call_waits_for_the_last() -> None:
    async with planning() as plans:
        await _place_two(plans)
        first = asyncio.create_task(_ask(plans, A))
        await plans.looked()
        assert (first.done(), plans.planner.held_gangs) == (False, 1)
        reason = plans.planner.held_reason(GangKey("lab", "g"))
        assert reason is not None
        assert "(1 so far)" in reason.text
        both = await asyncio.gather(first, _ask(plans, B))
        assert [verdict.given_up for verdict in both] == [None, None]
        assert plans.planner.held_gangs == 0


async def test_a_call_that_kube_scheduler_has_given_up_is_not_answered_by_a_binding() -> None:
    async with planning() as plans:
        await _place_two(plans)
        gone = asyncio.create_task(_ask(plans, A, is_open=False))
        await plans.looked()
        last = asyncio.create_task(_ask(plans, B))
        await plans.looked()
        assert (await gone).given_up is GivenUp.SILENT
        assert not last.done()
        last.cancel()


async def test_no_binding_is_sent_after_leadership_is_lost() -> None:
    async with planning() as plans:
        await _place_two(plans)
        held = asyncio.create_task(_ask(plans, A))
        await plans.looked()
    verdict = await held
    assert verdict.given_up is GivenUp.STOPPED
    assert verdict.reason is not None
    assert "this replica stops" in verdict.reason.text


async def test_calls_are_given_up_when_the_process_is_asked_to_end() -> None:
    async with planning() as plans:
        await _place_two(plans)
        held = asyncio.create_task(_ask(plans, A))
        await plans.looked()
        plans.planner._calls.is_stopping = lambda: True
        plans.planner.wake()
        assert (await held).given_up is GivenUp.STOPPED
        counted = plans.shell.metrics.given_up.labels(GivenUp.STOPPED)
        assert counted._value.get() == 1
