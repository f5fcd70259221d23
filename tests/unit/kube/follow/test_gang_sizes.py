"""How many members PodGroup objects want."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from kube import marks
from kube.api.client import KubeClient, KubeError
from kube.follow.gang_sizes import GangSizes
from kube.read.pod_groups import PodGroupSink, read_pod_group
from kube.read.pods import read_pod
from policy.submission import GangKey
from tests.support.kube_objects import a_pod


def a_group(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "lab", "name": name, "resourceVersion": "1"}, "spec": spec}


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
    sink.upsert(a_group("g", minMember=2))
    sink.upsert({**a_group("g", minMember=2), "status": {"phase": "Running"}})
    assert news == ["changed"]
    sink.upsert(a_group("g", minMember=3))
    sink.remove(a_group("g"))
    assert news == ["changed"] * 3


def test_a_group_that_is_gone_has_no_size() -> None:
    sink = PodGroupSink()

    def size(name: str) -> int | None:
        group = sink.find(GangKey("lab", name))
        return group.min_size if group else None

    sink.replace([a_group("g", minMember=2), a_group("h", minMember=3)])
    sink.upsert(a_group("g", minMember=5))
    sink.remove(a_group("h"))
    assert (size("g"), size("h")) == (5, None)
    sink.upsert(a_group("g"))
    assert size("g") is None


class Api(KubeClient):
    """Has coscheduling's PodGroups, does not let us list Volcano's, and knows no others."""

    def __init__(self) -> None:
        pass

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        versions = {"versions": [{"version": "v1alpha1"}]}
        groups = {"resources": [{"name": "podgroups"}]}
        items = {"items": [a_group("g", minMember=2)], "metadata": {"resourceVersion": "1"}}
        answers: dict[str, dict[str, Any]] = {
            "/apis/scheduling.x-k8s.io": versions,
            "/apis/scheduling.x-k8s.io/v1alpha1": groups,
            "/apis/scheduling.x-k8s.io/v1alpha1/podgroups": items,
            "/apis/scheduling.volcano.sh": versions,
            "/apis/scheduling.volcano.sh/v1alpha1": groups,
        }
        if path not in answers:
            raise KubeError(path, status=403 if "volcano" in path else 404)
        return answers[path]

    async def watch(self, *_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()
        yield {}


async def test_the_kinds_that_a_cluster_has_are_followed() -> None:
    groups = GangSizes(Api())
    task = asyncio.create_task(groups.run())
    await asyncio.wait_for(groups.looked.wait(), 10)
    pod = read_pod(a_pod().with_gpus(1).labelled(marks.COSCHEDULING_LABEL, "g"))
    other = read_pod(a_pod().with_gpus(1).annotated(marks.VOLCANO_ANNOTATION, "g"))
    assert pod is not None
    assert other is not None
    assert (groups.size(pod), groups.size(other)) == (2, None)
    early = read_pod(a_pod().with_gpus(1).labelled(marks.COSCHEDULING_LABEL, "not-there-yet"))
    assert early is not None
    assert [groups.is_awaited(one) for one in (pod, early, other)] == [False, True, False]
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
