"""One client of the ledger for the chaos test: `python -m tests.chaos.ledger_client URL FILE NAME`.

Charges, confirms and releases its own gangs without end. Writes every answer to FILE at once, one
line each, so that the test can check them after the client was killed.

    C gang   charged
    r gang   release asked for: from here on it may be gone
    R gang   released
"""

import asyncio
import contextlib
import io
import os
import random
import sys
import uuid

import uvloop

from policy.errors import BackendError, SettingsError
from policy.quotas.limits import Measure, Scope
from policy.submission import GroupName, UserName
from state.database.database import PoolSettings, open_database
from state.ledger.ledger import Charged, LeaderTerm
from state.ledger.postgres import PostgresLedger
from tests.support.state.charges import a_charge, at_most, gang_key

USERS = [UserName(f"user-{number}") for number in range(6)]
GROUPS = [GroupName("vision"), GroupName("nlp")]
TERM = LeaderTerm(leadership="chaos", epoch=1)
USER_LIMIT = 40
GROUP_LIMIT = 90
LIMITS = [
    *(at_most(USER_LIMIT, Measure.LEAF_CELLS, Scope(user)) for user in USERS),
    *(at_most(GROUP_LIMIT, Measure.LEAF_CELLS, Scope(None, group)) for group in GROUPS),
]
_WORKERS = 4


class Client:
    """One worker: its gangs, and what it was told about them."""

    def __init__(self, ledger: PostgresLedger, notes: io.RawIOBase, name: str) -> None:
        self._ledger = ledger
        self._notes = notes
        self._name = name
        self._gangs: list[str] = []

    async def run(self) -> None:
        """Work, whatever happens to Postgres, until the parent process ends."""
        parent = os.getppid()
        while os.getppid() == parent:
            try:
                await self._charge()
                await self._release()
            except BackendError:
                await asyncio.sleep(0.05)

    async def _charge(self) -> None:
        charge = a_charge(
            f"{self._name}-{uuid.uuid4().hex}",
            user=random.choice(USERS),
            group=random.choice(GROUPS),
            leaf_count=random.randint(1, 8),
        )
        if isinstance(await self._ledger.charge(charge, limits=LIMITS), Charged):
            self._note("C", charge.gang.name)
            self._gangs.append(charge.gang.name)
            await self._ledger.confirm([charge.gang], term=TERM)
        else:
            await self._make_room()

    async def _make_room(self) -> None:
        """Release any gang: those of clients that were killed would hold everything before long."""
        if live := await self._ledger.charges():
            await self._release_one(random.choice(live).charge.gang.name)

    async def _release(self) -> None:
        while len(self._gangs) > random.randint(0, 6):
            await self._release_one(self._gangs.pop(0))

    async def _release_one(self, gang: str) -> None:
        self._note("r", gang)
        await self._ledger.release([gang_key(gang)], term=TERM)
        self._note("R", gang)

    def _note(self, what: str, gang: str) -> None:
        self._notes.write(f"{what} {gang}\n".encode())


async def main(url: str, file: str, name: str) -> None:
    """Work until killed."""
    settings = PoolSettings(connections=4, open_timeout_seconds=20)
    with open(file, "ab", buffering=0) as notes:  # noqa: ASYNC230 - one short write at a time
        async with open_database(url, application_name="chaos", settings=settings) as database:
            ledger = PostgresLedger(database.pool)
            workers = (Client(ledger, notes, f"{name}-{n}") for n in range(_WORKERS))
            await asyncio.gather(*(worker.run() for worker in workers))


if __name__ == "__main__":
    with contextlib.suppress(SettingsError):  # killed before it could connect: others follow
        uvloop.run(main(*sys.argv[1:]))
