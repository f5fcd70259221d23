"""Assigns pods to runs, and tells which runs changed.

    pod appears ──▶ joins the run of its gang that it overlaps with, else begins one
    pod ends    ──▶ the last one of its run ends the run
    run ended   ──▶ kept until it is known to be recorded

A pod *overlaps* with a run if it was created before the run's pods had left, and left after the
run began. A pod has left when it has ended, or when it was told to end: a controller creates the
next pods while those of the last attempt are still ending. A preempted gang ends as a whole, so the
first of its pods that was preempted ends the run for pods that are created later. A pod that
overlaps with two runs shows that they are one.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from extender.runs.endings import is_taken_down
from extender.runs.model import NEVER, Cause, Run, RunPod, SeenPod
from policy.pod_life import PodLife
from policy.submission import GangKey, PodUid

MOST_ENDED: Final = 20_000
"""Ended runs that are kept until they are known to be recorded."""


class RunBook:
    """The runs of all gangs that have pods, and runs that have ended and may not be recorded."""

    def __init__(self, *, most_ended: int = MOST_ENDED) -> None:
        self._most_ended = most_ended
        self._run_of: dict[PodUid, Run] = {}
        self._of_gang: dict[GangKey, list[Run]] = {}
        self._ended: dict[str, Run] = {}
        self._changed: dict[str, tuple[Run, dict[PodUid, None]]] = {}
        self.dropped = 0
        """Ended runs that were forgotten before they were known to be recorded."""

    def __len__(self) -> int:
        return sum(map(len, self._of_gang.values()))

    def __iter__(self) -> Iterator[Run]:
        return (run for runs in self._of_gang.values() for run in runs)

    @property
    def ended(self) -> list[Run]:
        """Runs that have ended and are not known to be recorded."""
        return list(self._ended.values())

    def knows(self, uid: PodUid) -> bool:
        """Whether a pod belongs to a run that is kept."""
        return uid in self._run_of

    # -- observations

    def see(self, seen: SeenPod, *, now: float) -> None:
        """A pod appeared or changed."""
        run = self._run_of.get(seen.uid)
        before = run.pods[seen.uid] if run is not None else None
        is_ending = seen.life.has_finished or seen.life.asked_to_end is not None
        if run is not None and is_ending:
            seen = replace(seen, gang=run.gang)  # its marks mean nothing new, and are read alone
        if before is not None and before.seen == seen:
            return
        pod = before or RunPod(seen)
        _learn(pod, seen, now=now)
        if run is None or run.gang != seen.gang:
            run = self._assign(pod)
        _learn_steps(run, seen, is_new=before is None, now=now)
        self._touch(run, seen.uid)

    def see_last(self, uid: PodUid, life: PodLife, *, now: float) -> None:
        """A pod is gone; `life` is what it said last."""
        run = self._run_of.get(uid)
        if run is not None:
            self.see(replace(run.pods[uid].seen, life=life), now=now)
            self.lose(uid, now=now, is_presumed=False)

    def retain(self, there: Collection[PodUid], *, now: float) -> None:
        """All other pods are gone; what they said last was not seen."""
        for uid in [uid for uid in self._run_of if uid not in there]:
            self.lose(uid, now=now, is_presumed=True)

    def lose(self, uid: PodUid, *, now: float, is_presumed: bool) -> None:
        """A pod is gone; presumed if its last words were not seen."""
        run = self._run_of.get(uid)
        if run is None or run.pods[uid].gone is not None:
            return
        pod = run.pods[uid]
        pod.gone = now
        pod.is_presumed = is_presumed and pod.finished is None
        self._touch(run, uid)

    def note_cause(self, uid: PodUid, cause: Cause) -> None:
        """Cellgate ends a pod."""
        run = self._run_of.get(uid)
        pod = run.pods[uid] if run is not None else None
        if run is not None and pod is not None and pod.cause is None and not pod.finished_first:
            pod.cause = cause
            self._touch(run, uid)

    def note_admitted(self, gang: GangKey, *, now: float) -> None:
        """A gang that waited for quota was charged."""
        for run in self._of_gang.get(gang, ()):
            if run.admitted is None and not run.has_ended:
                run.admitted = now
                # With a pod: the history finds a run by its pods, whatever its name is here.
                self._touch(run, next(iter(run.pods)))

    def note_victims(self, gangs: Iterable[GangKey], *, preemptor: str) -> None:
        """The engine chose gangs as victims of another one; some program will end them."""
        for gang in gangs:
            for run in self._of_gang.get(gang, ()):
                if not run.has_ended:
                    run.preemptor = preemptor

    # -- records

    def take_changed(self, most: int) -> list[tuple[Run, list[PodUid]]]:
        """Return runs that changed since they were taken last, and which of their pods did.

        At most so many pods are returned; the others later.
        """
        taken: list[tuple[Run, list[PodUid]]] = []
        while self._changed and most > 0:
            name, (run, changed) = next(iter(self._changed.items()))
            pods = list(islice(changed, most))
            most -= len(pods)
            for uid in pods:
                del changed[uid]
            if not changed:
                del self._changed[name]
            run.is_told = True
            taken.append((run, pods))
        return taken

    def mark(self, runs: Iterable[Run]) -> None:
        """Runs are to be taken again, whole."""
        for run in runs:
            self._changed[run.name] = run, dict.fromkeys(run.pods)

    def adopt(self, uid: PodUid, extent: str) -> bool:
        """The history knows so much of a pod's run; if it is more, the run is described again."""
        run = self._run_of.get(uid)
        if run is None or extent <= run.extent:
            return False
        run.known_extent = extent
        self.mark([run])
        return True

    def forget(self, run: Run) -> None:
        """An ended run is recorded."""
        if self._ended.get(run.name) is run:
            self._drop(run)

    # -- runs

    def _assign(self, pod: RunPod) -> Run:
        """Put a pod into the run that it overlaps with, or into a new one."""
        uid, gang = pod.seen.uid, pod.seen.gang
        if uid in self._run_of:
            self._leave(uid)
        found = [run for run in self._of_gang.get(gang, ()) if _overlaps(pod, run)]
        run = found[0] if found else Run(str(uid), gang)
        if not found:
            self._of_gang.setdefault(gang, []).append(run)
        for twin in found[1:]:
            self._join(run, twin)
        run.pods[uid] = pod
        self._run_of[uid] = run
        return run

    def _join(self, run: Run, twin: Run) -> None:
        """Two runs turn out to be one."""
        run.pods |= twin.pods
        for pod in twin.pods.values():
            _index(run, pod)
        run.admitted = _earlier(run.admitted, twin.admitted)
        run.released = _earlier(run.released, twin.released)
        run.was_live = run.was_live or twin.was_live
        run.known_extent = max(run.known_extent, twin.known_extent)
        self._drop(twin)
        self._run_of |= dict.fromkeys(run.pods, run)
        self.mark([run])

    def _leave(self, uid: PodUid) -> None:
        """A pod belongs to another gang than it seemed to."""
        run = self._run_of.pop(uid)
        if len(run.pods) == 1:
            self._drop(run)
            return
        for pods in (run.pods, run.live, run.staying):
            pods.pop(uid, None)
        self._changed.pop(run.name, None)
        self._ended.pop(run.name, None)
        run.name = str(next(iter(run.pods)))
        self.mark([run])

    def _touch(self, run: Run, uid: PodUid) -> None:
        """A run changed; one that was over when it was first seen may be recorded already."""
        _index(run, run.pods[uid])
        has_ended = run.has_ended
        run.was_live = run.was_live or not has_ended
        if run.was_live:
            self._changed.setdefault(run.name, (run, {}))[1][uid] = None
        if not has_ended:
            self._ended.pop(run.name, None)
            return
        self._ended[run.name] = run
        if len(self._ended) > self._most_ended:
            self.dropped += 1
            self._drop(next(iter(self._ended.values())))

    def _drop(self, run: Run) -> None:
        self._ended.pop(run.name, None)
        self._changed.pop(run.name, None)
        for uid in run.pods:
            if self._run_of.get(uid) is run:
                del self._run_of[uid]
        runs = self._of_gang[run.gang]
        runs.remove(run)
        if not runs:
            del self._of_gang[run.gang]


def _learn(pod: RunPod, seen: SeenPod, *, now: float) -> None:
    """Note what a pod says now, and what it may not say again."""
    pod.seen = replace(seen, node=seen.node or pod.seen.node)
    pod.started = _earlier(pod.started, seen.life.started)
    if seen.life.has_finished and pod.finished is None:
        own = seen.life.finished
        pod.finished = max(seen.life.created, now if own is None else min(own, now))
        told = seen.life.asked_to_end
        pod.finished_first = told is None or (own is not None and own < told)


def _learn_steps(run: Run, seen: SeenPod, *, is_new: bool, now: float) -> None:
    """Note when a run was admitted and released; a pod does not say that."""
    if seen.is_admitted and run.admitted is None:
        run.admitted = seen.life.created if is_new else now
    if seen.is_released and run.released is None:
        was_earlier = is_new and seen.life.bound is not None
        run.released = seen.life.bound if was_earlier else now


def _overlaps(pod: RunPod, run: Run) -> bool:
    return pod.seen.life.created < run.left and pod.left > run.began


def _index(run: Run, pod: RunPod) -> None:
    """Bring up to date what a run says of all its pods, without a look at the others."""
    uid, left = pod.seen.uid, pod.left
    run.began = min(run.began, pod.seen.life.created)
    for pods, is_in in ((run.live, pod.ended is None), (run.staying, left == NEVER)):
        if is_in:
            pods[uid] = None
        else:
            pods.pop(uid, None)
    if left != NEVER:
        run.last_left = max(run.last_left, left)
        run.taken_down = min(run.taken_down, left) if is_taken_down(pod) else run.taken_down


def _earlier(one: float | None, other: float | None) -> float | None:
    return min((time for time in (one, other) if time is not None), default=None)
