"""Numbers in words, for tables."""

from collections.abc import Iterator, Sequence

from policy.queues.durations import format_duration


def duration(seconds: float) -> str:
    """Write a wait; below a second there is none."""
    return format_duration(seconds)


def share(part: float) -> str:
    """Write a share as a percentage."""
    return f"{part:.1%}".replace("%", " %")


def table(rows: Sequence[Sequence[str]], *, indent: int = 2) -> Iterator[str]:
    """Align the columns of a table: the first to the left, all others to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        first, *others = (
            text.ljust(width) if place == 0 else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield (" " * indent + "  ".join((first, *others))).rstrip()
