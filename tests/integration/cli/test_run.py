"""`cellgate run` as a new user meets it: one command, and later Ctrl-C."""

import asyncio
import json
import os
import re
import signal
import ssl
from collections.abc import Iterable
from pathlib import Path

import aiohttp
import pytest
import yaml

from tests.support.documents.metrics_page import metrics_of
from tests.support.services.cellgate_run import (
    ANY_PORTS,
    END_SECONDS,
    PROGRAM,
    START_SECONDS,
    Running,
    cellgate_run,
    interrupt,
)

_ONE_GPU = {"limits": {"nvidia.com/gpu": "1"}}


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as http, http.get(url, ssl=False) as answer:
        return answer.status, await answer.text()


async def decisions(run: Running) -> list[dict[str, str]]:
    _, text = await get(f"{run.url('extender')}/v1/decisions?limit=1000")
    rows: list[dict[str, str]] = json.loads(text)["items"]
    return rows


def _without_created(names: Iterable[str]) -> list[str]:
    """Without the times at which counters were made, which the client exports beside them."""
    return sorted(name for name in names if not name.endswith("_created"))


async def some_gang_is_bound(run: Running) -> list[dict[str, str]]:
    """Wait until the users' gangs went through webhook and extender."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            rows = await decisions(run)
            if any(row["kind"] == "bind" for row in rows):
                return rows
            await asyncio.sleep(0.1)


async def test_everything_is_served_and_gangs_run(tmp_path: Path) -> None:
    async with cellgate_run(tmp_path) as run:
        for what in ("extender", "webhook"):
            assert await get(f"{run.url(what)}/readyz") == (200, "ok\n")
            _, metrics = await get(f"{run.url(what)}/metrics")
            exported = re.findall(r"^# HELP (cellgate_\S+)", metrics, re.MULTILINE)
            assert _without_created(exported) == [one.name for one in metrics_of(what)]
        rows = await some_gang_is_bound(run)
        assert {row["service"] for row in rows} == {"webhook", "extender"}

        code, output = await interrupt(run.process)
    assert (code, output.strip()) == (0, "Stopping Cellgate …")


async def test_the_banners_third_suggestion_shows_a_warning(tmp_path: Path) -> None:
    async with cellgate_run(tmp_path) as run:
        found = re.search(r"-d '(.*?)'", run.banner, re.DOTALL)
        assert found
        async with (
            aiohttp.ClientSession() as http,
            http.post(
                f"{run.url('cluster')}/api/v1/namespaces/vision/pods",
                data=found[1],
                headers={"Impersonate-User": "alice", "Content-Type": "application/json"},
            ) as answer,
        ):
            pod = await answer.json()
            warning = answer.headers["Warning"]
    assert pod["spec"]["priorityClassName"] == "oppo"
    assert "rule 3 lowers class prod" in warning


async def test_what_the_services_delete_is_recorded_as_no_users_cancellation(
    tmp_path: Path,
) -> None:
    async with cellgate_run(tmp_path) as run, aiohttp.ClientSession() as http:
        config = yaml.safe_load((tmp_path / "simulated.kubeconfig").read_text(encoding="utf-8"))
        token = config["users"][0]["user"]["token"]
        pods = f"{run.url('cluster')}/api/v1/namespaces/vision/pods"
        for name, headers in (("ours", {"Authorization": f"Bearer {token}"}), ("theirs", {})):
            spec = {"containers": [{"name": "main", "image": "any", "resources": _ONE_GPU}]}
            pod = {"metadata": {"name": name}, "spec": spec}
            async with http.post(pods, json=pod, headers={"Impersonate-User": "carol"}) as answer:
                assert answer.status == 201
            async with http.delete(f"{pods}/{name}", headers=headers) as answer:
                assert answer.status == 200
        async with asyncio.timeout(START_SECONDS):
            while not (rows := [row for row in await decisions(run) if row["kind"] == "cancel"]):
                await asyncio.sleep(0.1)
    assert [row["subject"] for row in rows] == ["vision/theirs"]


async def test_the_webhook_serves_under_the_ca_it_names(tmp_path: Path) -> None:
    async with cellgate_run(tmp_path) as run:
        trust = ssl.create_default_context(cafile=tmp_path / "certs" / "ca.crt")
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{run.url('webhook')}/healthz", ssl=trust) as answer,
        ):
            assert answer.status == 200


async def test_ctrl_c_leaves_no_process_and_no_socket_and_the_data_stays(tmp_path: Path) -> None:
    async with cellgate_run(tmp_path) as run:
        await some_gang_is_bound(run)
        children, urls = run.children(), [run.url(what) for what in ("extender", "cluster")]
        await interrupt(run.process)
    assert children
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []
    for url in urls:
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(url)

    async with cellgate_run(tmp_path) as again:
        assert "creating the database" not in again.banner
        assert any(row["kind"] == "bind" for row in await decisions(again))


async def test_a_killed_run_leaves_no_process_and_can_be_started_again(tmp_path: Path) -> None:
    async with cellgate_run(tmp_path) as run:
        children = run.children()
        run.process.kill()
        await run.process.wait()
        async with asyncio.timeout(END_SECONDS):
            while any(Path(f"/proc/{pid}").exists() for pid in children):
                await asyncio.sleep(0.05)

    async with cellgate_run(tmp_path) as again:
        assert await get(f"{again.url('extender')}/readyz") == (200, "ok\n")


async def test_the_database_may_be_killed_and_comes_back(tmp_path: Path) -> None:
    async with cellgate_run(tmp_path) as run:
        await some_gang_is_bound(run)
        (server,) = run.children()
        os.kill(server, signal.SIGKILL)
        async with asyncio.timeout(START_SECONDS):
            while run.children() in ([], [server]) or (
                (await get(f"{run.url('extender')}/v1/decisions"))[0] != 200
            ):
                await asyncio.sleep(0.1)
        assert await get(f"{run.url('extender')}/readyz") == (200, "ok\n")


async def test_a_second_run_on_the_same_data_is_refused_in_one_line(tmp_path: Path) -> None:
    async with cellgate_run(tmp_path):
        code, output = await run_to_the_end("run", "--data-dir", str(tmp_path), *ANY_PORTS)
    assert code == 2
    assert output.splitlines()[-1].startswith("cellgate: ")
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["run", "--log-level=loud"], "must be debug, info, warning or error, not 'loud'"),
        (["extender"], "the following arguments are required: --database-url"),
        (["extender", "--database-url=x", "--listen=9096"], "'9096' is not an address"),
        (["extender", "--database-url=mysql://x"], "--database-url is not valid"),
        (["migrate", "--database-url=postgresql://u:secret@127.0.0.1:1/x"], "127.0.0.1:1"),
        (
            ["extender", "--database-url=x", "--tls", "--insecure-http"],
            "--tls and --insecure-http exclude each other",
        ),
        (["run", "--kubeconfig=/no/such/file"], "there is no kubeconfig /no/such/file"),
        (["run", "--data-dir="], "argument --data-dir: must not be empty"),
        (["run", "--extender-listen=0.0.0.0:0"], "is not loopback"),
        (["run", "--cluster-listen=0.0.0.0:0"], "is not loopback"),
        (["run", "--webhook-listen=127.0.0.999:1"], "this machine has no such address"),
        (["fly"], "invalid choice: 'fly'"),
        ([], "the following arguments are required: COMMAND"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_a_wrong_call_is_one_line_and_exit_code_2(
    arguments: list[str], told: str, tmp_path: Path
) -> None:
    name, *flags = arguments or [""]
    data = [f"--data-dir={tmp_path}"] if name == "run" else []
    ports = ANY_PORTS if name == "run" else []

    code, output = await run_to_the_end(*filter(None, [name, *data, *ports, *flags]))

    lines = [line for line in output.splitlines() if not line.startswith("Starting Cellgate")]
    assert (code, len(lines)) == (2, 1), output
    assert lines[0].startswith("cellgate: ")
    assert told in lines[0]
    assert "secret" not in lines[0]


async def test_a_switch_in_the_environment_is_true_or_false(tmp_path: Path) -> None:
    code, output = await run_to_the_end("extender", CELLGATE_INSECURE_HTTP="yes")

    assert (code, output.strip()) == (
        2,
        "cellgate: CELLGATE_INSECURE_HTTP must be true or false, not 'yes'",
    )


@pytest.mark.parametrize("seconds", [0.05, 0.4, 1.0, 1.6])
async def test_ctrl_c_while_it_starts_is_quiet_and_leaves_nothing(
    tmp_path: Path, seconds: float
) -> None:
    process = await asyncio.create_subprocess_exec(
        str(PROGRAM),
        "run",
        f"--data-dir={tmp_path}",
        *ANY_PORTS,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    await asyncio.sleep(seconds)
    code, output = await interrupt(process)

    # Python does not always survive a signal before it has its handlers.
    is_starting = code == -signal.SIGSEGV and not output
    is_starting |= "Failed to import the site module" in output
    if is_starting or "from cli.entry import run" in output:
        pytest.skip("Python itself was still starting, or had not come to us yet")
    assert code in (0, 130, -signal.SIGINT), output
    assert "Traceback" not in output
    async with cellgate_run(tmp_path) as again:
        assert await get(f"{again.url('extender')}/readyz") == (200, "ok\n")


async def test_a_taken_port_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    async with cellgate_run(tmp_path / "one") as run:
        taken = run.url("extender").removeprefix("http://")
        flags = ["--extender-listen", taken, *ANY_PORTS[1:]]
        code, output = await run_to_the_end("run", "--data-dir", str(tmp_path / "two"), *flags)
    assert code == 2
    assert output.splitlines()[-1] == (
        f"cellgate: cannot listen on {taken}: another process listens there; "
        "stop it, or choose another address with --extender-listen"
    )


async def run_to_the_end(*arguments: str, **environment: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        str(PROGRAM),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={key: value for key, value in os.environ.items() if key != "KUBECONFIG"} | environment,
    )
    async with asyncio.timeout(START_SECONDS):
        output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()
