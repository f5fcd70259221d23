"""Run times as the product would predict them, where a trace knows VCs and sizes, and no users."""

from typing import Final

from extender.queue.forecast.keys import RunKeys
from timemachine.model import Arrival
from timemachine.planned.run_times import LearnedRunTimes

VC_LABEL: Final = "trace-vc"
"""The label of the trace's VC: in a flat pool all gangs have one VC."""


class AlikeRunTimes(LearnedRunTimes):
    """Compares runs with all others: all gangs are expected to run for the same time."""

    def keys_of(self, arrival: Arrival) -> RunKeys:
        """Return the same keys for every gang."""
        return RunKeys()


class TraceRunTimes(LearnedRunTimes):
    """Compares runs with those of the same VC of the trace."""

    def keys_of(self, arrival: Arrival) -> RunKeys:
        """Return by what a run is compared with earlier ones."""
        return RunKeys(vc=arrival.labels[VC_LABEL], leaf_cells=arrival.leaf_cells)
