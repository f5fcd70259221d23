"""A log with what a replay has to repeat: epochs of a mixed load, and rows of the webhook."""

from state.log.records import LoggedDocument
from tests.support.extender.mixed_load import MixedLoad
from tests.support.policy.cluster_texts import derived_text
from tests.support.state.records import a_decision

POLICY = LoggedDocument(kind="policy", content="{}")


async def a_log(*, steps: int = 200, is_changing: bool = True) -> MixedLoad:
    """Two epochs with preemptions, perhaps changes of documents, and a crash between them."""
    load = MixedLoad(
        0,
        derived_text(a=4, b=3),
        changes_to=derived_text(a=2, b=5) if is_changing else None,
        has_grace=True,
        is_polite=True,
    )
    for step in range(steps):
        if step == steps * 5 // 8:
            load.start()
        load.step()
    await load.log.flush()
    at = load.store.records[0].at
    inputs = {"policy": POLICY.hash}
    await load.store.insert(
        [
            a_decision("lab/gang-1", at=at, inputs=inputs, documents=(POLICY,)),
            a_decision("lab/gang-2", at=at, inputs=inputs),
        ]
    )
    return load
