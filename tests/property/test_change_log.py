"""Whoever catches up with the log knows the present state, whatever was tried meanwhile."""

from contextlib import ExitStack
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from extender.cells.state import change_log
from extender.cells.state.tree import Cell, build_tree_stepwise
from extender.cells.state.undo import Undoable
from extender.cells.views.listings import run_to_end
from tests.support.cells.builders import a_cluster


class LogHistory(RuleBasedStateMachine):
    """Cells have values, which change for good and in trials; readers keep copies of them."""

    @initialize(most=st.sampled_from([3, 8, 10_000]))
    def start(self, most: int) -> None:
        self.stack = ExitStack()
        self.stack.enter_context(patch.object(change_log, "_MOST", most))
        (chain,) = a_cluster("6 nodes x 1").build().chains.values()
        self.cells = run_to_end(build_tree_stepwise(chain)).root.children
        self.state = Undoable()
        self.values = dict.fromkeys(self.cells, 0)
        self.trials: list[ExitStack] = []
        self.copies = [dict(self.values) for _ in range(3)]
        self.read = [0, 0, 0]
        self.count = 0

    @rule(cell=st.integers(0, 5))
    def change(self, cell: int) -> None:
        self.count += 1
        self._set(self.cells[cell], self.count)

    def _set(self, cell: Cell, value: int) -> None:
        before, self.values[cell] = self.values[cell], value
        self.state.changes.record(cell)
        self.state.record_undo(lambda: self._set(cell, before))

    @rule()
    def begin(self) -> None:
        if len(self.trials) < 3:
            self.trials.append(ExitStack())
            self.trial = self.trials[-1].enter_context(self.state.what_if())

    @rule(is_kept=st.sampled_from([False, False, True]))
    def end(self, is_kept: bool) -> None:
        if not self.trials:
            return
        if is_kept and len(self.trials) == 1:
            self.trial.keep()
        self.trials.pop().close()

    @rule(reader=st.integers(0, 2))
    def catch_up(self, reader: int) -> None:
        log = self.state.changes
        changed, count = log.since(self.read[reader]), log.count_since(self.read[reader])
        assert (None if changed is None else len(changed)) == count
        self.read[reader] = log.now
        copy = self.copies[reader]
        for cell in self.cells if changed is None else changed:
            assert isinstance(cell, Cell)
            copy[cell] = self.values[cell]
        assert copy == self.values

    @rule(reader=st.integers(0, 2))
    def build_again(self, reader: int) -> None:
        self.copies[reader], self.read[reader] = dict(self.values), self.state.changes.now

    @invariant()
    def little_is_remembered(self) -> None:
        if hasattr(self, "state"):
            assert len(self.state.changes._log) <= change_log._MOST + 1

    def teardown(self) -> None:
        while self.trials:
            self.trials.pop().close()
        for reader in range(3):
            self.catch_up(reader)
        self.stack.close()


TestLogHistory = LogHistory.TestCase
TestLogHistory.settings = settings(stateful_step_count=60, deadline=None)
