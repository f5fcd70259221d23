"""Rules that match no gang, whatever is asked for or held: a warning, since they do no harm.

Only what can be proved is told: a VC that does not exist, a number that leaf cells cannot be, two
numbers that contradict each other, and a condition that is always false. A rule that an earlier one
keeps from applying is an error (`policy.documents.rule_checks`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from policy.errors import Problem
from policy.rules.comparison import Comparison
from policy.rules.rule_table import Rule, RuleTable
from policy.submission import VcName
from policy.wording import join_path, listing

_VERY_MANY: Final = 10**19
"""More leaf cells than any limit that a comparison can have."""
_MOST_VCS: Final = 8


def find_never_matching(rules: RuleTable, *, vcs: Sequence[VcName] | None) -> Iterator[Problem]:
    """Yield the rules that can match no gang; `vcs` are all VCs there are, None if unknown."""
    for index, rule in enumerate(rules.rules):
        for field, reason in _reasons(rule, vcs):
            yield Problem(join_path(("rules", index, field)), f"the rule never matches: {reason}")
            break


def _reasons(rule: Rule, vcs: Sequence[VcName] | None) -> Iterator[tuple[str, str]]:
    """Yield fields that cannot match, each with the reason."""
    if rule.vc is not None and vcs is not None and not any(map(rule.vc.found_in, vcs)):
        shown = listing(vcs[:_MOST_VCS]) + (" and others" if len(vcs) > _MOST_VCS else "")
        yield "vc", f"{rule.vc} is found in none of the VCs {shown}" if vcs else "there are no VCs"
    if rule.when is not None and str(rule.when).strip() == "false":
        yield "when", "the condition is always false"
    numbers = {
        "current": rule.current,
        "occupied": rule.occupied,
        "occupiedHigh": rule.occupied_high,
        "occupiedLow": rule.occupied_low,
    }
    for field, comparison in numbers.items():
        if comparison is not None and not _points(comparison):
            yield field, f"no number of leaf cells is {comparison}"
    for field in ("current", "occupiedHigh", "occupiedLow"):
        part = numbers[field]
        if part is not None and not _fits(part, within=rule.occupied):
            whole = f"{field} is {part}, and occupied counts these leaf cells, too"
            yield "occupied", f"{whole}, so it is never {rule.occupied}"


def _points(comparison: Comparison) -> list[int]:
    """Return numbers that a comparison allows: the least and the greatest are among them."""
    near = (0, comparison.limit - 1, comparison.limit, comparison.limit + 1, _VERY_MANY)
    return [point for point in near if point >= 0 and comparison.holds(point)]


def _fits(part: Comparison, *, within: Comparison | None) -> bool:
    """Whether a part can be as large as it must be, within a whole that is as small as it must."""
    if within is None or not _points(part) or not _points(within):
        return True  # told by itself
    return min(_points(part)) <= max(_points(within))
