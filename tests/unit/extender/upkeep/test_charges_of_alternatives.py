"""The charge of a gang follows the alternative by which the gang is placed."""

from dataclasses import replace
from uuid import uuid4

from policy.submission import GangKey, LeafType
from tests.support.extender.books import Books, gang_charge
from tests.support.kube.pods import PodBuilder, a_pod


def _member(name: str, decision: str) -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_vc("lab").in_gang("g", size=2).of_class("prod")
    pod = pod.wanting("A100").submitted_by("alice").annotated("cellgate.io/decision", decision)
    return pod.annotated("cellgate.io/alternatives", "[{leafType: V100, vc: shared}]")


async def test_charge_has_the_vc_and_leaf_type_that_are_used_and_that_is_no_drift() -> None:
    books, decision = Books(), uuid4()
    asked = replace(gang_charge("g", decision=decision), leaf_type=LeafType("A100"))
    await books.ledger.charge(asked)
    for name in ("a", "b"):
        books.shell.pods.upsert(_member(name, str(decision)))
    await books.keeper.settle()
    await books.keeper.compare()
    (live,) = await books.ledger.charges()
    assert (live.charge.vc, live.charge.leaf_type) == ("lab", "A100")

    books.shell.pods.use_alternative(GangKey("lab", "g"), 1)
    books.shell.pods.upsert(
        _member("a", str(decision)).annotated("cellgate.io/alternative", "1 of 1 (VC shared)")
    )
    assert books.keeper.compares_soon
    await books.keeper.compare()

    (live,) = await books.ledger.charges()
    used = (live.charge.vc, live.charge.leaf_type, live.charge.leaf_count)
    assert used == ("shared", "V100", 16)
    assert await books.held() == 16
    assert books.shell.metrics.drift.labels("ledger-corrected")._value.get() == 0
