"""`/v1/predictions`: how far predictions of run times and of starts were off.

A caller without the right to read all runs gets the errors of the own ones.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from aiohttp import web

from extender.history.queries import check_known, read_span
from extender.history.turns import HistoryTurns
from extender.inspection.access import OWN_ONLY
from policy.wording import moment
from service.http import json_answer
from state.history.predictions import PredictionError

_PARAMETERS: Final = frozenset({"since", "until"})


class PredictionRoutes:
    """Serves the errors of predictions; changes nothing."""

    def __init__(self, turns: HistoryTurns, *, utc_now: Callable[[], datetime]) -> None:
        self._turns = turns
        self._utc_now = utc_now

    def add_to(self, app: web.Application) -> None:
        """Register the route."""
        app.router.add_get("/v1/predictions", self._predictions)

    async def _predictions(self, request: web.Request) -> web.Response:
        check_known(request.query, _PARAMETERS)
        since, until = read_span(request.query, now=self._utc_now())
        own = request.get(OWN_ONLY)
        async with self._turns.take(request) as history:
            errors = await history.prediction_errors(since, until, user_name=own)
        return json_answer(
            {
                "since": moment(since),
                "until": moment(until),
                "items": [_show(error) for error in errors],
            }
        )


def _show(error: PredictionError) -> dict[str, Any]:
    return {
        "of": error.kind,
        "by": error.key,
        "leafCellsUpTo": error.size,
        "runs": error.runs,
        "medianErrorFactor": round(error.median_factor, 3),
        "withinTwice": round(error.within_twice, 3),
        "covered": None if error.covered is None else round(error.covered, 3),
    }
