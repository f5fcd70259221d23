"""An extender without a database.

Run as `python -m bench.services.lone_extender KUBECONFIG CLUSTER_FILE PORT`.
"""

import asyncio
import sys
from pathlib import Path

import uvloop

from extender.app import run_extender
from extender.settings import ExtenderSettings
from kube.api.client import connect
from service.logs import configure_logs
from service.settings import Address
from state.log.log import DecisionLog
from state.log.records import DecisionRecord
from tests.support.twins.log import MemoryDecisions


class _Forgetting(MemoryDecisions):
    """Takes every row and keeps none: the memory of rows is not the extender's."""

    async def insert(self, records: object) -> list[DecisionRecord]:
        """Forget them; none is refused."""
        return []

    async def recent(self, *_: object, **__: object) -> list[DecisionRecord]:
        """There is nothing."""
        return []


async def _main(kubeconfig: str, cluster_file: str, port: str) -> None:
    configure_logs(level="warning")
    settings = ExtenderSettings(
        address=Address(host="127.0.0.1", port=int(port)),
        cluster_file=Path(cluster_file),
        lease_seconds=3600,
    )
    log = DecisionLog(_Forgetting())
    async with (
        connect(kubeconfig) as client,
        run_extender(settings, client=client, log=log) as extender,
    ):
        extender.supervisor.start("decision log", log.run())
        await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(*sys.argv[1:]))
