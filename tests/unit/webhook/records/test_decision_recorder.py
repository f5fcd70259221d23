"""Rows of admission decisions: a row that cannot be built changes no answer."""

from typing import Any
from unittest.mock import patch

import pytest

from policy.admission.logged import encode_inputs
from tests.support.webhook.logged_admissions import LoggedAdmissions
from webhook.records import decision_recorder

_BAD = 5


async def test_a_row_that_cannot_be_built_refuses_no_pod_and_loses_no_document(
    caplog: pytest.LogCaptureFixture,
) -> None:
    built = 0

    def fail_at_first(*args: Any) -> dict[str, Any]:
        nonlocal built
        built += 1
        if built <= _BAD:
            raise ValueError("a bug")
        return encode_inputs(*args)

    with patch.object(decision_recorder, "encode_inputs", fail_at_first):
        store = await LoggedAdmissions().run(40)
    assert caplog.messages.count("decision not logged") == _BAD
    assert len(store.records) == built - _BAD > 0
    wanted = {one for record in store.records for one in record.document_hashes}
    assert wanted <= set(store.documents)
