"""Simulated users that submit gangs through the API and keep the cluster busy.

The gangs, their users and their order depend on the seed only. The time of submission depends on
the cluster too: no gang is submitted while demand is at its limit or too many pods exist, and a
pod that has waited too long is deleted.
"""

import asyncio
import itertools
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import aiohttp
import orjson

from simulation.kubelet import RUN_SECONDS
from simulation.objects.fields import Object, parse_time
from simulation.objects.identity import Tokens, User
from simulation.objects.pods import FINISHED
from simulation.scheduler import CELLGATE_SCHEDULER

logger = logging.getLogger(__name__)

_GANG, _GANG_SIZE, _VC = "cellgate.io/gang", "cellgate.io/gang-size", "cellgate.io/vc"
_USER = "simulation.cellgate.io/person"
"""Label: the simulated user of a pod. Pods without it, created by hand, are ignored."""
_LEAF_RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedUser:
    """A user with their namespace, VC and usual classes."""

    user: User
    namespace: str
    vc: str
    classes: tuple[str, ...]


def _user(name: str, vc: str, *classes: str) -> SimulatedUser:
    return SimulatedUser(user=User(name=name, groups=(vc,)), namespace=vc, vc=vc, classes=classes)


USERS = (
    _user("alice", "vision", "prod", "prod", "test"),
    _user("bob", "vision", "test", "oppo"),
    _user("carol", "speech", "prod", "test", "oppo"),
    _user("dave", "lab", "test", "oppo", "oppo"),
)
_BY_NAME = {one.user.name: one for one in USERS}
# Members, leaf cells of each member, and frequency: small gangs are common, large ones wait.
_SHAPES = ((1, 1, 6), (1, 2, 3), (1, 4, 3), (1, 8, 3), (2, 4, 2), (2, 8, 2), (4, 8, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedGang:
    """One gang to be submitted."""

    submitter: SimulatedUser
    name: str
    class_name: str
    members: int
    leaf_count: int
    """Leaf cells of each member."""
    run_seconds: float
    pause_seconds: float
    """The pause before the gang is submitted."""
    demand_limit: float
    """The highest demand, relative to the size of the cluster, at which it is submitted."""


def plan_gangs(
    rng: random.Random, *, leaf_per_node: int, leaf_total: int
) -> Iterator[SimulatedGang]:
    """Yield gangs without end."""
    shapes = [s for s in _SHAPES if s[1] <= leaf_per_node and 2 * s[0] * s[1] <= leaf_total]
    for number in itertools.count(1):
        submitter = rng.choice(USERS)
        members, leaf_count, _ = rng.choices(shapes, weights=[shape[2] for shape in shapes])[0]
        yield SimulatedGang(
            submitter=submitter,
            name=f"{submitter.user.name}-{number}",
            class_name=rng.choice(submitter.classes),
            members=members,
            leaf_count=leaf_count,
            run_seconds=round(rng.uniform(20, 90), 1),
            pause_seconds=rng.uniform(0.2, 1.5),
            demand_limit=rng.uniform(0.85, 1.10),
        )


def build_pod(gang: SimulatedGang, member: int) -> Object:
    """Build one member of a gang, as its user would write it."""
    labels = {_GANG: gang.name, _GANG_SIZE: str(gang.members), _VC: gang.submitter.vc}
    labels[_USER] = gang.submitter.user.name
    limits = {_LEAF_RESOURCE: str(gang.leaf_count)}
    container = {"name": "main", "image": "simulated", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{gang.name}-{member}",
            "labels": labels,
            "annotations": {RUN_SECONDS: str(gang.run_seconds)},
        },
        "spec": {
            "schedulerName": CELLGATE_SCHEDULER,
            "priorityClassName": gang.class_name,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }


class Users:
    """Submits gangs to an API server, one after another, at a limited rate."""

    def __init__(
        self,
        url: str,
        session: aiohttp.ClientSession,
        *,
        tokens: Tokens,
        leaf_total: int,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        most_pods: int = 60,
        patience_seconds: float = 180.0,
    ) -> None:
        self._url = url
        self._session = session
        self._tokens = tokens
        self._leaf_total = leaf_total
        self._now = now
        self._sleep = sleep
        self._most_pods = most_pods
        self._patience_seconds = patience_seconds

    async def run(self, gangs: Iterator[SimulatedGang]) -> None:
        """Submit all gangs."""
        for gang in gangs:
            await self._sleep(gang.pause_seconds)
            while not await self._has_room(gang):
                await self._sleep(1.0)
            await self.submit(gang)

    async def submit(self, gang: SimulatedGang) -> bool:
        """Create all members; delete them if one is refused."""
        for member in range(gang.members):
            pod = build_pod(gang, member)
            refusal = await self._send("POST", gang.submitter, body=pod)
            if refusal is not None:
                logger.info("gang refused", extra={"gang": gang.name, "reason": refusal})
                for created in range(member):
                    await self._send("DELETE", gang.submitter, name=f"{gang.name}-{created}")
                return False
        logger.info("gang submitted", extra={"gang": gang.name, "vc": gang.submitter.vc})
        return True

    async def _send(
        self, method: str, submitter: SimulatedUser, *, name: str = "", body: Object | None = None
    ) -> str | None:
        """Send a request as a user; return the message of the API server if it refuses."""
        path = f"{self._url}/api/v1/namespaces/{submitter.namespace}/pods/{name}".rstrip("/")
        token = self._tokens.issue(submitter.user)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else orjson.dumps(body)
        try:
            async with self._session.request(method, path, data=data, headers=headers) as response:
                answer = orjson.loads(await response.read())
                return str(answer.get("message")) if response.status >= 300 else None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as exc:
            return repr(exc)

    async def _has_room(self, gang: SimulatedGang) -> bool:
        pods = await self._live_pods()
        await self._take_back(pods or ())
        if pods is None or len(pods) + gang.members > self._most_pods:
            return False
        demand = sum(_leaf_count(pod) for pod in pods) + gang.members * gang.leaf_count
        return not pods or demand <= gang.demand_limit * self._leaf_total

    async def _live_pods(self) -> Sequence[Object] | None:
        """Return the pods that have not ended; None if the API server does not answer."""
        query = {"labelSelector": _USER}
        try:
            async with self._session.get(f"{self._url}/api/v1/pods", params=query) as response:
                pods = orjson.loads(await response.read())["items"]
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError) as exc:
            logger.warning("cannot list pods", extra={"error": repr(exc)})
            return None
        return [pod for pod in pods if pod["status"]["phase"] not in FINISHED]

    async def _take_back(self, pods: Sequence[Object]) -> None:
        """Delete the pods that have waited too long."""
        for pod in pods:
            waited = self._now() - parse_time(pod["metadata"]["creationTimestamp"])
            if not pod["spec"].get("nodeName") and waited > self._patience_seconds:
                submitter = _BY_NAME[pod["metadata"]["labels"][_USER]]
                await self._send("DELETE", submitter, name=pod["metadata"]["name"])


def _leaf_count(pod: Object) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["limits"][_LEAF_RESOURCE])
