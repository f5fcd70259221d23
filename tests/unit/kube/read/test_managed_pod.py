"""A gang's charge has one name, before its pod has one and after."""

import pytest

from kube.hived.spec import HivedSpec
from kube.read.managed_pod import charged_gang
from kube.read.pods import read_pod
from policy.submission import GangKey, VcName
from tests.support.kube.pods import PodBuilder, a_pod

DECISION = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def _key(pod: PodBuilder, decision: str | None = None) -> GangKey:
    read = read_pod(pod)
    assert read is not None
    return charged_gang(read, decision=decision)


@pytest.mark.parametrize("hived", [False, True])
def test_a_pod_that_kubernetes_names_is_charged_by_prefix_and_decision(hived: bool) -> None:
    new = a_pod().with_gpus(1).unnamed("bert-")
    if hived:
        new = new.with_hived_spec(HivedSpec(vc=VcName("lab"), leaf_count=1))
    stored = new.annotated("cellgate.io/decision", DECISION)
    stored = stored._changed("metadata", name="bert-x7f2a")
    expected = GangKey("lab", f"bert-*{DECISION}")
    assert _key(new, DECISION) == _key(stored) == expected


def test_a_pod_with_a_name_and_a_gang_are_charged_by_theirs() -> None:
    assert _key(a_pod("bert").with_gpus(1), DECISION) == GangKey("lab", "bert")
    member = a_pod().with_gpus(1).unnamed("bert-").in_gang("big", size=2)
    assert _key(member, DECISION) == GangKey("lab", "big")
    never_decided = a_pod("bert-x").with_gpus(1)._changed("metadata", generateName="bert-")
    assert _key(never_decided) == GangKey("lab", "bert-x")
