"""Gives the tests in this folder a real PostgreSQL, ours and a stock one, and ledgers on them."""

import pytest

from state.ledger import Ledger
from state.ledger_postgres import PostgresLedger
from state.memory_ledger import MemoryLedger
from tests.charges import Clock
from tests.postgres import database, database_url, postgres
from tests.stock_postgres import stock, stock_database

__all__ = ["database", "database_url", "postgres", "stock", "stock_database"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "embedded", "stock"])
def ledger(request: pytest.FixtureRequest, clock: Clock) -> Ledger:
    if request.param == "memory":
        return MemoryLedger(clock)
    name = "database" if request.param == "embedded" else "stock_database"
    return PostgresLedger(request.getfixturevalue(name).pool, clock=clock)
