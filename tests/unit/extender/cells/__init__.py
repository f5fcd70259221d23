"""Tests of the cell engine, by module."""
