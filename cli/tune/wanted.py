"""What the flags ask for."""

import os
from argparse import Namespace
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cli.whatif.request import Request, read_request
from policy.errors import SettingsError
from policy.queues.durations import DAY, MINUTE
from policy.wording import quote
from timemachine.tuning.criteria import Criteria, Objective

_MOST: Final = {
    "weeks": 520, "candidates": 1000, "seed": 2**31, "minutes": 10_000, "jobs": 1024, "large": 10**6
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to search, on what, and for how long."""

    request: Request
    """Where the gangs are from, and the world that they meet."""
    criteria: Criteria
    allowed: tuple[str, ...]
    """What may be searched; empty for the default."""
    judge_from: int | None
    """The first day to judge on, in days since 1970."""
    large: int
    weeks: int
    candidates: int
    seed: int
    seconds: float
    jobs: int
    resume: Path | None
    output: Path | None


def read_wanted_search(options: Namespace) -> Wanted:
    """Read the flags. Raises SettingsError for one that is wrong."""
    return Wanted(
        request=_read_request(options),
        criteria=_read_criteria(options),
        allowed=tuple(part.strip() for part in (options.allow or "").split(",") if part.strip()),
        judge_from=_read_day(options.judge_from) if options.judge_from else None,
        large=_number(options, "large"),
        weeks=_number(options, "weeks"),
        candidates=_number(options, "candidates"),
        seed=_number(options, "seed"),
        seconds=_number(options, "minutes") * MINUTE,
        jobs=_number(options, "jobs") if options.jobs else len(os.sched_getaffinity(0)),
        resume=Path(options.resume) if options.resume else None,
        output=Path(options.output) if options.output else None,
    )


def _read_request(options: Namespace) -> Request:
    """Read the source; the documents given are those of the one world that is played."""
    only = {"policy": (), "before": options.policy, "cluster": None, "nodes": None, "goal": None}
    return read_request(Namespace(**{**vars(options), **only}))


def _read_criteria(options: Namespace) -> Criteria:
    objectives = tuple(
        _objective("--objectives", one) for one in options.objectives.split(",") if one.strip()
    )
    if not objectives or len(set(objectives)) < len(objectives):
        raise SettingsError("--objectives must name each objective once")
    tolerance = _percent("--vc-tolerance", options.vc_tolerance)
    return Criteria(
        objectives=objectives,
        limits=_read_limits(options.limit) if options.limit else {},
        vc_tolerance=None if options.allow_worse_vcs else tolerance,
    )


def _read_limits(text: str) -> dict[Objective, float]:
    limits: dict[Objective, float] = {}
    for part in text.split(","):
        name, _, percent = part.partition("=")
        limits[_objective("--limit", name)] = _percent("--limit", percent)
    return limits


def _objective(flag: str, name: str) -> Objective:
    try:
        return Objective(name.strip())
    except ValueError:
        known = ", ".join(Objective)
        raise SettingsError(
            f"{flag}: {quote(name)} is not an objective; these are {known}"
        ) from None


def _percent(flag: str, text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = -1.0
    if not 0.0 <= percent <= 1000.0:
        raise SettingsError(f"{flag} must be a number of percent from 0 to 1000, not {quote(text)}")
    return percent / 100.0


def _number(options: Namespace, name: str) -> int:
    text, most = str(getattr(options, name)), _MOST[name]
    least = 0 if name == "seed" else 1
    if not text.isdecimal() or not least <= int(text) <= most:
        what = f"a whole number from {least} to {most}"
        raise SettingsError(f"--{name} must be {what}, not {quote(text)}")
    return int(text)


def _read_day(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        told = f"--judge-from must be a day such as 2026-03-01, not {quote(text)}"
        raise SettingsError(told) from None
    moment = found if found.tzinfo else found.replace(tzinfo=UTC)
    return int(moment.timestamp() // DAY)
