"""By what runs are compared: the facts of the history, as keys."""

from extender.queue.forecast.keys import RunKeys, name_pattern
from state.history.facts import GangFacts
from state.history.predictions import PastRun


def keys_of(run: GangFacts | PastRun) -> RunKeys:
    """Return the keys of a run: its name is that of its workload, else of its gang."""
    name = (run.workload or run.gang).rpartition("/")[2]
    return RunKeys(
        user=run.user_name or "",
        name=name_pattern(name),
        image=run.image or "",
        vc=run.vc or "",
        leaf_cells=run.leaf_count or 1,
    )
