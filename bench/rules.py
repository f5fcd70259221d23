"""How long the rules take: a long table must not cost much more than a short one."""

from functools import partial

from bench.report import Result, microseconds_of, percentile
from policy.decision import RuleDecision
from policy.documents import Kind
from policy.store import PolicyText, build_policy
from policy.submission import ClassName, GangKey, Submission, Usage, UserName

_CLASSES = """
apiVersion: cellgate.io/v1
kind: Classes
classes: [{name: prod, cellPriority: 100, high: true}, {name: oppo, cellPriority: -1}]
default: prod
"""


def measure(*, is_quick: bool) -> list[Result]:
    """Time a decision by the last rule of tables of growing length."""
    repeat = 500 if is_quick else 5000
    results = []
    for rules in (10, 100, 1000):
        times = microseconds_of(_decision_by(rules), repeat=repeat)
        case = {"rules": rules}
        results.append(Result(case=case, metric="decide_p50_us", value=percentile(times, 50)))
    return results


def _decision_by(rules: int) -> partial[RuleDecision]:
    others = [f'- {{user: "^user{index}$", then: oppo}}' for index in range(rules - 1)]
    table = ["apiVersion: cellgate.io/v1", "kind: Rules", "rules:", *others, "- {then: oppo}"]
    policy = build_policy(
        [
            PolicyText(kind=Kind.CLASSES, source="classes", text=_CLASSES),
            PolicyText(kind=Kind.RULES, source="rules", text="\n".join(table)),
        ]
    )
    submission = Submission(
        user=UserName("somebody"),
        requested_class=ClassName("prod"),
        gang=GangKey("lab", "bert"),
        leaf_count=8,
    )
    return partial(policy.rules.decide, submission, usage=Usage(), classes=policy.classes)
