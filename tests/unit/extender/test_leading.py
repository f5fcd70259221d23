"""Our place among the replicas."""

import pytest

from extender.leading import Leading, NoRivals, NotLeadingError
from service.clock import Clock


class LostTerm(NoRivals):
    """Somebody else has taken over."""

    async def attempt(self) -> bool:
        return False


async def test_a_term_that_was_lost_during_recovery_ends_before_the_first_answer() -> None:
    with pytest.raises(NotLeadingError, match="lost while recovering"):
        await Leading(LostTerm(Clock())).confirm()


async def test_a_term_that_is_still_ours_goes_on() -> None:
    leading = Leading(NoRivals(Clock()))
    await leading.confirm()
    assert not leading.is_leading, "it has to know everything, too"
    leading.note_recovered()
    assert leading.is_leading
