"""Gives the tests in this folder a real PostgreSQL."""

from tests.postgres import (
    database,
    database_url,
    embedded_directory,
    empty_database_url,
    postgres,
)

__all__ = ["database", "database_url", "embedded_directory", "empty_database_url", "postgres"]
