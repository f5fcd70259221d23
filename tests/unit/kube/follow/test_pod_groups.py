"""How many members PodGroup objects want."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kube import marks
from kube.api.client import KubeClient, KubeError
from kube.follow import pod_groups
from kube.follow.pod_groups import PodGroupFollower, PodGroupSink
from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from kube.read.pod_groups import read_pod_group
from kube.read.pods import read_pod
from policy.submission import GangKey
from service.clock import Clock
from tests.support.eventually import eventually
from tests.support.kube.pod_groups import a_coscheduling_group, a_pod_group
from tests.support.kube.pods import a_pod


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ({"minMember": 4}, 4),
        ({"schedulingPolicy": {"gang": {"minCount": 3}}}, 3),
        ({"schedulingPolicy": {"basic": {}}}, None),
        ({"minMember": 0}, None),
        ({"minMember": "4"}, None),
        ({"minMember": True}, None),
        ({"schedulingPolicy": 7}, None),
        (None, None),
    ],
)
def test_the_size_is_read_in_every_dialect(spec: Any, size: int | None) -> None:
    assert read_pod_group({"metadata": {"name": "g"}, "spec": spec}).min_size == size


def test_a_group_whose_status_alone_changed_is_no_news() -> None:
    news: list[str] = []
    sink = PodGroupSink(on_change=lambda: news.append("changed"))
    sink.upsert(a_coscheduling_group("g", size=2))
    sink.upsert({**a_coscheduling_group("g", size=2), "status": {"phase": "Running"}})
    assert news == ["changed"]
    sink.upsert(a_coscheduling_group("g", size=3))
    sink.remove(a_coscheduling_group("g"))
    assert news == ["changed"] * 3


def test_a_group_that_is_gone_has_no_size() -> None:
    sink = PodGroupSink()

    def size(name: str) -> int | None:
        group = sink.find(GangKey("lab", name))
        return group.min_size if group else None

    sink.replace([a_coscheduling_group("g", size=2), a_coscheduling_group("h", size=3)])
    sink.upsert(a_coscheduling_group("g", size=5))
    sink.remove(a_coscheduling_group("h"))
    assert (size("g"), size("h")) == (5, None)
    sink.upsert(a_coscheduling_group("g"))
    assert size("g") is None


NATIVE, COSCHEDULING = "/apis/scheduling.k8s.io", "/apis/scheduling.x-k8s.io"


class Api(KubeClient):
    """Has coscheduling's PodGroups, does not let us list Volcano's, and knows no others."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.down = False
        self.add(COSCHEDULING, "v1alpha1", a_coscheduling_group("g", size=2))
        self.add("/apis/scheduling.volcano.sh", "v1alpha1")
        del self.answers["/apis/scheduling.volcano.sh/v1alpha1/podgroups"]

    def add(self, api: str, version: str, *groups: dict[str, Any]) -> None:
        versions = [{"version": "v1"}, {"version": version}]
        metadata = {"resourceVersion": "1"}
        self.answers[api] = {"versions": versions}
        self.answers[f"{api}/v1"] = {"resources": [{"name": "priorityclasses"}]}
        self.answers[f"{api}/{version}"] = {"resources": [{"name": "podgroups"}]}
        self.answers[f"{api}/{version}/podgroups"] = {"items": list(groups), "metadata": metadata}
        for group in groups:
            one = f"namespaces/lab/podgroups/{group['metadata']['name']}"
            self.answers[f"{api}/{version}/{one}"] = group

    def remove(self, api: str) -> None:
        self.answers = {path: one for path, one in self.answers.items() if not path.startswith(api)}

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        if self.down:
            raise KubeError(path)
        if path not in self.answers:
            raise KubeError(path, status=403 if "volcano" in path else 404)
        return self.answers[path]

    async def watch(self, path: str, **_: Any) -> Any:
        while path in self.answers:
            await asyncio.sleep(0)
            yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}}
        raise KubeError(path, status=404)


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_groups, "_DISCOVERY_SECONDS", 0.001)
    monkeypatch.setattr(pod_groups, "_RETRY_SECONDS", 0.001)


@asynccontextmanager
async def following(api: Api) -> AsyncIterator[PodGroupFollower]:
    groups = PodGroupFollower(api, Clock())
    task = asyncio.create_task(groups.run())
    yield groups
    task.cancel()
    await asyncio.wait([task])


def coscheduled(name: str) -> ManagedPod:
    pod = read_pod(a_pod().with_gpus(1).labelled(marks.COSCHEDULING_LABEL, name))
    assert pod is not None
    return pod


async def test_the_kinds_that_a_cluster_has_are_followed() -> None:
    async with following(Api()) as groups:
        await asyncio.wait_for(groups.synced.wait(), 10)
        pod, early = coscheduled("g"), coscheduled("not-there-yet")
        other = read_pod(a_pod().with_gpus(1).annotated(marks.VOLCANO_ANNOTATION, "g"))
        assert other is not None
        assert (groups.size(pod), groups.size(other)) == (2, None)
        assert [groups.is_awaited(one) for one in (pod, early, other)] == [False, True, False]


async def test_a_kind_that_a_cluster_gets_later_is_followed() -> None:
    api, key = Api(), GangKey("lab", "h")
    async with following(api) as groups:
        await asyncio.wait_for(groups.synced.wait(), 10)
        api.add(NATIVE, "v1beta1", a_pod_group("h", size=3))
        await eventually(lambda: groups.sinks[GangForm.NATIVE].find(key) is not None)


async def test_a_kind_is_followed_in_the_version_that_the_cluster_has_now() -> None:
    api, key = Api(), GangKey("lab", "g")
    async with following(api) as groups:
        sink = groups.sinks[GangForm.COSCHEDULING]
        await eventually(lambda: sink.find(key) is not None)
        api.remove(COSCHEDULING)
        await eventually(lambda: sink.find(key) is None)
        assert not groups.is_awaited(coscheduled("g"))
        api.add(COSCHEDULING, "v1beta7", a_coscheduling_group("g", size=5))
        await eventually(lambda: groups.size(coscheduled("g")) == 5)


async def test_a_kind_that_is_missing_for_a_moment_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An API server that starts answers 404 for kinds of others: gangs must keep their sizes."""
    monkeypatch.setattr(pod_groups, "_DISCOVERY_SECONDS", 0.2)
    api, seen = Api(), list[int | None]()
    async with following(api) as groups:
        await asyncio.wait_for(groups.synced.wait(), 10)
        groups.on_change.append(lambda: seen.append(groups.size(coscheduled("g"))))
        api.remove(COSCHEDULING)
        await asyncio.sleep(0.05)
        assert groups.size(coscheduled("g")) == 2
        assert groups.is_awaited(coscheduled("not-there-yet"))
        api.add(COSCHEDULING, "v1alpha1", a_coscheduling_group("g", size=2))
        await eventually(lambda: bool(seen))
        assert seen == [2]


async def test_nothing_is_known_before_the_api_server_answers() -> None:
    api = Api()
    api.down = True
    async with following(api) as groups:
        for _ in range(10):
            await asyncio.sleep(0.001)
        assert not groups.synced.is_set()
        api.down = False
        await asyncio.wait_for(groups.synced.wait(), 10)
        assert groups.size(coscheduled("g")) == 2


@pytest.mark.parametrize("is_followed", [True, False])
async def test_one_group_is_read_whether_its_kind_is_followed_or_not(is_followed: bool) -> None:
    api = Api()
    groups = PodGroupFollower(api, Clock())
    task = asyncio.create_task(groups.run()) if is_followed else None
    if task:
        await asyncio.wait_for(groups.synced.wait(), 10)
    found = await groups.read(GangForm.COSCHEDULING, GangKey("lab", "g"))
    assert found.min_size == 2
    for form in (GangForm.COSCHEDULING, GangForm.NATIVE):
        with pytest.raises(KubeError) as raised:
            await groups.read(form, GangKey("lab", "h"))
        assert raised.value.is_missing
    if task:
        task.cancel()
        await asyncio.wait([task])
