"""What is written anew in masked rows: checksums over names, and explanations.

A row has only a checksum of the places of a gang's other members, or of all ranks. So two replays
go along: one of the rows as they are, and one of the masked rows. Where the first repeats a
decision, the checksum comes from the second. Otherwise it is left out, so that the masked row
differs, too. It is the same with explanations of admission decisions, which name users and groups.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from extender.cluster.replay import Replay
from extender.cluster.rows import Row
from state.log.records import DecisionRecord
from webhook.records.replay import AdmissionDifference, AdmissionReplay

_COMPUTED: Final = ("checksum", "failure")


class Checksums:
    """The checksums of masked decisions, epoch by epoch."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._epoch: int | None = None
        self._original: Replay | None = None
        self._masked: Replay | None = None

    def write(self, record: DecisionRecord, masked: DecisionRecord) -> DecisionRecord:
        """Return a masked row with its checksum; as it is if it cannot be decided again."""
        if record.service != self._service or record.epoch is None:
            return masked
        if record.epoch != self._epoch:
            self._epoch = record.epoch
            lease_seconds = float(record.inputs.get("leaseSeconds", 60.0))
            self._original = Replay(lease_seconds=lease_seconds)
            self._masked = Replay(lease_seconds=lease_seconds)
        if self._original is None or self._masked is None:
            return masked
        try:
            is_repeated = self._original.feed(record) is None
            self._masked.feed(masked)
        except Exception:  # rows may be missing or damaged: the replay of the file will say so
            self._original = None
            return masked
        found, decision = self._masked.repeated, masked.details.get("decision")
        if not is_repeated or found is None or not isinstance(decision, Mapping):
            return masked
        return replace(masked, details={**masked.details, "decision": _complete(decision, found)})


def _complete(decision: Mapping[str, Any], found: Row) -> Row:
    """Return a decision with what depends on names but is no name."""
    computed: Row = {name: found[name] for name in _COMPUTED if name in found}
    if "others" in decision and "others" in found:
        others, checksum = decision["others"], found["others"]["checksum"]
        is_older = not isinstance(others, Mapping)
        computed["others"] = checksum if is_older else {**others, "checksum": checksum}
    return {**decision, **computed}


class Explanations:
    """The explanations of masked admission decisions."""

    def __init__(self) -> None:
        self._differences: list[AdmissionDifference | None] = []
        self._original = AdmissionReplay(on_row=self._note)
        self._masked = AdmissionReplay(on_row=self._note)

    def write(self, record: DecisionRecord, masked: DecisionRecord) -> DecisionRecord:
        """Return a masked row with its explanation; as it is if it cannot be decided again."""
        self._differences.clear()
        self._original.feed(record)
        self._masked.feed(masked)
        match self._differences:
            case [None, AdmissionDifference(replayed=told)]:
                details = masked.details
                if "exceeded" in details:
                    details = {**details, "exceeded": told.get("exceeded", [])}
                return replace(masked, reason=str(told.get("reason", "")), details=details)
        return masked

    def _note(self, _: DecisionRecord, difference: AdmissionDifference | None) -> None:
        self._differences.append(difference)
