"""Builders, a small world and scenario steps for tests of the engine."""
