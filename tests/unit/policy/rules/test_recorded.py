"""What was found about names, instead of the names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.admission.logged import encode_rules
from policy.rules.recorded import RecordedMatches, parse_places
from policy.submission import ClassName, GangKey, Occupancy, Submission, UserName
from tests.support.webhook.admission_world import a_policy

_RULES = """
- {user: ^alice$, priority: prod, current: "> 4", then: test}
- {when: "user == 'alice' && occupied > 2", then: oppo}
- {when: "labels.tier == 'gold'", then: fail}
"""


def _asked(user: str = "alice") -> Submission:
    return Submission(
        user=UserName(user),
        requested_class=ClassName("prod"),
        gang=GangKey("lab", "bert"),
        leaf_count=8,
    )


@given(st.sets(st.integers(1, 40)))
def test_numbers_of_rules_are_read_as_they_are_written(places: set[int]) -> None:
    text = ",".join(map(str, sorted(places)))
    assert parse_places(text) == sum(1 << (place - 1) for place in places)


def test_a_run_of_rules_is_read() -> None:
    assert parse_places("2,5-7") == 0b1110010
    with pytest.raises(ValueError, match="invalid literal"):
        parse_places("2,x")


@pytest.mark.parametrize("text", ["1-9999999999", "0", "7-5"])
def test_numbers_that_no_rule_has_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="are not between 1 and"):
        parse_places(text)


def test_what_was_found_decides_under_other_names() -> None:
    policy, usage = a_policy(rules=_RULES), Occupancy(occupied=3)
    decided = policy.rules.decide(_asked(), usage=usage, classes=policy.classes)
    row = encode_rules(decided, policy)
    assert (decided.final_class, row["rules"]) == ("oppo", "1")
    again = policy.rules.decide(
        _asked("user-0001"),
        usage=usage,
        classes=policy.classes,
        matcher=RecordedMatches(row, policy.rules),
    )
    assert again.final_class == "oppo"
    assert encode_rules(again, policy) == row


def test_a_result_that_is_not_in_the_row_is_told() -> None:
    policy = a_policy(rules=_RULES)
    decided = policy.rules.decide(
        _asked(),
        usage=Occupancy(),
        classes=policy.classes,
        matcher=RecordedMatches({"rules": "1"}, policy.rules),
    )
    assert decided.warnings[0].detail == "its result is not in the log"
