"""Which factors tell the gangs of a history apart."""

from dataclasses import replace

from policy.parser import DocumentKind
from policy.policy import build
from policy.queues.factors import FactorName
from policy.store import PolicyText, build_policy
from policy.submission import ClassName, UserName
from tests.support.timemachine.tuned_days import searched
from tests.support.timemachine.worlds import an_arrival
from timemachine.tuning.effects import without_effect

_ALL = searched(*(f"worth.{factor}=0..1h" for factor in FactorName), "runTime.cap=1h..7d")


def test_gangs_that_are_alike_differ_by_their_run_times_alone() -> None:
    found = without_effect(_ALL, [an_arrival("a"), an_arrival("b")], build({}))
    left = [one.name for one in _ALL if one not in found]
    assert left == ["worth.shortRun", "runTime.cap"]
    assert found[_ALL[0]] == "all gangs have one class"


def test_what_gangs_differ_by_is_searched() -> None:
    one = an_arrival("a")
    other = replace(
        an_arrival("b", 4, vc="b"),
        user=UserName("bob"), requested_class=ClassName("oppo"), limit_seconds=60.0,
    )  # fmt: skip
    found = without_effect(_ALL, [one, other], build({}))
    assert [one.factor for one in found] == [
        FactorName.USER_LEVEL, FactorName.GROUP_LEVEL, FactorName.START_BY,
    ]  # fmt: skip


def test_levels_and_rules_of_the_policy_count() -> None:
    texts = {
        DocumentKind.QUEUES: "kind: Queues\nlevels: [{name: all, strategy: fifo}]\n"
        "userLevels: {gold: [alice]}\ngroupLevels: {gold: [vision]}\n",
        DocumentKind.CLASSES: "kind: Classes\ndefault: prod\n"
        "classes: [{name: prod, cellPriority: 10}, {name: oppo, cellPriority: -1}]\n",
        DocumentKind.RULES: "kind: Rules\nrules: [{user: bob, then: oppo}]\n",
    }
    some = [
        PolicyText(kind=kind, source=kind, text=f"apiVersion: cellgate.io/v1\n{text}")
        for kind, text in texts.items()
    ]
    found = without_effect(_ALL, [an_arrival("a"), an_arrival("b")], build_policy(some))
    factors = {one.factor for one in found}
    assert not factors & {FactorName.CLASS, FactorName.USER_LEVEL, FactorName.GROUP_LEVEL}
