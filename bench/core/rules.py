"""How long the rules take: a long table must not cost much more than a short one."""

from functools import partial

from bench.report import Result, best_percentiles
from policy.parser import DocumentKind
from policy.rules.decision import RuleDecision
from policy.store import PolicyText, build_policy
from policy.submission import ClassName, GangKey, Occupancy, Submission, UserName

_CLASSES = """
apiVersion: cellgate.io/v1
kind: Classes
classes: [{name: prod, cellPriority: 100, high: true}, {name: oppo, cellPriority: -1}]
default: prod
"""


def measure(*, is_quick: bool) -> list[Result]:
    """Time a decision by the last rule of tables of growing length."""
    works = {str(rules): _decision_by(rules) for rules in (10, 100, 1000)}
    best = best_percentiles(works, percents=(50,), repeat=200 if is_quick else 2000)
    return [
        Result(case={"rules": int(rules)}, metric="decide_p50_us", value=values[50])
        for rules, values in best.items()
    ]


def _decision_by(rules: int) -> partial[RuleDecision]:
    others = [f'- {{user: "^user{index}$", then: oppo}}' for index in range(rules - 1)]
    table = ["apiVersion: cellgate.io/v1", "kind: Rules", "rules:", *others, "- {then: oppo}"]
    policy = build_policy(
        [
            PolicyText(kind=DocumentKind.CLASSES, source="classes", text=_CLASSES),
            PolicyText(kind=DocumentKind.RULES, source="rules", text="\n".join(table)),
        ]
    )
    submission = Submission(
        user=UserName("alice"),
        requested_class=ClassName("prod"),
        gang=GangKey("lab", "bert"),
        leaf_count=8,
    )
    return partial(policy.rules.decide, submission, usage=Occupancy(), classes=policy.classes)
