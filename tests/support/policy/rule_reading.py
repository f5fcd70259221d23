"""Section 6 of the architecture once more, written down as simply as possible.

Without anything of `policy` but the types of a submission: Python's own `re` on harmless patterns,
one rule after the other.
"""

import operator
import re
from collections.abc import Callable
from typing import Any

from policy.submission import Occupancy, Submission

RuleData = dict[str, Any]
NAMES = ["prod", "test", "dev", "oppo"]
HIGH = ["prod", "test"]

Facts = dict[str, Any]
WHENS: dict[str, Callable[[Facts], bool | None]] = {
    "'students' in groups": lambda facts: "students" in facts["groups"],
    "class != requestedClass": lambda facts: facts["class"] != facts["requestedClass"],
    "occupied - current < 3": lambda facts: facts["occupied"] - facts["current"] < 3,
    "occupiedHigh >= current": lambda facts: facts["occupiedHigh"] >= facts["current"],
    "labels.team == 'x'": lambda facts: (
        facts["labels"]["team"] == "x" if "team" in facts["labels"] else None
    ),
    "user.matches('^a') || vc == 'lab'": lambda facts: (
        facts["user"].startswith("a") or facts["vc"] == "lab"
    ),
}
OPERATORS: dict[str, Callable[[int, int], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "": operator.gt,
}


def _facts(submission: Submission, usage: Occupancy | None, present: str) -> Facts:
    held, held_high = (usage.occupied, usage.occupied_high) if usage else (0, 0)
    return {
        "user": submission.user,
        "groups": submission.groups,
        "vc": submission.vc,
        "class": present,
        "requestedClass": submission.requested_class,
        "current": submission.leaf_count,
        "occupied": held + submission.leaf_count,
        "occupiedHigh": held_high + (submission.leaf_count if present in HIGH else 0),
        "occupiedLow": held - held_high + (0 if present in HIGH else submission.leaf_count),
        "labels": submission.labels,
    }


def _holds(comparison: int | str, value: int) -> bool:
    if comparison == "":
        return True
    match = re.fullmatch(r"(\D*?)\s*(\d+)", str(comparison))
    assert match is not None
    return OPERATORS[match[1]](value, int(match[2]))


def _matches_but_usage(rule: RuleData, facts: Facts) -> bool:
    return (
        bool(re.search(rule.get("user", ""), facts["user"]))
        and (
            not rule.get("group")
            or any(re.search(rule["group"], group) for group in facts["groups"])
        )
        and bool(re.search(rule.get("vc", ""), facts["vc"]))
        and bool(re.search(rule.get("priority", ""), facts["class"]))
        and _holds(rule.get("current", ""), facts["current"])
    )


def read_plainly(
    table: list[RuleData], submission: Submission, usage: Occupancy | None
) -> tuple[str, str, list[int], list[tuple[int, str]]]:
    """Return outcome, final class, the rules hit and the warnings."""
    present = str(submission.requested_class)
    hits: list[int] = []
    warnings: list[tuple[int, str]] = []
    for index, rule in enumerate(table):
        facts = _facts(submission, usage, present)
        when = rule.get("when", "")
        if not _matches_but_usage(rule, facts):
            continue
        if usage is not None and not (
            _holds(rule.get("occupied", ""), facts["occupied"])
            and _holds(rule.get("occupiedHigh", ""), facts["occupiedHigh"])
            and _holds(rule.get("occupiedLow", ""), facts["occupiedLow"])
        ):
            continue
        if when and not (usage is None and "occupied" in when):
            answer = WHENS[when](facts)
            if answer is None and len(warnings) < 10:
                warnings.append((index, "when-failed"))
            if not answer:
                continue
        numbers = [rule.get(name, "") for name in ("occupied", "occupiedHigh", "occupiedLow")]
        if usage is None and (any(number != "" for number in numbers) or "occupied" in when):
            warnings.append((index, "usage-unknown"))
            return "admitted", present, hits, warnings
        if rule["then"] in ("retain", "fail"):
            outcome = "refused" if rule["then"] == "fail" else "admitted"
            return outcome, present, [*hits, index], warnings
        if NAMES.index(rule["then"]) > NAMES.index(present):
            hits.append(index)
            present = rule["then"]
    return "admitted", present, hits, warnings
