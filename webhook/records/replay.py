"""Repeat logged admission decisions from their rows, and compare them with the logged ones.

Unlike those of the engine, each of these decisions depends on its own row alone, and on the policy
that the row names. So a missing row is no obstacle to the others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from policy.admission.logged import (
    decide_again,
    describe_decision,
    describe_logged,
    find_unequal,
    is_complete,
)
from policy.admission.logged_request import Row
from policy.errors import RequestError
from policy.policy import Policy, restore
from policy.rules.decision import Outcome
from policy.rules.recorded import MASKED, RecordedMatches
from service.memory import BoundedMap
from state.log.records import DecisionRecord, RowKind

SERVICE: Final = "webhook"
_MOST_DIFFERENCES: Final = 20
_MOST_POLICIES: Final = 16
"""Kept as objects at a time; rows of one time have few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionDifference:
    """A decision that the replay did not repeat."""

    record: DecisionRecord
    logged: Row
    replayed: Row

    @property
    def unequal(self) -> list[str]:
        """What differs."""
        return find_unequal(self.logged, self.replayed)


@dataclass(slots=True, kw_only=True)
class AdmissionReport:
    """The result of a replay."""

    rows: int = 0
    decisions: int = 0
    """Those that were made again."""
    different: int = 0
    differences: list[AdmissionDifference] = field(default_factory=list)
    """The first of them."""
    masked: int = 0
    """Those of them in which whether rules match names was taken from the row."""
    older: int = 0
    """Rows of earlier versions, which lack inputs."""
    objects: int = 0
    """Refusals of objects before any rule or quota: the log does not have the objects."""
    lacking: int = 0
    """Decisions whose policy the log does not have any more, or which this release cannot read."""
    first_at: datetime | None = None
    last_at: datetime | None = None

    @property
    def is_identical(self) -> bool:
        """Whether the replay repeated every decision that can be repeated."""
        return not self.different and not self.lacking


class AdmissionReplay:
    """Decides rows again, one after the other, in any order."""

    def __init__(
        self, *, on_row: Callable[[DecisionRecord, AdmissionDifference | None], None] | None = None
    ) -> None:
        """`on_row` is told of every decision."""
        self.report = AdmissionReport()
        self._texts: dict[str, str] = {}
        self._policies: BoundedMap[str, Policy] = BoundedMap(_MOST_POLICIES)
        self._on_row = on_row

    def feed(self, record: DecisionRecord) -> None:
        """Take in one row with the documents that no row before had; other rows are skipped."""
        self.learn(record)
        if record.service != SERVICE or record.kind != RowKind.ADMISSION:
            return
        report = self.report
        report.rows += 1
        report.first_at = report.first_at or record.at
        report.last_at = record.at
        if "policy" not in record.inputs:
            report.objects += 1
        elif not is_complete(record.inputs):
            report.older += 1
        elif (policy := self._policy(record.inputs["policy"])) is None:
            report.lacking += 1
        else:
            self._compare(record, policy)

    def learn(self, record: DecisionRecord) -> None:
        """Take in the documents of a row that is not to be decided again."""
        self._texts.update({one.hash: one.content for one in record.documents})

    def _policy(self, wanted: str) -> Policy | None:
        known = self._policies.get(wanted)
        if known is None and wanted in self._texts:
            try:
                known = self._policies[wanted] = restore(self._texts[wanted])
            except ValueError:
                return None
        return known

    def _compare(self, record: DecisionRecord, policy: Policy) -> None:
        report, logged, replayed = self.report, describe_logged(record), _replay(record, policy)
        report.decisions += 1
        report.masked += MASKED in record.inputs
        difference = None
        if find_unequal(logged, replayed):
            difference = AdmissionDifference(record=record, logged=logged, replayed=replayed)
            report.different += 1
            if len(report.differences) < _MOST_DIFFERENCES:
                report.differences.append(difference)
        if self._on_row is not None:
            self._on_row(record, difference)


def _replay(record: DecisionRecord, policy: Policy) -> dict[str, Any]:
    """Make a decision again; what prevents it is a difference, too."""
    try:
        is_masked = MASKED in record.inputs
        matcher = RecordedMatches(record.inputs, policy.rules) if is_masked else None
        return describe_decision(*decide_again(record, policy, matcher=matcher))
    except RequestError as exc:
        return {"outcome": Outcome.REFUSED.value, "reason": str(exc)}
    except Exception as exc:  # a damaged row
        return {"error": f"{type(exc).__name__}: {exc}"}
