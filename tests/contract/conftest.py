"""Gives the tests in this folder a real PostgreSQL, ours and a stock one, and ledgers on them."""

import pytest

from state.ledger.ledger import Ledger
from tests.support.clocks import FrozenTime
from tests.support.state.ledgers import a_patient_ledger
from tests.support.state.postgres import database, database_url, postgres
from tests.support.state.stock_postgres import stock, stock_database
from tests.support.twins.ledger import MemoryLedger

__all__ = ["database", "database_url", "postgres", "stock", "stock_database"]


@pytest.fixture
def clock() -> FrozenTime:
    return FrozenTime()


@pytest.fixture(params=["memory", "embedded", "stock"])
def ledger(request: pytest.FixtureRequest, clock: FrozenTime) -> Ledger:
    if request.param == "memory":
        return MemoryLedger(clock)
    name = "database" if request.param == "embedded" else "stock_database"
    return a_patient_ledger(request.getfixturevalue(name).pool, clock=clock)
