"""The ledger on a real Postgres: charges per second, and how long one charge takes.

`synchronous_commit` is on, so the disk has a say: its own time for one write is measured beside,
and without it nothing here can be compared between machines.
"""

import asyncio
import os
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import uvloop

from bench.report import SEED, Result, percentile
from bench.state.log_beside import log_beside
from policy.quotas.charge import Charge
from policy.quotas.limits import Limit, Measure, Scope
from policy.submission import ClassName, GangKey, GroupName, LeafType, UserName, VcName
from state.database.database import open_database
from state.database.maintenance import LogMaintenance
from state.database.migrator import migrate
from state.ledger.ledger import Charged
from state.ledger.postgres import LedgerSettings, PostgresLedger

_CONNECTIONS = 8
_WAITING = 64  # reviews under way at once, in one replica of the webhook
_GROUPS = 20
_PLENTY = 10**9
_LOG_OUTLASTS = 1500  # charges a second, at which the log would be written just as long
_NUMBERS = count(SEED)


def measure(*, is_quick: bool) -> list[Result]:
    """Measure on an embedded server of the benchmark's own."""
    with tempfile.TemporaryDirectory(prefix="cellgate-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # an embedded server may run as another user
        disk = _write_times(folder, repeat=50)
        results = uvloop.run(_measure(folder, is_quick=is_quick))
    return [
        Result(case={"disk": "one write"}, metric="fdatasync_p50_ms", value=percentile(disk, 50)),
        *results,
    ]


def _write_times(folder: Path, *, repeat: int) -> list[float]:
    times = []
    with (folder / "probe").open("wb", buffering=0) as probe:
        for _ in range(repeat):
            probe.write(bytes(8192))
            began = time.perf_counter()
            os.fdatasync(probe.fileno())
            times.append((time.perf_counter() - began) * 1000)
    return times


async def _measure(folder: Path, *, is_quick: bool) -> list[Result]:
    charges = 1000 if is_quick else 10_000
    url = f"embedded:{folder / 'data'}"
    async with open_database(url, application_name="bench") as database:
        await migrate(database.pool)
        await LogMaintenance(database.pool).maintain(datetime.now(UTC))
        settings = LedgerSettings(lanes=_CONNECTIONS, charge_timeout_seconds=30)
        ledger = PostgresLedger(database.pool, settings)
        await _time_all(ledger, users=200, charges=300)  # rows made, plans cached
        results = list(_alone(await _time_each(ledger, charges=charges // 10)))
        for users in (200, 1):
            case = {"users": users, "waiting": _WAITING}
            seconds = await _time_all(ledger, users=users, charges=charges)
            results += _together(case, charges, seconds)
        results += await _beside_log(ledger, database.url, folder, charges=charges)
        await _check_totals(ledger, expected=300 + charges // 10 + 3 * charges)
    return results


async def _beside_log(
    ledger: PostgresLedger, url: str, folder: Path, *, charges: int
) -> list[Result]:
    """Charge while another process writes the log: both together are what one Postgres must do."""
    async with log_beside(url, folder, seconds=charges / _LOG_OUTLASTS) as beside:
        seconds = await _time_all(ledger, users=200, charges=charges)
    case: dict[str, int | str] = {"users": 200, "waiting": _WAITING, "beside": "log"}
    return [*_together(case, charges, seconds), *beside.results]


def _alone(times: list[float]) -> Iterator[Result]:
    for percent in (50, 99):
        yield Result(
            case={"waiting": 1}, metric=f"charge_p{percent}_ms", value=percentile(times, percent)
        )


def _together(case: Mapping[str, int | str], charges: int, seconds: float) -> Iterator[Result]:
    yield Result(case=case, metric="charges_per_second", value=charges / seconds)
    yield Result(case=case, metric="ms_per_charge", value=1000 * seconds / charges)


async def _time_each(ledger: PostgresLedger, *, charges: int) -> list[float]:
    times = []
    for number in range(charges):
        began = time.perf_counter()
        await _charge(ledger, number % 200)
        times.append((time.perf_counter() - began) * 1000)
    return times


async def _time_all(ledger: PostgresLedger, *, users: int, charges: int) -> float:
    numbers = iter(range(charges))

    async def work() -> None:
        for number in numbers:
            await _charge(ledger, number % users)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(_WAITING)))
    return time.perf_counter() - began


async def _charge(ledger: PostgresLedger, user: int) -> None:
    """Charge one gang against the limits that a Quotas document usually has."""
    name, group = UserName(f"user-{user}"), GroupName(f"group-{user % _GROUPS}")
    charge = Charge(
        decision=uuid.uuid4(),
        gang=GangKey("bench", f"gang-{next(_NUMBERS)}"),
        user=name,
        group=group,
        vc=VcName("lab"),
        class_name=ClassName("prod"),
        is_high=True,
        leaf_type=LeafType("A100"),
        leaf_count=8,
    )
    limits = [
        Limit(scope=scope, measure=measure, most=_PLENTY)
        for scope in (Scope(name, group), Scope(None, group))
        for measure in (Measure.LEAF_CELLS, Measure.LEAF_CELLS_HIGH, Measure.HOURS_DAY)
    ]
    assert isinstance(await ledger.charge(charge, limits=limits), Charged)


async def _check_totals(ledger: PostgresLedger, *, expected: int) -> None:
    """Fast and wrong is no result."""
    groups = [await ledger.usage(Scope(None, GroupName(f"group-{n}"))) for n in range(_GROUPS)]
    assert sum(usage.gangs for usage in groups) == expected
    assert sum(usage.leaf_cells for usage in groups) == 8 * expected
    assert sum(holding.gangs for holding in await ledger.holdings()) == expected
