"""A pod of a run as it was seen last, and a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from policy.pod_life import PodLife
from policy.submission import GangKey, PodUid

NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOwner:
    """For whom a gang runs, as what, and in which class."""

    user: str
    group: str | None
    vc: str
    requested_class: str | None
    granted_class: str | None
    leaf_type: str | None
    """The type that was asked for, if any."""
    workload: str | None
    """Kind and name of the topmost controller."""
    workload_uid: str | None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPod:
    """A pod as it was seen last."""

    uid: PodUid
    name: str
    gang: GangKey
    owner: RunOwner
    life: PodLife
    node: str | None = None
    leaf_count: int = 0
    leaf_type: str | None = None
    """The type of its node's devices, if known."""
    needed: int = 1
    """How many members are enough for a start."""
    is_admitted: bool = True
    """Whether it does not wait for quota."""
    is_released: bool = False
    """Whether its gate was lifted, or it had none."""


class Ending(StrEnum):
    """How a pod or a run ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PREEMPTED = "preempted"
    EVICTED = "evicted"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class HowEnded:
    """How a pod or a run ended, why, and for which gang."""

    ending: Ending
    why: str = ""
    preemptor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why Cellgate ends a pod."""

    at: float
    why: str


@dataclass(slots=True, eq=False)
class RunPod:
    """A pod of a run, with what was observed beside its own words."""

    seen: SeenPod
    started: float | None = None
    """The earliest start that was seen: a restarted container forgets its first one."""
    finished: float | None = None
    """When it was seen to have finished, or by its own words if that is earlier."""
    finished_first: bool = False
    """Whether it had finished before it was deleted."""
    gone: float | None = None
    """When it was seen to be gone."""
    is_presumed: bool = False
    """Whether it was only found missing: its last words were not seen."""
    cause: Cause | None = None

    @property
    def ended(self) -> float | None:
        """When it ended: it holds no devices from then on."""
        return self.gone if self.finished is None else self.finished

    @property
    def left(self) -> float:
        """When it ended or was told to end: no pod that is created then joins its run."""
        told = self.cause.at if self.cause is not None else None
        times = (self.finished, self.seen.life.asked_to_end, self.gone, told)
        return min((time for time in times if time is not None), default=NEVER)


@dataclass(slots=True, eq=False)
class Run:
    """A run: pods of one gang whose lives overlap."""

    name: str
    """The UID of its first pod."""
    gang: GangKey
    pods: dict[PodUid, RunPod] = field(default_factory=dict)
    admitted: float | None = None
    released: float | None = None
    preemptor: str | None = None
    """The gang for which the engine chose it as a victim."""
    was_live: bool = False
    """Whether a pod of it was seen that had not ended: otherwise it may be recorded already."""
    is_told: bool = False
    """Whether it was described since it began to be followed."""
    known_extent: str = ""
    """The extent that the history knows, if that is beyond the pods that are known here."""

    began: float = NEVER
    """When its first pod was created."""
    live: dict[PodUid, None] = field(default_factory=dict)
    """The pods that have not ended."""
    staying: dict[PodUid, None] = field(default_factory=dict)
    """The pods that have not left."""
    last_left: float = 0.0
    """When the last of the pods that have left did so."""
    taken_down: float = NEVER
    """When the first pod left that was ended together with all others."""

    @property
    def has_ended(self) -> bool:
        """Whether all its pods have ended."""
        return not self.live

    @property
    def extent(self) -> str:
        """When its last pod was created, and how many pods it has: a text that sorts like them.

        It tells which of two descriptions knows more of a run that went on.
        """
        last = max(pod.seen.life.created for pod in self.pods.values())
        return max(f"{last:017.3f} {len(self.pods):06}", self.known_extent)

    @property
    def left(self) -> float:
        """When it ended for pods that are created later."""
        if self.taken_down != NEVER:
            return self.taken_down
        return NEVER if self.staying else self.last_left
