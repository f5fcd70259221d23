"""Leaf cells that are reserved in advance: which gangs use them before and during the time."""

from dataclasses import replace

from extender.cells.model import ReasonCode
from extender.queue.reserve.model import Reservation, ReservationEnd, SlipCause, entry_key
from policy.classes import NO_CLASSES
from policy.queues.queues import DEFAULT_QUEUES, PreemptionRules, Queues, ReservationRules
from policy.queues.who import Who
from policy.queues.windows import AdvanceReservation, MaintenanceWindow
from policy.submission import GangKey, VcName
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.queue.timed_world import TimedWorld

HOUR = 3600.0
START = 1000.0
ANN = "ann"


def an_entry(
    members: int = 1, *, begins: float = HOUR, ends: float = 2 * HOUR, name: str = "nightly"
) -> AdvanceReservation:
    return AdvanceReservation(
        name=name,
        vc=VcName("a"),
        members=members,
        leaf_cells=4,
        who=Who(users=frozenset({ANN})),
        begins=START + begins,
        ends=START + ends,
    )


def a_world(*entries: AdvanceReservation, nodes: int = 2, **rules: object) -> TimedWorld:
    """Some nodes of four leaf cells, all promised to one VC."""
    cluster = a_cluster(f"{nodes} nodes x 4").promising("a", node=nodes)
    queues = replace(DEFAULT_QUEUES, reservations=entries, **rules)  # type: ignore[arg-type]
    world = TimedWorld(cluster.build(), queues=queues)
    world.work()
    return world


def put(
    world: TimedWorld,
    *entries: AdvanceReservation,
    maintenance: tuple[MaintenanceWindow, ...] = (),
) -> None:
    order = world.planner.ranking.order
    queues: Queues = replace(order.queues, reservations=entries, maintenance=maintenance)
    order.configure(queues, NO_CLASSES)
    for _ in world.planner.ranking.reorder():
        pass
    world.work()


def one(name: str) -> GangBuilder:
    return a_gang(name).of(4)


def reserved(world: TimedWorld) -> Reservation:
    (found,) = world.planner.reservations.in_force()
    return found


def code(world: TimedWorld, gang: GangKey) -> ReasonCode:
    noticed = world.planner._seen[gang].noticed
    assert noticed is not None
    return noticed.code


def test_an_entry_gets_cells_at_once_and_keeps_them_until_it_is_over() -> None:
    world = a_world(an_entry())
    found = reserved(world)
    assert found.entry == "nightly"
    assert (found.deadline, found.promised) == (START + HOUR, START + HOUR)
    assert len(found.seats) == 1
    world.advance(1.5 * HOUR)
    assert reserved(world).seats == found.seats
    world.advance(0.5 * HOUR)
    assert world.planner.reservations.in_force() == []
    assert world.changes[-1].end is ReservationEnd.OVER


def test_only_gangs_that_end_before_it_begins_use_its_cells() -> None:
    world = a_world(an_entry(2))
    short = world.submit(one("short"), runs=HOUR / 2, limit=HOUR / 2)
    long = world.submit(one("long"), runs=2 * HOUR, limit=2 * HOUR)
    assert short in world.started
    assert world.backfilled == [short]
    assert long not in world.started
    assert code(world, long) is ReasonCode.RESERVED_AHEAD
    text = world.planner._seen[long].noticed
    assert text is not None
    assert "by the advance reservation nightly" in text.text
    world.advance(2 * HOUR)
    assert world.started[long] == START + 2 * HOUR


def test_longer_gangs_run_beside_it() -> None:
    world = a_world(an_entry())
    long = world.submit(one("long"), runs=9 * HOUR, limit=9 * HOUR)
    more = world.submit(one("more"), runs=9 * HOUR, limit=9 * HOUR)
    assert long in world.started
    assert more not in world.started


def test_the_gangs_that_it_names_use_its_cells_before_and_during_its_time() -> None:
    world = a_world(an_entry())
    world.submit(one("long"), runs=9 * HOUR, limit=9 * HOUR)
    early = world.submit(one("early"), runs=0.5 * HOUR, user=ANN)
    assert early in world.started
    world.advance(1.2 * HOUR)
    other = world.submit(one("other"), runs=60, limit=60)
    assert other not in world.started
    named = world.submit(one("named"), runs=60, user=ANN)
    assert named in world.started


def test_a_named_gang_is_tried_though_one_of_the_same_shape_was_refused() -> None:
    world = a_world(an_entry(2))
    world.advance(1.2 * HOUR)
    gangs = [world.submit(one(f"other{place}"), runs=60, limit=60) for place in range(3)]
    named = world.submit(one("named"), runs=60, user=ANN)
    assert named in world.started
    assert not set(gangs) & world.started.keys()


def test_a_named_gang_takes_the_reserved_cells_and_not_others() -> None:
    world = a_world(an_entry(), nodes=3)
    world.advance(1.2 * HOUR)
    named = world.submit(one("named"), runs=HOUR / 2, user=ANN)
    assert world.cells.placement(world._members[named][0].member).node == reserved(world).nodes[0]  # type: ignore[union-attr]
    others = [world.submit(one(f"other{place}"), runs=60, limit=60) for place in range(2)]
    assert set(others) <= world.started.keys()


def test_opportunistic_gangs_use_the_cells_before_and_are_preempted_then() -> None:
    world = a_world(an_entry(2))
    cheap = world.submit(one("cheap").at(-1), runs=9 * HOUR)
    assert cheap in world.started
    world.advance(1.2 * HOUR)
    late = world.submit(one("late").at(-1), runs=1, limit=1)
    assert late not in world.started
    assert code(world, late) is ReasonCode.RESERVED_AHEAD
    assert not reserved(world).slips  # opportunistic gangs are no slip


def test_with_a_minimum_run_opportunistic_gangs_do_not_start_shortly_before() -> None:
    world = a_world(an_entry(2), preemption=PreemptionRules(minimum_run=600))
    world.advance(HOUR - 300)
    assert world.submit(one("cheap").at(-1), runs=9 * HOUR) not in world.started


def test_a_gang_that_fits_only_on_reserved_and_maintained_nodes_is_told_so() -> None:
    """Neither alone would let it start, so both are left out of the search for the reason."""
    world = a_world(an_entry(), preemption=PreemptionRules(minimum_run=600))
    (free,) = {*world.nodes} - {*reserved(world).nodes}
    window = MaintenanceWindow(
        name="firmware", nodes=(free,), begins=START + HOUR, ends=START + 3 * HOUR, notice=HOUR
    )
    put(world, an_entry(), maintenance=(window,))
    world.advance(HOUR - 300)
    for priority in (-1, 1):
        wide = a_gang(f"wide{priority}").times(2, 4).at(priority)
        assert code(world, world.submit(wide, runs=9 * HOUR)) is ReasonCode.MAINTENANCE


def test_a_gang_that_overruns_is_named_and_the_slip_is_recorded() -> None:
    world = a_world(an_entry(2))
    late = world.submit(one("late"), runs=1.5 * HOUR, predicted=0.5 * HOUR)
    world.advance(1.1 * HOUR)
    for _ in range(3):
        world.advance(40)
    slips = reserved(world).slips
    assert slips
    assert {(slip.cause, slip.gang) for slip in slips} == {(SlipCause.OVERRUN, late)}
    assert reserved(world).first_promised == START + HOUR


def test_free_cells_are_taken_instead_of_those_of_a_late_gang() -> None:
    world = a_world(an_entry(), nodes=2)
    world.submit(one("long"), runs=1.1 * HOUR, limit=9 * HOUR)
    late = world.submit(one("late"), runs=9 * HOUR, predicted=0.5 * HOUR)
    assert late in world.started
    for _ in range(50):
        world.advance(120)
        if not world.planner.reservations.in_force():
            break
        last = reserved(world)
    view = world.cells.view_seats(last.domain, last.kept)
    assert late not in view.holders


def test_a_named_gang_is_no_overrun() -> None:
    world = a_world(an_entry(2))
    world.submit(one("named"), runs=9 * HOUR, user=ANN)
    world.advance(1.5 * HOUR)
    assert not reserved(world).slips


def test_other_vcs_are_never_bound() -> None:
    cluster = a_cluster("2 nodes x 4").promising("a", node=1).promising("b", node=1)
    world = TimedWorld(cluster.build(), queues=replace(DEFAULT_QUEUES, reservations=(an_entry(),)))
    world.work()
    gang = world.submit(one("b").in_vc("b"), runs=9 * HOUR, limit=9 * HOUR)
    assert gang in world.started
    world.advance(1.2 * HOUR)
    assert world.submit(one("named"), runs=60, user=ANN) in world.started
    world.check()


def test_a_changed_entry_is_reserved_anew_and_a_removed_one_ends() -> None:
    world = a_world(an_entry(), nodes=3)
    world.advance(1.2 * HOUR)
    put(world, an_entry(2))
    assert len(reserved(world).seats) == 2
    assert any(one.end is ReservationEnd.WITHDRAWN for one in world.changes)
    put(world, replace(an_entry(2), who=Who(users=frozenset({"bob"}))))
    assert world.submit(one("bob"), runs=60, user="bob") in world.started
    put(world)
    assert world.planner.reservations.in_force() == []
    assert world.submit(one("other"), runs=60, limit=60) in world.started


def test_a_new_leader_takes_over_what_an_earlier_one_reserved() -> None:
    world = a_world(an_entry(), nodes=3)
    before = reserved(world)
    world.planner.reservations.restore([before, replace(before, gang=entry_key("gone"))])
    world.advance(2)
    assert reserved(world) == before


def test_an_entry_that_is_over_or_of_an_unknown_vc_reserves_nothing() -> None:
    world = a_world(
        an_entry(begins=-200, ends=-100), replace(an_entry(name="lost"), vc=VcName("x"))
    )
    world.advance(60)
    assert world.planner.reservations.in_force() == []
    assert world.submit(one("a"), runs=9 * HOUR, limit=9 * HOUR) in world.started


def test_lost_cells_are_replaced_and_that_is_a_slip() -> None:
    world = a_world(an_entry(), nodes=3)
    node = reserved(world).nodes[0]
    world.lose_node(node)
    world.advance(2)
    world.advance(2)
    assert node not in reserved(world).nodes
    assert reserved(world).slips[-1].cause is SlipCause.CELLS_LOST


def test_cells_that_are_replaced_with_lost_ones_are_used_at_once() -> None:
    cluster = a_cluster("2 nodes x 4").chain("2 nodes x 4", name="other", leaf_type="old")
    cluster = cluster.promising("a", node=2).promising("a", chain="other", node=2)
    world = TimedWorld(cluster.build())
    for place in range(2):
        world.submit(one(f"busy{place}").typed("gpu"), runs=60, limit=60)
    put(world, an_entry(2))
    long = world.submit(one("long").typed("old"), runs=9 * HOUR, limit=9 * HOUR)
    assert long not in world.started
    world.advance(120)
    world.lose_node(reserved(world).nodes[0])
    for _ in range(3):
        world.advance(2)
    assert long in world.started, "the entry has cells of the other type now"


def test_a_head_leaves_the_cells_alone_only_if_it_would_run_into_the_time() -> None:
    for limit, is_promised in ((0.25 * HOUR, True), (5 * HOUR, False)):
        world = a_world(an_entry(2), reservation=ReservationRules(after=60))
        for place in range(2):
            world.submit(one(f"old{place}"), runs=0.5 * HOUR, limit=0.5 * HOUR)
        large = world.submit(a_gang("large").times(2, 4), runs=limit, limit=limit)
        world.advance(120)
        heads = [one.gang for one in world.planner.reservations.in_force() if one.entry is None]
        assert (heads == [large]) is is_promised
        world.advance(START + 2 * HOUR - world.now)
        assert world.started[large] == START + (0.5 if is_promised else 2) * HOUR


def test_the_next_moment_at_which_something_changes_is_known() -> None:
    world = a_world(an_entry())
    calendar = world.planner.reservations.calendar
    assert calendar.next_time() == START + HOUR
    world.advance(HOUR)
    assert calendar.next_time() == START + 2 * HOUR
    world.advance(HOUR)
    assert calendar.next_time() is None
