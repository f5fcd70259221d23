"""The planner in a play: what it does not do there."""

from dataclasses import replace

from policy.queues.queues import DEFAULT_QUEUES, DefragmentationMode, DefragmentationRules
from timemachine.planned.planned_gangs import without_proposals


def test_moves_that_are_only_proposed_are_not_searched() -> None:
    mode = without_proposals(DEFAULT_QUEUES).defragmentation.mode
    assert mode is DefragmentationMode.OFF


def test_moves_that_are_performed_are_played() -> None:
    rules = DefragmentationRules(mode=DefragmentationMode.PERFORM)
    performed = replace(DEFAULT_QUEUES, defragmentation=rules)
    assert without_proposals(performed) is performed
