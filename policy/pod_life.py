"""`PodLife`: when a pod was created, bound, started and ended, and what its status says about that.

`kube.lives.pod_lives` reads it from a pod. Times are seconds since 1970; None if not known.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Disruption:
    """The condition `DisruptionTarget` of a pod: some program ended it, or is about to."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLife:
    """What a pod says about its own life."""

    created: float
    bound: float | None = None
    """When it was given its node."""
    started: float | None = None
    """When its first container ran."""
    asked_to_end: float | None = None
    """When it was deleted; its grace period may go on."""
    finished: float | None = None
    """When its last container ended, if it has succeeded or failed."""
    has_succeeded: bool = False
    has_failed: bool = False
    status_reason: str = ""
    """Why it has its phase, in one word: `Evicted`, `DeadlineExceeded`, …"""
    failure: str = ""
    """How its first container that failed ended."""
    disruption: Disruption | None = None
    restarts: int = 0
    """Restarts of its containers."""
    image: str = ""
    """The image of its first container."""
    estimate_seconds: int | None = None
    """How long its owner expects it to run."""
    limit_seconds: int | None = None
    """How long it may run at most."""
    deadline_seconds: int | None = None
    """How long its workload may take at most, its wait included."""

    @property
    def has_finished(self) -> bool:
        """Whether it has succeeded or failed: it holds no devices."""
        return self.has_succeeded or self.has_failed
