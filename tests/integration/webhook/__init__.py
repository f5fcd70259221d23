"""Tests with real sockets, by the module they are about."""
