"""The age of a gang counts from when its workload first asked, and only while it waits."""

from datetime import UTC, datetime, timedelta

from extender.settings import LEADERSHIP
from extender.upkeep.reclaimed_ages import ReclaimedAges
from extender.upkeep.waiting_ages import WaitingAges
from kube import marks
from kube.marks import WORKLOAD_ANNOTATION
from service.clock import Clock
from state.ledger.ledger import LeaderTerm
from tests.support.clocks import FrozenTime
from tests.support.extender.gang_pods import bound, member
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.kube.workloads import workload_mark
from tests.support.twins.ledger import MemoryLedger

START = datetime(2026, 5, 1, 10, tzinfo=UTC)


class World:
    """Pods of one leader, and the time."""

    def __init__(self, ledger: MemoryLedger | None = None) -> None:
        self.shell, self.time = Shell(), FrozenTime(START)
        term = LeaderTerm(leadership=LEADERSHIP, epoch=1)
        self.reclaimed = ReclaimedAges(ledger, pods=self.shell.pods, term=lambda: term)
        WaitingAges(self.shell.pods, note_retried=self.reclaimed.note, clock=Clock(now=self.time))

    def create(self, pod: PodBuilder, *, job: str = "train") -> PodBuilder:
        pod = pod.annotated(WORKLOAD_ANNOTATION, workload_mark(job))
        pod = pod.created_at(self.time.now.isoformat().replace("+00:00", "Z"))
        self.shell.pods.upsert(pod)
        return pod

    def age(self, name: str) -> timedelta:
        asked = self.shell.pods.workloads.first_asked(self.shell.pod(name))
        return self.time.now - datetime.fromtimestamp(asked, UTC)


def test_a_gang_that_is_retried_keeps_its_age() -> None:
    world = World()
    pod = world.create(bound("a-0", "node-00"))
    world.time.advance(hours=2)
    world.shell.pods.upsert(pod.in_phase("Failed"))
    world.create(member("a-1", gang="g", size=2).gated())
    assert world.age("a-1") == timedelta(hours=2)


async def test_another_leader_knows_the_age_of_a_gang_that_is_retried() -> None:
    ledger = MemoryLedger()
    world = World(ledger)
    pod = world.create(bound("a-0", "node-00"))
    world.time.advance(minutes=20)
    world.shell.pods.upsert(pod.in_phase("Failed"))
    await world.reclaimed.settle()
    other = World(ledger)
    other.time.now = world.time.now
    other.create(member("a-1", gang="g", size=2).gated())
    await other.reclaimed.settle()
    assert other.age("a-1") == timedelta(minutes=20)


def test_a_pod_of_a_job_that_is_no_gang_keeps_the_age_of_the_job() -> None:
    world = World()
    pod = world.create(a_pod("a-x").with_gpus(8).bound_to("node-00"))
    world.time.advance(hours=1)
    world.shell.pods.upsert(pod.in_phase("Failed"))
    world.create(a_pod("a-y").with_gpus(8).gated())
    assert world.age("a-y") == timedelta(hours=1)


def test_a_pod_after_one_that_succeeded_asks_anew() -> None:
    world = World()
    pod = world.create(bound("a-0", "node-00"))
    world.time.advance(hours=1)
    world.shell.pods.upsert(pod.in_phase("Succeeded"))
    world.create(member("a-1", gang="g", size=2).gated())
    assert world.age("a-1") == timedelta(0)


def test_time_in_which_its_owner_suspends_a_gang_does_not_count() -> None:
    world = World()
    pod = world.create(member("a-0", gang="g", size=1).gated())
    world.time.advance(hours=3)
    world.shell.pods.remove(pod)
    world.time.advance(hours=10)
    world.create(member("a-1", gang="g", size=1).gated())
    assert world.age("a-1") == timedelta(hours=3)
    world.time.advance(hours=1)
    assert world.age("a-1") == timedelta(hours=4)


def test_a_gang_that_ran_has_got_what_it_waited_for() -> None:
    world = World()
    pod = world.create(bound("a-0", "node-00"))
    world.time.advance(hours=3)
    world.shell.pods.remove(pod)
    world.create(member("a-1", gang="g", size=2).gated())
    assert world.age("a-1") == timedelta(0)


def test_a_gang_of_the_same_name_and_another_workload_has_its_own_age() -> None:
    world = World()
    pod = world.create(member("a-0", gang="g", size=1).gated())
    world.time.advance(hours=3)
    world.shell.pods.remove(pod)
    world.create(member("a-1", gang="g", size=1).gated(), job="other")
    assert world.age("a-1") == timedelta(0)


def test_time_in_which_another_gate_holds_a_pod_does_not_count() -> None:
    world = World()
    gates = [{"name": marks.QUEUED_GATE}, {"name": "kueue.x-k8s.io/admission"}]
    pod = world.create(member("a-0", gang="g", size=1).with_spec(schedulingGates=gates))
    world.time.advance(hours=3)
    freed = member("a-0", gang="g", size=1).gated()
    freed = freed.annotated(WORKLOAD_ANNOTATION, workload_mark("train"))
    created = pod["metadata"]["creationTimestamp"]
    world.shell.pods.upsert(freed.created_at(created))
    assert world.age("a-0") == timedelta(0)
    world.time.advance(hours=1)
    assert world.age("a-0") == timedelta(hours=1)
