"""Gives the tests in this folder a real PostgreSQL: ours, and a stock one."""

from tests.support.state.postgres import (
    database,
    database_url,
    embedded_directory,
    empty_database_url,
    postgres,
)
from tests.support.state.stock_postgres import stock, stock_database

__all__ = [
    "database",
    "database_url",
    "embedded_directory",
    "empty_database_url",
    "postgres",
    "stock",
    "stock_database",
]
