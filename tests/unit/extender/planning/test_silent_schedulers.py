"""A pod that names a scheduler which does not run is told so, and leases no cells in vain."""

from policy.placement import Placement
from policy.submission import NodeName, PodUid
from tests.support.extender.planning import Planning, planning
from tests.support.kube.pods import PodBuilder, a_pod


def _pod(name: str, *, scheduler: str = "mine") -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_vc("lab")
    return pod.with_spec(schedulerName=scheduler)


async def _release(plans: Planning, name: str, *, scheduler: str = "mine") -> None:
    """Let a pod be planned, and lift its gate."""
    plans.pods.upsert(_pod(name, scheduler=scheduler).gated())
    await plans.looked()
    uid = PodUid(f"uid-of-{name}")
    assert plans.shell.cluster.has_place(uid)
    place = plans.shell.cluster.placement(uid)
    assert place is not None
    given = Placement(node=NodeName(place.node), leaf_cells=place.leaf_cells, chain=place.chain)
    plans.pods.upsert(_pod(name, scheduler=scheduler).placed(given))
    await plans.looked()


async def _expire(plans: Planning) -> None:
    plans.shell.now += 61
    plans.shell.cluster.expire(now=plans.shell.now)
    await plans.looked()


REASON = (
    "names the scheduler mine, which has asked about no pod: it does not run, or does not use "
    "Cellgate's extender; create the pods without `schedulerName`, or start that scheduler"
)


async def test_a_pod_whose_scheduler_asks_nothing_is_not_leased_again() -> None:
    async with planning() as plans:
        plans.add_nodes()
        await _release(plans, "a")
        await _expire(plans)
        assert not plans.shell.cluster.has_place(PodUid("uid-of-a"))
        plans.pods.upsert(_pod("later").gated())
        await plans.looked()
        assert plans.waiting() == {
            "lab/a": f"gang lab/a {REASON}",
            "lab/later": f"gang lab/later {REASON}",
        }
        plans.planner.note_asked(plans.shell.pod("a"))
        await plans.looked()
        assert plans.shell.cluster.has_place(PodUid("uid-of-a"))
        assert plans.shell.cluster.has_place(PodUid("uid-of-later"))
        assert plans.waiting() == {}


async def test_it_is_tried_again_after_some_minutes() -> None:
    async with planning() as plans:
        plans.add_nodes()
        await _release(plans, "a")
        await _expire(plans)
        plans.shell.now += 301
        plans.planner.wake()
        await plans.looked()
        assert plans.shell.cluster.has_place(PodUid("uid-of-a"))


async def test_a_scheduler_that_has_asked_before_is_waited_for() -> None:
    async with planning() as plans:
        plans.add_nodes()
        await _release(plans, "a")
        plans.planner.note_asked(plans.shell.pod("a"))
        await _expire(plans)
        assert plans.shell.cluster.has_place(PodUid("uid-of-a")), "it is planned again"
        assert plans.waiting() == {}
