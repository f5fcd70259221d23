"""A real PostgreSQL for the webhook's tests."""

from tests.support.state.postgres import database, database_url, postgres

__all__ = ["database", "database_url", "postgres"]
