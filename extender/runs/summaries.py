"""Times, sizes and nodes of a run, from its pods."""

from dataclasses import dataclass

from extender.runs.model import NEVER, Run, RunOwner, RunPod


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What the pods of a run amount to. Times are None if they have not come."""

    owner: RunOwner
    leaf_type: str | None
    """The type of its devices, else the one that was asked for; several are joined by commas."""
    leaf_count: int
    """The most leaf cells of pods that existed at one time."""
    member_count: int
    """The most pods that existed at one time."""
    restarts: int
    image: str
    estimate_seconds: int | None
    limit_seconds: int | None
    asked: float
    admitted: float | None
    released: float | None
    held_from: float | None
    bound: float | None
    """When the last member that is needed for a start was bound."""
    started: float | None
    ended: float | None
    nodes: tuple[str, ...]


def summarise(run: Run) -> RunSummary:
    """Sum up a run."""
    pods = sorted(run.pods.values(), key=lambda pod: (pod.seen.life.created, pod.seen.uid))
    with_cells = [pod for pod in pods if pod.seen.leaf_count] or pods
    about = with_cells[-1].seen
    bounds = sorted(pod.seen.life.bound for pod in pods if pod.seen.life.bound is not None)
    held = [pod.seen.life.bound for pod in with_cells if pod.seen.life.bound is not None]
    starts = sorted(pod.started for pod in pods if pod.started is not None)
    leaf_count, member_count = _most_at_once(pods)
    ends = [pod.ended for pod in pods if pod.ended is not None]
    return RunSummary(
        owner=about.owner,
        leaf_type=",".join(_leaf_types(pods)) or about.owner.leaf_type,
        leaf_count=leaf_count,
        member_count=member_count,
        restarts=sum(pod.seen.life.restarts for pod in pods) + len(pods) - member_count,
        image=about.life.image,
        estimate_seconds=about.life.estimate_seconds,
        limit_seconds=about.life.limit_seconds,
        asked=pods[0].seen.life.created,
        admitted=run.admitted,
        released=run.released,
        held_from=min(held, default=None),
        bound=_nth(bounds, about.needed),
        started=_nth(starts, about.needed),
        ended=max(ends) if run.has_ended else None,
        nodes=tuple(sorted({pod.seen.node for pod in pods if pod.seen.node})),
    )


def _nth(times: list[float], needed: int) -> float | None:
    return times[needed - 1] if 0 < needed <= len(times) else None


def _leaf_types(pods: list[RunPod]) -> list[str]:
    return sorted({pod.seen.leaf_type for pod in pods if pod.seen.leaf_type})


def _most_at_once(pods: list[RunPod]) -> tuple[int, int]:
    """Return the most leaf cells, and the most pods, that were there at one time."""
    changes: list[tuple[float, int, int]] = []
    for pod in pods:
        created = pod.seen.life.created
        changes.append((created, 1, pod.seen.leaf_count))
        if pod.left != NEVER:
            # A pod that ends in the second of its creation was there.
            changes.append((max(pod.left, created + 0.5), -1, -pod.seen.leaf_count))
    cells = most_cells = count = most = 0
    for _, pods_more, cells_more in sorted(changes):
        count, cells = count + pods_more, cells + cells_more
        most, most_cells = max(most, count), max(most_cells, cells)
    return most_cells, most
