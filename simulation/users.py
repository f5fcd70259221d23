"""The people: they submit gangs through the API, as themselves, and keep the cluster busy.

Which gangs come, from whom and in which order depends on the seed alone. When they come depends on
the cluster too: nobody submits while demand is at its limit or too many pods are alive, and whoever
has waited too long takes the gang back.
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
_PERSON = "simulation.cellgate.io/person"
"""Label: who submitted a pod. Pods without it, made by hand, are none of the people's business."""
_LEAF_RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedUser:
    """A user, where they work and what they usually ask for."""

    user: User
    namespace: str
    vc: str
    classes: tuple[str, ...]


def _person(name: str, vc: str, *classes: str) -> SimulatedUser:
    return SimulatedUser(user=User(name=name, groups=(vc,)), namespace=vc, vc=vc, classes=classes)


PEOPLE = (
    _person("alice", "vision", "prod", "prod", "test"),
    _person("bob", "vision", "test", "oppo"),
    _person("carol", "speech", "prod", "test", "oppo"),
    _person("dave", "lab", "test", "oppo", "oppo"),
)
_BY_NAME = {person.user.name: person for person in PEOPLE}
# Members, leaf cells of each, and how often: small gangs are common, large ones are what waits.
_SHAPES = ((1, 1, 6), (1, 2, 3), (1, 4, 3), (1, 8, 3), (2, 4, 2), (2, 8, 2), (4, 8, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedGang:
    """One gang to be submitted."""

    person: SimulatedUser
    name: str
    class_name: str
    members: int
    leaf_count: int
    """Leaf cells of each member."""
    run_seconds: float
    pause_seconds: float
    """How long the people think before they submit it."""
    demand_limit: float
    """The demand, relative to the cluster, up to which they still submit it."""


def plan_gangs(
    rng: random.Random, *, leaf_per_node: int, leaf_total: int
) -> Iterator[SimulatedGang]:
    """All gangs that will ever come, one by one."""
    shapes = [s for s in _SHAPES if s[1] <= leaf_per_node and 2 * s[0] * s[1] <= leaf_total]
    for number in itertools.count(1):
        person = rng.choice(PEOPLE)
        members, leaf_count, _ = rng.choices(shapes, weights=[shape[2] for shape in shapes])[0]
        yield SimulatedGang(
            person=person,
            name=f"{person.user.name}-{number}",
            class_name=rng.choice(person.classes),
            members=members,
            leaf_count=leaf_count,
            run_seconds=round(rng.uniform(20, 90), 1),
            pause_seconds=rng.uniform(0.2, 1.5),
            demand_limit=rng.uniform(0.85, 1.10),
        )


def build_pod(gang: SimulatedGang, member: int) -> Object:
    """One member of a gang, as its submitter would write it."""
    labels = {_GANG: gang.name, _GANG_SIZE: str(gang.members), _VC: gang.person.vc}
    labels[_PERSON] = gang.person.user.name
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
    """Submits planned gangs to an API server, one after the other, at a bearable rate."""

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
        """Submit the gangs until cancelled or through."""
        for gang in gangs:
            await self._sleep(gang.pause_seconds)
            while not await self._has_room(gang):
                await self._sleep(1.0)
            await self.submit(gang)

    async def submit(self, gang: SimulatedGang) -> bool:
        """Create all members; if one is refused, take the others back."""
        for member in range(gang.members):
            pod = build_pod(gang, member)
            refusal = await self._send("POST", gang.person, body=pod)
            if refusal is not None:
                logger.info("gang refused", extra={"gang": gang.name, "reason": refusal})
                for created in range(member):
                    await self._send("DELETE", gang.person, name=f"{gang.name}-{created}")
                return False
        logger.info("gang submitted", extra={"gang": gang.name, "vc": gang.person.vc})
        return True

    async def _send(
        self, method: str, person: SimulatedUser, *, name: str = "", body: Object | None = None
    ) -> str | None:
        """Send a request as a person; what the API server said if it refused."""
        path = f"{self._url}/api/v1/namespaces/{person.namespace}/pods/{name}".rstrip("/")
        token = self._tokens.issue(person.user)
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
        """The pods of all gangs that have not ended; None if nobody answers."""
        query = {"labelSelector": _PERSON}
        try:
            async with self._session.get(f"{self._url}/api/v1/pods", params=query) as response:
                pods = orjson.loads(await response.read())["items"]
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError) as exc:
            logger.warning("cannot list pods", extra={"error": repr(exc)})
            return None
        return [pod for pod in pods if pod["status"]["phase"] not in FINISHED]

    async def _take_back(self, pods: Sequence[Object]) -> None:
        """Delete the members that have waited longer than a person would."""
        for pod in pods:
            waited = self._now() - parse_time(pod["metadata"]["creationTimestamp"])
            if not pod["spec"].get("nodeName") and waited > self._patience_seconds:
                person = _BY_NAME[pod["metadata"]["labels"][_PERSON]]
                await self._send("DELETE", person, name=pod["metadata"]["name"])


def _leaf_count(pod: Object) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["limits"][_LEAF_RESOURCE])
