"""Gangs by name: workloads with the same name of a gang are its runs.

The live run is shown whole: of those that have places, the one with bound members, and of several
the youngest; if none has places, the oldest one, and why it waits. The others are listed.
"""

from extender.cells.model import GangView
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.inspection.json_views import JsonObject, if_any, show_gang, show_lease
from extender.inspection.waiting_view import WaitingView
from policy.submission import GangKey, PodUid


class GangRuns:
    """Finds the runs of a gang; changes nothing."""

    def __init__(self, *, cluster: Cluster, pods: PodSink, waiting: WaitingView) -> None:
        self._cluster = cluster
        self._pods = pods
        self._waiting = waiting

    async def show(self, namespace: str, name: str) -> JsonObject | None:
        """Show the live run of a gang and list the others; None if no run has pods.

        Without a run that has places, it is the oldest one that waits. A name that ends with `@`
        and the UID of a workload names one run.
        """
        exact = GangKey.from_stored(namespace, name)
        runs = [exact] if exact.owner else self._pods.runs_of(exact)
        views = {key: view for key in runs if (view := self._cluster.gang(key)) is not None}
        if exact not in views and (view := self._cluster.gang(exact)) is not None:
            views[exact] = view
        waiting = [key for key in runs if key not in views and self._pods.of_gang(key)]
        if not views and not waiting:
            return None
        if views:
            live = max(views, key=lambda key: (bool(views[key].bound), self._age(key), key))
            shown = self.show_gang(views[live])
        else:
            live = min(waiting, key=lambda key: (self._age(key), key))
            shown = self._show_other(live, None)
        others = [key for key in sorted({*runs, *views}) if key != live]
        return {
            **shown,
            **self._owner(live),
            **(await self._why(live)),
            "otherRuns": [self._show_other(key, views.get(key)) for key in others],
        }

    def show_gang(self, gang: GangView) -> JsonObject:
        """Show a gang that holds or reserves leaf cells, its members by name."""
        return {**show_gang(gang, self._name_of), "size": self._size(gang)}

    def show_lease(self, gang: GangView) -> JsonObject:
        """Show the places that a gang holds and has not bound yet."""
        return show_lease(gang, self._name_of)

    def _size(self, gang: GangView) -> int:
        """Return how many members a gang has, those without leaf cells and those that are done too.

        The cells know only the members for which they have places.
        """
        stated = (pod.gang.size for pod in self._pods.of_gang(gang.gang))
        helpers = len(self._pods.helpers.of_gang(gang.gang))
        return next(filter(None, stated), gang.size + helpers)

    def _name_of(self, uid: PodUid) -> str | None:
        pod = self._pods.get(uid)
        return pod.display_name if pod is not None else None

    async def _why(self, key: GangKey) -> JsonObject:
        """Say why members of a gang wait, if some do."""
        entries = filter(None, map(self._waiting.of_pod, self._pods.of_gang(key)))
        entry = next(entries, None)
        if entry is None:
            return {}
        return {"waiting": self._waiting.show(entry, await self._waiting.places())}

    def _age(self, key: GangKey) -> float:
        return max((pod.created for pod in self._pods.of_gang(key)), default=0.0)

    def _owner(self, key: GangKey) -> JsonObject:
        workloads = [pod.workload for pod in self._pods.of_gang(key) if pod.workload is not None]
        workload = workloads[0].reference if workloads and key.owner else None
        return {**if_any("workload", workload), **if_any("uid", key.owner or None)}

    def _show_other(self, key: GangKey, view: GangView | None) -> JsonObject:
        return {
            "gang": str(key),
            **self._owner(key),
            "state": view.state if view else "waiting",
            "pods": len(self._pods.of_gang(key)) + len(self._pods.helpers.of_gang(key)),
            "bound": len(view.bound) if view else 0,
        }
