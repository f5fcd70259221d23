"""The alternative by which a gang is placed counts for all its pods."""

import pytest

from extender.feeds.charges import to_charge
from kube.read.managed_pod import ManagedPod
from policy.submission import GangKey
from tests.support.extender.group_sizes import GroupSizes
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.policy.documents import CLASSES

_GANG = GangKey("lab", "bert")
_DECISION = "6f9e1f57-7c56-4f0c-9c0e-0d7c1f1b0c01"


@pytest.fixture
def shell() -> Shell:
    shell = Shell()
    shell.recover()
    return shell


def _a_member(name: str) -> PodBuilder:
    pod = a_pod(name).with_gpus(1).in_gang("bert", size=2).in_vc("lab").wanting("A100").gated()
    pod = pod.submitted_by("alice").of_class("test").annotated("cellgate.io/decision", _DECISION)
    return pod.annotated("cellgate.io/alternatives", "[{leafType: V100}, {vc: b, minMembers: 1}]")


def _forms(pods: list[ManagedPod]) -> list[tuple[str, str | None, int | None]]:
    return [(pod.vc, pod.leaf_type, pod.gang.min_size) for pod in pods]


def test_gang_has_what_it_asks_for_until_a_pod_states_an_alternative(shell: Shell) -> None:
    shell.pods.upsert(_a_member("bert-0"))
    shell.pods.upsert(_a_member("bert-1"))
    assert _forms(shell.pods.of_gang(_GANG)) == [("lab", "A100", None)] * 2

    stated = _a_member("bert-1").annotated("cellgate.io/alternative", "2 of 2 (VC b): no room")
    shell.pods.upsert(stated)

    assert _forms(shell.pods.of_gang(_GANG)) == [("b", "A100", 1)] * 2


def test_alternative_counts_as_soon_as_the_leader_writes_it(shell: Shell) -> None:
    shell.pods.upsert(_a_member("bert-0"))
    shell.pods.use_alternative(_GANG, 1)
    shell.pods.upsert(_a_member("bert-1"))  # created later, or not written yet
    assert _forms(shell.pods.of_gang(_GANG)) == [("lab", "V100", None)] * 2

    shell.pods.use_alternative(_GANG, 0)

    assert _forms(shell.pods.of_gang(_GANG)) == [("lab", "A100", None)] * 2


def test_charge_follows_the_alternative(shell: Shell) -> None:
    shell.pods.upsert(_a_member("bert-0"))
    shell.pods.use_alternative(_GANG, 1)
    (pod,) = shell.pods.of_gang(_GANG)

    charge = to_charge(pod, classes=CLASSES, sizes=GroupSizes())

    assert charge is not None
    assert (charge.vc, charge.leaf_type, charge.leaf_count) == ("lab", "V100", 2)


def test_next_gang_of_the_same_name_starts_as_it_asks(shell: Shell) -> None:
    shell.pods.upsert(_a_member("bert-0"))
    shell.pods.use_alternative(_GANG, 1)
    shell.pods.remove(_a_member("bert-0"))
    shell.pods.upsert(_a_member("bert-0"))

    assert _forms(shell.pods.of_gang(_GANG)) == [("lab", "A100", None)]


def test_pod_that_only_kube_scheduler_has_seen_is_read_in_its_form(shell: Shell) -> None:
    pod = shell.pods.read(_a_member("bert-0").annotated("cellgate.io/alternative", "1 of 2 (x)"))

    assert pod is not None
    assert _forms([pod]) == [("lab", "V100", None)]
