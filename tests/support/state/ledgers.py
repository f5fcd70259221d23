"""Ledgers on Postgres for tests that do not measure time."""

from typing import Any

import asyncpg

from state.ledger.postgres import LedgerSettings, PostgresLedger

PATIENT = LedgerSettings(charge_timeout_seconds=60.0, timeout_seconds=60.0)
"""The machine may be busy: these tests do not ask how fast it is."""


def a_patient_ledger(pool: asyncpg.Pool, **parts: Any) -> PostgresLedger:
    """Return a ledger that waits long for Postgres."""
    return PostgresLedger(pool, PATIENT, **parts)
