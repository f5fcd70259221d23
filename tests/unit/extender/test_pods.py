"""Pods as the extender remembers them."""

import pytest

from policy.submission import PodUid
from tests.unit.extender.shell import Shell


@pytest.mark.parametrize(
    ("seen", "written", "known"),
    [("9", "10", "10"), ("10", "9", "10"), ("opaque", "10", "opaque")],
    ids=["our write is newer", "the feed is newer", "versions that are no numbers"],
)
def test_a_pod_is_known_by_its_newest_version(seen: str, written: str, known: str) -> None:
    shell, uid = Shell(), PodUid("bert-0-uid")
    limits = {"nvidia.com/gpu": "1"}
    shell.pods.upsert(
        {
            "metadata": {"name": "bert-0", "uid": uid, "resourceVersion": seen},
            "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
        }
    )
    shell.pods.note_version(uid, written)
    pod = shell.pods.get(uid)
    assert pod is not None
    assert pod.resource_version == known


def test_a_write_to_a_pod_that_is_gone_is_nothing_to_remember() -> None:
    shell = Shell()
    shell.pods.note_version(PodUid("gone"), "10")
    assert len(shell.pods) == 0
