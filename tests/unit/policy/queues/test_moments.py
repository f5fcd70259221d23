"""Times that users write: what was accepted can be told later, in UTC."""

import pytest

from kube import marks
from kube.lives.start_wishes import check_start_by, read_start_by
from policy.documents.billing_document import parse_moment
from policy.errors import RequestError
from policy.queues.holds import parse_hold, read_hold
from policy.queues.moments import parse_seconds
from policy.wording import moment

_OUTSIDE = ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z")


@pytest.mark.parametrize("text", _OUTSIDE)
def test_a_time_that_cannot_be_told_is_refused(text: str) -> None:
    """Else the leader fails when it tells when the hold ends, or the wished start."""
    annotations = {marks.START_BY_ANNOTATION: text}
    with pytest.raises(RequestError):
        check_start_by({"metadata": {"annotations": annotations}})
    assert read_start_by(annotations) is None
    with pytest.raises(ValueError, match="until= must be a time"):
        parse_hold(f"data is copied; until={text}")
    assert read_hold(f"data is copied; until={text}").until is None


@pytest.mark.parametrize("text", _OUTSIDE[:2])
def test_a_document_with_a_time_that_cannot_be_told_is_refused(text: str) -> None:
    """An OverflowError would be an answer without a path."""
    with pytest.raises(ValueError, match="must be a time with a zone"):
        parse_moment(text)


@pytest.mark.parametrize("value", ["2026-11-20T08:00:00", "tomorrow", "", None, 5, "inf", "nan"])
def test_a_text_without_a_zone_is_no_time(value: object) -> None:
    """The leader may live in another zone than the user."""
    assert parse_seconds(value) is None


def test_a_time_is_shown_in_utc() -> None:
    """One zone for all."""
    found = parse_seconds("2026-11-20T08:00:00+02:00")
    assert found is not None
    assert moment(found) == "2026-11-20T06:00:00Z"
