"""Elastic Jobs: which one is resumed next, and with which size."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from extender.cells.answers import wait
from extender.cells.model import MemberRequest, Place, ReasonCode
from extender.simulate.admission import SimulatedAdmission
from extender.simulate.simulator import SimulateArguments, Simulation
from extender.upkeep.elastic.elastic_starts import ElasticStarts
from kube.admission.elastic_jobs import ElasticJob, read_elastic
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid
from tests.support.extender.shell import Shell
from tests.support.kube.events import KeptEvents
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload


def _a_job(name: str, sizes: str = "[{members: 4}, {members: 2}]", **spec: Any) -> dict[str, Any]:
    pod = a_new_pod("unused").with_gpus(8).in_gang(name, size=8).submitted_by("alice", "team")
    counts = {"completions": 8, "parallelism": 8, "completionMode": "Indexed", "suspend": True}
    job = dict(a_workload("Job", name, template=a_template(pod), **{**counts, **spec}))
    job["metadata"]["annotations"] = {"cellgate.io/alternatives": sizes}
    return job


def _read(job: dict[str, Any]) -> ElasticJob:
    found = read_elastic(job)
    assert found is not None
    return found


@dataclass
class _Cluster:
    """Jobs, and how many members fit."""

    jobs: list[ElasticJob]
    room: int
    started: list[tuple[str, int]] = field(default_factory=list)
    asked: list[SimulateArguments] = field(default_factory=list)
    has_changed: bool = False
    refused: tuple[str, ...] = ()
    """Jobs that the API server does not resume with fewer members than they ask for."""

    async def list(self) -> list[ElasticJob]:
        return self.jobs

    async def start(self, job: ElasticJob, size: int) -> bool:
        if job.job["metadata"]["name"] in self.refused and size < job.sizes[0]:
            raise RequestError.at("", "the API server refuses the change: spec.maxFailedIndexes")
        if not self.has_changed:
            self.started.append((job.job["metadata"]["name"], size))
        return not self.has_changed

    async def simulate(self, arguments: SimulateArguments) -> Simulation:
        self.asked.append(arguments)
        size = int(arguments.pod["metadata"]["labels"]["cellgate.io/gang-size"])
        request = MemberRequest(
            member=PodUid("x"), gang=GangKey("lab", "x"), leaf_count=8, gang_leaf_counts=(8,) * size
        )
        placement = Placement(node=NodeName("node-0"), leaf_cells=(0,))
        plan = (
            Place(request=request, placement=placement)
            if size <= self.room
            else wait(request, ReasonCode.NO_ROOM, needs=((size, 8),), members=size, room=self.room)
        )
        return Simulation(admission=SimulatedAdmission(), plan=plan)


def _starts(cluster: _Cluster) -> tuple[ElasticStarts, KeptEvents]:
    events, shell = KeptEvents(), Shell()
    shell.recover()
    made = ElasticStarts(cluster, simulator=cluster, cluster=shell.cluster, events=events)
    return made, events


async def test_job_starts_with_the_first_size_that_fits_and_is_told_why() -> None:
    cluster = _Cluster([_read(_a_job("bert"))], room=5)
    starts, events = _starts(cluster)
    await starts.step()

    assert cluster.started == [("bert", 4)]
    asked = cluster.asked[0]
    assert (asked.user, asked.groups) == ("alice", ["team"])
    (event,) = events.written
    assert event.reason == "SizeChosen"
    assert event.message.startswith("resumed with 4 members of 8: 8 members: gang lab/x needs 8")


async def test_job_that_fits_in_no_size_stays_suspended_and_is_told_why() -> None:
    cluster = _Cluster([_read(_a_job("bert"))], room=1)
    starts, events = _starts(cluster)
    await starts.step()

    assert cluster.started == []
    (event,) = events.written
    assert event.message.startswith("stays suspended until one of its sizes fits: 8 members: ")
    assert "; 2 members: gang lab/x needs" in event.message


async def test_one_job_is_resumed_in_a_step() -> None:
    cluster = _Cluster([_read(_a_job("first")), _read(_a_job("second"))], room=8)
    starts, _ = _starts(cluster)
    await starts.step()

    assert cluster.started == [("first", 8)]


async def test_jobs_that_never_fit_keep_no_other_from_starting() -> None:
    """One user's Jobs would stop those of all others."""
    never = [_read(_a_job(f"never-{place:02}", "[{members: 7}]")) for place in range(40)]
    cluster = _Cluster([*never, _read(_a_job("bert"))], room=2)
    starts, _ = _starts(cluster)
    for _ in range(3):
        await starts.step()

    assert cluster.started == [("bert", 2)]


async def test_job_that_cannot_be_resized_keeps_no_other_from_starting() -> None:
    """A Job may contradict its other sizes, for example with maxFailedIndexes."""
    cluster = _Cluster([_read(_a_job("bad")), _read(_a_job("bert"))], room=5, refused=("bad",))
    starts, events = _starts(cluster)
    await starts.step()

    assert cluster.started == [("bert", 4)]
    assert "; 4 members: the API server refuses the change" in events.written[0].message
    cluster.room = 8
    await starts.step()
    assert cluster.started[-1] == ("bad", 8)


async def test_job_that_its_owner_has_changed_is_left_for_the_next_step() -> None:
    cluster = _Cluster([_read(_a_job("bert"))], room=8, has_changed=True)
    starts, events = _starts(cluster)
    await starts.step()

    assert events.written == []


def test_patch_resumes_the_job_with_its_new_size_in_one_write() -> None:
    patch = _read(_a_job("bert")).start_patch(4)

    assert patch["spec"] == {
        "suspend": False,
        "parallelism": 4,
        "completions": 4,
        "template": {"metadata": {"labels": {"cellgate.io/gang-size": "4"}}},
    }
    assert patch["metadata"]["labels"] == {"cellgate.io/elastic": "started"}


@pytest.mark.parametrize(
    ("sizes", "spec", "path"),
    [
        ("[{members: 4}]", {"suspend": False}, "spec.suspend"),
        ("[{members: 4}]", {"parallelism": None, "completions": None}, "spec.parallelism"),
        ("[{members: 4}]", {"managedBy": "example.org/other"}, "spec.suspend"),
        ("[{members: 4}]", {"completionMode": "NonIndexed"}, "spec.completionMode"),
        ("[{members: 4}]", {"completions": 9}, "spec.completionMode"),
        ("[{members: 4}]", {"parallelism": 9, "completions": 9}, "spec.template.metadata.labels"),
        ("[{members: 8}]", {}, "metadata.annotations[cellgate.io/alternatives][0].members"),
        ("[{members: 4}, {vc: x}]", {}, "metadata.annotations[cellgate.io/alternatives][1]"),
        ("[{members: 4}, {members: 4}]", {}, "metadata.annotations[cellgate.io/alternatives]"),
        ("[{members: x}]", {}, "metadata.annotations[cellgate.io/alternatives][0].members"),
    ],
    ids=[
        "runs",
        "no count",
        "managed",
        "no index",
        "other count",
        "other size",
        "larger",
        "other key",
        "twice",
        "text",
    ],
)
def test_job_that_is_not_elastic_is_refused(sizes: str, spec: dict[str, Any], path: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_elastic(_a_job("bert", sizes, **spec))
    assert caught.value.problems[0].path.startswith(path)


def test_job_without_the_annotation_is_not_elastic() -> None:
    job = _a_job("bert")
    job["metadata"]["annotations"] = {}
    assert read_elastic(job) is None
