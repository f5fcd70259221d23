"""The scheduler: order of pods, fitting nodes, calls to the extender, backoff."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from simulation.extender_calls import Extender, ExtenderConfig, ExtenderError, Filtered
from simulation.objects import pods
from simulation.objects.fields import Object, clone, key_of, version_of
from simulation.objects.resources import PODS
from simulation.objects.store import Store
from simulation.scheduler import Scheduler
from tests.support.clocks import FrozenSeconds
from tests.support.kube.nodes import a_node
from tests.support.kube.stored_objects import store_node, store_pod


class FakeExtender(Extender):
    """Remembers what it was asked, lets only some nodes pass, binds in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._settings = ExtenderConfig(url="")
        self.calls: list[tuple[str, str, tuple[str, ...]]] = []
        self.allowed: set[str] = set()
        self.scores: dict[str, int] = {}
        self.failing = ""
        self.held: asyncio.Event | None = None

    async def filter(self, pod: Object, nodes: Sequence[str]) -> Filtered:
        self._record("filter", pod, nodes)
        left = [name for name in nodes if name in self.allowed]
        return Filtered(nodes=left, failed=dict.fromkeys(nodes, "gang has to wait"))

    async def prioritize(self, pod: Object, nodes: Sequence[str]) -> Mapping[str, int]:
        self._record("prioritize", pod, nodes)
        return self.scores

    async def bind(self, pod: Object, node: str) -> None:
        self._record("bind", pod, [node])
        if self.held is not None:
            await self.held.wait()
        bound = pods.bind(pod, {"target": {"name": node}}, now=0.0)
        self._store.update(PODS, bound, expected=version_of(pod))

    def _record(self, verb: str, pod: Object, nodes: Sequence[str]) -> None:
        self.calls.append((verb, pod["metadata"]["name"], tuple(nodes)))
        if verb == self.failing:
            raise ExtenderError("extender is away")


@pytest.fixture
def store() -> Store:
    store = Store()
    for name in ("n0", "n1", "n2"):
        store_node(store, a_node(name))
    return store


@pytest.fixture
def clock() -> FrozenSeconds:
    return FrozenSeconds()


@pytest.fixture
def extender(store: Store) -> FakeExtender:
    return FakeExtender(store)


@pytest.fixture
def scheduler(store: Store, extender: FakeExtender, clock: FrozenSeconds) -> Scheduler:
    return Scheduler(store, extender, now=clock)


async def test_extender_chooses_among_fitting_nodes(
    store: Store, extender: FakeExtender, scheduler: Scheduler
) -> None:
    store_pod(store, "big", leaf_count=8, nodeName="n0", status={"phase": "Running"})
    store_pod(store, "a", leaf_count=4)
    extender.allowed, extender.scores = {"n1", "n2"}, {"n1": 3, "n2": 7}
    assert await scheduler.schedule_next()
    assert extender.calls == [
        ("filter", "a", ("n1", "n2")),
        ("prioritize", "a", ("n1", "n2")),
        ("bind", "a", ("n2",)),
    ]
    assert not await scheduler.schedule_next()


async def test_one_node_left_is_not_scored(
    store: Store, extender: FakeExtender, scheduler: Scheduler
) -> None:
    store_pod(store, "a", leaf_count=1)
    extender.allowed = {"n1"}
    await scheduler.schedule_next()
    assert [verb for verb, _, _ in extender.calls] == ["filter", "bind"]
    assert _pod(store, "a")["spec"]["nodeName"] == "n1"


async def test_nominated_node_is_asked_for_alone(
    store: Store, extender: FakeExtender, scheduler: Scheduler
) -> None:
    store_pod(store, "a", leaf_count=1, status={"nominatedNodeName": "n2"})
    extender.allowed = {"n0", "n1", "n2"}
    await scheduler.schedule_next()
    assert extender.calls == [("filter", "a", ("n2",)), ("bind", "a", ("n2",))]


async def test_nominated_node_that_is_refused_leads_to_a_full_search(
    store: Store, extender: FakeExtender, scheduler: Scheduler
) -> None:
    store_pod(store, "a", leaf_count=1, status={"nominatedNodeName": "n2"})
    extender.allowed = {"n0"}
    await scheduler.schedule_next()
    assert extender.calls == [
        ("filter", "a", ("n2",)),
        ("filter", "a", ("n0", "n1", "n2")),
        ("bind", "a", ("n0",)),
    ]


async def test_more_important_pod_goes_first(
    store: Store, extender: FakeExtender, scheduler: Scheduler
) -> None:
    store_pod(store, "a", leaf_count=1, priority=10)
    store_pod(store, "b", leaf_count=1, priority=1000)
    extender.allowed = {"n0"}
    await scheduler.schedule_next()
    assert extender.calls[0][:2] == ("filter", "b")


@pytest.mark.parametrize(
    "spec",
    [
        {"schedulingGates": [{"name": "cellgate.io/queued"}]},
        {"schedulerName": "another"},
        {"nodeName": "n0"},
    ],
    ids=["gated", "of another scheduler", "bound"],
)
async def test_pod_is_left_alone(
    store: Store, extender: FakeExtender, scheduler: Scheduler, spec: Object
) -> None:
    store_pod(store, "a", leaf_count=1, **spec)
    assert not await scheduler.schedule_next()
    assert extender.calls == []


async def test_pods_of_the_default_scheduler_are_bound_without_the_extender(
    store: Store, extender: FakeExtender, scheduler: Scheduler
) -> None:
    store_pod(store, "a", leaf_count=1, schedulerName="default-scheduler")
    await scheduler.schedule_next()
    assert extender.calls == []
    assert _pod(store, "a")["spec"]["nodeName"] == "n0"


async def test_rejected_pod_says_why_and_waits_for_a_change(
    store: Store, extender: FakeExtender, scheduler: Scheduler, clock: FrozenSeconds
) -> None:
    store_pod(store, "a", leaf_count=1, status={"nominatedNodeName": "n0"})
    await scheduler.schedule_next()
    (condition,) = _pod(store, "a")["status"]["conditions"]
    assert condition["reason"] == "Unschedulable"
    assert condition["message"] == "0/3 nodes are available: 3 gang has to wait."
    assert "nominatedNodeName" not in _pod(store, "a")["status"]
    clock.seconds += 5
    assert not await scheduler.schedule_next()
    store_node(store, a_node("n3"))
    extender.allowed = {"n3"}
    assert await scheduler.schedule_next()
    assert _pod(store, "a")["spec"]["nodeName"] == "n3"


async def test_rejected_pod_is_not_woken_by_its_own_condition(
    store: Store, extender: FakeExtender, scheduler: Scheduler, clock: FrozenSeconds
) -> None:
    store_pod(store, "a", leaf_count=1)
    for _ in range(5):
        await scheduler.schedule_next()
        clock.seconds += 1
    assert len(extender.calls) == 1
    clock.seconds += 30
    assert await scheduler.schedule_next()


async def test_pod_that_fits_nowhere_does_not_reach_the_extender(
    store: Store, extender: FakeExtender, scheduler: Scheduler
) -> None:
    store_pod(store, "a", leaf_count=9)
    await scheduler.schedule_next()
    assert extender.calls == []
    (condition,) = _pod(store, "a")["status"]["conditions"]
    assert condition["message"].startswith("0/3 nodes are available: 3 Insufficient")


@pytest.mark.parametrize("verb", ["filter", "bind"])
async def test_failed_call_is_retried_with_a_growing_backoff(
    store: Store, extender: FakeExtender, scheduler: Scheduler, clock: FrozenSeconds, *, verb: str
) -> None:
    store_pod(store, "a", leaf_count=1)
    extender.allowed, extender.failing = {"n0"}, verb
    await scheduler.schedule_next()
    (condition,) = _pod(store, "a")["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("SchedulerError", "extender is away")
    store_node(store, a_node("n3"))
    assert not await scheduler.schedule_next()
    waits = []
    for _ in range(5):
        start = clock.seconds
        while not await scheduler.schedule_next():
            clock.seconds += 0.5
        waits.append(clock.seconds - start)
    assert waits == [1, 2, 4, 8, 10]


async def test_pod_that_was_deleted_meanwhile_is_forgotten(
    store: Store, extender: FakeExtender, scheduler: Scheduler, clock: FrozenSeconds
) -> None:
    pod = store_pod(store, "a", leaf_count=1)
    await scheduler.schedule_next()
    store.remove(PODS, key_of(pod))
    clock.seconds += 60
    assert not await scheduler.schedule_next()


async def test_node_selector_cordon_and_readiness_count(
    store: Store, extender: FakeExtender, scheduler: Scheduler
) -> None:
    store_node(store, a_node("n3").unready())
    store_pod(store, "a", leaf_count=1, nodeSelector={"kubernetes.io/hostname": "n1"})
    await scheduler.schedule_next()
    assert extender.calls == [("filter", "a", ("n1",))]


async def test_largest_init_container_counts(
    store: Store, extender: FakeExtender, scheduler: Scheduler
) -> None:
    pod = store_pod(store, "a", leaf_count=1)
    changed = clone(pod)
    resources = {"requests": {"nvidia.com/gpu": "9"}}
    changed["spec"]["initContainers"] = [{"name": "init", "resources": resources}]
    store.update(PODS, changed, expected=version_of(pod))
    await scheduler.schedule_next()
    assert extender.calls == []


def _pod(store: Store, name: str) -> Object:
    return store.get(PODS, ("ns", name))


async def test_other_pods_are_scheduled_while_a_binding_is_held(
    store: Store, extender: FakeExtender, scheduler: Scheduler
) -> None:
    store_pod(store, "a", leaf_count=8, status={"nominatedNodeName": "n0"})
    store_pod(store, "b", leaf_count=8)
    extender.allowed, extender.held = {"n0", "n1"}, asyncio.Event()
    await scheduler.schedule_next()
    await scheduler.schedule_next()
    assert extender.calls[-2:] == [("filter", "b", ("n1", "n2")), ("bind", "b", ("n1",))]
    assert not await scheduler.schedule_next(), "no pod is tried while it is being bound"
    extender.held.set()
    while "nodeName" not in _pod(store, "b")["spec"]:
        await asyncio.sleep(0)
    assert _pod(store, "a")["spec"]["nodeName"] == "n0"
