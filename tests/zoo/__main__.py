"""The command: `python -m tests.zoo --minutes 30 --seed 7 --without cronjob,node`."""

import argparse
import asyncio
import logging
import sys
from pathlib import Path

from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.zoo import surroundings
from tests.zoo.report import Report
from tests.zoo.run import DISTURBANCES, KINDS, ZooSettings, run_zoo

LOGS = Path("build") / "zoo-logs"


async def _run(settings: ZooSettings) -> Report:
    programs = binaries.find_or_build()
    async with ControlPlane(programs, surroundings.options(programs)) as plane:
        try:
            report = await run_zoo(plane, settings)
        except BaseException:
            plane.processes.collect_logs(LOGS)
            raise
        if not report.is_good:
            plane.processes.collect_logs(LOGS)
            (LOGS / "report.txt").write_text("\n".join(report.lines()) + "\n")
        return report


def main() -> int:
    """Run, print the report, and return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.zoo", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="how long workloads arrive")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settle-seconds", type=float, default=150.0)
    names = ", ".join((*KINDS, *DISTURBANCES))
    parser.add_argument("--without", default="", metavar="NAMES", help=f"of: {names}")
    parser.add_argument("--only", default="", metavar="KINDS", help="leave out all other kinds")
    options = parser.parse_args()
    without = set(filter(None, options.without.split(",")))
    if unknown := without - {*KINDS, *DISTURBANCES}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {names}")
    if options.only:
        without |= KINDS.keys() - set(options.only.split(","))
    settings = ZooSettings(
        seed=options.seed,
        arrival_seconds=options.minutes * 60,
        settle_seconds=options.settle_seconds,
        without=frozenset(without),
    )
    logging.disable(logging.WARNING)  # of the database server that runs in this process
    report = asyncio.run(_run(settings))
    print("\n".join(report.lines()))
    if not report.is_good:
        print(f"a promise was broken; the logs are in {LOGS}")
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
