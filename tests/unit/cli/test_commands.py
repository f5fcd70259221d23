"""Commands, their flags, and what they load."""

import re
import subprocess
import sys

import pytest

from cli.commands import build_parser
from cli.stores import read_retention
from policy.errors import SettingsError
from state.database.retention import RetentionSettings

_EXTENDER = ["extender", "--database-url", "postgresql://h/d"]
_SLOW = "aiohttp pydantic kubernetes_asyncio asyncpg asyncio yaml"
"""Modules that take long to load."""


@pytest.mark.parametrize("call", ["--version", "--help", "run --help"])
def test_help_loads_no_command(call: str) -> None:
    program = (
        "import atexit, sys\n"
        f"sys.argv[1:] = {call.split()}\n"
        f"found = lambda: [name for name in {_SLOW.split()} if name in sys.modules]\n"
        "atexit.register(lambda: print(found(), file=sys.stderr))\n"
        "from cli.entry import run\n"
        "run()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert done.stdout


def test_things_are_kept_as_long_as_flags_or_environment_say() -> None:
    parser = build_parser({"CELLGATE_KEEP_TOTALS_DAYS": "3000"})
    options = parser.parse_args([*_EXTENDER, "--keep-log-days", "30"])
    assert read_retention(options) == RetentionSettings(log_days=30, totals_days=3000)
    assert read_retention(parser.parse_args(["run"])).log_days == RetentionSettings().log_days


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "ten", "100000", ""])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--keep-history-days: must"):
        build_parser({}).parse_args([*_EXTENDER, f"--keep-history-days={text}"])


@pytest.mark.parametrize(
    "command",
    [
        "run", "extender", "webhook", "migrate", "certs", "check", "import", "replay",
        "what-if", "tune", "log export", "log import",
    ],
)  # fmt: skip
def test_every_command_explains_itself_and_its_flags(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser({}).parse_args([*command.split(), "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert text.startswith(f"usage: cellgate {command} [FLAGS]")
    flags = [line.strip() for line in text.splitlines() if line.startswith("  -")]
    assert flags
    assert [flag for flag in flags if not re.match(r"-.*\S {2,}\S", flag)] == []


def test_the_help_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser({}).parse_args(["--help"])
    listed = re.findall(r"^  ([a-z][a-z-]*) +[A-Z]", capsys.readouterr().out, re.MULTILINE)
    assert listed == [
        "run", "extender", "webhook", "migrate", "certs", "check", "import", "replay", "what-if",
        "tune", "log",
    ]  # fmt: skip


def test_the_help_of_the_log_lists_its_actions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser({}).parse_args(["log", "--help"])
    text = capsys.readouterr().out
    assert re.findall(r"^  ([a-z]+) +[A-Z]", text, re.MULTILINE) == ["export", "import"]


def test_the_help_says_what_a_replay_does_not_decide_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        build_parser({}).parse_args(["replay", "--help"])
    assert (
        "Not decided again yet: admission decisions of the webhook, the order of the queue, and "
        "reservations."
    ) in " ".join(capsys.readouterr().out.split())


def test_the_address_to_listen_at_may_come_from_the_environment() -> None:
    environment = {"CELLGATE_DATABASE_LISTEN_URL": "postgresql://direct/d"}
    options = build_parser(environment).parse_args(_EXTENDER)
    assert options.database_listen_url == "postgresql://direct/d"
