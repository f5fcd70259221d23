"""The contract for watches."""

import pytest

from tests.contract.kube import Kube, KubeContract, Object, a_configmap


class WatchContract(KubeContract):
    """See every change once, in order, and go on from where one was."""

    async def test_watch_tells_what_happened_since_a_version(
        self, kube: Kube, configmaps: str
    ) -> None:
        await kube.create(configmaps, a_configmap("before"))
        version = await _version(kube, configmaps)
        created = await kube.create(configmaps, a_configmap("a", key="old"))
        changed = await kube.patch(f"{configmaps}/a", {"data": {"key": "new"}})
        await kube.send("DELETE", f"{configmaps}/a")
        events = await kube.watch(
            configmaps, count=3, resourceVersion=version, labelSelector="ours"
        )
        assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
        assert events[0]["object"] == created
        assert events[1]["object"] == changed.body
        last = events[2]["object"]
        assert last["data"] == {"key": "new"}
        assert int(last["metadata"]["resourceVersion"]) > int(changed.version)
        resumed = await kube.watch(
            configmaps, count=1, resourceVersion=changed.version, labelSelector="ours"
        )
        assert resumed == events[2:]

    async def test_watch_without_a_version_begins_with_what_is_there(
        self, kube: Kube, configmaps: str
    ) -> None:
        for name in ("a", "b"):
            await kube.create(configmaps, a_configmap(name))
        events = await kube.watch(configmaps, count=2, labelSelector="ours")
        assert {_name(event) for event in events} == {"a", "b"}
        assert {event["type"] for event in events} == {"ADDED"}

    async def test_object_that_begins_or_ceases_to_match_appears_or_goes(
        self, kube: Kube, configmaps: str
    ) -> None:
        version = await _version(kube, configmaps)
        await kube.create(configmaps, a_configmap("a"))
        for label in ("yes", "still", None):
            await kube.patch(f"{configmaps}/a", {"metadata": {"labels": {"shown": label}}})
        events = await kube.watch(
            configmaps, count=3, resourceVersion=version, labelSelector="shown"
        )
        assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
        assert int(_version_of(events[2])) > int(_version_of(events[1]))

    async def test_watch_of_one_name_sees_no_other(self, kube: Kube, configmaps: str) -> None:
        version = await _version(kube, configmaps)
        for name in ("a", "b", "c"):
            await kube.create(configmaps, a_configmap(name))
        events = await kube.watch(
            configmaps,
            count=2,
            resourceVersion=version,
            fieldSelector="metadata.name=b",
            timeoutSeconds="1",
        )
        assert [_name(event) for event in events] == ["b"]

    async def test_watch_ends_with_its_time(self, kube: Kube, configmaps: str) -> None:
        version = await _version(kube, configmaps)
        await kube.create(configmaps, a_configmap("a"))
        events = await kube.watch(
            configmaps,
            count=10,
            resourceVersion=version,
            labelSelector="ours",
            timeoutSeconds="1",
        )
        assert [_name(event) for event in events] == ["a"]

    @pytest.mark.parametrize(
        "query",
        [{}, {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}],
        ids=["no version", "asked for"],
    )
    async def test_bookmark_ends_what_was_there(
        self, kube: Kube, configmaps: str, query: dict[str, str]
    ) -> None:
        created = await kube.create(configmaps, a_configmap("a"))
        bookmarks = {"allowWatchBookmarks": "true", "labelSelector": "ours"}
        first, end = await kube.watch(configmaps, count=2, **bookmarks, **query)
        assert first == {"type": "ADDED", "object": created}
        assert (end["type"], end["object"]["kind"]) == ("BOOKMARK", "ConfigMap")
        assert end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
        assert int(_version_of(end)) >= int(_version_of(first))

    @pytest.mark.parametrize(
        "query",
        [{"sendInitialEvents": "true"}, {"resourceVersionMatch": "NotOlderThan"}],
        ids=["no match", "nothing asked for"],
    )
    async def test_half_of_a_request_for_initial_events_is_invalid(
        self, kube: Kube, configmaps: str, query: dict[str, str]
    ) -> None:
        answer = await kube.send("GET", configmaps, watch="true", **query)
        assert answer.refusal == (422, "Invalid")


async def _version(kube: Kube, path: str) -> str:
    """The version of a collection now."""
    return str((await kube.get(path))["metadata"]["resourceVersion"])


def _name(event: Object) -> str:
    return str(event["object"]["metadata"]["name"])


def _version_of(event: Object) -> str:
    return str(event["object"]["metadata"]["resourceVersion"])
