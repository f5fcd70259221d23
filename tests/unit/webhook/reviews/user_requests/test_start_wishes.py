"""A wished start must be a time, and reaches the pods of a workload."""

import pytest

from tests.support.kube.pods import a_pod
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook


@pytest.mark.parametrize("text", ["soon", "2026-11-20T08:00:00", "2026-11-20"])
async def test_a_wished_start_that_is_no_time_is_refused(text: str) -> None:
    pod = a_pod().with_gpus(1).annotated("cellgate.io/start-by", text)
    answer = await Webhook().pods.mutate(a_review(pod))
    assert answer.message == (
        "metadata.annotations[cellgate.io/start-by]: must be a time such as "
        f'2026-11-20T08:00:00Z, not "{text}"'
    )
