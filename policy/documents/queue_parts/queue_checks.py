"""Checks of the Queues document that concern several fields: levels, and the bound of waiting."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from policy.documents.models import entries, items_of, mapping_of, names_given_twice
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.queues.durations import format_duration, parse_duration
from policy.queues.factors import FactorName
from policy.queues.queues import DEFAULT_LONGEST, PRESETS, Strategy
from policy.wording import join_path, listing, quote

_Entry = Mapping[str, Plain]
_LEVELS_OF: Final = {"userLevels": "user", "groupLevels": "group"}


def queue_problems(data: _Entry) -> Iterator[Problem]:
    """Yield all such problems of the raw document; values of a wrong type are skipped."""
    yield from names_given_twice(data, "levels")
    levels = list(entries(data, "levels"))
    last = len(items_of(data, "levels")) - 1
    above: _Entry | None = None
    for place, level in levels:
        yield from _who_problems(level, place, is_last=place == last)
        yield from _formula_problems(level, place)
        yield from _promotion_problems(level, place, above=above)
        above = level
    for key, what in _LEVELS_OF.items():
        yield from _members_twice(mapping_of(data.get(key)), key, what)
    run_time = mapping_of(data.get("runTime"))
    if run_time.get("enforce") is True and not run_time.get("longest"):
        yield Problem("runTime.enforce", "needs runTime.longest: there is no limit to enforce")


def unknown_names(
    levels: Sequence[tuple[Collection[str], Collection[str]]],
    *,
    longest: Collection[str],
    classes: tuple[str, ...],
    vcs: frozenset[str] | None,
) -> Iterator[Problem]:
    """Yield classes and VCs of levels, and classes of run times, that do not exist."""
    known = listing(classes) or "none, because there is no Classes document"
    for place, (level_classes, level_vcs) in enumerate(levels):
        for index, name in enumerate(level_classes):
            if name not in classes:
                path = join_path(("levels", place, "who", "classes", index))
                yield Problem(path, f"{quote(name)} is not one of the classes: {known}")
        for index, name in enumerate(level_vcs):
            if vcs is not None and name not in vcs:
                path = join_path(("levels", place, "who", "vcs", index))
                yield Problem(path, f"{quote(name)} is not one of the VCs {listing(sorted(vcs))}")
    for name in longest:
        if name not in (*classes, DEFAULT_LONGEST):
            path = join_path(("runTime", "longest", name))
            yield Problem(path, f"{quote(name)} is neither default nor one of the classes: {known}")


def _who_problems(level: _Entry, place: int, *, is_last: bool) -> Iterator[Problem]:
    limits = any(value not in (None, "", [], {}) for value in mapping_of(level.get("who")).values())
    path = join_path(("levels", place, "who"))
    if is_last and limits:
        yield Problem(path, "the last level must take every gang; remove `who`, or add a level")
    if not is_last and not limits:
        yield Problem(path, "takes every gang, so that the levels below it get none")


def _formula_problems(level: _Entry, place: int) -> Iterator[Problem]:
    strategy, has_formula = level.get("strategy"), bool(level.get("formula"))
    if has_formula and strategy != Strategy.FORMULA:
        yield Problem(join_path(("levels", place, "formula")), "needs strategy: formula")
    horizon = _horizon(level)
    if strategy == Strategy.FORMULA and horizon is not None and not sum(horizon.values()):
        what = "what a formula gives is clamped to the sum of worth, which is 0"
        yield Problem(join_path(("levels", place, "worth")), f"is required: {what}")


def _promotion_problems(level: _Entry, place: int, *, above: _Entry | None) -> Iterator[Problem]:
    given, path = level.get("promoteAfter"), join_path(("levels", place, "promoteAfter"))
    if place == 0:
        if given is not None:
            yield Problem(path, "has no meaning in the first level: there is no level above")
        return
    if given is None:
        because = "gangs of the levels above could keep a gang of this level waiting without end"
        yield Problem(path, f"is required: {because}")
        return
    after, horizon = _seconds(given), _horizon(above) if above is not None else None
    if after is None or above is None or horizon is None or after >= sum(horizon.values()):
        return
    total = format_duration(sum(horizon.values()))
    terms = " + ".join(f"{name} {format_duration(worth)}" for name, worth in horizon.items())
    shown = terms if len(horizon) == 1 else f"{terms} = {total}"
    yield Problem(
        path,
        f"must be at least {total}, not {format_duration(after)}: the worth of the level above is "
        f"{shown}, so gangs that ask up to {total} later would still go ahead of a promoted gang",
    )


def _horizon(level: _Entry) -> dict[str, float] | None:
    """Return the worth of a level, in seconds; None if it cannot be read."""
    given, strategy = level.get("worth"), level.get("strategy")
    if strategy not in list(Strategy) or not isinstance(given or {}, dict):
        return None
    preset = PRESETS[Strategy(str(strategy))]
    worth: dict[str, float | None] = {name.value: value for name, value in preset.items()}
    for name, text in mapping_of(given).items():
        worth[name] = _seconds(text)
    read = {str(name): value for name in FactorName if (value := worth.get(name))}
    return None if None in worth.values() else read


def _seconds(value: Plain) -> float | None:
    try:
        return parse_duration(value)
    except ValueError:
        return None


def _members_twice(levels: _Entry, key: str, what: str) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for level, members in levels.items():
        for place, name in enumerate(members if isinstance(members, list) else ()):
            path = join_path((key, level, place))
            if isinstance(name, str) and first.setdefault(name, path) != path:
                message = f"{what} {quote(name)} already has a level: {first[name]}"
                yield Problem(path, message)
