"""The short form of the chaos test; see tests/chaos/ledger.py for the long one."""

from tests.chaos.ledger import rage


def test_the_ledger_survives_kills_of_servers_and_clients() -> None:
    counted = rage(seconds=8)
    assert counted["acknowledged charges"] > 0
    assert counted["servers killed"] + counted["clients killed"] > 0
