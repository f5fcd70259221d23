"""No order can make a gang wait for gangs that ask much later, whatever the document says."""

from hypothesis import given
from hypothesis import strategies as st

from extender.queue.forecast.model import RunTime
from extender.queue.order.facts import QueueFacts
from extender.queue.order.gang_order import GangOrder, VcSize
from policy.queues.factors import FactorName
from policy.queues.queues import Queues
from policy.submission import GangKey, VcName
from tests.support.queue.orders import CLASSES, HOUR, queues

_HOURS = st.integers(0, 48)
_FORMULAS = (None, "worth.class * class * class", "1000000.0 * shortRun - 500.0", "1.0 / class")


@st.composite
def documents(draw: st.DrawFn) -> Queues:
    """Valid documents: `promoteAfter` is at least the horizon of the level above."""
    lines, above = [], 0
    count = draw(st.integers(1, 3))
    for place in range(count):
        worth = draw(st.dictionaries(st.sampled_from(list(FactorName)), _HOURS, min_size=1))
        formula = draw(st.sampled_from(_FORMULAS)) if sum(worth.values()) else None
        strategy = "formula" if sum(worth.values()) else "fifo"
        entries = ", ".join(f"{name}: {hours}h" for name, hours in worth.items())
        line = f"- {{name: l{place}, strategy: {strategy}, worth: {{{entries}}}"
        line += f', formula: "{formula}"' if formula else ""
        line += f", who: {{users: [u{place}]}}" if place < count - 1 else ""
        line += f", promoteAfter: {max(1, above) + draw(_HOURS)}h" if place else ""
        lines.append(line + "}")
        above = sum(worth.values())
    return queues("levels:\n" + "\n".join(lines) + "\nuserLevels: {gold: [u0]}")


@st.composite
def gangs(draw: st.DrawFn, name: str) -> QueueFacts:
    known = st.none() | st.floats(0, 100 * HOUR)
    return QueueFacts(
        gang=GangKey("ns", name),
        user=draw(st.sampled_from(["u0", "u1", "u2"])),
        group=draw(st.sampled_from([None, "g"])),
        vc=VcName(draw(st.sampled_from(["lab", "free"]))),
        class_name=draw(st.sampled_from(["prod", "test", "oppo"])),
        leaf_cells=draw(st.integers(1, 200)),
        asked=draw(st.floats(0, 200 * HOUR)),
        run_time=RunTime(median=draw(known), limit=draw(known)),
    )


@given(documents(), gangs("early"), gangs("late"), st.floats(0, 300 * HOUR))
def test_a_gang_that_asks_later_than_the_horizon_is_never_ahead(
    document: Queues, early: QueueFacts, late: QueueFacts, later: float
) -> None:
    order = GangOrder(document, CLASSES)
    order.observe_vcs({"lab": VcSize(64, 32)}, leaf_cells=128)
    own = document.level_of(early)
    if late.asked < early.asked + document.settles_after(own):
        return
    now = late.asked + later
    behind, ahead = (order.standing(one, now=now) for one in (late, early))
    assert ahead.key <= behind.key


@given(documents(), gangs("one"), st.floats(0, 300 * HOUR))
def test_parts_add_up_and_never_exceed_the_horizon(
    document: Queues, gang: QueueFacts, later: float
) -> None:
    order = GangOrder(document, CLASSES)
    standing = order.standing(gang, now=gang.asked + later)
    assert standing.rank == gang.asked - sum(part.seconds for part in standing.parts)
    horizon = document.levels[standing.level].horizon
    assert -1e-6 <= standing.credit <= horizon + 1e-6
    assert all(0.0 <= part.value <= 1.0 for part in standing.parts)
