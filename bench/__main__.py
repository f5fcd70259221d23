"""`python -m bench NAME [--quick] [--json FILE]`; NAME is a benchmark, or `all`."""

import argparse
import sys
from functools import partial
from pathlib import Path

import orjson

from bench import budgets
from bench.core import (
    blocking,
    engine,
    large_gangs,
    nodes,
    pods,
    replay,
    room,
    rules,
    shadow,
    volume,
    windows,
)
from bench.forecasts import expected_start as starts
from bench.queue import measure as queue
from bench.queue import options as queue_options
from bench.queue import what_if
from bench.report import Benchmark, build_report, format_table
from bench.services import extender, webhook
from bench.state import history, ledger, log

_BENCHMARKS: dict[str, Benchmark] = {
    "blocking": blocking.measure,
    "engine": engine.measure,
    "extender": extender.measure,
    "history": history.measure,
    "gangs": large_gangs.measure,
    "ledger": ledger.measure,
    "log": log.measure,
    "nodes": nodes.measure,
    "pods": pods.measure,
    "queue": partial(queue.measure, options=queue_options.QueueOptions()),
    "replay": replay.measure,
    "room": room.measure,
    "rules": rules.measure,
    "shadow": shadow.measure,
    "starts": partial(starts.measure, options=queue_options.NOTHING_CHOSEN),
    "volume": volume.measure,
    "webhook": webhook.measure,
    "what-if": what_if.measure,
    "windows": windows.measure,
}


def main(argv: list[str]) -> int:
    """Run the benchmarks asked for; 1 if one left its budget."""
    options = _parse(argv)
    benchmarks = {
        **_BENCHMARKS,
        "log": partial(log.measure, rows=options.rows),
        "queue": partial(queue.measure, options=queue_options.from_arguments(options)),
        "starts": partial(starts.measure, options=queue_options.chosen(options)),
    }
    names = list(benchmarks) if options.name == "all" else [options.name]
    reports = []
    exceeded: list[str] = []
    for name in names:
        results = benchmarks[name](is_quick=options.quick)
        reports.append(build_report(name, results))
        print(format_table(name, results), flush=True)
        is_replay = name in ("queue", "starts")
        is_partial = is_replay and queue_options.is_selection(options)
        exceeded += budgets.check(
            f"{name} of a trace" if is_replay and options.trace else name,
            results,
            is_quick=options.quick,
            is_partial=is_partial,
        )
    if options.json:
        content = reports[0] if len(reports) == 1 else reports
        options.json.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    for line in exceeded:
        print(f"over budget: {line}", file=sys.stderr)
    return 1 if exceeded else 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", choices=[*_BENCHMARKS, "all"])
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases, for CI")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    parser.add_argument("--rows", type=int, help="log: ask questions of so many rows")
    queue_options.add_arguments(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
