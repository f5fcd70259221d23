"""Leader election: one of several replicas leads, by a Kubernetes Lease that it keeps renewing.

Three rules keep two replicas from leading at once:

- A follower takes a Lease over only after it saw the Lease unchanged for its whole duration, by its
  own clock: clocks of different machines are never compared.
- A leader counts from the moment *before* it sent the last successful renewal, and stops after
  `renew_within_seconds`, which is shorter than the duration. So it has stopped before another
  replica can start, even if it was suspended in between, since it checks the time before every act.
- Every write names the resource version it was decided on: of two replicas that take over, one
  fails.

`False` means that another replica leads; an error means that the leader is not known, and changes
nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from kube.api.client import MERGE_PATCH, KubeClient, KubeError, Object
from kube.marks import EPOCH_ANNOTATION, LEADER_LABEL

logger = logging.getLogger(__name__)

_API_VERSION = "coordination.k8s.io/v1"
_MISSING = ""
"""The version of a Lease that does not exist."""
_EPOCH_DIGITS = 15
"""Enough milliseconds for ten thousand years. A greater epoch was not written by us, and would not
fit into the database, nor would those after it."""
_MOST_TRANSITIONS = 2**31 - 1
"""The most that the API server accepts; without this limit no replica could lead any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipSettings:
    """The Lease, this replica's identity, and the times."""

    name: str
    namespace: str
    identity: str
    """Unique to this process; a restarted process has another one."""
    duration_seconds: int = 4
    """How long a Lease must stay unchanged before another replica takes it."""
    renew_within_seconds: float = 3.0
    """A leader that could not renew for this long stops."""
    renew_seconds: float = 0.5
    look_seconds: float = 0.5
    """How often a follower reads the Lease; it notices a lost leader up to twice that later."""

    @property
    def path(self) -> str:
        """Where the API server keeps the Lease."""
        return f"{self.collection}/{quote(self.name, safe='')}"

    @property
    def collection(self) -> str:
        """Where Leases are created."""
        return f"/apis/{_API_VERSION}/namespaces/{quote(self.namespace, safe='')}/leases"


@dataclass(frozen=True, slots=True)
class Record:
    """The content of a Lease."""

    holder: str
    version: str
    epoch: int
    transitions: int
    acquired: str | None


def read_record(lease: Mapping[str, Any]) -> Record:
    """Read a Lease that any program may have written."""
    metadata, spec = lease.get("metadata") or {}, lease.get("spec") or {}
    epoch = str((metadata.get("annotations") or {}).get(EPOCH_ANNOTATION, "0"))
    return Record(
        holder=spec.get("holderIdentity") or "",
        version=str(metadata.get("resourceVersion", "")),
        epoch=int(epoch) if epoch.isdecimal() and len(epoch) <= _EPOCH_DIGITS else 0,
        transitions=int(spec.get("leaseTransitions") or 0),
        acquired=spec.get("acquireTime"),
    )


class Observation:
    """How long a Lease has been unchanged, by our own clock."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._since = 0.0

    def is_stale(self, record: Record, *, now: float, duration_seconds: float) -> bool:
        """Whether it stayed unchanged for its whole duration, or has no holder."""
        if record.version != self._version:
            self._version, self._since = record.version, now
        return not record.holder or now - self._since >= duration_seconds

    def is_gone(self, *, now: float, duration_seconds: float) -> bool:
        """Whether a missing Lease has been missing for that long, or was never seen.

        After it was deleted its holder does not know yet, and leads for a while.
        """
        if self._version is None:
            return True
        if self._version != _MISSING:
            self._version, self._since = _MISSING, now
        return now - self._since >= duration_seconds


class Leadership:
    """Acquires leadership and keeps it."""

    def __init__(
        self,
        client: KubeClient,
        settings: LeadershipSettings,
        *,
        monotonic: Callable[[], float],
        utc_now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._settings = settings
        self._monotonic = monotonic
        self._utc_now = utc_now
        self._observation = Observation()
        self._leads_until = float("-inf")
        self._record: Record | None = None
        self.epoch = 0
        """Fencing number of our term; it grows with every change of leader."""
        self.holder = ""
        """The holder of the Lease when it was last read or written; empty if it has none."""

    @property
    def is_leading(self) -> bool:
        """Whether we lead at this moment; check it before every act."""
        return self._monotonic() < self._leads_until

    async def acquire(self, *, on_wait: Callable[[], None] = lambda: None) -> None:
        """Wait until we lead; `on_wait` is called after every attempt that failed."""
        while not await self.attempt():
            on_wait()
            await asyncio.sleep(self._settings.look_seconds)
        logger.info(
            "leadership acquired", extra={"leadership": self._settings.name, "epoch": self.epoch}
        )

    async def keep(self) -> None:
        """Renew until leadership is lost; returns when it is."""
        while self.is_leading:
            await asyncio.sleep(self._settings.renew_seconds)
            await self.attempt()
        logger.warning("leadership lost", extra={"leadership": self._settings.name})

    async def resign(self) -> None:
        """Give up leadership, so that a standby need not wait until the Lease expires."""
        record, self._record = self._record, None
        was_leading, self._leads_until = self.is_leading, float("-inf")
        if not was_leading:
            return
        try:
            if record is None or not await self._give_back(record):
                # We were stopped during a renewal, and it was stored.
                await self._give_back(await self._look())
        except KubeError as exc:
            logger.info("leadership not given up", extra={"error": str(exc)})

    async def _give_back(self, record: Record) -> bool:
        """Remove the holder of the Lease; False if it has changed."""
        if not self._is_ours(record):
            return False
        try:
            await self._write(self._body(record, holder=""))
        except KubeError as exc:
            if not exc.is_conflict:
                raise
            return False
        return True

    async def attempt(self) -> bool:
        """Take or renew the Lease; False if another replica leads or the leader is not known."""
        asked = self._monotonic()
        try:
            # Not `wait_for`: that of Python 3.11 loses a cancellation that comes with the answer.
            async with asyncio.timeout(self._settings.renew_within_seconds):
                record = await self._ask()
        except (KubeError, TimeoutError) as exc:
            logger.warning("leader not known", extra={"error": str(exc) or "no answer in time"})
            return self.is_leading
        if record is None:
            self._leads_until = float("-inf")
            return False
        self._record, self.holder = record, record.holder
        self._leads_until = asked + self._settings.renew_within_seconds
        return self.is_leading

    async def _ask(self) -> Record | None:
        return await self._renew_known() or await self._take()

    async def _renew_known(self) -> Record | None:
        """Renew in one request the Lease that we hold; None if we no longer hold it."""
        record = self._record
        if record is None:
            return None
        try:
            return await self._write(self._body(record, holder=self._settings.identity))
        except KubeError as exc:
            if not (exc.is_conflict or exc.is_missing):
                raise
            self._record = None
            return None

    async def _take(self) -> Record | None:
        """Read the Lease, and take it if it is ours, expired, free or missing."""
        try:
            record = await self._look()
        except KubeError as exc:
            if not exc.is_missing:
                raise
            record = None
        self.holder = record.holder if record else ""
        if not self._may_take(record):
            return None
        try:
            if record is not None and self._is_ours(record):
                return await self._write(self._body(record, holder=record.holder))
            return await self._begin_term(record)
        except KubeError as exc:
            if exc.is_conflict:
                return None
            raise

    async def _look(self) -> Record:
        return read_record(await self._client.request("GET", self._settings.path))

    def _is_ours(self, record: Record) -> bool:
        """Whether our own term goes on: a renewal was stored whose answer did not arrive."""
        return record.holder == self._settings.identity and record.epoch == self.epoch

    def _may_take(self, record: Record | None) -> bool:
        now, duration = self._monotonic(), self._settings.duration_seconds
        if record is None:
            is_gone = self._observation.is_gone(now=now, duration_seconds=duration)
            return is_gone or self.is_leading
        return record.holder == self._settings.identity or self._observation.is_stale(
            record, now=now, duration_seconds=duration
        )

    async def _begin_term(self, record: Record | None) -> Record:
        now = self._utc_now()
        # Also greater than the epochs of a deleted Lease, as far as the clocks agree.
        epoch = max((record.epoch if record else 0) + 1, int(now.timestamp() * 1000))
        mine = Record(
            holder=self._settings.identity,
            version=record.version if record else "",
            epoch=epoch,
            transitions=min(record.transitions + 1, _MOST_TRANSITIONS) if record else 0,
            acquired=_micro_time(now),
        )
        written = await self._write(self._body(mine, holder=mine.holder))
        self.epoch = epoch
        return written

    async def _write(self, body: Object) -> Record:
        if body["metadata"].get("resourceVersion"):
            return read_record(await self._client.request("PUT", self._settings.path, body=body))
        return read_record(await self._client.request("POST", self._settings.collection, body=body))

    def _body(self, record: Record, *, holder: str) -> Object:
        now = _micro_time(self._utc_now())
        return {
            "apiVersion": _API_VERSION,
            "kind": "Lease",
            "metadata": {
                "name": self._settings.name,
                "namespace": self._settings.namespace,
                "annotations": {EPOCH_ANNOTATION: str(record.epoch)},
                **({"resourceVersion": record.version} if record.version else {}),
            },
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": self._settings.duration_seconds,
                "leaseTransitions": record.transitions,
                "acquireTime": record.acquired,
                "renewTime": now,
            },
        }


class LeaderLabel:
    """What the leader writes on its own pod: its epoch, and the label that the Service selects."""

    def __init__(self, client: KubeClient, *, namespace: str, pod: str) -> None:
        self._client = client
        self._pods = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        self._pod = pod

    async def claim(self, epoch: int) -> str | None:
        """Write our epoch on our pod; return its resource version, None if there is no such pod.

        A pod feed that has reached that version has seen all earlier writes to pods.
        """
        body = {"metadata": {"annotations": {EPOCH_ANNOTATION: str(epoch)}}}
        try:
            written = await self._patch(self._pod, body)
        except KubeError as exc:
            if exc.is_missing:
                return None
            raise
        return str(written["metadata"]["resourceVersion"])

    async def move_here(self) -> None:
        """Label our pod, and remove the label from others: a leader that died could not do so."""
        listed = await self._client.request(
            "GET", self._pods, query={"labelSelector": f"{LEADER_LABEL}=true"}
        )
        labelled = [item["metadata"]["name"] for item in listed.get("items") or ()]
        if self._pod not in labelled:
            await self._set(self._pod, "true")
        for name in labelled:
            if name != self._pod:
                await self._take_from(name)

    async def _take_from(self, pod: str) -> None:
        try:
            await self._set(pod, None)
        except KubeError as exc:
            if not exc.is_missing:
                raise

    async def _set(self, pod: str, value: str | None) -> None:
        await self._patch(pod, {"metadata": {"labels": {LEADER_LABEL: value}}})

    async def _patch(self, pod: str, body: Object) -> Object:
        path = f"{self._pods}/{quote(pod, safe='')}"
        return await self._client.request("PATCH", path, body=body, content_type=MERGE_PATCH)


def _micro_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
