"""What holding the bindings of a gang costs: `python -m bench.controlplane.hold_cost`.

The load of `gang_throughput` runs in turn with an extender that holds bindings and with one that
does not. The last line compares the medians: pods per second, and CPU per pod.
"""

import argparse
import asyncio
import sys
from statistics import median

from bench.controlplane.gang_load import GANG_SIZE, UNHELD
from bench.controlplane.gang_throughput import Outcome, measure

_PROCESSES = ("scheduler", "extender")


async def main(arguments: argparse.Namespace) -> None:
    """Measure both in turn, so that both meet the same noise, and print the medians."""
    gangs = arguments.nodes * 8 // 10 // GANG_SIZE
    print(f"{arguments.nodes} nodes, {gangs} gangs of {GANG_SIZE} x 8", flush=True)
    outcomes: dict[str, list[Outcome]] = {"cellgate": [], UNHELD: []}
    for _ in range(arguments.runs):
        for way, measured in outcomes.items():
            measured.append(await measure(way, nodes=arguments.nodes, gangs=gangs))
            print(measured[-1].show(way), flush=True)
    held, unheld = (_medians(measured) for measured in outcomes.values())
    print(f"pods/s with : without holding = {held[0]:.1f} : {unheld[0]:.1f}", end=" ")
    print(f"({held[0] / unheld[0]:.2f}); CPU {1000 * (held[1] - unheld[1]):+.2f} ms a pod")


def _medians(measured: list[Outcome]) -> tuple[float, float]:
    """Return pods per second, and CPU seconds of scheduler and extender per pod."""
    spent = [sum(one.cpu[who] for who in _PROCESSES) / one.pods for one in measured]
    return median(one.pods / one.seconds for one in measured), median(spent)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=496)
    parser.add_argument("--runs", type=int, default=5, help="how often each way is measured")
    sys.exit(asyncio.run(main(parser.parse_args())))
