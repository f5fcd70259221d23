"""The result of a search, as one HTML file with pictures."""

from collections.abc import Mapping, Sequence
from math import isinf
from pathlib import Path

from cli.tune.frontier_picture import format_training, waits
from cli.tune.report import columns_of, date_text, document_text, objective_title
from cli.tune.result import CANNOT_KNOW, Result
from cli.whatif.html.frame.markup import Markup, join, name_of, tag
from cli.whatif.html.frame.page import Section, format_page
from cli.whatif.html.frame.tables import Cell, Column, Content, table
from cli.whatif.html.frame.units import NARROW, Direction, change, direction, duration
from cli.whatif.html.pictures.dumbbells import axis, dumbbells
from cli.whatif.html.pictures.scales import wait_scale
from policy.errors import SettingsError
from timemachine.tuning.bootstrap import Interval
from timemachine.tuning.verdict import Change, Judged, VcChange, Verdict


def save_report(path: Path, result: Result) -> None:
    """Write the report. Raises SettingsError if the file cannot be written."""
    try:
        path.write_text(format_tuning_html(result), encoding="utf-8")
    except OSError as exc:
        raise SettingsError(f"--html: cannot write {path}: {exc.strerror}") from exc


def format_tuning_html(result: Result) -> str:
    """Build the report. Equal results give equal bytes."""
    unknown = (*CANNOT_KNOW, *result.asked.notes)
    best = result.best
    return format_page(
        title="Cellgate tune",
        headline=_headline(result),
        subtitle=tag("p", "Arrivals: ", tag("bdi", result.asked.source), ".", class_="span"),
        sections=(
            Section("judged", "On the judging days", _judged(result)),
            Section("vcs", "Who waits less, who longer", _vcs(result)),
            Section("training", "On the training weeks", format_training(result)),
            Section("document", "The document", _document(best) if best else Markup("")),
            Section("unknown", "What a simulation cannot know", _list(unknown)),
        ),
    )


def _headline(result: Result) -> str:
    if result.verdict is None:
        return "No document was judged: keep the current one."
    if result.best is None:
        return "No document is better than the current one beyond noise: keep the current one."
    found = result.best.changes[result.objective]
    title = objective_title(result.objective, result.asked.large)
    told = change(found.before, found.after)
    return f"With {result.best.candidate.name}, the {title} is {told}."


def _judged(result: Result) -> Markup:
    asked, verdict = result.asked, result.verdict
    days = asked.division.judging
    explained = (
        f"{asked.judged_gangs:,} gangs of {date_text(days.first)} to {date_text(days.last)}. No "
        "document was chosen by these days, so only they decide."
    )
    if verdict is None:
        return tag("p", explained)
    told = f" All intervals hold together with {verdict.confidence * 100:g} % confidence."
    return join((tag("p", explained, told), _finalists(result, verdict)))


def _finalists(result: Result, verdict: Verdict) -> Markup:
    columns = (
        Column("Document", "name"),
        *(
            Column(_capital(objective_title(one, result.asked.large)), "number")
            for one in columns_of(result)
        ),
        Column("VCs worse off", "words"),
    )
    rows: list[list[Content]] = [
        [
            name_of(one.candidate.name),
            *(_with_interval(one.changes[objective]) for objective in columns_of(result)),
            ", ".join(one.worse_vcs) or "none",
        ]
        for one in verdict.finalists
    ]
    return table("finalists", "The finalists on the judging days", columns, rows)


def _with_interval(found: Change) -> Markup:
    """Show an objective before and after, and below it between which parts it differs."""
    if found.part is None:
        return waits(found)
    return join((waits(found), tag("br"), tag("span", _percent(found.part), class_="was")))


def _percent(part: Interval) -> str:
    if isinf(part.low) or isinf(part.high):
        return "interval unknown"
    told = f"{part.low * 100:+.0f} to {part.high * 100:+.0f}{NARROW}%"
    return told.replace("-", "\u2212")


def _vcs(result: Result) -> Markup:
    """Show the VCs under the best document, or under the finalist that training liked best."""
    verdict = result.verdict
    if verdict is None or not verdict.finalists:
        return Markup("")
    judged = result.best or verdict.finalists[0]
    explained = join(("Mean waits by VC under ", name_of(judged.candidate.name), ", judging days."))
    return join((tag("p", explained), _vc_table(judged.vcs)))


def _vc_table(vcs: Mapping[str, VcChange]) -> Markup:
    means = [one.mean for one in vcs.values()]
    scale = wait_scale(value for mean in means for value in (mean.before, mean.after))
    columns = (
        Column("VC", "name"),
        Column(join((tag("span", "Picture", class_="unseen"), axis(scale))), "picture"),
        Column("Mean wait", "number"),
        Column("Difference", "number"),
        Column("Gangs", "number"),
        Column("Judged", "other"),
    )
    rows: list[list[Content]] = [
        [
            name_of(vc or "(none)"),
            dumbbells(scale, [(one.mean.before, one.mean.after)]),
            waits(one.mean),
            _difference(one.mean),
            f"{one.gangs:,}",
            _remark(one),
        ]
        for vc, one in vcs.items()
    ]
    return table("vcs", "Mean waits by VC, before and after", columns, rows)


def _difference(mean: Change) -> Content:
    found = mean.difference
    if isinf(found.low) or isinf(found.high):
        return Cell("unknown", "was")
    return f"{duration(found.low)} to {duration(found.high)}"


def _remark(one: VcChange) -> Content:
    if one.is_worse:
        return Cell("worse off", Direction.MORE)
    if not one.is_judged:
        return Cell("too few gangs", "was")
    kind = direction(one.mean.before, one.mean.after)
    return Cell("waits less", kind) if kind is Direction.LESS else ""


def _document(best: Judged) -> Markup:
    explained = f"It changes {document_text(best.candidate)}. It is never applied by Cellgate."
    text = tag("pre", best.candidate.text, tabindex="0", aria_label="The Queues document")
    return join((tag("p", explained), text))


def _list(lines: Sequence[str]) -> Markup:
    return tag("ul", *(tag("li", tag("bdi", line)) for line in lines))


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]
