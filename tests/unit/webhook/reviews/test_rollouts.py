"""Deployments and StatefulSets are told at apply if their gang is never complete, or updated."""

from typing import Any

import pytest

from kube.read.gangs import DeclaredGang, GangForm
from policy.errors import RequestError
from policy.submission import GangKey
from tests.support.kube.workloads import a_workload
from webhook.reviews.rollouts import check_rollout

_ORDERED = (
    "cellgate: can never start: cellgate.io/gang-size is 4, but podManagementPolicy OrderedReady "
    "creates each pod when the one before is ready; set podManagementPolicy: Parallel"
)
_CHANGE = "set maxSurge: 0 and maxUnavailable: 1, or strategy type Recreate"


def gang(size: int | None = 4, least: int | None = None, **fields: Any) -> DeclaredGang:
    told = {"form": GangForm.CELLGATE, "key": GangKey("lab", "serve"), **fields}
    return DeclaredGang(size=size, min_size=least, **told)


def warnings(kind: str, of: DeclaredGang | None = None, **spec: Any) -> list[str]:
    workload = a_workload(kind, "serve", **{"replicas": 4, **spec})
    return list(check_rollout(workload, gang() if of is None else of, refuses=False))


def rolling(surge: object, unavailable: object) -> dict[str, Any]:
    return {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


@pytest.mark.parametrize("spec", [{}, {"podManagementPolicy": "OrderedReady"}])
def test_a_stateful_set_that_creates_pods_one_by_one_never_completes_a_gang(
    spec: dict[str, Any],
) -> None:
    assert warnings("StatefulSet", **spec) == [_ORDERED]


def test_a_stateful_set_that_creates_pods_at_once_is_fine() -> None:
    assert warnings("StatefulSet", podManagementPolicy="Parallel") == []


def test_a_gang_that_may_start_with_one_pod_may_be_created_one_by_one() -> None:
    assert warnings("StatefulSet", gang(least=1)) == []


def test_it_is_refused_if_the_rules_say_so() -> None:
    with pytest.raises(RequestError, match="set podManagementPolicy: Parallel"):
        list(check_rollout(a_workload("StatefulSet", replicas=4), gang(), refuses=True))


@pytest.mark.parametrize(
    ("strategy", "pods", "until"),
    [
        ({}, "1 pod", " until old pods have ended"),
        (rolling(2, 1), "2 pods", " until old pods have ended"),
        (rolling("50%", 0), "2 pods", ", so the update never ends"),
        (rolling(1, "10%"), "1 pod", ", so the update never ends"),
    ],
)
def test_an_update_with_surge_is_refused_pods(
    strategy: dict[str, Any], pods: str, until: str
) -> None:
    (line,) = warnings("Deployment", strategy=strategy)
    creates = f"cellgate: an update creates {pods} beyond cellgate.io/gang-size"
    assert line.startswith(f"{creates}: Cellgate refuses such pods{until}")
    assert line.endswith(_CHANGE)


@pytest.mark.parametrize(
    "strategy", [{"type": "Recreate"}, rolling(0, 1), rolling("0%", "50%"), rolling("nonsense", {})]
)
def test_an_update_that_replaces_pods_is_fine(strategy: dict[str, Any]) -> None:
    assert warnings("Deployment", strategy=strategy) == []


def test_replicas_and_size_must_match() -> None:
    assert warnings("Deployment", replicas=2, strategy={"type": "Recreate"}) == [
        "cellgate: can never start: cellgate.io/gang-size is 4, but replicas is 2; "
        "use the same number for both"
    ]
    assert warnings("Deployment", replicas=6, strategy={"type": "Recreate"}) == [
        "cellgate: replicas is 6, but cellgate.io/gang-size is 4: 2 pods cannot start before a "
        "member of the gang has ended"
    ]
    assert warnings("StatefulSet", replicas=0, podManagementPolicy="Parallel") == []


def test_single_pods_and_other_kinds_are_left_alone() -> None:
    assert warnings("Deployment", gang(None, form=GangForm.SINGLE)) == []
    assert warnings("StatefulSet", gang(1), replicas=1) == []
    assert warnings("ReplicaSet") == warnings("Job") == []
    assert list(check_rollout(a_workload("Deployment"), None, refuses=True)) == []
