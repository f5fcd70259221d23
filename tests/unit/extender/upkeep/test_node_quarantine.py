"""A bad node is marked by the leader, left out while it is, and used again afterwards."""

from datetime import UTC, datetime, timedelta

import orjson

from extender.upkeep.node_quarantine import NodeQuarantine
from kube.marks import NEVER_QUARANTINE, QUARANTINE_ANNOTATION
from policy.errors import BackendError
from policy.quarantine import QuarantineRule
from policy.submission import NodeName
from service.clock import Clock
from tests.support.extender.shell import Shell
from tests.support.kube.events import KeptEvents
from tests.support.kube.nodes import a_node
from tests.support.kube.pods import PodBuilder, a_pod

RULE = QuarantineRule(
    workloads=3, submitters=2, within_seconds=1800, fail_within_seconds=60, for_seconds=3600
)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Ward:
    """A shell whose nodes are marked at once."""

    def __init__(self, *, rule: QuarantineRule | None = RULE) -> None:
        self.shell, self.now, self.is_forbidden = Shell(), BEGAN, False
        self.seconds = 0.0
        self.events = KeptEvents()
        self.quarantine = NodeQuarantine(
            cluster=self.shell.cluster,
            pods=self.shell.pods,
            rule=lambda: rule,
            writer=self,
            events=self.events,
            clock=Clock(now=lambda: self.now, monotonic=lambda: self.seconds),
        )

    async def mark_quarantine(self, node: NodeName, text: str | None) -> None:
        if self.is_forbidden:
            raise BackendError("nodes is forbidden")
        self.mark(node, text)

    def mark(self, node: str, text: str | None) -> None:
        told = a_node(node)
        marked = told if text is None else told.annotated(QUARANTINE_ANNOTATION, text)
        self.shell.cluster.observe_node(marked.read())

    def text(self, node: str = "node-00") -> str | None:
        return self.shell.cluster.nodes[NodeName(node)].quarantine

    async def look(self, *, after: timedelta = timedelta(0)) -> None:
        self.now += after
        self.seconds += after.total_seconds()
        await self.quarantine.look()

    def fail(self, *names: str, node: str = "node-00") -> list[PodBuilder]:
        failed = [_failed(name, node=node, at=self.now) for name in names]
        for pod in failed:
            self.shell.pods.upsert(pod)
        return failed


def _failed(name: str, *, node: str, at: datetime) -> PodBuilder:
    told = {"exitCode": 1, "startedAt": at.isoformat(), "finishedAt": at.isoformat()}
    status = [{"name": "main", "state": {"terminated": told}}]
    return (
        a_pod(name)
        .with_gpus(8)
        .in_vc("lab")
        .bound_to(node)
        .submitted_by(f"owner-of-{name}")
        .with_status(phase="Failed", containerStatuses=status)
    )


async def test_a_node_on_which_three_workloads_fail_is_left_out_until_its_time_is_over() -> None:
    ward = Ward()
    ward.fail("a", "b")
    await ward.look()
    assert ward.text() is None

    ward.fail("c")
    await ward.look()
    told = orjson.loads(ward.text() or "")
    assert told == {"until": "2026-01-01T01:00:00Z", "workloads": ["lab/a", "lab/b", "lab/c"]}
    node = ward.shell.cluster.nodes[NodeName("node-00")]
    assert (node.is_healthy, node.is_quarantined) == (False, True)
    (event,) = ward.events.written
    assert (event.kind, event.name, event.reason) == ("Node", "node-00", "Quarantined")
    assert event.message == (
        "no gang is placed here until 2026-01-01T01:00:00Z: members of 3 different workloads "
        "of 3 submitters failed at start within 1800 seconds (lab/a, lab/b, lab/c); remove the "
        "annotation cellgate.io/quarantine to use the node again"
    )

    await ward.look(after=timedelta(minutes=59))
    assert ward.text() is not None
    await ward.look(after=timedelta(minutes=1))
    assert ward.text() is None
    assert ward.shell.cluster.nodes[NodeName("node-00")].is_healthy
    assert [event.reason for event in ward.events.written] == ["Quarantined", "QuarantineEnded"]


async def test_the_event_names_workloads_by_kind_and_name() -> None:
    ward = Ward()
    for number, name in enumerate(("a", "b", "c")):
        uid = f"5bb4ab8c-9636-452a-a610-66550a28142{number}"
        pod = _failed(name, node="node-00", at=ward.now)
        ward.shell.pods.upsert(pod.annotated("cellgate.io/workload", f"batch/Job/{name}/{uid}"))
    await ward.look()
    (event,) = ward.events.written
    assert "(Job lab/a, Job lab/b, Job lab/c)" in event.message


async def test_an_admin_ends_a_quarantine_and_old_failures_do_not_begin_it_again() -> None:
    ward = Ward()
    failed = ward.fail("a", "b", "c")
    await ward.look()
    await ward.look(after=timedelta(minutes=1))
    ward.mark("node-00", None)
    await ward.look(after=timedelta(minutes=1))
    for pod in failed:
        ward.shell.pods.upsert(pod)  # their feed lists them again
    await ward.look(after=timedelta(minutes=1))
    assert ward.text() is None
    ward.fail("d", "e", "f")
    await ward.look()
    assert ward.text() is not None


async def test_an_admins_own_quarantine_has_no_end_and_an_exempt_node_has_no_beginning() -> None:
    ward = Ward(rule=None)
    ward.mark("node-01", "broken fan")
    await ward.look(after=timedelta(days=100))
    assert ward.text("node-01") == "broken fan"
    assert not ward.shell.cluster.nodes[NodeName("node-01")].is_healthy

    ward = Ward()
    ward.mark("node-00", NEVER_QUARANTINE)
    ward.fail("a", "b", "c")
    await ward.look()
    assert ward.text() == NEVER_QUARANTINE
    assert ward.shell.cluster.nodes[NodeName("node-00")].is_healthy


async def test_a_new_leader_ends_what_its_predecessor_began_also_without_a_rule() -> None:
    ward = Ward(rule=None)
    ward.mark("node-00", '{"until": "2026-01-01T01:00:00+00:00", "workloads": []}')
    await ward.look(after=timedelta(hours=2))
    assert ward.text() is None


async def test_without_the_right_to_patch_nodes_it_goes_on_trying() -> None:
    ward = Ward()
    ward.is_forbidden = True
    ward.fail("a", "b", "c")
    await ward.look()
    assert (ward.text(), ward.events.written) == (None, [])
    ward.is_forbidden = False
    await ward.look()
    assert ward.text() is not None


async def test_crashing_pods_of_one_user_take_no_node_away() -> None:
    ward = Ward()
    for number in range(20):
        pod = _failed(f"crash-{number}", node="node-00", at=ward.now)
        ward.shell.pods.upsert(pod.submitted_by("mallory"))
    await ward.look()
    assert ward.text() is None
    ward.fail("of-another-user")
    await ward.look()
    assert ward.text() is not None


async def test_a_failure_counts_once_however_often_it_is_reported() -> None:
    ward = Ward()
    for _ in range(3):
        ward.fail("a")
    await ward.look()
    assert ward.text() is None
