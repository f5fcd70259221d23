"""Opens the source that the flags ask for."""

from cli.check import read_text
from cli.log.progress import Progress
from cli.whatif.request import NODE_LEAF_CELLS, Request
from cli.whatif.sources.generated import generated_source
from cli.whatif.sources.log.source import read_database, read_file
from cli.whatif.sources.played import Played
from cli.whatif.sources.trace import Between, read_trace
from policy.errors import SettingsError
from state.log.stretches import Wanted


async def open_source(
    request: Request, wanted: Wanted, database_url: str | None, progress: Progress
) -> Played:
    """Read the arrivals. Raises SettingsError if there are none, SpecError for a wrong trace."""
    if request.workload is not None:
        return generated_source(request.workload, node_leaf_cells=NODE_LEAF_CELLS)
    if request.trace is not None:
        return _read_trace(request, wanted)
    if request.file is not None:
        return await read_file(request.file, wanted, progress)
    if database_url is None:
        raise SettingsError(
            "--database-url, --file, --trace or --generate is required: where the gangs are from"
        )
    return await read_database(database_url, wanted, progress)


def _read_trace(request: Request, wanted: Wanted) -> Played:
    name = str(request.trace)
    found = read_trace(
        read_text(name),
        name=name,
        node_leaf_cells=NODE_LEAF_CELLS,
        between=Between(since=wanted.since.timestamp(), until=wanted.until.timestamp()),
    )
    if not found.arrivals:
        raise SettingsError(f"{name} has no gang in that time")
    return found
