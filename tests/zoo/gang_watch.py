"""How long each gang runs by half, and whether that is Cellgate's doing.

A gang is half while some of its members have nodes and, with those that have ended, fewer than it
needs. It is Cellgate's doing if the gang has not been whole since its first member got a node, or
if Cellgate has ended some of its members and not the others. A member that crashed or whose node
went away is not: its controller takes its time, and there may be no room.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.controlplane.api import JsonObject
from tests.zoo.lives import BY_JOB_LABEL, GANG_LABEL, NEED_LABEL
from tests.zoo.snapshots import Snapshot, is_bound, is_live, is_over

START, PREEMPTED, LOST = "at its start", "after a preemption", "after a loss"
_OURS = (START, PREEMPTED)


@dataclass(slots=True)
class _Episode:
    """From the first member that has a node until none has."""

    bound: set[str]
    was_whole: bool = False
    has_lost: bool = False
    was_preempted: bool = False
    half_since: float | None = None

    @property
    def cause(self) -> str:
        if self.was_preempted:
            return PREEMPTED
        return LOST if self.was_whole or self.has_lost else START


@dataclass(slots=True)
class GangWatch:
    """Follows all gangs."""

    longest: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The longest time by half, by cause."""
    halves: dict[str, float] = field(default_factory=dict)
    """Each time by half that was Cellgate's doing, by gang and cause."""
    started: int = 0
    _episodes: dict[str, _Episode] = field(default_factory=dict)

    def observe(self, snapshot: Snapshot) -> None:
        """Take in one reading."""
        gangs: dict[str, list[JsonObject]] = defaultdict(list)
        for pod in snapshot.objects["Pod"].values():
            labels = pod["metadata"].get("labels") or {}
            if GANG_LABEL in labels:
                gangs[_key(pod, labels)].append(pod)
        for key in self._episodes.keys() - gangs.keys():
            del self._episodes[key]
        for key, pods in gangs.items():
            self._observe_gang(key, pods, at=snapshot.at)

    def _observe_gang(self, key: str, pods: list[JsonObject], *, at: float) -> None:
        bound = {_uid(pod) for pod in pods if is_live(pod) and is_bound(pod)}
        if not bound:
            self._episodes.pop(key, None)
            return
        episode = self._episodes.get(key)
        if episode is None:
            episode = self._episodes[key] = _Episode(bound)
            self.started += 1
        succeeded = {_uid(pod) for pod in pods if pod["status"].get("phase") == "Succeeded"}
        episode.has_lost |= bool(episode.bound - bound - succeeded)
        episode.was_preempted |= any(map(_is_preempted, pods))
        episode.bound = bound
        if len(bound) + sum(map(is_over, pods)) >= _need(pods):
            episode.was_whole, episode.half_since, episode.was_preempted = True, None, False
            return
        episode.half_since = at if episode.half_since is None else episode.half_since
        self._note(key, episode.cause, at - episode.half_since)

    def _note(self, key: str, cause: str, seconds: float) -> None:
        self.longest[cause] = max(self.longest[cause], seconds)
        if cause in _OURS:
            name = f"{key} {cause}"
            self.halves[name] = max(self.halves.get(name, 0.0), seconds)

    def beyond(self, seconds: float) -> dict[str, float]:
        """The gangs that ran by half for longer, by Cellgate's doing."""
        return {name: half for name, half in self.halves.items() if half > seconds}


def _key(pod: JsonObject, labels: dict[str, str]) -> str:
    run = labels.get("batch.kubernetes.io/controller-uid", "") if BY_JOB_LABEL in labels else ""
    return f"{pod['metadata']['namespace']}/{labels[GANG_LABEL]}{run and f'/{run}'}"


def _need(pods: Iterable[JsonObject]) -> int:
    return max(int(pod["metadata"]["labels"][NEED_LABEL]) for pod in pods)


def _uid(pod: JsonObject) -> str:
    return str(pod["metadata"]["uid"])


def _is_preempted(pod: JsonObject) -> bool:
    return any(
        condition["type"] == "DisruptionTarget"
        and condition.get("reason") == "PreemptionByScheduler"
        for condition in pod["status"].get("conditions") or []
    )
