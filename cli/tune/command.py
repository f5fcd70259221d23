"""`cellgate tune`: reads the arrivals, searches, prints what was found, and writes the document."""

import sys
import time
from argparse import Namespace
from collections.abc import Iterable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import orjson

from cli.log.progress import Progress
from cli.log.wanted import read_wanted
from cli.tune.as_json import to_json
from cli.tune.budget import Budget
from cli.tune.evaluate import Given
from cli.tune.html import save_report
from cli.tune.kept import KeptEvaluations, fingerprint
from cli.tune.output import save_document
from cli.tune.report import format_result
from cli.tune.result import Asked, Result, conclude
from cli.tune.search import Search
from cli.tune.wanted import Wanted, read_wanted_search
from cli.tune.workers import Workers
from cli.whatif.output_files import check_output
from cli.whatif.sides import build_sides
from cli.whatif.sources.open import open_source
from cli.whatif.sources.played import Played
from policy.errors import SettingsError, SpecError
from service.exit_codes import Exit
from service.garbage import settle_collector
from service.process import Stop
from timemachine.model import World
from timemachine.tuning.candidates import propose
from timemachine.tuning.document import document_of, level_names
from timemachine.tuning.effects import without_effect
from timemachine.tuning.figures import day_of
from timemachine.tuning.parameters import DEFAULT_SEARCH, Parameter, parse_search
from timemachine.tuning.screening import Screening
from timemachine.tuning.stretches import Division, arrivals_of, divide, draw


async def tune(options: Namespace, _: Stop) -> Exit:
    """Search; exit code 1 if no document is better."""
    wanted, progress = read_wanted_search(options), Progress()
    began = time.monotonic()
    check_output("--html", options.html)
    check_output("--output", wanted.output)
    try:
        request, when = wanted.request, read_wanted(options)
        played = await open_source(request, when, options.database_url, progress)
        sides = build_sides(request, played)
    except SpecError as exc:
        progress.clear()
        _print_lines(exc.problems)
        return Exit.FAILED
    progress.clear()
    _print_lines(f"warning: {warning}" for warning in played.warnings)
    plan = _plan(wanted, played, sides.before)
    settle_collector()
    result = await _search(plan, wanted, progress, began=began)
    progress.clear()
    if options.html is not None:
        save_report(Path(options.html), result)
    if options.json:
        print(orjson.dumps(to_json(result), option=orjson.OPT_INDENT_2).decode())
    else:
        print("\n".join(format_result(result)))
    if result.best is not None and wanted.output is not None:
        save_document(wanted.output, result, now=datetime.now(UTC))
        print(f"cellgate: written: {wanted.output}", file=sys.stderr)
    return Exit.OK if result.best is not None else Exit.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What is searched on which arrivals."""

    played: Played
    world: World
    asked: Asked
    screening: Screening


def _plan(wanted: Wanted, played: Played, world: World) -> _Plan:
    division = _divide(wanted, played)
    tree = document_of(world.policy)
    parameters = _parameters(wanted, level_names(tree))
    unsearched = without_effect(parameters, played.arrivals, world.policy)
    searched = [one for one in parameters if one not in unsearched]
    weeks = draw(division.training, played.arrivals, count=wanted.weeks, seed=wanted.seed)
    current, *others = propose(tree, searched, count=wanted.candidates, seed=wanted.seed)
    return _Plan(
        played=played,
        world=world,
        asked=Asked(
            source=played.source,
            notes=played.notes,
            division=division,
            weeks=weeks,
            judged_gangs=sum(
                one.is_counted for one in arrivals_of(played.arrivals, division.judging)
            ),
            parameters=searched,
            unsearched=unsearched,
            criteria=wanted.criteria,
            large=wanted.large,
            seed=wanted.seed,
        ),
        screening=Screening(current=current, left=others, weeks=weeks, criteria=wanted.criteria),
    )


def _divide(wanted: Wanted, played: Played) -> Division:
    counted = [one.submitted for one in played.arrivals if one.is_counted]
    if not counted:
        raise SettingsError("there are no gangs in that time")
    first, last = day_of(counted[0]), day_of(counted[-1])
    judge_from = wanted.judge_from if wanted.judge_from is not None else (first + last + 1) // 2
    try:
        return divide(first, last, judge_from=judge_from)
    except ValueError as exc:
        raise SettingsError(f"{exc}; there are gangs of {last - first + 1} days") from exc


def _parameters(wanted: Wanted, levels: list[str]) -> list[Parameter]:
    try:
        return parse_search(wanted.allowed or DEFAULT_SEARCH, levels=levels)
    except ValueError as exc:
        raise SettingsError(f"--allow {exc}") from exc


async def _search(plan: _Plan, wanted: Wanted, progress: Progress, *, began: float) -> Result:
    arrivals, large = plan.played.arrivals, plan.asked.large
    common = fingerprint(arrivals, plan.world, large=large)
    kept = KeptEvaluations(common, wanted.resume)
    kept.load()
    given = Given(arrivals=arrivals, world=plan.world, large=large)
    budget = Budget(
        began=began,
        ends=began + wanted.seconds,
        jobs=wanted.jobs,
        clock=time.monotonic,
        gangs=cache(lambda stretch: len(arrivals_of(arrivals, stretch))),
    )
    with Workers(given, jobs=wanted.jobs) as workers:
        search = Search(
            screening=plan.screening,
            judging=plan.asked.division.judging,
            players=workers,
            kept=kept,
            budget=budget,
            tell=progress,
        )
        try:
            found = await search.run()
        except BrokenProcessPool as exc:
            told = "a process ended by itself; there may be too little memory for --jobs"
            raise SettingsError(told) from exc
    return conclude(plan.asked, plan.screening, found)


def _print_lines(lines: Iterable[object]) -> None:
    for line in lines:
        print(line, file=sys.stderr)
