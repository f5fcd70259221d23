"""From the log to a masked file: two passes over the rows."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from cli.log.mask.masker import Masker
from cli.log.mask.names import Collected, Pseudonyms, UnknownNameError
from cli.log.mask.replayed import Checksums, Explanations
from policy.errors import SettingsError
from state.log.archive.transfer import (
    ExportableLog,
    Exported,
    Progress,
    build_header,
    wanted_rows,
)
from state.log.archive.writer import open_writer
from state.log.records import DecisionRecord
from state.log.stretches import Wanted


@dataclass(slots=True, kw_only=True)
class Masked(Exported):
    """What was written to a masked file."""

    left_out: dict[str, int] = field(default_factory=dict)
    """What the mask does not know, by its place in a row, and how often it was left out."""
    names: Pseudonyms = field(default_factory=lambda: Pseudonyms({}))


async def export_masked(
    log: ExportableLog, path: Path, *, service: str, wanted: Wanted, on_progress: Progress
) -> Masked:
    """Write wanted rows to a file, with pseudonyms instead of names."""
    done = Masked(epochs=await log.epochs(service, wanted))

    def rows(verb: str) -> AsyncIterator[DecisionRecord]:
        return wanted_rows(
            log, done, service=service, wanted=wanted, on_progress=on_progress, verb=verb
        )

    collected = Collected()
    first = Masker(collected)
    first.mask_subject(wanted.subject)
    async for record in rows("reading names of"):
        first.mask(record)
    done.names = collected.assign()
    second = Masker(done.names, has_listed_cells=first.now.has_listed_cells)
    try:
        await _write(rows("masking"), path, done, second, service=service, wanted=wanted)
    except UnknownNameError as exc:
        raise SettingsError("the log got more rows of that time meanwhile: run it again") from exc
    done.left_out = second.now.left_out
    return done


async def _write(
    rows: AsyncIterator[DecisionRecord],
    path: Path,
    done: Masked,
    masker: Masker,
    *,
    service: str,
    wanted: Wanted,
) -> None:
    asked = replace(wanted, subject=masker.mask_subject(wanted.subject))
    checksums, explanations = Checksums(service), Explanations()
    with open_writer(path) as writer:
        writer.begin(build_header(done.epochs, service=service, wanted=asked, is_masked=True))
        async for record in rows:
            masked = checksums.write(record, masker.mask(record))
            writer.append(explanations.write(record, masked))
        done.rows = writer.rows
