"""Random histories on random clusters: invariants after each step, decisions as by brute force."""

from hypothesis import settings

from tests.support.cells.engine_history import EngineHistory

TestEngineHistory = EngineHistory.TestCase
TestEngineHistory.settings = settings(stateful_step_count=20)
