"""What is searched: fields of the Queues document and their ranges."""

import pytest

from policy.queues.durations import DAY, HOUR, MINUTE
from policy.queues.factors import FactorName
from tests.support.timemachine.tuned_days import searched
from timemachine.tuning.parameters import DEFAULT_SEARCH, write_duration


def test_a_worth_is_searched_in_every_level_on_its_own() -> None:
    found = searched("worth.shortRun=0..192h", levels=("fast", "slow"))
    assert [one.name for one in found] == ["worth.shortRun@fast", "worth.shortRun@slow"]
    assert found[1].keys == ("levels", 1, "worth", "shortRun")
    assert found[1].factor is FactorName.SHORT_RUN
    assert found[1].path == "levels[1].worth.shortRun"


def test_a_level_can_be_named() -> None:
    (found,) = searched("worth.class@slow=1h..2h", levels=("fast", "slow"))
    assert (found.level, found.low, found.high) == (1, HOUR, 2 * HOUR)


def test_promotion_is_searched_in_all_levels_but_the_first() -> None:
    found = searched("promoteAfter=12h..14d", levels=("fast", "slow", "idle"))
    assert [one.keys for one in found] == [("levels", place, "promoteAfter") for place in (1, 2)]


def test_fields_outside_of_levels_are_searched_by_their_paths() -> None:
    cap, depth, quantile = searched(
        "runTime.cap=1h..7d", "reservation.perPool=0..4", "reservation.backfillQuantile=0.5..0.95"
    )
    assert cap.value_at(0.0) == HOUR
    assert cap.write(cap.value_at(0.99999)) == "168h"
    assert [depth.write(depth.value_at(part / 8)) for part in (0, 4, 7)] == [0, 2, 4]
    assert quantile.write(quantile.value_at(0.5)) == 0.72
    assert cap.level is None
    assert cap.factor is None
    assert str(depth) == "reservation.perPool 0 to 4"


def test_of_a_field_that_is_named_twice_the_later_range_counts() -> None:
    (found,) = searched("worth.class=0..1h", "worth.class=0..2h")
    assert found.high == 2 * HOUR


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worth.class", "must be FIELD=LOW..HIGH"),
        ("worth.class=1h", "must be FIELD=LOW..HIGH"),
        ("worth.clas=0..1h", "what can be is worth.class, worth.userLevel"),
        ("strategy=0..1h", "cannot be searched"),
        ("worth.class=2h..1h", "the range must not be empty"),
        ("worth.class=0..many", '"many" is not a duration'),
        ("reservation.perPool=0..1.5", '"1.5" is not a count'),
        ("runTime.cap=0..7d", "only a worth may be 0"),
        ("worth.class@other=0..1h", 'there is no level "other"; the levels are all'),
        ("runTime.cap@all=1h..7d", "cannot be searched"),
    ],
)
def test_what_cannot_be_searched_is_told_in_plain_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as found:
        searched(text)
    assert message in str(found.value)


def test_durations_are_sampled_on_a_logarithmic_scale_and_sometimes_nothing() -> None:
    (worth,) = searched("worth.shortRun=0..256h")
    values = [worth.value_at(part / 1000) for part in range(1000)]
    assert values == sorted(values)
    assert values.count(0.0) == 150
    halves = [sum(low < one <= 2 * low for one in values) for low in (2 * HOUR, 64 * HOUR)]
    assert halves[0] == pytest.approx(halves[1], rel=0.15)


def test_sampled_durations_are_what_a_person_would_write() -> None:
    (worth,) = searched("worth.shortRun=0..384h")
    written = {worth.write(worth.value_at(part / 2000)) for part in range(2000)}
    assert {"1h30m", "2h", "36h", "384h"} <= written
    assert not [one for one in written if "s" in str(one) and one != "0s"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0s"), (90.0, "1m30s"), (90 * MINUTE, "1h30m"), (7 * DAY, "168h")],
)
def test_durations_are_written_as_documents_have_them(seconds: float, text: str) -> None:
    assert write_duration(seconds) == text


def test_nothing_that_says_how_important_a_gang_is_is_searched_by_default() -> None:
    factors = {one.factor for one in searched(*DEFAULT_SEARCH)}
    important = {
        FactorName.CLASS, FactorName.USER_LEVEL, FactorName.GROUP_LEVEL, FactorName.START_BY,
    }  # fmt: skip
    assert not factors & important
