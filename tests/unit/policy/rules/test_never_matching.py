"""Rules that match no gang are told, and no other ones."""

import pytest

from policy.rules.never_matching import find_never_matching
from policy.submission import VcName
from tests.support.policy.documents import rules_of

VCS = (VcName("lab"), VcName("prod-vc"))


def _told(rule: str, vcs: tuple[VcName, ...] | None = VCS) -> list[str]:
    return [str(one) for one in find_never_matching(rules_of(f"- {rule}"), vcs=vcs)]


TOO = "and occupied counts these leaf cells, too, so it is never"


@pytest.mark.parametrize(
    ("rule", "field", "reason"),
    [
        ("vc: '^labs$'", "vc", "^labs$ is found in none of the VCs lab, prod-vc"),
        ("occupied: '< 0'", "occupied", "no number of leaf cells is < 0"),
        ("current: '== -1'", "current", "no number of leaf cells is == -1"),
        ("when: 'false'", "when", "the condition is always false"),
        ("current: '> 8', occupied: '<= 8'", "occupied", f"current is > 8, {TOO} <= 8"),
        ("occupied: '< 4', occupiedHigh: '>= 4'", "occupied", f"occupiedHigh is >= 4, {TOO} < 4"),
    ],
)
def test_a_rule_that_matches_no_gang_is_told(rule: str, field: str, reason: str) -> None:
    assert _told(f"{{{rule}, then: fail}}") == [
        f"rules[0].{field}: the rule never matches: {reason}"
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "occupied: 4, occupiedHigh: '> 9'",
        "vc: lab, current: '<= 8', occupied: '> 8'",
        "occupied: '!= 0', current: '>= 0'",
        "user: alice",
    ],
)
def test_a_rule_that_may_match_is_not(rule: str) -> None:
    assert _told(f"{{{rule}, then: fail}}") == []


def test_vcs_that_are_not_known_are_no_reason() -> None:
    assert _told("{vc: '^labs$', then: fail}", vcs=None) == []
