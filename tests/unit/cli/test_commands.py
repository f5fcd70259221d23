"""Commands, their flags, and what they load."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import build_parser
from cli.log.report import NOT_DECIDED
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


def test_output_that_is_not_read_to_the_end_is_no_error(tmp_path: Path) -> None:
    document = tmp_path / "queues.yaml"
    document.write_text(
        "apiVersion: cellgate.io/v1\nkind: Queues\nlevels: [{name: all, strategy: fifo}]\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    call = f"import sys; sys.argv = ['cellgate', 'check', {str(document)!r}]\n"
    program = call + "from cli.entry import run\nrun()"
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


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


@pytest.mark.parametrize("call", ["replay", "log export FILE", "what-if", "tune"])
def test_the_log_of_cellgate_run_is_read_by_default(call: str, tmp_path: Path) -> None:
    database = tmp_path / "cellgate" / "postgres"
    database.mkdir(parents=True)
    options = build_parser({"XDG_DATA_HOME": str(tmp_path)}).parse_args(call.split())
    assert options.database_url == f"embedded:{database}"


def test_the_help_says_what_a_replay_does_not_decide_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        build_parser({}).parse_args(["replay", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert f"Not decided again yet: {', '.join(NOT_DECIDED)}." in told


def test_the_address_to_listen_at_may_come_from_the_environment() -> None:
    environment = {"CELLGATE_DATABASE_LISTEN_URL": "postgresql://direct/d"}
    options = build_parser(environment).parse_args(_EXTENDER)
    assert options.database_listen_url == "postgresql://direct/d"
