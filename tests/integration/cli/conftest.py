"""A real PostgreSQL for the tests of whole services."""

from tests.support.state.postgres import database_url, empty_database_url, postgres

__all__ = ["database_url", "empty_database_url", "postgres"]
