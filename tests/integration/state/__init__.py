"""state/ on a real PostgreSQL server."""
