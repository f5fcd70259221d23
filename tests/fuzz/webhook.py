"""`python -m tests.fuzz.webhook [--inputs 100000] [--seed 1]`: hostile reviews over HTTP.

Counts answers by status and outcome. Fails on a 5xx, on an answer that is no review, on a patch
that cannot be applied to the object it is for, and on a webhook that has died or does not answer.
"""

import argparse
import asyncio
import base64
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop

from kube.api.client import connect
from service.runner import RunningService
from service.settings import Address
from simulation.cluster import SimulatedCluster
from simulation.objects.patch import json_patch
from state.log.log import DecisionLog
from tests.fuzz.reviews import Fuzzer
from tests.support.twins.ledger import MemoryLedger
from tests.support.twins.log import MemoryDecisions
from tests.support.twins.usage import MemoryUsage
from webhook.app import WebhookSettings, WebhookState, run_webhook

_POLICIES = {
    "classes": "apiVersion: cellgate.io/v1\nkind: Classes\nclasses: [{name: prod, cellPriority: "
    "100, high: true}, {name: oppo, cellPriority: -1}]\ndefault: prod\n",
    "rules": "apiVersion: cellgate.io/v1\nkind: Rules\nrules:\n- {user: mallory, then: fail}\n"
    "- {priority: prod, occupied: '> 50', then: oppo}\n- {when: \"labels.x == 'y'\", then: fail}\n",
    "quotas": "apiVersion: cellgate.io/v1\nkind: Quotas\ngroups: [{name: vision, admins: [carol], "
    "limits: {leafCells: 100}, over: queue, users: [{name: bob}]}]\n",
    "identity": "apiVersion: cellgate.io/v1\nkind: Identity\nvcs: {lab: {users: [alice, bob]}}\n"
    "templates: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, path: "
    '"spec.pytorchReplicaSpecs.*.template"}]\n',
}
_ANSWER_SECONDS = 30.0
_LANES = 8


class FindingError(Exception):
    """Something that must not happen, with the input that made it happen."""


async def fuzz(inputs: int, *, seed: int) -> Counter[str]:
    """Send inputs to a webhook of its own; return what came back, counted."""
    fuzzer, counts = Fuzzer(seed), Counter[str]()
    numbers = iter(range(inputs))
    async with _webhook() as (service, tls), aiohttp.ClientSession() as http:

        async def work() -> None:
            for _ in numbers:
                path, body, obj = fuzzer.next()
                counts[await _send(http, service.url + path, body, obj, tls)] += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(_LANES):
                group.create_task(work())
        if not service.health.is_ready:
            raise FindingError(f"the webhook is not ready any more: {service.health.reasons()}")
    return counts


async def _send(
    http: aiohttp.ClientSession, url: str, body: bytes, obj: dict[str, Any], tls: ssl.SSLContext
) -> str:
    patience = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
    async with http.post(url, data=body, ssl=tls, timeout=patience) as answer:
        content = await answer.read()
    if answer.status == 503 and b"no answer in time" in content:
        # Whose pod is bound could not be looked up on a busy machine: a failed call, by intention.
        return "not looked up"
    if answer.status >= 500:
        raise FindingError(f"{answer.status} {content!r} for {url} {body!r}")
    if answer.status != 200:
        return str(answer.status)
    response = orjson.loads(content)["response"]
    if "patch" in response and obj:
        steps = orjson.loads(base64.b64decode(response["patch"]))
        try:
            json_patch(obj, steps)
        except Exception as exc:
            raise FindingError(f"{exc!r}: patch {steps} for {url} {body!r}") from exc
    return "allowed" if response["allowed"] else "refused"


@asynccontextmanager
async def _webhook() -> AsyncIterator[tuple[RunningService, ssl.SSLContext]]:
    with tempfile.TemporaryDirectory(prefix="cellgate-fuzz-") as folder:
        directory = Path(folder)
        cluster = SimulatedCluster(nodes=1, policies=_POLICIES)
        await cluster.serve()
        cluster.save_kubeconfig(directory / "kubeconfig")
        ledger, log = MemoryLedger(ttl_seconds=0), DecisionLog(MemoryDecisions())
        settings = WebhookSettings(
            address=Address(host="127.0.0.1", port=0), certificates=directory / "certs"
        )
        async with (
            connect(str(directory / "kubeconfig")) as client,
            run_webhook(
                settings,
                client=client,
                state=WebhookState(log=log, ledger=ledger, usage=MemoryUsage(ledger)),
            ) as service,
        ):
            async with asyncio.timeout(60):
                while not service.health.is_ready:
                    await asyncio.sleep(0.01)
            certificate = str(directory / "certs" / "ca.crt")
            yield service, ssl.create_default_context(cafile=certificate)
        await cluster.close()


def main() -> int:
    """Fuzz as asked for on the command line; 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    try:
        counts = uvloop.run(fuzz(options.inputs, seed=options.seed))
    except ExceptionGroup as found:
        for one in found.exceptions:
            print(one, file=sys.stderr)
        return 1
    print(dict(counts), f"{time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
