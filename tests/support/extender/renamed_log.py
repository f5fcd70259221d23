"""The same log under other names: what may not make a difference to its masked file."""

from collections.abc import AsyncIterator
from pathlib import Path

from cli.log.mask.export import Masked, export_masked
from cli.log.mask.masker import Masker
from cli.log.mask.names import Collected, Kind, Word
from cli.log.mask.replayed import Checksums
from extender.cluster.journal import SERVICE
from extender.cluster.replay import Report, replay_epoch
from state.log.archive.reader import Archive
from state.log.archive.transfer import Exported, import_log, wanted_rows
from state.log.records import DecisionRecord
from state.log.stretches import Wanted
from tests.support.twins.log import MemoryDecisions


class _Renamed(Collected):
    """Gives each name a number and an end, in the same order: none begins with another one."""

    def __init__(self, known: Collected, end: str) -> None:
        super().__init__()
        masked = known.assign()
        self._numbers = {
            kind: {name: number for number, name in enumerate(sorted(names))}
            for kind in Kind
            for names in [masked.known(kind)]
        }
        self._end = end
        self._kept = masked

    def of(self, kind: Kind, text: str, word: Word = Word.VALUE) -> str:
        if not text or self._kept.of(kind, text) == text:
            return text
        return f"{text[0]}{self._numbers[kind][text]:04}{self._end}"


async def renamed(store: MemoryDecisions, end: str) -> MemoryDecisions:
    """Return the log with other names, which replays as the first one does."""
    collected = Collected()
    first = Masker(collected)
    rows = [record async for record in _rows(store)]
    for record in rows:
        first.mask(record)
    second = Masker(_Renamed(collected, end), has_listed_cells=first.now.has_listed_cells)
    checksums, found = Checksums(SERVICE), MemoryDecisions()
    await found.insert([checksums.write(record, second.mask(record)) for record in rows])
    return found


async def _rows(store: MemoryDecisions) -> AsyncIterator[DecisionRecord]:
    done = Exported(epochs=await store.epochs(SERVICE, Wanted()))
    async for record in wanted_rows(
        store, done, service=SERVICE, wanted=Wanted(), on_progress=lambda *_: None
    ):
        yield record


async def masked(store: MemoryDecisions, path: Path) -> tuple[Masked, MemoryDecisions]:
    """Write a masked file; what was written, and a log with its rows."""
    done = await export_masked(
        store, path, service=SERVICE, wanted=Wanted(), on_progress=lambda *_: None
    )
    twin = MemoryDecisions()
    await import_log(twin, Archive(path), on_progress=lambda *_: None)
    return done, twin


async def replayed(store: MemoryDecisions) -> list[Report]:
    """Replay all epochs of a log."""
    epochs = await store.epochs(SERVICE, Wanted())
    return [await replay_epoch(store, epoch=one.epoch) for one in epochs]
