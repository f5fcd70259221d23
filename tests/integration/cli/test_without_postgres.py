"""What the services promise while Postgres is lost, slow, hung or cut off: each a row of the table
in the architecture's section on failures.

The server is real; between it and the services is a wire that the test breaks.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tests.support.services.commands import Service, cluster_with_policies, running
from tests.support.state.wire import Wire

_UNKNOWN = "Quota database unavailable and usage unknown; quotas not applied"


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    async with cluster_with_policies(tmp_path) as kubeconfig:
        yield kubeconfig


@pytest.fixture
async def wire(database_url: str) -> AsyncIterator[Wire]:
    """The way to a database with the current schema."""
    async with Wire(database_url) as wire:
        yield wire


@pytest.fixture
async def webhook(kubeconfig: Path, wire: Wire, tmp_path: Path) -> AsyncIterator[Service]:
    """A webhook that has started with its database, and knows what is used."""
    async with running(
        "webhook", kubeconfig=kubeconfig, database_url=wire.url, folder=tmp_path
    ) as webhook:
        await webhook.until_ready()
        await _until_known(webhook)
        yield webhook


async def _until_known(service: Service) -> None:
    async with asyncio.timeout(60):
        while await service.metric("cellgate_usage_staleness_seconds") == float("inf"):
            await asyncio.sleep(0.02)


async def _until_written(service: Service) -> None:
    async with asyncio.timeout(60):
        while await service.metric("cellgate_log_pending_rows") > 0:
            await asyncio.sleep(0.02)


async def _until_charged(webhook: Service, name: str) -> None:
    """Wait until an answer no longer says that the ledger is away."""
    async with asyncio.timeout(60):
        number = 0
        while (await webhook.review(f"{name}-{number}")).is_without_ledger:
            number += 1
            await asyncio.sleep(0.1)


async def _execute(url: str, statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statements)
    finally:
        await connection.close()


async def _subjects(url: str) -> set[str]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("SELECT subject FROM decisions WHERE kind = 'admission'")
    finally:
        await connection.close()
    return {row["subject"] for row in rows}


class TestAColdStartWithoutPostgres:
    async def test_a_webhook_answers_and_takes_the_database_up_when_it_comes(
        self, kubeconfig: Path, empty_database_url: str, tmp_path: Path
    ) -> None:
        async with Wire(empty_database_url) as wire:
            wire.refuse()
            async with running(
                "webhook", kubeconfig=kubeconfig, database_url=wire.url, folder=tmp_path
            ) as webhook:
                await webhook.until_ready()
                answer = await webhook.review("early")
                assert answer.is_allowed, answer.message
                assert _UNKNOWN in answer.warnings[-1]
                assert not (await webhook.review("bad", user="mallory")).is_allowed
                wire.mend()
                await _until_known(webhook)
                await _until_charged(webhook, "late")
                await _until_written(webhook)
        assert {"vision/early", "vision/bad", "vision/late-0"} <= await _subjects(
            empty_database_url
        )

    async def test_an_extender_becomes_ready_and_leads(
        self, kubeconfig: Path, empty_database_url: str, tmp_path: Path
    ) -> None:
        async with Wire(empty_database_url) as wire:
            wire.refuse()
            async with running(
                "extender", kubeconfig=kubeconfig, database_url=wire.url, folder=tmp_path
            ) as extender:
                await extender.until_ready()
                assert (await extender.get("/leader"))[0] == 200
                assert (await extender.get("/v1/decisions"))[0] == 503
                wire.mend()
                await _until_known(extender)
                await _until_written(extender)
                assert (await extender.get("/v1/decisions"))[0] == 200

    async def test_a_server_that_accepts_and_says_nothing_delays_the_start_only(
        self, kubeconfig: Path, database_url: str, tmp_path: Path
    ) -> None:
        async with Wire(database_url) as wire:
            wire.hang()
            async with running(
                "webhook", kubeconfig=kubeconfig, database_url=wire.url, folder=tmp_path
            ) as webhook:
                await webhook.until_ready()
                assert (await webhook.review("early")).is_without_ledger


async def test_postgres_killed_under_load_loses_no_decision_and_keeps_limits(
    webhook: Service, wire: Wire, database_url: str
) -> None:
    """What was known plus what was let in since decides: bob gets four, not one more."""
    before = await webhook.review("before", user="bob", gpus=2)
    wire.refuse()
    answers = [await webhook.review(f"cut-{n}", user="bob", gpus=1) for n in range(4)]
    assert before.is_allowed
    assert [answer.is_allowed for answer in answers] == [True, True, False, False]
    assert all(answer.is_without_ledger for answer in answers if answer.is_allowed)
    wire.mend()
    await _until_charged(webhook, "after")
    await _until_written(webhook)
    assert {"vision/before", *(f"vision/cut-{n}" for n in range(4))} <= await _subjects(
        database_url
    )


@pytest.mark.parametrize("fault", ["hung", "slow"])
async def test_reviews_do_not_wait_for_a_postgres_that_does_not_answer(
    webhook: Service, wire: Wire, fault: str
) -> None:
    wire.hang() if fault == "hung" else wire.slow_down(2.0)
    tasks = []
    for number in range(60):  # 50 a second
        tasks.append(asyncio.create_task(webhook.review(f"{fault}-{number}")))
        await asyncio.sleep(0.02)
    answers = await asyncio.gather(*tasks)
    assert all(answer.is_allowed for answer in answers)
    assert all(answer.is_without_ledger for answer in answers)
    # Reviews that began before the first failure wait for it together; later ones do not wait.
    waited = [answer for answer in answers if answer.seconds > 0.2]
    assert len(waited) < len(answers) / 2
    wire.mend()
    await _until_charged(webhook, "after")


async def test_a_network_that_is_cut_in_the_middle_of_a_charge_loses_nothing(
    webhook: Service, wire: Wire, database_url: str
) -> None:
    async def cut_often() -> None:
        while True:
            await asyncio.sleep(0.05)
            wire.cut()

    cutting = asyncio.create_task(cut_often())
    answers = [await webhook.review(f"gang-{number}") for number in range(40)]
    cutting.cancel()
    await asyncio.wait([cutting])
    assert all(answer.is_allowed for answer in answers)
    await _until_charged(webhook, "after")
    await _until_written(webhook)
    assert {f"vision/gang-{number}" for number in range(40)} <= await _subjects(database_url)


_FULL_DISK = """
    CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON charges FOR EACH STATEMENT EXECUTE FUNCTION fill();
    CREATE TRIGGER full_disk BEFORE INSERT ON decisions FOR EACH ROW EXECUTE FUNCTION fill();
"""
# The triggers stay: to drop them takes locks on tables that the webhook writes to meanwhile.
_ROOM_AGAIN = """
    CREATE OR REPLACE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RETURN NEW;
    END $$;
"""


async def test_a_postgres_without_room_on_its_disk_is_one_that_is_away(
    webhook: Service, database_url: str
) -> None:
    """Reading works, writing does not: reviews go on, and the log waits on our own disk."""
    await _execute(database_url, _FULL_DISK)
    answers = [await webhook.review(f"full-{number}") for number in range(5)]
    assert all(answer.is_allowed and answer.is_without_ledger for answer in answers)
    assert await _subjects(database_url) == set()
    await _execute(database_url, _ROOM_AGAIN)
    await _until_charged(webhook, "after")
    await _until_written(webhook)
    assert {f"vision/full-{number}" for number in range(5)} <= await _subjects(database_url)
