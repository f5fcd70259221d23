"""`/v1/waiting`: every gang that waits, why, how long, and in which place."""

import pytest

from extender.cells.model import Reason, ReasonCode
from extender.cells.reason_kinds import WaitsFor, waits_for
from extender.cells.wording import explain
from policy.submission import GangKey
from tests.support.extender.gang_pods import bound, member
from tests.support.extender.shell import Shell
from tests.support.extender.waiting import a_waiting_view

A, B, C = (GangKey("lab", name) for name in "abc")


def no_room(gang: GangKey) -> Reason:
    return explain(ReasonCode.NO_ROOM, gang=str(gang), needs=((1, 8),), members=1, room=0)


@pytest.fixture
def shell() -> Shell:
    shell = Shell()
    shell.recover()
    for name in "abc":
        created = f"2026-01-01T00:00:0{'abc'.index(name)}Z"
        shell.pods.upsert(member(f"{name}-0", gang=name, size=1).gated().created_at(created))
    return shell


async def test_a_gang_has_a_reason_an_age_and_a_place(shell: Shell) -> None:
    for gang in (A, B):
        shell.outcomes.gang_waits(gang, shell.pod(f"{gang.name}-0"), no_room(gang))
    quota = explain(ReasonCode.QUOTA, gang="lab/c", group="g", leaf_cells=8)
    shell.outcomes.gang_waits(C, shell.pod("c-0"), quota)
    view = a_waiting_view(shell, cells=[B, A], quota=[C])
    places = await view.places()
    shown = {entry.gang.name: view.show(entry, places) for entry in view}
    told = ("queue", "place", "of", "code", "waitsFor", "asked")
    assert {name: tuple(one[key] for key in told) for name, one in shown.items()} == {
        "a": ("cells", 2, 2, "no-room", "cells", "2026-01-01T00:00:00Z"),
        "b": ("cells", 1, 2, "no-room", "cells", "2026-01-01T00:00:01Z"),
        "c": ("quota", 1, 1, "quota", "quota", "2026-01-01T00:00:02Z"),
    }
    assert shown["a"]["ageSeconds"] == pytest.approx(shown["b"]["ageSeconds"] + 1, abs=1)
    assert shown["a"]["reason"] == no_room(A).text
    assert "there is not enough room now" in shown["a"]["condition"]
    assert shown["c"]["limits"] == ["group g holds 8 of 8 leaf cells"]
    assert "limits" not in shown["a"]


async def test_an_expected_start_names_no_gang_of_others_to_a_viewer(shell: Shell) -> None:
    view = a_waiting_view(shell, cells=[A])
    named = {"after": ["lab/b"], "behindReservations": ["lab/c"], "withoutHistory": ["lab/b"]}
    view.expected_start = lambda _: {"unknown": "no history", **named}
    place = (await view.places())[A]
    assert view.show_start(place) == {"expectedStart": {"unknown": "no history", **named}}
    assert view.show_start(place, viewer="ann") == {"expectedStart": {"unknown": "no history"}}


async def test_the_places_of_many_gangs_are_kept_for_a_moment(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user may ask for them, and to list thousands of gangs takes the leader long."""
    monkeypatch.setattr("extender.inspection.waiting_view._MANY", 2)
    for gangs, is_kept in (([A], False), ([A, B], True)):
        view = a_waiting_view(shell, cells=gangs)
        first = await view.places()
        assert ((await view.places()) is first) is is_kept
        shell.now += 1.0
        assert (await view.places()) is not first


def test_a_gang_that_was_told_nothing_yet_is_listed_once(shell: Shell) -> None:
    shell.pods.upsert(member("a-1", gang="a", size=2).gated())
    shell.outcomes.gang_waits(B, shell.pod("b-0"), no_room(B))
    codes = sorted((entry.gang.name, entry.reason.code) for entry in a_waiting_view(shell))
    assert codes == [("a", "unplanned"), ("b", "no-room"), ("c", "unplanned")]


def test_pods_that_run_or_have_a_place_do_not_wait(shell: Shell) -> None:
    for name in "abc":
        shell.pods.upsert(bound(f"{name}-0", "node-00", gang=name, size=1))
    assert list(a_waiting_view(shell)) == []


def test_every_reason_says_what_a_gang_waits_for() -> None:
    kinds = {code: waits_for(code) for code in ReasonCode}
    assert kinds[ReasonCode.GANG_MISMATCH] is WaitsFor.OWNER
    assert len(kinds) == len(ReasonCode)
