"""The checks while the zoo runs, from what the API server says."""

from collections import defaultdict
from dataclasses import dataclass, field

from tests.zoo.gang_watch import GangWatch
from tests.zoo.snapshots import Snapshot, Snapshots, devices, is_bound, is_over


@dataclass(slots=True)
class Observer:
    """Looks at every reading."""

    gangs: GangWatch = field(default_factory=GangWatch)
    crowded: set[str] = field(default_factory=set)
    """Nodes that held more devices than they have, and how many."""
    most_used: int = 0
    """Devices in use at once."""
    readings: int = 0
    longest_pause: float = 0.0
    """Between two readings: what is shorter may have been missed."""
    _last: float | None = None

    def follow(self, snapshots: Snapshots) -> None:
        """Look at every reading from now on."""
        snapshots.on_reading.append(self._observe)

    def _observe(self, snapshot: Snapshot) -> None:
        self.readings += 1
        if self._last is not None:
            self.longest_pause = max(self.longest_pause, snapshot.at - self._last)
        self._last = snapshot.at
        self.gangs.observe(snapshot)
        self._count_devices(snapshot)

    def _count_devices(self, snapshot: Snapshot) -> None:
        used: dict[str, int] = defaultdict(int)
        for pod in snapshot.objects["Pod"].values():
            if is_bound(pod) and not is_over(pod):
                used[pod["spec"]["nodeName"]] += devices(pod)
        for node in snapshot.objects["Node"].values():
            name = node["metadata"]["name"]
            has = int(node["status"].get("allocatable", {}).get("nvidia.com/gpu", 0))
            if used[name] > has:
                self.crowded.add(f"{name} holds {used[name]} devices and has {has}")
        self.most_used = max(self.most_used, sum(used.values()))
