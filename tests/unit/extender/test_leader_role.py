"""Our place among the replicas."""

import asyncio

import pytest

from extender import leader_role
from extender.leader_role import LeaderRole, NotLeadingError, SoleReplica
from kube.api.leadership import LeaderLabel
from service.clock import Clock


class LostElection(SoleReplica):
    """Somebody else has taken over."""

    async def attempt(self) -> bool:
        return False


class CountedElection(SoleReplica):
    """Counts renewals."""

    def __init__(self) -> None:
        super().__init__(Clock())
        self.renewals = 0

    async def attempt(self) -> bool:
        self.renewals += 1
        return True


async def nothing() -> None:
    """There was nothing to recover."""


async def test_a_term_that_was_lost_during_recovery_ends_before_the_first_answer() -> None:
    leading = LeaderRole(LostElection(Clock()))
    with pytest.raises(NotLeadingError, match="lost while recovering"):
        await leading.recover(nothing())
    assert not leading.is_leading


async def test_a_term_that_is_still_ours_goes_on() -> None:
    leading = LeaderRole(SoleReplica(Clock()))
    assert not leading.is_leading, "it has to know everything, too"
    await leading.recover(nothing())
    assert leading.is_leading


async def test_leadership_is_renewed_while_a_large_cluster_is_taken_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_role, "_RENEW_SECONDS", 0.0)
    term = CountedElection()

    async def large() -> None:
        while term.renewals < 3:
            await asyncio.sleep(0)

    await LeaderRole(term).recover(large())
    assert term.renewals == 4, "once more before the first answer"


async def test_recovery_stops_as_soon_as_somebody_else_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_role, "_RENEW_SECONDS", 0.0)
    leading = LeaderRole(LostElection(Clock()))
    with pytest.raises(ExceptionGroup) as caught:
        await leading.recover(asyncio.Event().wait())  # type: ignore[arg-type] # whatever it is
    assert caught.group_contains(NotLeadingError)
    assert not leading.is_leading


class OwnPod(LeaderLabel):
    """Our pod, as it was stored last."""

    def __init__(self) -> None:
        pass

    async def claim(self, epoch: int) -> str | None:
        return "17"


async def test_who_cannot_see_what_was_written_before_its_term_does_not_lead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A watch that died silently would have a new leader give bound leaf cells away."""
    monkeypatch.setattr(leader_role, "_CATCH_UP_SECONDS", 0.01)

    async def never(version: str) -> None:
        await asyncio.Event().wait()

    with pytest.raises(NotLeadingError, match="the list of pods is not up to date"):
        await LeaderRole(SoleReplica(Clock()), label=OwnPod()).catch_up(never)


async def test_who_leads_has_seen_its_own_pod_and_so_all_that_was_written_before() -> None:
    reached: list[str] = []

    async def note(version: str) -> None:
        reached.append(version)

    await LeaderRole(SoleReplica(Clock()), label=OwnPod()).catch_up(note)
    assert reached == ["17"]
