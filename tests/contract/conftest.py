"""Gives the tests in this folder a real PostgreSQL: ours, and a stock one."""

from tests.postgres import database, database_url, postgres
from tests.stock_postgres import stock, stock_database

__all__ = ["database", "database_url", "postgres", "stock", "stock_database"]
