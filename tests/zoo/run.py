"""One run of the zoo."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from kube.marks import WORKLOAD_ANNOTATION
from tests.controlplane.cluster import ControlPlane
from tests.support.installed.installation import Installation
from tests.zoo import builtin_kinds, operated_kinds, surroundings
from tests.zoo.disturbances import Disturbances
from tests.zoo.leftovers import find_leftovers
from tests.zoo.lives import Life, RefusedError
from tests.zoo.observer import Observer
from tests.zoo.report import Report
from tests.zoo.snapshots import Snapshots, is_bound, is_live
from tests.zoo.stand_in import StandIn

KINDS: Final[Mapping[str, Callable[[Life], Awaitable[None]]]] = {
    **builtin_kinds.KINDS,
    **operated_kinds.KINDS,
}
DISTURBANCES: Final = ("crash", "drain", "node", "extender", "webhook", "scheduler")
HALF_SECONDS: Final = 10.0
_MOST_DETAILS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooSettings:
    """How long, and what."""

    seed: int
    arrival_seconds: float
    settle_seconds: float = 150.0
    """How long workloads may take after the last arrival: Jobs wait before they retry."""
    without: frozenset[str] = frozenset()
    """Kinds and disturbances that are left out."""
    pause_seconds: float = 1.2
    """Between two arrivals, on average."""
    disturb_seconds: float = 2.5
    most_at_once: int = 14


@dataclass(slots=True)
class _Zoo:
    plane: ControlPlane
    cellgate: Installation
    settings: ZooSettings
    snapshots: Snapshots
    disturbances: Disturbances
    observer: Observer = field(default_factory=Observer)
    lives: list[Life] = field(default_factory=list)
    under_way: dict[asyncio.Task[None], Life] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    async def arrive(self) -> None:
        """Let workloads arrive until the time is over."""
        dice = random.Random(f"{self.settings.seed}/arrivals")
        without = self.settings.without
        if not self.plane.binaries.has_pod_groups:
            without |= {"native"}
        kinds = [kind for kind in KINDS if kind not in without]
        deadline = time.monotonic() + self.settings.arrival_seconds
        turn = 0
        while time.monotonic() < deadline:
            if len(self.under_way) < self.settings.most_at_once:
                if turn % len(kinds) == 0:  # every kind arrives as often as the others
                    dice.shuffle(kinds)
                self._begin(kinds[turn % len(kinds)], turn, dice)
                turn += 1
            await asyncio.sleep(dice.uniform(0.3, 1.7) * self.settings.pause_seconds)

    def _begin(self, kind: str, number: int, dice: random.Random) -> None:
        life = Life(
            kind,
            number,
            api=self.plane.api_as(dice.choice(surroundings.USERS)),
            namespace=dice.choice(list(surroundings.NAMESPACES)),
            snapshots=self.snapshots,
            seed=str(self.settings.seed),
        )
        self.lives.append(life)
        task = asyncio.create_task(self._live(life))
        self.under_way[task] = life
        task.add_done_callback(self.under_way.pop)

    async def _live(self, life: Life) -> None:
        try:
            await KINDS[life.kind](life)
        except RefusedError as error:
            life.outcome = "refused"
            self.refused.append(f"{life.name}: {error}")
        except Exception as error:  # reported; the others go on
            life.outcome = "broken"
            self.broken.append(f"{life.name}: {error!r}")

    async def settle(self) -> list[str]:
        """Wait until every workload has gone; what hangs, and how."""
        deadline = time.monotonic() + self.settings.settle_seconds
        while self.under_way and time.monotonic() < deadline:
            await asyncio.wait(self.under_way, timeout=deadline - time.monotonic())
        hung = [await self._describe(life) for life in list(self.under_way.values())]
        for task in list(self.under_way):
            task.cancel()
        await asyncio.gather(*self.under_way, return_exceptions=True)
        return hung

    async def _describe(self, life: Life) -> str:
        lines = [f"{life.name} in {life.namespace} ({life.class_name}) waits for {life.waits_for}"]
        pods = self.snapshots.latest.pods(life.namespace, life.name)
        for pod in pods[:_MOST_DETAILS]:
            name = pod["metadata"]["name"]
            node, phase = pod["spec"].get("nodeName", "no node"), pod["status"].get("phase")
            gates = ",".join(gate["name"] for gate in pod["spec"].get("schedulingGates") or [])
            workload = (pod["metadata"].get("annotations") or {}).get(WORKLOAD_ANNOTATION)
            lines.append(f"    {name}: {phase}, {node}, {gates or 'no gate'}, of {workload}")
        for job in self.snapshots.latest.objects["Job"].values():
            name = job["metadata"]["name"]
            if name.startswith(life.name):
                told = {key: job["status"].get(key, 0) for key in ("active", "succeeded", "failed")}
                lines.append(f"    Job {name}: {told}, suspend {job['spec'].get('suspend', False)}")
        for pod in [pod for pod in pods if is_live(pod) and not is_bound(pod)][:1]:
            told = await self._ask(f"/v1/explain/{life.namespace}/{pod['metadata']['name']}")
            lines.append(f"    explained: {told}")
        return "\n".join(lines)

    async def _ask(self, path: str) -> Any:
        try:
            told = await self.cellgate.inspect(path)
        except (aiohttp.ClientError, TimeoutError) as error:
            return repr(error)
        return {key: value for key, value in told.items() if key not in ("decisions", "siblings")}

    def failed_jobs(self) -> list[str]:
        """Jobs that failed although their pods failed less often than they tolerate."""
        failed = [life for life in self.lives if life.outcome.startswith("Failed")]
        return [
            f"{life.name} ({life.class_name}): {life.outcome}; crashes "
            f"{self.disturbances.crashes[life.name]}, evictions "
            f"{self.disturbances.evictions[life.name]}, tolerates {life.tolerates}"
            for life in failed
            if self._counted(life) <= life.tolerates
        ]

    def _counted(self, life: Life) -> int:
        crashes = self.disturbances.crashes[life.name]
        return crashes + (0 if life.ignores_disruptions else self.disturbances.evictions[life.name])


async def run_zoo(plane: ControlPlane, settings: ZooSettings) -> Report:
    """Run on a control plane that was started with `surroundings.options`."""
    began = time.monotonic()
    async with surroundings.surroundings(plane) as cellgate:
        snapshots = Snapshots(plane.api)
        zoo = _Zoo(
            plane,
            cellgate,
            settings,
            snapshots,
            Disturbances(
                plane,
                cellgate,
                snapshots=snapshots,
                shape=surroundings.SHAPE,
                seed=str(settings.seed),
            ),
        )
        zoo.observer.follow(snapshots)
        token = await plane.service_account_token(surroundings.OPERATOR_NAMESPACE, "operator")
        operator = StandIn(
            plane.api_with_token(token), snapshots, namespaces=surroundings.NAMESPACES
        )
        background = [asyncio.create_task(snapshots.run()), asyncio.create_task(operator.run())]
        try:
            return await _run(zoo, began)
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)


async def _run(zoo: _Zoo, began: float) -> Report:
    await zoo.snapshots.next()
    disturbing = asyncio.create_task(
        zoo.disturbances.run(
            without=zoo.settings.without, pause_seconds=zoo.settings.disturb_seconds
        )
    )
    try:
        await zoo.arrive()
    finally:
        zoo.disturbances.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await disturbing
    ended = time.monotonic()
    hung = await zoo.settle()
    settled = time.monotonic() - ended
    left = [] if hung else await find_leftovers(zoo.cellgate)
    watch = zoo.observer.gangs
    beyond = [f"{name}: {half:.1f} s" for name, half in watch.beyond(HALF_SECONDS).items()]
    report = Report(seed=zoo.settings.seed, seconds=time.monotonic() - began)
    report.settled_seconds = settled
    report.outcomes.update((life.kind, life.outcome) for life in zoo.lives)
    report.disturbances = zoo.disturbances.done
    report.halves = dict(watch.longest)
    report.gangs, report.most_devices = watch.started, zoo.observer.most_used
    report.longest_pause = zoo.observer.longest_pause
    report.problems = {
        "workloads that hang": hung,
        f"gangs by half for more than {HALF_SECONDS:g} s": beyond,
        "charges and leases left": left,
        "Jobs that failed because of Cellgate": zoo.failed_jobs(),
        "nodes with too many devices": sorted(zoo.observer.crowded),
        "objects refused": zoo.refused,
        "errors of the zoo itself": zoo.broken,
    }
    return report
