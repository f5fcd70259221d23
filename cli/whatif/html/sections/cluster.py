"""The cluster as a whole: use, fragmentation, starvation; VCs that are worse off than alone."""

from collections.abc import Sequence

from cli.whatif.html.frame.markup import Markup, join, name_of, tag
from cli.whatif.html.frame.tables import Cell, Column, Content, table
from cli.whatif.html.frame.units import duration
from cli.whatif.html.sections.pairs import count_pair, share_pair, wait_pair
from timemachine.comparison import Anomaly, Comparison, Side


def format_cluster(comparison: Comparison) -> Markup:
    """Show what holds for the cluster as a whole, with the meaning of each figure."""
    columns = (
        Column("Figure", "name"),
        Column("Before → after", "number"),
        Column("What it is", "words"),
    )
    rows = [[title, pair, explained] for title, pair, explained in _figures(comparison)]
    return join(
        (
            table("cluster", "The cluster as a whole", columns, rows),
            tag("h3", "VCs among others, compared with alone"),
            _format_anomalies(comparison.anomalies),
        )
    )


def _figures(comparison: Comparison) -> Sequence[tuple[str, Markup, str]]:
    before, after = comparison.before, comparison.after
    return (
        (
            "Leaf cells",
            count_pair(before.leaf_cells, after.leaf_cells),
            "The size of the cluster, at most.",
        ),
        (
            "Utilisation",
            _utilisation(before, after),
            "The share of leaf-cell-time in use, from the first arrival to the last.",
        ),
        (
            "Fragmentation",
            share_pair(before.fragmentation, after.fragmentation, is_less_better=True),
            "The average share of idle leaf cells that are not on wholly idle nodes.",
        ),
        (
            "Starvation",
            wait_pair(before.longest_head_wait, after.longest_head_wait),
            "The longest time that one gang was first of its pool and did not start.",
        ),
        *_counts(before, after),
    )


def _utilisation(before: Side, after: Side) -> Markup:
    """A larger cluster is used less without being used worse."""
    is_less_better = False if before.leaf_cells == after.leaf_cells else None
    return share_pair(before.utilisation, after.utilisation, is_less_better=is_less_better)


def _counts(before: Side, after: Side) -> Sequence[tuple[str, Markup, str]]:
    rows = (
        ("Refused", before.refused, after.refused, "Gangs that rules or quotas refused."),
        (
            "Lowered",
            before.lowered,
            after.lowered,
            "Gangs that got a lower class than they asked for.",
        ),
        (
            "Preemptions",
            before.preemptions,
            after.preemptions,
            "How often a running gang was ended.",
        ),
        (
            "Never started",
            before.all.never_started,
            after.all.never_started,
            "Gangs that still waited at the end.",
        ),
    )
    return [
        (title, count_pair(first, second, is_less_better=True), explained)
        for title, first, second, explained in rows
    ]


def _format_anomalies(anomalies: Sequence[Anomaly]) -> Markup:
    if not anomalies:
        return tag("p", "No VC is known to wait longer than alone. The flag --alone compares them.")
    columns = (Column("VC", "name"), Column("Mean wait", "number"), Column("95 of 100", "number"))
    rows: list[list[Content]] = [
        [name_of(one.vc), *(_longer(value) for value in (one.mean_seconds, one.p95_seconds))]
        for one in anomalies
    ]
    caption = "After the change, compared with the VC alone on its promised cells"
    return table("anomalies", caption, columns, rows)


def _longer(seconds: float) -> Cell:
    if seconds >= 0:
        return Cell(f"{duration(seconds)} longer", "more")
    return Cell(f"{duration(-seconds)} shorter", "less")
