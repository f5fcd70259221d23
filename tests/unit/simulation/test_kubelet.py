"""The kubelets: pods run, finish, go."""

import pytest

from simulation.kubelet import RUN_SECONDS, Kubelet
from simulation.objects.fields import Object, clone, format_time, version_of
from simulation.objects.resources import EVENTS, PODS
from simulation.objects.store import Store
from tests.support.clocks import FrozenSeconds
from tests.support.kube.stored_objects import store_pod


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clock() -> FrozenSeconds:
    return FrozenSeconds()


@pytest.fixture
def kubelet(store: Store, clock: FrozenSeconds) -> Kubelet:
    return Kubelet(store, now=clock, finished_seconds=30)


def test_bound_pod_runs_for_its_time_and_is_forgotten_later(
    store: Store, kubelet: Kubelet, clock: FrozenSeconds
) -> None:
    store_pod(store, "a", annotations={RUN_SECONDS: "2.5"}, nodeName="n0")
    kubelet.step()
    status = _pod(store, "a")["status"]
    assert status["phase"] == "Running"
    assert status["podIP"]
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "True"
    assert kubelet.step() == clock.seconds + 2.5
    clock.seconds += 2.5
    kubelet.step()
    status = _pod(store, "a")["status"]
    assert status["phase"] == "Succeeded"
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "False"
    clock.seconds += 30
    kubelet.step()
    assert store.list(PODS) == []


@pytest.mark.parametrize("annotations", [{}, {RUN_SECONDS: "soon"}], ids=["none", "nonsense"])
def test_pod_without_a_time_runs_on(
    store: Store, kubelet: Kubelet, clock: FrozenSeconds, annotations: dict[str, str]
) -> None:
    store_pod(store, "a", annotations=annotations, nodeName="n0")
    kubelet.step()
    clock.seconds += 1e9
    assert kubelet.step() == float("inf")
    assert _pod(store, "a")["status"]["phase"] == "Running"


def test_pod_without_a_node_does_not_change(store: Store, kubelet: Kubelet) -> None:
    pod = store_pod(store, "a")
    assert kubelet.step() == float("inf")
    assert _pod(store, "a") == pod


def test_deleted_pod_goes(store: Store, kubelet: Kubelet, clock: FrozenSeconds) -> None:
    pod = store_pod(store, "a", nodeName="n0")
    marked = clone(pod)
    marked["metadata"]["deletionTimestamp"] = format_time(clock() + 30)
    store.update(PODS, marked, expected=version_of(pod))
    kubelet.step()
    assert store.list(PODS) == []


def test_old_events_are_forgotten(store: Store, kubelet: Kubelet, clock: FrozenSeconds) -> None:
    for name, age in (("old", 700), ("new", 10)):
        metadata = {
            "name": name,
            "namespace": "ns",
            "creationTimestamp": format_time(clock() - age),
        }
        store.create(EVENTS, {"metadata": metadata})
    kubelet.step()
    assert [event["metadata"]["name"] for event in store.list(EVENTS)] == ["new"]


def _pod(store: Store, name: str) -> Object:
    return store.get(PODS, ("ns", name))
