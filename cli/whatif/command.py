"""`cellgate what-if`: plays both sides, and prints what differs."""

import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from cli.log.progress import Progress
from cli.log.wanted import read_wanted
from cli.whatif.as_json import capacity_json, comparison_json
from cli.whatif.capacity import ask, format_capacity
from cli.whatif.html.capacity import format_capacity_html
from cli.whatif.html.report import format_html
from cli.whatif.output_files import check_output
from cli.whatif.players import Players
from cli.whatif.report import format_comparison
from cli.whatif.request import Request, read_request
from cli.whatif.sides import Sides, build_sides
from cli.whatif.sources.open import open_source
from cli.whatif.sources.played import Played
from policy.errors import SettingsError, SpecError
from policy.queues.durations import format_duration
from service.exit_codes import Exit
from service.garbage import settle_collector
from service.process import Stop
from timemachine.alone import anomaly_of, promised_vcs
from timemachine.compare import compare
from timemachine.comparison import Anomaly, Comparison, Grouping


async def what_if(options: Namespace, _: Stop) -> Exit:
    """Play both sides, or answer the capacity question; problems of documents are printed."""
    request, progress = read_request(options), Progress()
    check_output("--html", options.html)
    settle_collector()
    try:
        played = await open_source(request, read_wanted(options), options.database_url, progress)
        sides = build_sides(request, played)
    except SpecError as exc:
        progress.clear()
        _print_lines(exc.problems)
        return Exit.FAILED
    warnings = (*played.warnings, *sides.warnings)
    _print_lines(f"warning: {warning}" for warning in warnings)
    players = Players(played.arrivals, progress)
    if request.goal is None:
        return await _compare(options, played, sides, players, warnings=warnings)
    return await _ask(options, request, played, sides, players, warnings=warnings)


async def _compare(
    options: Namespace, played: Played, sides: Sides, players: Players, *, warnings: Iterable[str]
) -> Exit:
    worlds = [sides.before, sides.after] if sides.changed else [sides.before]
    runs = await players.play(worlds)
    found = compare(
        runs[0], runs[-1], source=played.source, changed=sides.changed, unknown=played.notes
    )
    anomalies = await _anomalies(found, sides, players) if options.alone else []
    found = replace(found, anomalies=anomalies, unknown=(*found.unknown, *_reality(played, found)))
    if options.html is not None:
        _write(Path(options.html), format_html(found))
    if options.json:
        _print_json(comparison_json(found, [*warnings]))
    else:
        print("\n".join(format_comparison(found)))
    return Exit.OK


async def _anomalies(found: Comparison, sides: Sides, players: Players) -> list[Anomaly]:
    """Play each VC alone with its promise, and return those that wait longer among others."""
    vcs = [vc for vc in promised_vcs(sides.after) if vc in found.after.by[Grouping.VC]]
    if not vcs:
        raise SettingsError("--alone: no VC of these gangs is promised cells after the change")
    runs = await players.play_alone(sides.after, vcs)
    alone = (compare(run, run, source=found.source).after for run in runs)
    judged = (anomaly_of(vc, found.after, side) for vc, side in zip(vcs, alone, strict=True))
    return [one for one in judged if one is not None]


def _reality(played: Played, found: Comparison) -> Iterable[str]:
    """Compare the first side with what was recorded: it shows how far a play can be trusted."""
    if played.mean_wait is not None:
        real, side = format_duration(played.mean_wait), format_duration(found.before.all.mean)
        yield (
            f"In reality the gangs that started waited {real} on average; played as it was, all "
            f"wait {side}."
        )


async def _ask(
    options: Namespace,
    request: Request,
    played: Played,
    sides: Sides,
    players: Players,
    *,
    warnings: Iterable[str],
) -> Exit:
    assert request.goal is not None
    answer = await ask(sides, request.goal, request.added[0], players, source=played.source)
    answer = replace(answer, unknown=(*answer.unknown, *played.notes))
    if options.html is not None:
        _write(Path(options.html), format_capacity_html(answer))
    if options.json:
        _print_json(capacity_json(answer, [*warnings]))
    else:
        print("\n".join(format_capacity(answer)))
    return Exit.OK if answer.enough is not None else Exit.FAILED


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise SettingsError(f"--html: cannot write {path}: {exc.strerror}") from exc


def _print_json(found: dict[str, Any]) -> None:
    print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())


def _print_lines(lines: Iterable[object]) -> None:
    for line in lines:
        print(line, file=sys.stderr)
