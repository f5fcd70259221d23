"""All commands. Each loads its module when it runs: no command waits for those of the others."""

from argparse import Namespace
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from service.exit_codes import Exit

if TYPE_CHECKING:
    from service.process import Stop

Command = Callable[[Namespace, "Stop"], Coroutine[Any, Any, Exit]]


async def run_everything(options: Namespace, stop: "Stop") -> Exit:
    """Run all services on this machine."""
    from cli.run import run_everything as command

    return await command(options, stop)


async def serve_extender(options: Namespace, stop: "Stop") -> Exit:
    """Run the extender."""
    from cli.serve import serve_extender as command

    return await command(options, stop)


async def serve_webhook(options: Namespace, stop: "Stop") -> Exit:
    """Run the webhook."""
    from cli.serve import serve_webhook as command

    return await command(options, stop)


async def migrate_database(options: Namespace, stop: "Stop") -> Exit:
    """Apply pending migrations."""
    from cli.migrate import migrate_database as command

    return await command(options, stop)


async def make_certificates(options: Namespace, stop: "Stop") -> Exit:
    """Create certificates."""
    from cli.certs import make_certificates as command

    return await command(options, stop)


async def check_policies(options: Namespace, stop: "Stop") -> Exit:
    """Validate policy documents."""
    from cli.check import check_policies as command

    return await command(options, stop)


async def import_file(options: Namespace, stop: "Stop") -> Exit:
    """Convert a document of another system."""
    from cli.imports.command import import_file as command

    return await command(options, stop)


async def export_log(options: Namespace, stop: "Stop") -> Exit:
    """Write a stretch of the log to a file."""
    from cli.log.transfer import export_to_file as command

    return await command(options, stop)


async def import_log(options: Namespace, stop: "Stop") -> Exit:
    """Store the rows of a file in the log."""
    from cli.log.transfer import import_from_file as command

    return await command(options, stop)


async def replay(options: Namespace, stop: "Stop") -> Exit:
    """Decide a stretch of the log again."""
    from cli.log.replay import replay as command

    return await command(options, stop)


async def tune(options: Namespace, stop: "Stop") -> Exit:
    """Search for a better Queues document."""
    from cli.tune.command import tune as command

    return await command(options, stop)


async def what_if(options: Namespace, stop: "Stop") -> Exit:
    """Play gangs under other policies or hardware."""
    from cli.whatif.command import what_if as command

    return await command(options, stop)
