"""Tells submitters when their gang is expected to start, as the extender's leader computed it last.

A background task reads the leader's outlook; a review looks it up in memory. What is too old is not
told: without a leader or a database there is no such warning, and pods are admitted all the same.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NoReturn

from policy.admission.gang_decision import PREFIX
from policy.errors import BackendError
from policy.rules.decision import WARNING_CHARS
from policy.submission import ClassName
from policy.wording import moment, plain
from service.clock import Clock
from state.outlook.outlook import Outlook, OutlookEntry, OutlookStore

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 15.0
_READ_SECONDS: Final = 5.0
_VALID_SECONDS: Final = 180.0
"""How long an outlook counts: the leader computes one at least every minute."""
_DAY_SECONDS: Final = 86_400.0

Kind = tuple[str, str]
"""VC and class."""


class StartOutlook:
    """When gangs that are submitted now would start."""

    def __init__(self, store: OutlookStore | None, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._computed = float("-inf")
        self._entries: Mapping[Kind, list[OutlookEntry]] = {}

    async def run(self) -> NoReturn:
        """Read the outlook periodically, until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(_EVERY_SECONDS)

    async def refresh(self) -> None:
        """Read the outlook now; what was known stays if that fails."""
        if self._store is None:
            return
        try:
            async with asyncio.timeout(_READ_SECONDS):
                outlook = await self._store.load()
        except (BackendError, TimeoutError) as exc:
            logger.warning("outlook not read, will retry", extra={"error": str(exc)})
            return
        if outlook is not None:
            self._computed = outlook.computed_at.timestamp()
            self._entries = _by_kind(outlook)

    def warn(
        self,
        *,
        vc: str,
        leaf_type: str | None,
        class_name: ClassName | None,
        leaf_cells: int,
        start_by: float | None = None,
    ) -> tuple[str, ...]:
        """Say when a gang would start; nothing if it would start at once, or that is not known.

        `start_by` is when its owner wishes it to start.
        """
        now = self._clock.now().timestamp()
        if now - self._computed > _VALID_SECONDS:
            return ()
        entries = self._entries.get((vc, class_name or ""), ())
        found = _entry_for(entries, leaf_type=leaf_type, leaf_cells=leaf_cells)
        if found is None:
            return ()
        line = f"{PREFIX}{_describe(found, now=now)}"
        missed = () if start_by is None else _missed(found, start_by, now=now)
        return (plain(line, limit=WARNING_CHARS), *missed)


def _by_kind(outlook: Outlook) -> dict[Kind, list[OutlookEntry]]:
    found: dict[Kind, list[OutlookEntry]] = {}
    for entry in sorted(outlook.entries, key=lambda one: (one.leaf_cells, one.leaf_type)):
        found.setdefault((entry.vc, entry.class_name), []).append(entry)
    return found


def _entry_for(
    entries: Iterable[OutlookEntry], *, leaf_type: str | None, leaf_cells: int
) -> OutlookEntry | None:
    """Return the entry for the smallest gang that is not smaller; None if that starts at once."""
    of_types: dict[str, OutlookEntry] = {}
    for entry in entries:
        if entry.leaf_cells >= leaf_cells and leaf_type in (None, entry.leaf_type):
            of_types.setdefault(entry.leaf_type, entry)
    if any(entry.starts_at_once for entry in of_types.values()):
        return None
    return next(iter(of_types.values()), None)


def _describe(entry: OutlookEntry, *, now: float) -> str:
    place = f"place {entry.place} in level {entry.level}"
    if entry.unknown:
        return f"{place}; when it starts is unknown: {entry.unknown}"
    low, high = max(entry.low, now), max(entry.high, now)
    is_soon = high - now < _DAY_SECONDS
    return (
        f"expected to start between {_time(low, is_soon)} and {_time(high, is_soon)} UTC, {place}"
    )


def _missed(entry: OutlookEntry, start_by: float, *, now: float) -> tuple[str, ...]:
    """Say that a gang will probably not start when its owner wishes."""
    is_late = not entry.unknown and max((entry.low + entry.high) / 2, now) > start_by
    line = f"{PREFIX}it will probably not start by {moment(start_by)}, its wished start"
    return (line,) if is_late else ()


def _time(seconds: float, is_soon: bool) -> str:
    time = datetime.fromtimestamp(seconds, UTC)
    return time.strftime("%H:%M" if is_soon else "%Y-%m-%d %H:%M")
