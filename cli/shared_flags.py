"""Flags that several commands share."""

from collections.abc import Mapping
from typing import Final

from cli.options import Options, data_directory

URL_FORMS: Final = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE or embedded:DIR"
_LEVELS: Final = ("debug", "info", "warning", "error")


def add_general(options: Options, *, log_level: str) -> None:
    """Add the flags of all commands."""
    options.add_choice("--log-level LEVEL", "", default=log_level, choices=_LEVELS)
    options.add_help()


def add_database_url(options: Options) -> None:
    """Add the database of a command that cannot do without one."""
    options.add("--database-url URL", f"{URL_FORMS} (required)", is_required=True)


def add_own_database_url(options: Options, environment: Mapping[str, str]) -> None:
    """Add the database of a command that reads the one of `cellgate run` if no other is given."""
    own = own_database(environment)
    about = URL_FORMS if own else f"{URL_FORMS} (required)"
    options.add("--database-url URL", about, default=own, is_required=True)


def add_time(options: Options) -> None:
    """Add the time of a stretch of the log."""
    about = "Begin at this time (2026-03-01T12:00:00Z, UTC without a zone), or so long ago (2h, 7d)"
    options.add("--from TIME", about)
    options.add("--to TIME", "End at this time, or so long ago (default now)")


def add_sources(options: Options, environment: Mapping[str, str]) -> None:
    """Add where the gangs are from that a command of the time machine plays."""
    options.begin("Where the gangs are from (default the decision log of --database-url)")
    options.add("--database-url URL", URL_FORMS, default=own_database(environment))
    options.add("--file FILE", "A file that cellgate log export wrote")
    about = "A CSV file: timestamp, duration, num_gpus and optional columns"
    options.add("--trace FILE", about)
    about = "A generated workload, such as days=2,load=0.9,seed=1"
    options.add("--generate WORKLOAD", about)
    add_time(options)
    about = "With --trace and --generate: the leaf cells of the cluster, in nodes of 8"
    options.add("--leaf-cells N[:TYPE]", about, default="512:gpu")


def own_database(environment: Mapping[str, str]) -> str | None:
    """Return the database of `cellgate run` on this machine, if there is one."""
    data = data_directory(environment)
    return f"embedded:{data / 'postgres'}" if data and (data / "postgres").is_dir() else None
