"""Kill, restart and rotate everything about the webhook at random while pods are created:
`python -m tests.chaos.webhook --creations 10000 --rate 50`.

A real API server calls three webhooks over one Postgres, as in our manifests. What must hold in the
end: no creation failed that should have passed; every decision is in the log, except those that a
kill caught on their way to a disk, which are counted; the ledger agrees with the pods; no submitter
has exceeded a limit; and no webhook was called for pods that are not managed.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import asyncpg

from policy.errors import BackendError
from state.embedded import EmbeddedPostgres
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.forwarder import Backend, Forwarder
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import CERTS_SECRET, NAMESPACE, Installation
from tests.support.installed.pod_load import Load
from tests.support.state.wire import Wire

REPLICAS = 3
LIMIT = 60
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/{CERTS_SECRET}"
_PODS = "/api/v1/namespaces/default/pods"
_REQUESTS = 'cellgate_http_requests_total{route="/mutate/pods"'
_RULES = f"""
apiVersion: cellgate.io/v1
kind: Rules
rules: [{{user: "^bob$", occupied: "> {LIMIT}", then: fail, note: "enough"}}]
"""
_LOGGED = "SELECT details->>'decision' AS decision FROM decisions WHERE kind = 'admission'"
_HELD = """
    SELECT coalesce(sum(leaf_count), 0) FROM holdings WHERE user_name = 'bob' AND group_name = ''
"""


@contextlib.asynccontextmanager
async def a_webhook_service(
    plane: ControlPlane, http: aiohttp.ClientSession, *, database_url: str
) -> AsyncIterator[Installation]:
    """Install three webhooks behind what stands for their Service."""
    installation = Installation(
        plane,
        http,
        database_url=database_url,
        webhooks=REPLICAS,
        webhook_flags=("--ca-overlap-seconds", "4"),
    )
    backends = [
        Backend(port, f"https://127.0.0.1:{port}/readyz") for port in installation.webhook_ports
    ]
    async with Forwarder(backends, poll_seconds=0.1) as service:
        installation.api_server_asks = f"https://127.0.0.1:{service.port}"
        await installation.install()
        await service.wait_ready(REPLICAS)
        yield installation


class Chaos:
    """One run: faults, one after the other, while pods are created."""

    def __init__(
        self,
        plane: ControlPlane,
        cellgate: Installation,
        *,
        database: EmbeddedPostgres,
        wire: Wire,
        rng: random.Random,
    ) -> None:
        self._plane = plane
        self._cellgate = cellgate
        self._database = database
        self._wire = wire
        self._rng = rng
        self.faults: Counter[str] = Counter()
        self.asked = 0.0
        """Requests that webhooks counted since the beginning."""

    async def run(self, load: Load, *, creations: int, rate: float) -> dict[str, float]:
        """Make a mess while pods are created; AssertionError if something is wrong afterwards."""
        enough = asyncio.Event()
        for replica in range(REPLICAS):
            self.asked -= await self._cellgate.webhook_metric(replica, _REQUESTS)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._rage(until=enough))
            await load.run(creations, rate=rate)
            enough.set()
        return await self._check(load)

    async def _rage(self, *, until: asyncio.Event) -> None:
        faults: dict[str, Callable[[], Awaitable[None]]] = {
            "webhooks restarted": self._restart,
            "webhooks killed": self._kill,
            "databases killed": self._kill_database,
            "databases hung": self._hang_database,
            "networks cut": self._cut,
            "certificates renewed": self._renew_certificate,
            "CAs renewed": self._renew_ca,
        }
        while not until.is_set():
            name = self._rng.choice(sorted(faults))
            await faults[name]()
            self.faults[name] += 1
            await asyncio.sleep(self._rng.uniform(0.2, 1.0))

    async def _restart(self) -> None:
        replica = self._rng.randrange(REPLICAS)
        await self._count(replica)
        await self._cellgate.webhooks[replica].stop(grace_seconds=30)
        await self._cellgate.start_webhook(replica)

    async def _kill(self) -> None:
        replica = self._rng.randrange(REPLICAS)
        await self._count(replica)
        self._cellgate.webhooks[replica].kill()
        await self._cellgate.webhooks[replica].wait(deadline_seconds=10)
        await self._cellgate.start_webhook(replica)

    async def _count(self, replica: int) -> None:
        self.asked += await self._cellgate.webhook_metric(replica, _REQUESTS)

    async def _kill_database(self) -> None:
        os.kill(self._database.pid, signal.SIGKILL)
        with contextlib.suppress(BackendError):
            await self._database.wait_died()
        await asyncio.sleep(self._rng.uniform(0, 2))
        await self._database.start()

    async def _hang_database(self) -> None:
        self._wire.hang()
        await asyncio.sleep(self._rng.uniform(0.5, 3))
        self._wire.mend()

    async def _cut(self) -> None:
        self._wire.cut()

    async def _renew_certificate(self) -> None:
        """Take the serving certificate away: the leader makes another."""
        body = {"data": {"webhook.crt": None, "webhook.key": None}}
        await self._plane.api.patch(SECRET, body)

    async def _renew_ca(self) -> None:
        body = {"metadata": {"annotations": {"cellgate.io/renew": "ca"}}}
        await self._plane.api.patch(SECRET, body)

    async def _check(self, load: Load) -> dict[str, float]:
        for replica in range(REPLICAS):
            await self._count(replica)
        missing = await self._missing_decisions(load)
        held, existing = await self._settled_holdings()
        assert load.counted["failed creations"] == 0, load.failures[-5:]
        assert load.counted["failed calls (other)"] == 0, load.failures[-5:]
        assert not missing, f"{len(missing)} decisions are lost: {missing[:5]}"
        assert self.asked <= load.counted["managed calls"], "others than managed pods reached us"
        await self._check_limit(existing)
        return {
            **load.counted,
            **self.faults,
            "decisions in the log": len(load.decided),
            "reviews counted by webhooks": self.asked,
            "leaf cells that bob holds by the ledger": held,
            **{f"ms: {share}% of creations were faster": _share(load, share) for share in (50, 99)},
        }

    async def _missing_decisions(self, load: Load) -> list[str]:
        """Which decisions are not in the log, once nothing waits to be written."""
        wanted = set(load.decided.values())
        assert "" not in wanted, "a managed pod was created without a decision"

        async def written() -> bool:
            return wanted <= await self._logged()

        with contextlib.suppress(TimeoutError):
            await poll_until(written, deadline_seconds=30, explain=lambda: "rows are missing")
            return []
        return sorted(wanted - await self._logged())

    async def _logged(self) -> set[str]:
        return {row["decision"] for row in await self._fetch(_LOGGED)}

    async def _settled_holdings(self) -> tuple[int, int]:
        """What bob holds by the ledger and by his pods, once they agree."""

        async def agreed() -> tuple[int, int] | None:
            (row,) = await self._fetch(_HELD)
            pods = await self._plane.api.list(_PODS)
            existing = sum("managed-bob" in pod["metadata"]["name"] for pod in pods)
            return (int(row[0]), existing) if int(row[0]) == existing else None

        found = await poll_until(
            agreed, deadline_seconds=120, explain=lambda: "the ledger differs from the pods"
        )
        assert found is not None
        return found

    async def _check_limit(self, existing: int) -> None:
        """One more, and again one more: bob never gets over his limit."""
        bob = self._plane.api_as("bob")
        last = Load(users={"bob": bob}, admin=self._plane.api, pods=_PODS)
        for _ in range(LIMIT + 2):
            await last.create(is_managed=True)
        allowed = max(0, LIMIT - existing)
        told = (last.counted, existing, await self._degraded())
        assert last.counted["created"] == allowed, told

    async def _degraded(self) -> list[float]:
        """How often each webhook decided without the ledger."""
        name = "cellgate_webhook_degraded_decisions_total"
        return [await self._cellgate.webhook_metric(one, name) for one in range(REPLICAS)]

    async def _fetch(self, query: str) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self._database.url)
        try:
            rows: list[asyncpg.Record] = await connection.fetch(query)
            return rows
        finally:
            await connection.close()


def _share(load: Load, percent: int) -> int:
    ordered = sorted(load.seconds)
    return round(ordered[len(ordered) * percent // 100] * 1000)


async def rage(*, creations: int, rate: float, seed: int) -> dict[str, float]:
    """Run chaos on a control plane of its own; return what was counted."""
    async with (
        ControlPlane(binaries.find_or_build()) as plane,
        EmbeddedPostgres(plane.directory / "database") as database,
        Wire(database.url) as wire,
        aiohttp.ClientSession() as http,
        a_webhook_service(plane, http, database_url=wire.url) as cellgate,
    ):
        return await soak(
            plane, cellgate, database=database, wire=wire, creations=creations, rate=rate, seed=seed
        )


async def soak(
    plane: ControlPlane,
    cellgate: Installation,
    *,
    database: EmbeddedPostgres,
    wire: Wire,
    creations: int,
    rate: float,
    seed: int,
) -> dict[str, float]:
    """Rage on what is installed."""
    rules = {"data": {"policy.yaml": _RULES}}
    await plane.api.patch(f"/api/v1/namespaces/{NAMESPACE}/configmaps/cellgate-rules", rules)
    users = {name: plane.api_as(name) for name in ("alice", "bob")}
    load = Load(users=users, admin=plane.api, pods=_PODS)
    chaos = Chaos(plane, cellgate, database=database, wire=wire, rng=random.Random(seed))
    return await chaos.run(load, creations=creations, rate=rate)


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.webhook", description=__doc__)
    parser.add_argument("--creations", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # a killed server has much to say
    print(f"seed {options.seed}")
    counted = asyncio.run(rage(creations=options.creations, rate=options.rate, seed=options.seed))
    for what, number in counted.items():
        print(f"{number:>8g} {what}")


if __name__ == "__main__":
    _main()
