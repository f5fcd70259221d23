"""The planner in a play."""
