"""The flags of `cellgate tune`."""

from collections.abc import Mapping
from typing import Final

from cli.options import Options
from cli.shared_flags import add_general, add_sources

TUNE: Final = """\
Search for a Queues document under which the same gangs wait less. Many documents
play a few weeks of the past; the better ones play more; the last three play later
days on which nothing was trained, and only these days decide. The best document
is written to --output if it is better than the current one beyond noise and no
VC is worse off. It is never applied.

By default the worths of fairShare, shortRun, smallGang and asked are searched, as
far as gangs differ by them. What says how important a gang is, such as its class,
is searched only with --allow.

The exit code is 0 if a better document was found, 1 if none is better, documents
or a trace have problems, or the time was too short, and 2 if the call is wrong.

Examples:
  cellgate tune --from 8w --output queues.yaml
  cellgate tune --from 8w --allow worth.shortRun=0..96h,reservation.perPool=1..4
  cellgate tune --trace philly.csv --policy cluster.yaml --resume tune.jsonl"""

OBJECTIVES: Final = "mean,large,fairness"
"""All objectives; written out, because help does not wait for modules that play."""
_ALLOW: Final = (
    "What to search, such as worth.shortRun=0..96h, worth.class@LEVEL=1h..7d, runTime.cap=1h..7d; "
    "instead of the default"
)


def add_tune(options: Options, environment: Mapping[str, str]) -> None:
    """Add what is wanted, what may change, where the gangs are from, and how long it may take."""
    options.begin("What is wanted")
    about = "What is to become less; the first one decides"
    options.add("--objectives NAME,…", about, default=OBJECTIVES)
    about = "By how much an objective may become worse, such as large=5"
    options.add("--limit NAME=PERCENT,…", about)
    about = "By how many percent a VC's mean wait may grow, beside one minute"
    options.add("--vc-tolerance PERCENT", about, default="5")
    options.add_switch("--allow-worse-vcs", "Let VCs be worse off")
    options.add("--large N", "Gangs of so many leaf cells are large", default="16")
    options.begin("What may change")
    options.add("--allow FIELD=LOW..HIGH,…", _ALLOW)
    about = "Documents instead of those in the log; the Queues document is the current one"
    options.add_files("--policy FILE…", about)
    add_sources(options, environment)
    options.begin("The search")
    about = "Judge on the days from this one on, such as 2026-03-01 (default the second half)"
    options.add("--judge-from DAY", about)
    options.add("--weeks N", "Weeks of training to play, at most", default="4")
    options.add("--candidates N", "Documents to try besides the current one", default="32")
    options.add("--seed N", "The same seed tries the same documents", default="1")
    options.add("--minutes N", "How long it may take", default="60")
    options.add("--jobs N", "Evaluations at once (default the number of cores)")
    about = "Keep finished evaluations in this file, and do not play them again"
    options.add("--resume FILE", about)
    options.begin("Flags")
    options.add("--output FILE", "Write the best document to this file")
    options.add_switch("--json", "Print JSON")
    options.add("--html FILE", "Write a report with pictures, too")
    add_general(options, log_level="warning")
