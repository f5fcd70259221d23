"""When a service is ready, and what it says when it is not."""

from service.health import Health


def test_ready_when_every_condition_is_met() -> None:
    health = Health(["nodes synced", "pods synced"])
    assert health.reasons() == ["waiting for: nodes synced", "waiting for: pods synced"]

    health.meet("nodes synced")
    assert (health.is_ready, health.reasons()) == (False, ["waiting for: pods synced"])

    health.meet("pods synced")
    assert (health.is_ready, health.reasons()) == (True, [])


def test_while_draining_it_answers_but_is_not_ready() -> None:
    health = Health()
    health.is_draining = True

    assert health.can_answer
    assert not health.is_ready
    assert health.reasons() == ["ending: asked to stop"]


def test_a_fault_is_for_good() -> None:
    health = Health(["pods synced"])
    health.fault("background task pods died")
    health.meet("pods synced")

    assert (health.is_alive, health.can_answer, health.is_ready) == (False, False, False)
    assert health.reasons() == ["background task pods died"]
