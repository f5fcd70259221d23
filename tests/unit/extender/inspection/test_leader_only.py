"""What a replica that does not lead says instead of a wrong answer."""

from extender.inspection.leader_only import why_not
from extender.leader_role import LeaderRole, SoleReplica
from service.clock import Clock
from service.health import Health


class StandingBy(SoleReplica):
    """Another replica was elected, or none."""

    is_leading = False

    def __init__(self, holder: str) -> None:
        super().__init__(Clock())
        self.holder = holder


def test_a_standby_names_the_leader_and_where_to_ask() -> None:
    said = why_not(LeaderRole(StandingBy("extender-0_ab12")), Health())
    assert said == (
        "this replica does not lead: extender-0_ab12 does, and only the leader can answer; "
        "ask the Service cellgate-extender, which selects it"
    )


def test_without_any_leader_it_names_the_lease() -> None:
    said = why_not(LeaderRole(StandingBy("")), Health())
    assert said == (
        "this replica does not lead, and no replica holds the Lease cellgate-extender; "
        "ask again when one does"
    )


def test_a_replica_that_takes_over_does_not_name_itself() -> None:
    assert why_not(LeaderRole(SoleReplica(Clock())), Health()) == (
        "this replica has just become the leader and rebuilds its state; ask again"
    )


def test_a_replica_that_is_not_synced_says_what_it_waits_for() -> None:
    said = why_not(LeaderRole(StandingBy("a")), Health(["pods synced"]))
    assert said == "this replica cannot answer yet: waiting for: pods synced"
