"""Flags, each with an environment variable `CELLGATE_<FLAG>` as its second home."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from policy.errors import SettingsError
from service.settings import Address, parse_address

_DAYS = re.compile("[1-9][0-9]{0,4}")


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line that says what to do."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage: the caller prints one line and exits with 2."""
        raise SettingsError(f"{message}; see '{self.prog} --help'")


class Options:
    """Adds flags to the parser of one command."""

    def __init__(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        self._parser = parser
        self._environment = environment

    def add(
        self,
        flag: str,
        *,
        about: str,
        default: str | None = None,
        is_required: bool = False,
        read: Callable[[str], Any] = str,
    ) -> None:
        """Add a flag that takes a value; `read` checks and translates it."""
        variable = _variable(flag)
        value = self._environment.get(variable) or default
        # argparse reads a default that is text like any other value: both homes are checked.
        self._parser.add_argument(
            flag,
            default=value,
            required=is_required and value is None,
            type=_reader(read),
            metavar=flag.rsplit("-", 1)[-1].upper(),
            help=_describe(about, variable, default),
        )

    def add_address(self, flag: str, *, about: str, default: str) -> None:
        """Add a flag that takes HOST:PORT."""
        self.add(flag, about=about, default=default, read=partial(_read_address, flag=flag))

    def add_days(self, flag: str, *, about: str, default: int) -> None:
        """Add a flag that takes a number of days."""
        self.add(flag, about=about, default=str(default), read=_read_days)

    def add_choice(self, flag: str, *, about: str, default: str, choices: Sequence[str]) -> None:
        """Add a flag that takes one of some words."""

        def read(text: str) -> str:
            if text not in choices:
                raise ValueError(
                    f"must be {', '.join(choices[:-1])} or {choices[-1]}, not {text!r}"
                )
            return text

        self.add(flag, about=f"{about}: {', '.join(choices)}", default=default, read=read)

    def add_files(self, name: str, *, about: str) -> None:
        """Take one or more files, as arguments without a flag."""
        self._parser.add_argument("files", nargs="+", metavar=name, help=about)

    def add_argument(self, name: str, *, about: str, choices: Sequence[str] | None = None) -> None:
        """Take one argument without a flag."""
        self._parser.add_argument(name, choices=choices, help=about)

    def add_switch(self, flag: str, *, about: str) -> None:
        """Add a flag that is there or not; in the environment `true` means there."""
        variable = _variable(flag)
        self._parser.add_argument(
            flag,
            action="store_true",
            default=_read_switch(variable, self._environment.get(variable) or "false"),
            help=_describe(about, variable, None),
        )


def data_directory(environment: Mapping[str, str]) -> Path | None:
    """The place for a user's data, as the XDG base directory specification has it.

    None for a user without a home, as in a container: then the flag must say.
    """
    if home := environment.get("XDG_DATA_HOME"):
        return Path(home) / "cellgate"
    try:
        return Path.home() / ".local" / "share" / "cellgate"
    except RuntimeError:
        return None


def _variable(flag: str) -> str:
    return "CELLGATE_" + flag.removeprefix("--").replace("-", "_").upper()


def _describe(about: str, variable: str, default: str | None) -> str:
    shown = f" (default: {default})" if default else ""
    return f"{about}{shown} [{variable}]".replace("%", "%%")


def _read_address(text: str, *, flag: str) -> Address:
    try:
        return parse_address(text, flag=flag)
    except SettingsError as exc:
        raise ValueError(str(exc)) from exc


def _read_days(text: str) -> int:
    if not _DAYS.fullmatch(text):
        raise ValueError(f"must be a number of days from 1 to 99999, not {text!r}")
    return int(text)


def _read_switch(variable: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise SettingsError(f"{variable} must be true or false, not {text!r}")
    return text == "true"


def _reader(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Let argparse tell what a reader complains about, not only that it does."""

    def checked(text: str) -> Any:  # noqa: ANN401 - whatever the reader makes of it
        try:
            if not text:
                raise ValueError("must not be empty")
            return read(text)
        except ValueError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc

    return checked
