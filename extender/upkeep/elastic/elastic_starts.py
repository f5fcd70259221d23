"""The loop of the leader that resumes elastic Jobs, the oldest first.

A Job stays suspended until one of its sizes would start now. A step tries some Jobs, and the next
step those after them, so that Jobs that never fit keep no others from starting. One Job is resumed
in each step: its pods must have their places before it is known what is left for the next one.
After that, the next step begins with the oldest Job again. Between the resumption
and the creation of its pods another gang may take the cells; then the Job's gang waits in the queue
with the size that it has.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, NoReturn, Protocol

from extender.cells.answers import fact_of
from extender.cells.model import Place, Reason
from extender.cluster.cluster import Cluster
from extender.simulate.simulator import SimulateArguments, Simulation
from kube.admission.elastic_jobs import ElasticJob
from kube.api.client import KubeError
from kube.api.events import Event, EventWriter
from kube.read.pods import read_pod
from policy.errors import BackendError, RequestError
from policy.wording import count_of
from state.log.records import RowKind

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 60.0
"""Where the right is missing, perhaps for as long as the process runs."""
_NOT_ALLOWED: Final = (403, 404)
_AT_ONCE: Final = 16
"""Jobs that are simulated in one step: each size takes some milliseconds."""


class Jobs(Protocol):
    """What resuming Jobs needs of Kubernetes."""

    async def list(self) -> list[ElasticJob]:
        """Return the Jobs that wait for one of their sizes, the oldest first."""

    async def start(self, job: ElasticJob, size: int) -> bool:
        """Resume a Job with so many members; False if it has changed since it was read.

        Raises RequestError if the Job cannot have so many members.
        """


class Simulates(Protocol):
    """Says what would happen to a pod."""

    async def simulate(self, arguments: SimulateArguments) -> Simulation:
        """Say what would happen to a pod if it were submitted now, with its whole gang."""


class ElasticStarts:
    """Resumes elastic Jobs for as long as this replica leads."""

    def __init__(
        self, jobs: Jobs, *, simulator: Simulates, cluster: Cluster, events: EventWriter
    ) -> None:
        self._jobs = jobs
        self._simulator = simulator
        self._cluster = cluster
        self._events = events
        self._next = 0
        """How many of the oldest Jobs were tried since one was resumed."""

    async def run(self) -> NoReturn:
        """Resume Jobs that fit every few seconds, until cancelled."""
        while True:
            pause = _EVERY_SECONDS
            try:
                await self.step()
            except BackendError as exc:
                logger.warning("Jobs not resumed, will retry", extra={"error": str(exc)})
                if isinstance(exc, KubeError) and exc.status in _NOT_ALLOWED:
                    pause = _PAUSE_SECONDS
            await asyncio.sleep(pause)

    async def step(self) -> None:
        """Resume the first Job that fits in one of its sizes; tell the others why they wait."""
        jobs = await self._jobs.list()
        begin = self._next if self._next < len(jobs) else 0
        self._next = begin + _AT_ONCE
        for job in jobs[begin : self._next]:
            if await self._try(job):
                self._next = 0
                return

    async def _try(self, job: ElasticJob) -> bool:
        refused: list[str] = []
        for size in job.sizes:
            try:
                why = await self._refusal(job, size)
                if why is None:
                    return await self._start(job, size, refused)
            except RequestError as exc:
                why = str(exc)
            refused.append(f"{count_of(size, 'member')}: {why}")
        told = f"stays suspended until one of its sizes fits: {'; '.join(refused)}"
        self._tell(job, "Waiting", told)
        return False

    async def _refusal(self, job: ElasticJob, size: int) -> str | None:
        """Return why a Job would not start with so many members; None if it would."""
        pod = job.pod(size)
        stamped = read_pod(pod)
        if stamped is None or stamped.submitter is None:
            return "its template asks for no leaf cells, or names no submitter"
        groups = list(map(str, stamped.submitter_groups))
        arguments = SimulateArguments(pod=pod, user=stamped.submitter, groups=groups)
        return _why_not(await self._simulator.simulate(arguments))

    async def _start(self, job: ElasticJob, size: int, refused: Sequence[str]) -> bool:
        if not await self._jobs.start(job, size):
            return False  # its owner has changed it: it is read again in the next step
        why = f": {'; '.join(refused)}" if refused else ""
        told = f"resumed with {count_of(size, 'member')} of {job.sizes[0]}{why}"
        self._tell(job, "SizeChosen", told)
        metadata = job.job["metadata"]
        subject = f"{metadata['namespace']}/{metadata['name']}"
        details: dict[str, Any] = {"members": size, "asked": job.sizes[0]}
        self._cluster.journal.note(RowKind.RELEASE, subject, "resized", told, details=details)
        return True

    def _tell(self, job: ElasticJob, reason: str, message: str) -> None:
        event = Event.about(job.job, reason=reason, message=message, is_warning=False)
        self._events.write(event)


def _why_not(found: Simulation) -> str | None:
    plan = found.plan
    if isinstance(plan, Place):
        return None
    if plan is None:
        return found.admission.refusal or "its pods would be refused"
    return fact_of(plan if isinstance(plan, Reason) else plan.reason)
