"""Gangs whose pods were ended one by one keep their age, also under another leader."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from extender.outcomes.evictions import Evictions
from extender.settings import LEADERSHIP
from extender.upkeep.reclaimed_ages import ReclaimedAges
from kube.api.binder import PodRef
from kube.api.pod_ender import Ended
from kube.marks import WORKLOAD_ANNOTATION
from policy.errors import BackendError
from policy.submission import GangKey
from state.ledger.ledger import LeaderTerm
from tests.support.background import background
from tests.support.eventually import eventually
from tests.support.extender.gang_pods import bound, member
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder
from tests.support.kube.workloads import workload_mark
from tests.support.twins.ledger import MemoryLedger

OLD, NEW = "2026-05-01T10:00:00Z", "2026-05-01T12:00:00Z"
ASKED = datetime(2026, 5, 1, 10, tzinfo=UTC).timestamp()


def of_job(pod: PodBuilder, job: str = "train") -> PodBuilder:
    return pod.annotated(WORKLOAD_ANNOTATION, workload_mark(job))


class Leader:
    """What one leader knows; `ended` is how the API server says that pods were ended."""

    def __init__(self, ledger: MemoryLedger | None, *, epoch: int = 1) -> None:
        self.shell, self.ended = Shell(), Ended.NOW
        term = LeaderTerm(leadership=LEADERSHIP, epoch=epoch)
        self.ages = ReclaimedAges(ledger, pods=self.shell.pods, term=lambda: term)
        self.evictions = Evictions(
            self,
            pods=self.shell.pods,
            outcomes=self.shell.outcomes,
            reclaims=self.shell.reclaims(),
        )
        self.evictions.on_reclaimed.append(self.ages.note)
        self.told: list[str] = []
        self.shell.pods.on_change.append(lambda pod: self.told.append(pod.name))

    async def end(self, pod: PodRef, *, why: str, is_wanted: Callable[[], bool]) -> Ended:
        return self.ended

    async def evict(self, *pods: PodBuilder) -> None:
        for pod in pods:
            self.shell.pods.upsert(pod)
        names = [pod["metadata"]["name"] for pod in pods]
        async with background(self.evictions.run()):
            ends = [
                self.evictions.end(self.shell.pod(name), why="why", is_wanted=lambda: True)
                for name in names
            ]
            await asyncio.gather(*ends)
        for pod in pods:
            self.shell.pods.remove(pod)

    def asked(self, name: str) -> float:
        return self.shell.pods.workloads.first_asked(self.shell.pod(name))


def victims() -> list[PodBuilder]:
    ages = (("a", "node-00", OLD), ("b", "node-01", NEW))
    return [of_job(bound(name, node).created_at(at)) for name, node, at in ages]


@pytest.mark.parametrize("ended", [Ended.NOW, Ended.BEFORE])
async def test_new_pods_have_the_age_of_the_first_ones(ended: Ended) -> None:
    leader = Leader(None)
    leader.ended = ended
    await leader.evict(*victims())
    leader.shell.pods.upsert(of_job(member("c").created_at(NEW)))
    assert leader.asked("c") == ASKED


async def test_another_leader_reads_the_age_from_the_ledger() -> None:
    ledger = MemoryLedger()
    first, second = Leader(ledger), Leader(ledger, epoch=2)
    await first.evict(*victims())
    await first.ages.settle()
    second.shell.pods.upsert(of_job(member("c").created_at(NEW)))
    second.shell.pods.upsert(of_job(member("other").created_at(NEW), "next-run"))
    await second.ages.settle()
    assert second.asked("c") == ASKED < second.asked("other")
    assert second.told == ["c", "other", "c"], "it is ranked again"


async def test_what_others_end_and_what_has_no_workload_keeps_no_age() -> None:
    leader = Leader(ledger := MemoryLedger())
    await leader.evict(bound("a", "node-00").created_at(OLD))
    leader.ended = Ended.BY_OTHERS
    await leader.evict(*victims())
    await leader.ages.settle()
    for pod in (member("c"), of_job(member("d"))):
        leader.shell.pods.upsert(pod.created_at(NEW))
        assert await ledger.first_asked([leader.shell.pod("c").gang.key]) == {}
    assert leader.asked("c") == leader.asked("d") > ASKED


async def test_the_ages_are_kept_once_the_ledger_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.upkeep.reclaimed_ages._EVERY_SECONDS", 0)
    leader = Leader(ledger := MemoryLedger())
    ledger.is_away = True
    await leader.evict(*victims())
    with pytest.raises(BackendError):
        await leader.ages.settle()
    async with background(leader.ages.run()):
        await asyncio.sleep(0.01)
        ledger.is_away = False
        await eventually(lambda: not leader.ages._unsaved)
    second = Leader(ledger, epoch=2)
    second.shell.pods.upsert(of_job(member("c").created_at(NEW)))
    await second.ages.settle()
    assert second.asked("c") == ASKED


async def test_a_pod_of_another_submitter_that_names_the_workload_has_its_own_age() -> None:
    ledger = MemoryLedger()
    first, second = Leader(ledger), Leader(ledger, epoch=2)
    await first.evict(*(pod.submitted_by("alice") for pod in victims()))
    await first.ages.settle()
    for leader in (first, second):
        leader.shell.pods.upsert(of_job(member("c").created_at(NEW)).submitted_by("mallory"))
        await leader.ages.settle()
        assert leader.asked("c") > ASKED
        leader.shell.pods.remove(of_job(member("c")))
        leader.shell.pods.upsert(of_job(member("d").created_at(NEW)).submitted_by("alice"))
        await leader.ages.settle()
        assert leader.asked("d") == ASKED


async def test_an_age_that_an_earlier_version_kept_counts_for_any_submitter() -> None:
    leader = Leader(ledger := MemoryLedger())
    gang = GangKey("lab", "g", workload_mark("train").rpartition("/")[2])
    term = LeaderTerm(leadership=LEADERSHIP, epoch=1)
    await ledger.note_reclaimed({gang: datetime.fromtimestamp(ASKED, UTC)}, term=term)
    leader.shell.pods.upsert(of_job(member("c").created_at(NEW)).submitted_by("alice"))
    await leader.ages.settle()
    assert leader.asked("c") == ASKED


async def test_a_gang_that_is_gone_is_not_asked_for() -> None:
    leader = Leader(MemoryLedger())
    leader.shell.pods.upsert(of_job(member("c")))
    assert leader.ages._unread
    leader.shell.pods.remove(of_job(member("c")))
    assert not leader.ages._unread
    assert not leader.ages._seen
