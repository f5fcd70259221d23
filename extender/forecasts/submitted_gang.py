"""A gang that does not exist: when it would start if its pod were submitted now."""

from collections.abc import Mapping
from typing import Any

from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import GangSizeSource
from extender.forecasts.run_forecasts import FollowedRun
from extender.forecasts.start_forecasts import StartForecasts
from extender.queue.forecast.keys import RunKeys, name_pattern
from kube.lives.pod_lives import read_life
from kube.read.managed_pod import ManagedPod
from service.clock import Clock


class SubmittedGangs:
    """Tells when gangs would start; changes nothing."""

    def __init__(
        self, starts: StartForecasts, *, pods: PodSink, sizes: GangSizeSource, clock: Clock
    ) -> None:
        self._starts = starts
        self._pods = pods
        self._sizes = sizes
        self._clock = clock

    async def expected_start(self, stored: Mapping[str, Any]) -> dict[str, Any] | None:
        """Show when the gang of a pod would start; None if the pod asks for no leaf cells."""
        pod = self._pods.read(dict(stored))
        if pod is None or not pod.leaf_count:
            return None
        return await self._starts.show_would_start(self._to_run(pod, stored))

    def _to_run(self, pod: ManagedPod, stored: Mapping[str, Any]) -> FollowedRun:
        life = read_life(stored)
        size = pod.gang.size or self._sizes.size(pod) or 1
        name = pod.workload.name if pod.workload else pod.gang.key.name
        now = self._clock.now().timestamp()
        return FollowedRun(
            run="",
            gang=pod.gang.key,
            keys=RunKeys(
                user=pod.charged_user,
                name=name_pattern(name),
                image=life.image,
                vc=pod.vc,
                leaf_cells=pod.leaf_count * size,
            ),
            class_name=pod.charged_class or "",
            asked=now,
            started=None,
            estimate=None if life.estimate_seconds is None else float(life.estimate_seconds),
            limit=None if life.limit_seconds is None else float(life.limit_seconds),
            leaf_type=pod.leaf_type,
        )
