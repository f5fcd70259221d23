"""Flags of commands. Each can also be set by an environment variable `CELLGATE_<FLAG>`."""

import argparse
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from policy.errors import SettingsError
from service.settings import Address, parse_address

_DAYS = re.compile("[1-9][0-9]{0,4}")


class Parser(argparse.ArgumentParser):
    """A parser that reports errors as SettingsError."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - passed to argparse
        super().__init__(**settings, formatter_class=_Formatter, add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise an error of one line instead of printing the usage."""
        raise SettingsError(f"{message}; see '{self.prog} --help'")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Wrap a help text, but never within a flag or a name."""
        return textwrap.wrap(text, width, break_on_hyphens=False)


class Options:
    """Adds the flags and arguments of one command, in titled groups."""

    def __init__(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        self._parser = parser
        self._environment = environment
        self.begin("Flags")

    def begin(self, title: str) -> None:
        """Begin a group: what is added next is listed under this title."""
        self._group = self._parser.add_argument_group(title)

    def add(
        self,
        flag: str,
        about: str,
        *,
        default: str | None = None,
        is_required: bool = False,
        read: Callable[[str], Any] = str,
    ) -> None:
        """Add a flag such as `--file NAME`; `read` checks and translates its value."""
        name, _, value = flag.partition(" ")
        given = self._environment.get(_variable(name)) or default
        # argparse reads a default of type str like a value, so both sources are checked.
        self._group.add_argument(
            name,
            default=given,
            required=is_required and given is None,
            type=_reader(read),
            metavar=value,
            help=(f"{about} (default {default})" if default else about).replace("%", "%%"),
        )

    def add_address(self, flag: str, about: str, *, default: str) -> None:
        """Add a flag that takes HOST:PORT."""
        read = partial(_read_address, flag=flag)
        self.add(f"{flag} HOST:PORT", about, default=default, read=read)

    def add_days(self, flag: str, about: str, *, default: int) -> None:
        """Add a flag that takes a number of days."""
        self.add(f"{flag} DAYS", about, default=str(default), read=_read_days)

    def add_seconds(self, flag: str, about: str, *, default: int) -> None:
        """Add a flag that takes a whole number of seconds."""
        self.add(f"{flag} SECONDS", about, default=str(default), read=_read_seconds)

    def add_names(self, flag: str, about: str, *, default: str | None = None) -> None:
        """Add a flag that takes names, separated by commas."""
        self.add(f"{flag} NAME,…", about, default=default, read=_read_names)

    def add_choice(self, flag: str, about: str, *, default: str, choices: Sequence[str]) -> None:
        """Add a flag that takes one of several words; `about` may be empty."""
        listed = f"{', '.join(choices[:-1])} or {choices[-1]}"

        def read(text: str) -> str:
            if text not in choices:
                raise ValueError(f"must be {listed}, not {text!r}")
            return text

        self.add(flag, f"{about}: {listed}" if about else listed, default=default, read=read)

    def add_files(self, flag: str, about: str) -> None:
        """Add a flag that takes one or several files, and may be given several times.

        Its environment variable has names that are separated by `:`, like `PATH`.
        """
        name, _, value = flag.partition(" ")
        given = [one for one in self._environment.get(_variable(name), "").split(":") if one]
        self._group.add_argument(
            name, nargs="+", action=_AddFiles, default=given, metavar=value[:-1], help=about
        )

    def add_argument(self, name: str, value: str, about: str, **settings: Any) -> None:  # noqa: ANN401 - passed to argparse
        """Add an argument without a flag."""
        self._group.add_argument(name, metavar=value, help=about, **settings)

    def add_switch(self, flag: str, about: str) -> None:
        """Add a flag without a value; its environment variable is `true` or `false`."""
        variable = _variable(flag)
        default = _read_switch(variable, self._environment.get(variable) or "false")
        self._group.add_argument(flag, action="store_true", default=default, help=about)

    def add_help(self) -> None:
        """Add `--help`."""
        self._group.add_argument("-h", "--help", action="help", help="Show this help")


class _AddFiles(argparse.Action):
    """Collects what several flags say; what the environment says counts only without any flag."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,  # noqa: ANN401 - from argparse
        option_string: str | None = None,
    ) -> None:
        given = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*([] if given is self.default else given), *values])


def data_directory(environment: Mapping[str, str]) -> Path | None:
    """Return the directory of a user's data, by the XDG base directory specification.

    None for a user without a home directory, as in a container: then the flag is required.
    """
    if home := environment.get("XDG_DATA_HOME"):
        return Path(home) / "cellgate"
    try:
        return Path.home() / ".local" / "share" / "cellgate"
    except RuntimeError:
        return None


def _variable(flag: str) -> str:
    return "CELLGATE_" + flag.removeprefix("--").replace("-", "_").upper()


def _read_address(text: str, *, flag: str) -> Address:
    try:
        return parse_address(text, flag=flag)
    except SettingsError as exc:
        raise ValueError(str(exc)) from exc


def _read_days(text: str) -> int:
    if not _DAYS.fullmatch(text):
        raise ValueError(f"must be a number of days from 1 to 99999, not {text!r}")
    return int(text)


def _read_seconds(text: str) -> float:
    if not text.isdecimal():
        raise ValueError(f"must be a whole number of seconds, not {text!r}")
    return float(text)


def _read_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _read_switch(variable: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise SettingsError(f"{variable} must be true or false, not {text!r}")
    return text == "true"


def _reader(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Make argparse show the message of a ValueError, which it would otherwise drop."""

    def checked(text: str) -> Any:  # noqa: ANN401 - of any type
        try:
            if not text:
                raise ValueError("must not be empty")
            return read(text)
        except ValueError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc

    return checked
