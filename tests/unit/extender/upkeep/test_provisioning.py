"""Requests for nodes are created, kept, taken back and made anew."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from extender.cells.model import Reason, ReasonCode
from extender.outcomes.waiting_list import WaitingEntry, WaitingList
from extender.upkeep.provisioning import Provisioning
from kube.api.client import KubeError
from kube.api.provisioning_requests import FoundRequest, PodSet, request_name
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from policy.submission import GangKey
from service.clock import Clock
from tests.support.kube.pods import a_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BERT = GangKey("lab", "bert")


class MemoryRequests:
    """The requests that the API server has."""

    def __init__(self, *found: FoundRequest) -> None:
        self.found = list(found)
        self.created: list[tuple[GangKey, list[int]]] = []
        self.refused = ""

    async def list(self) -> list[FoundRequest]:
        return list(self.found)

    async def create(self, gang: GangKey, pod_sets: Sequence[PodSet]) -> str:
        if gang.namespace == self.refused:
            raise KubeError("exceeded quota", status=403)
        self.created.append((gang, [pod_set.count for pod_set in pod_sets]))
        return request_name(gang)

    async def delete(self, request: FoundRequest) -> None:
        self.found.remove(request)


class Members:
    """The pods of all gangs."""

    def __init__(self, *pods: ManagedPod) -> None:
        self._pods = pods

    def of_gang(self, gang: GangKey) -> list[ManagedPod]:
        return [pod for pod in self._pods if pod.gang.key == gang]


class Told:
    """The Events that were written."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def asked_for_nodes(self, pod: ManagedPod, *, request: str) -> None:
        self.requests.append(request)


class _Priority:
    priority = 10


def members() -> list[ManagedPod]:
    """Two members with eight leaf cells and one with four."""
    found = []
    for index, gpus in enumerate((8, 8, 4)):
        pod = read_pod(a_pod(f"bert-{index}").with_gpus(gpus).in_gang("bert", size=3).gated())
        assert pod is not None
        found.append(pod)
    return found


def a_found(gang: GangKey = BERT, *, is_over: bool = False, seconds: float = 10) -> FoundRequest:
    return FoundRequest(
        namespace=gang.namespace,
        name=request_name(gang),
        created=NOW - timedelta(seconds=seconds),
        is_over=is_over,
    )


def provisioning(
    requests: MemoryRequests,
    told: Told,
    *,
    code: ReasonCode = ReasonCode.NO_ROOM,
    other: ManagedPod | None = None,
) -> Provisioning:
    """One gang that has waited for a minute."""
    pods = members()
    waiting = WaitingList()
    reason = Reason(code=code, arguments={}, text="", change="")
    entry = WaitingEntry(gang=BERT, pod=pods[0], reason=reason, since=NOW - timedelta(seconds=60))
    waiting.put_gang(entry)
    if other is not None:
        waiting.put_gang(replace(entry, gang=other.gang.key, pod=other))
        pods.append(other)
    return Provisioning(
        requests,
        waiting=waiting,
        pods=Members(*pods),  # type: ignore[arg-type] # all that is asked of it
        to_request=lambda _: _Priority(),  # type: ignore[arg-type,return-value] # the same
        is_open=lambda: False,
        events=told,  # type: ignore[arg-type] # the same
        clock=Clock(now=lambda: NOW),
    )


async def test_a_gang_that_lacks_nodes_gets_one_request_with_all_its_members() -> None:
    requests, told = MemoryRequests(), Told()
    await provisioning(requests, told).step()
    assert requests.created == [(BERT, [2, 1])]
    assert told.requests == [request_name(BERT)]


async def test_a_namespace_that_refuses_requests_stops_no_other_gang() -> None:
    requests = MemoryRequests()
    requests.refused = "lab"
    other = read_pod(a_pod("other", namespace="shop").with_gpus(8).gated())
    assert other is not None
    await provisioning(requests, Told(), other=other).step()
    assert [gang.namespace for gang, _ in requests.created] == ["shop"]


async def test_a_request_that_exists_is_kept() -> None:
    requests, told = MemoryRequests(a_found()), Told()
    await provisioning(requests, told).step()
    assert (requests.created, len(requests.found), told.requests) == ([], 1, [])


async def test_requests_of_gangs_that_wait_for_no_node_are_taken_back() -> None:
    """Also those that a leader before this one made."""
    requests = MemoryRequests(a_found(), a_found(GangKey("lab", "gone")))
    await provisioning(requests, Told(), code=ReasonCode.QUOTA).step()
    assert (requests.found, requests.created) == ([], [])


async def test_a_request_that_the_autoscaler_gave_up_is_made_anew_after_some_minutes() -> None:
    early, late = a_found(is_over=True), a_found(is_over=True, seconds=400)
    requests = MemoryRequests(early)
    await provisioning(requests, Told()).step()
    assert requests.found == [early]
    requests = MemoryRequests(late)
    loop = provisioning(requests, Told())
    await loop.step()
    assert (requests.found, requests.created) == ([], [])
    await loop.step()
    assert [gang for gang, _ in requests.created] == [BERT]


def test_two_runs_of_one_gang_have_two_requests() -> None:
    assert request_name(GangKey("lab", "bert", "a")) != request_name(GangKey("lab", "bert", "b"))
