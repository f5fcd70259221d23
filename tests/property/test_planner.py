"""The planner, whatever becomes of its events and actions: see `PlannerHistory`."""

from hypothesis import settings

from tests.support.queue.planner_history import PlannerHistory

TestPlannerHistory = PlannerHistory.TestCase
TestPlannerHistory.settings = settings(stateful_step_count=40, deadline=None)
