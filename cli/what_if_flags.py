"""The flags of `cellgate what-if`."""

from collections.abc import Mapping
from typing import Final

from cli.options import Options
from cli.shared_flags import add_general, add_sources

WHAT_IF: Final = """\
Play gangs of the past, of a trace, or generated ones twice: as it was, and with
other policies, another Cluster document or more nodes. Both sides are compared:
waits, who is refused, lowered or preempted, and how the cluster is used. The
product's own rules, quotas, planner and engine decide; nothing is changed.

With --goal, it says how many nodes bring a wait below a limit.

The exit code is 0 after a play, 1 if documents or a trace have problems or the
goal is not reached, and 2 if the call is wrong.

Examples:
  cellgate what-if --from 7d --policy queues.yaml
  cellgate what-if --from 7d --nodes +16:A100 --html report.html
  cellgate what-if --from 7d --nodes +64:A100 --goal vc=lab,p95=2h
  cellgate what-if --trace philly.csv --before rules.yaml --policy new-rules.yaml"""


def add_what_if(options: Options, environment: Mapping[str, str]) -> None:
    """Add what differs, where the gangs are from, and what is printed."""
    options.begin("What differs")
    about = "Documents that replace those of the same kind"
    options.add_files("--policy FILE…", about)
    options.add("--cluster FILE", "Another Cluster document")
    about = "Add nodes like those of a leaf type, such as +16:A100,+4:H100"
    options.add("--nodes +N:TYPE,…", about)
    about = "Find how many of --nodes are enough, such as vc=lab,p95=2h"
    options.add("--goal GOAL", about)
    add_sources(options, environment)
    about = "Documents of the first side, instead of those in the log"
    options.add_files("--before FILE…", about)
    options.begin("Flags")
    about = "Also play each VC alone with its promise: who waits longer among others?"
    options.add_switch("--alone", about)
    options.add_switch("--json", "Print JSON")
    options.add("--html FILE", "Write a report with pictures, too")
    add_general(options, log_level="warning")
