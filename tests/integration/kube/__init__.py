"""Tests with real sockets and processes, by the module they are about."""
