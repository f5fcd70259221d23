"""Reads past runs, and teaches them in the order in which they began and ended.

What was forecast for a past run is forecast again, from the runs that had ended before it. So a new
leader knows the errors of forecasts as the last one knew them, whatever release made those.
"""

from collections.abc import Iterable
from typing import Final

from extender.cells.views.listings import Stepwise
from extender.forecasts.run_keys import keys_of
from extender.queue.forecast.run_times import RunTimeBook
from state.history.predictions import PastRun
from state.history.runs import RunHistory

MOST_RUNS: Final = 20_000
_PAGE: Final = 1000


async def read_past_runs(history: RunHistory, *, most: int = MOST_RUNS) -> list[PastRun]:
    """Read the runs that ended last; raises BackendError."""
    found: list[PastRun] = []
    while len(found) < most:
        wanted = min(_PAGE, most - len(found))
        page = await history.past_runs(wanted, before=found[-1] if found else None)
        found += page
        if len(page) < wanted:
            break
    return found


def teach(book: RunTimeBook, runs: Iterable[PastRun]) -> Stepwise[None]:
    """Let a book learn past runs; yields after each step."""
    events: list[tuple[float, bool, str, PastRun]] = []
    for run in runs:
        began, ended = run.started_at.timestamp(), run.ended_at.timestamp()
        events.append((began, False, run.run, run))
        events.append((max(began, ended), True, run.run, run))
    yield
    events.sort(key=lambda event: event[:3])
    yield
    for at, is_end, name, run in events:
        if is_end:
            book.end(name, at=at, is_whole=run.is_whole)
        else:
            book.begin(name, keys_of(run), at=at)
        yield
