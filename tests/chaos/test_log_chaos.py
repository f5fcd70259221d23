"""The short form of the chaos test; see tests/chaos/log.py for the long one."""

from tests.chaos.log import rage


def test_the_log_survives_kills_of_servers_and_writers() -> None:
    counted = rage(seconds=8)
    assert counted["acknowledged decisions"] > 0
    assert counted["stored decisions"] >= counted["acknowledged decisions"]
