"""Tests, by the module they are about."""
