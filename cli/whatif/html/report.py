"""The report on two runs of the same arrivals, as one HTML file."""

from typing import Final

from cli.whatif.html.frame.markup import Markup, join, tag
from cli.whatif.html.frame.page import Section, format_page
from cli.whatif.html.sections.cluster import format_cluster
from cli.whatif.html.sections.gangs import format_gains, format_others
from cli.whatif.html.sections.impact import format_impact
from cli.whatif.html.sections.summary import format_summary, headline
from cli.whatif.html.sections.use import format_use
from cli.whatif.html.sections.waits import format_waits
from timemachine.comparison import Comparison

_UNKNOWN: Final = (
    "Users would have behaved differently: shorter waits invite more work, longer waits less.",
)


def format_html(comparison: Comparison) -> str:
    """Build the report. Equal comparisons give equal bytes."""
    return format_page(
        title="Cellgate what-if",
        headline=headline(comparison),
        subtitle=tag("p", *_subtitle(comparison), class_="span"),
        sections=(
            Section("summary", "Summary", format_summary(comparison)),
            Section("waits", "Waits", format_waits(comparison)),
            Section("use", "Use over time", format_use(comparison)),
            Section(
                "gains",
                "Who gains and who loses",
                join((format_impact(comparison), format_gains(comparison))),
            ),
            Section("others", "What else changed", format_others(comparison)),
            Section("cluster", "The cluster", format_cluster(comparison)),
            Section("unknown", "What a simulation cannot know", _unknown(comparison)),
        ),
    )


def _subtitle(comparison: Comparison) -> list[Markup]:
    """Name what was changed, as far as it fits into a line or two."""
    first, *rest = comparison.changed or ("nothing",)
    more = f" and {len(rest):,} more" if rest else ""
    return [join(("What changed: ", tag("bdi", first), more, "."))]


def _unknown(comparison: Comparison) -> Markup:
    told = comparison.unknown or _UNKNOWN
    return tag("ul", *(tag("li", tag("bdi", line)) for line in told))
