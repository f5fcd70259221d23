"""Every admission decision of a test is made again from its row, which must say the same."""

from dataclasses import replace

import orjson

from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import GangDecision
from policy.admission.logged import (
    decide_again,
    describe_decision,
    describe_logged,
    encode_details,
    encode_inputs,
    explain,
)
from policy.policy import restore
from policy.rules.decision import Outcome
from state.log.log import DecisionLog
from state.log.records import DecisionRecord
from tests.support.state.records import a_decision
from webhook.admission.admitter import Admitter
from webhook.records.replay import AdmissionReplay


class ReplayedAdmitter(Admitter):
    """An admitter whose recorded decisions are made again at once."""

    async def admit(self, request: ChargeRequest) -> GangDecision:
        decision = await super().admit(request)
        if decision.is_new or decision.outcome is Outcome.REFUSED:
            check(request, decision)
        return decision


def check(request: ChargeRequest, decision: GangDecision) -> None:
    """Write the row of a decision, and make the decision again from it."""
    row = a_decision(
        str(request.submission.gang),
        outcome=decision.outcome,
        reason=explain(decision),
        details=_stored(encode_details(request, decision)),
        inputs=_stored(encode_inputs(request, decision)),
    )
    again = describe_decision(*decide_again(row, restore(request.policy.content)))
    again["group"] = row.details["group"]  # tests choose it
    assert again == describe_logged(row)


class ReplayedLog(DecisionLog):
    """A log whose admission decisions are made again at once."""

    def append(self, record: DecisionRecord) -> None:
        super().append(record)
        replay = self.replay = getattr(self, "replay", None) or AdmissionReplay()
        stored = replace(record, details=_stored(record.details), inputs=_stored(record.inputs))
        replay.feed(stored)
        assert replay.report.differences == []
        assert replay.report.is_identical


def _stored(values: object) -> dict[str, object]:
    """Return what is read back."""
    read: dict[str, object] = orjson.loads(orjson.dumps(values))
    return read
