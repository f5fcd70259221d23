"""An epoch decided again from its rows alone."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from extender.cells.model import FreeMode, MemberRequest, PlacedMember, Preempt
from extender.cells.views.listings import run_to_end
from extender.cluster.cluster import Cluster
from extender.cluster.journal import DecisionContext, LogJournal
from extender.cluster.replay import Report, replay_epoch
from kube.read.nodes import KubeNode
from policy.placement import Placement
from policy.pod_resources import Shortage
from policy.submission import GangKey, NodeName, PodUid, VcName
from service.clock import Clock
from state.log.log import DecisionLog
from state.log.records import RowKind
from tests.support.cells.engine_calls import check
from tests.support.kube.nodes import a_node
from tests.support.policy.cluster_texts import derived_text, hived_text
from tests.support.twins.log import MemoryDecisions

NODES = [NodeName(f"node-{index:02}") for index in range(8)]
_CPU = Shortage(resource="cpu", asked=2000, short=3, nodes=8, node="node-00", free=1, total=8000)


def node_of(name: NodeName, *, is_healthy: bool = True) -> KubeNode:
    node = a_node(name).of_type("A100").in_rack(f"rack-{int(name[-2:]) // 4}")
    return (node if is_healthy else node.unready()).read()


class MixedLoad:
    """A cluster under mixed load: gangs of all kinds come, run and go; nodes fail."""

    def __init__(
        self,
        seed: int,
        text: str,
        *,
        has_grace: bool = False,
        is_short: bool = False,
        changes_to: str | None = None,
    ) -> None:
        """`has_grace`: members are told to end some time before they have.

        `is_short`: nodes lack more than leaf cells, now and then. `changes_to`: another document
        that replaces the first one, and so on, step by step while all else happens.
        """
        self.store = MemoryDecisions()
        self.log = DecisionLog(self.store)
        self.running: dict[PodUid, PlacedMember] = {}
        self.asking: dict[PodUid, MemberRequest] = {}
        self.ending: dict[PodUid, None] = {}
        self._words = {"gang": 3, "ask": 8, "bind": 4, "end": 3, "node": 1, "expire": 1}
        self._words |= {"refresh": 1, "rerank": 1} | (
            {"leave": 3, "linger": 1, "raise_one": 2, "budget": 2} if has_grace else {}
        )
        self._words |= {"change": 2, "advance": 6} if changes_to else {}
        self._texts = [text, changes_to or text]
        self._change_under_way: Iterator[None] = iter(())
        self._random = Random(seed)
        self._room = Random(seed) if is_short else None
        self._text = text
        self._now = 0.0
        self._born = 0
        self._epoch = 0
        self._alive = dict.fromkeys(NODES, True)
        self.start()

    def start(self) -> None:
        """Start, or start again after a crash: leases are lost, what runs is not."""
        self._epoch += 1
        journal = LogJournal(self.log, epoch=self._epoch, clock=Clock())
        self.cluster = Cluster(lease_seconds=10, journal=journal)
        self._change_under_way = iter(())
        for name, is_healthy in self._alive.items():
            self.cluster.observe_node(node_of(name, is_healthy=is_healthy))
        self.cluster.use_document(self._text)
        running = list(self.running.values())
        run_to_end(self.cluster.recover_stepwise(running, released=[], now=0.0))
        for uid in self.ending:
            self.cluster.observe_ending(uid)

    def step(self) -> None:
        self._now += self._random.random()
        (word,) = self._random.choices([*self._words], [*self._words.values()])
        getattr(self, f"_{word}")()

    def _gang(self) -> None:
        self._born += 1
        sizes = self._random.choice([(1,), (8,), (4, 4), (8, 8), (2, 2, 2)])
        whole = MemberRequest(
            member=PodUid(""),
            gang=GangKey("lab", f"gang-{self._born}"),
            leaf_count=0,
            gang_leaf_counts=sizes,
            gang_min=self._random.choice([None, 1]),
            vc=VcName(self._random.choice(["a", "b", "nobody"])),
            priority=self._random.choice([-1, 0, 5]),
            is_lazy=self._random.random() < 0.3,
            ignores_candidates=self._random.random() < 0.5,
            free_mode=self._random.choice(list(FreeMode)),
        )
        for index, size in enumerate(sizes):
            uid = PodUid(f"{whole.gang.name}-{index}")
            self.asking[uid] = replace(whole, member=uid, leaf_count=size)

    def _ask(self) -> None:
        if not self.asking:
            return
        request = self.asking[self._random.choice(sorted(self.asking))]
        offered = self._random.choice([NODES, NODES, self._random.sample(NODES, 3), NODES[:1]])
        context = DecisionContext(
            kind=self._random.choice([RowKind.PLACEMENT, RowKind.PREEMPTION]),
            now=self._now,
            applies_preemption=self._random.random() < 0.5,
        )
        if self._room is not None:
            limits = {name: 4 for name in NODES if self._room.random() < 0.1}
            shortage = _CPU if self._room.random() < 0.2 else None
            context = replace(context, limits=limits, shortage=shortage)
        decision = self.cluster.decide(
            request, candidate_nodes=dict.fromkeys(offered), context=context
        )
        if isinstance(decision, Preempt) and context.applies_preemption:
            for victim in decision.victims:
                for uid in self.cluster.members.of_gang(victim):
                    self._forget(uid)

    def _bind(self) -> None:
        placed = [uid for uid in sorted(self.asking) if self.cluster.has_place(uid)]
        if not placed:
            return
        uid = self._random.choice(placed)
        placement = self.cluster.placement(uid)
        assert placement is not None
        if self._random.random() < 0.1:  # somebody else binds it elsewhere
            placement = Placement(node=self._random.choice(NODES), leaf_cells=())
        self.running[uid] = PlacedMember(request=self.asking.pop(uid), placement=placement)
        self.cluster.observe_bound(self.running[uid])

    def _end(self) -> None:
        alive = sorted({*self.running, *self.asking})
        if alive:
            self._forget(self._random.choice(alive))

    def _leave(self) -> None:
        """All members of a gang that run are told to end, more than once."""
        if not self.running:
            return
        gang = self._random.choice(list(self.running.values())).request.gang
        members = [uid for uid, bound in self.running.items() if bound.request.gang == gang]
        for uid in (*members, *members):
            self.ending[uid] = None
            self.cluster.observe_ending(uid)

    def _linger(self) -> None:
        """One that was told to end takes too long."""
        if self.ending:
            self.cluster.observe_overdue(self._random.choice([*self.ending]))

    def _budget(self) -> None:
        """A PodDisruptionBudget protects a gang, or not any more."""
        if self.running:
            gang = self._random.choice(list(self.running.values())).request.gang
            self.cluster.observe_budget(gang, breaks=self._random.random() < 0.7)
            check(self.cluster._engine)

    def _forget(self, uid: PodUid) -> None:
        self.ending.pop(uid, None)
        self.running.pop(uid, None)
        self.asking.pop(uid, None)
        self.cluster.forget_member(uid)

    def _node(self) -> None:
        name = self._random.choice(NODES)
        self._alive[name] = not self._alive[name]
        self.cluster.observe_node(node_of(name, is_healthy=self._alive[name]))

    def _expire(self) -> None:
        self._now += self._random.choice([0, 12])
        self.cluster.expire(now=self._now)

    def _raise_one(self) -> None:
        """The effective class of one gang is raised."""
        gangs = sorted(gang.gang for gang in self.cluster.gangs())
        if not gangs:
            return
        gang, rank = self._random.choice(gangs), self._random.choice([0, 5, 9])
        for uid, request in self.asking.items():
            if request.gang == gang and request.priority < rank:
                self.asking[uid] = replace(request, priority=rank)
        for uid, bound in self.running.items():
            if bound.request.gang == gang and bound.request.priority < rank:
                raised = replace(bound.request, priority=rank)
                self.running[uid] = replace(bound, request=raised)
        self.cluster.raise_gang(gang, rank)
        check(self.cluster._engine)

    def _rerank(self) -> None:
        """Some gangs are of a class that counts otherwise from now on."""
        gangs = sorted(gang.gang for gang in self.cluster.gangs())
        some = self._random.sample(gangs, len(gangs) // 2)
        ranks = {gang: self._random.choice([-1, 0, 5, 9]) for gang in some}
        for uid, request in self.asking.items():
            rank = ranks.get(request.gang, request.priority)
            self.asking[uid] = replace(request, priority=rank)
        for uid, bound in self.running.items():
            rank = ranks.get(bound.request.gang, bound.request.priority)
            self.running[uid] = replace(bound, request=replace(bound.request, priority=rank))
        self._finish()
        self.cluster.rerank(ranks)
        check(self.cluster._engine)

    def _change(self) -> None:
        """Another document is to be in force."""
        self._finish()
        self._texts.reverse()
        self._change_under_way = self.cluster.use_document_stepwise(self._texts[0])

    def _advance(self) -> None:
        for _ in range(self._random.choice([1, 3, 10])):
            next(self._change_under_way, None)
        check(self.cluster._engine)

    def _finish(self) -> None:
        for _ in self._change_under_way:
            pass

    def _refresh(self) -> None:
        self._finish()
        name = self._random.choice(NODES)
        self.cluster.forget_node(name)
        if self.cluster.is_stale:
            self.cluster.refresh_topology()
        self.cluster.observe_node(node_of(name, is_healthy=self._alive[name]))
        if self.cluster.is_stale:
            self.cluster.refresh_topology()


def _loads() -> Iterator[tuple[int, str]]:
    for seed in range(3):
        yield seed, hived_text(racks=2, nodes=4, a=4, b=3)
        yield seed, derived_text(a=4, b=3)
    # A late member for whom nothing can be reserved until its victims have ended.
    yield 211, derived_text(a=4, b=3)


@pytest.mark.parametrize("seed", range(6))
async def test_changes_of_the_document_that_take_many_steps_are_decided_alike(seed: int) -> None:
    texts = [derived_text(a=4, b=3), derived_text(a=2, b=5), hived_text(racks=2, nodes=4, a=4, b=3)]
    load = MixedLoad(seed, texts[seed % 2], changes_to=texts[1 + seed % 2], has_grace=True)
    assert {"changing", "advanced", "placed"} <= await _decide_alike(load)


@pytest.mark.parametrize(("seed", "text"), list(_loads()))
async def test_mixed_load_with_a_crash_in_it_is_decided_alike(seed: int, text: str) -> None:
    kinds = await _decide_alike(MixedLoad(seed, text))
    assert {"placed", "no-room", "runs", "ended", "found", "recovered"} <= kinds


@pytest.mark.parametrize("seed", range(3))
async def test_who_was_ending_is_known_from_the_log_also_after_a_crash(seed: int) -> None:
    load = MixedLoad(seed, derived_text(a=4, b=3), has_grace=True)
    assert {"ending", "overdue"} <= await _decide_alike(load)
    for epoch in (1, 2):
        rows = [row for row in load.store.records if row.epoch == epoch]
        told = [row.pod_uid for row in rows if row.outcome == "ending"]
        assert told
        assert len({*told}) == len(told), "told again, nothing is written down"


@pytest.mark.parametrize("seed", range(2))
async def test_what_nodes_lack_beside_leaf_cells_is_part_of_the_rows(seed: int) -> None:
    kinds = await _decide_alike(MixedLoad(seed, derived_text(a=4, b=3), is_short=True))
    assert "lacks-resources" in kinds


async def _decide_alike(load: MixedLoad) -> set[str]:
    """Play and replay; returns what the rows are about."""
    for step in range(400):
        if step == 250:
            load.start()
        load.step()
    await load.log.flush()

    reports = [await replay_epoch(load.store, epoch=epoch) for epoch in (1, 2)]
    assert [report.differences for report in reports] == [[], []]
    assert all(report.is_identical for report in reports)
    assert sum(report.rows for report in reports) == len(load.store.records)
    assert sum(report.decisions for report in reports) > 40
    return {record.outcome for record in load.store.records}


async def replay_with(outcome: str, change: Callable[[dict[str, Any]], None]) -> Report:
    """Replay an epoch in which the row of one decision was changed."""
    load = MixedLoad(1, hived_text(racks=2, nodes=4, a=4, b=3))
    for _ in range(200):
        load.step()
    await load.log.flush()
    index, record = next(
        (index, record)
        for index, record in enumerate(load.store.records)
        if record.details.get("decision", {}).get("is") == outcome
    )
    decision = deepcopy(record.details["decision"])
    change(decision)
    load.store.records[index] = replace(record, details={"decision": decision})
    report = await replay_epoch(load.store, epoch=1)
    assert all(one.sequence == record.sequence for one in report.differences)
    return report


async def test_a_decision_that_was_tampered_with_is_found() -> None:
    report = await replay_with("place", lambda row: row.update(leafCells=[99]))
    (difference,) = report.differences
    assert difference.logged["leafCells"] == [99]


def without_arguments(row: dict[str, Any]) -> None:
    """The row as it was written before reasons had arguments."""
    del row["arguments"], row["wording"]
    row["reason"] = "said in other words"


def of_another_wording(row: dict[str, Any]) -> None:
    row.update(wording=row["wording"] + 1, reason="said in other words")


def of_a_wording_with_fewer_arguments(row: dict[str, Any]) -> None:
    of_another_wording(row)
    del row["arguments"]["gang"]


@pytest.mark.parametrize("outcome", ["wait", "reject", "preempt"])
@pytest.mark.parametrize(
    "change", [without_arguments, of_another_wording, of_a_wording_with_fewer_arguments]
)
async def test_a_row_in_other_words_is_no_difference(
    outcome: str, change: Callable[[dict[str, Any]], None]
) -> None:
    report = await replay_with(outcome, change)
    assert report.is_identical


def another_text(row: dict[str, Any]) -> None:
    row["reason"] = "said in other words"


def another_argument(row: dict[str, Any]) -> None:
    of_another_wording(row)
    row["arguments"]["gang"] = "lab/other"


def another_code(row: dict[str, Any]) -> None:
    without_arguments(row)
    row["code"] = "bad-cells"


def another_outcome(row: dict[str, Any]) -> None:
    without_arguments(row)
    row["is"] = "place"


@pytest.mark.parametrize("outcome", ["wait", "reject", "preempt"])
@pytest.mark.parametrize("change", [another_text, another_argument, another_code, another_outcome])
async def test_another_text_of_the_same_wording_and_another_reason_are_differences(
    outcome: str, change: Callable[[dict[str, Any]], None]
) -> None:
    report = await replay_with(outcome, change)
    assert len(report.differences) == 1


async def test_other_victims_are_a_difference_under_any_wording() -> None:
    def change(row: dict[str, Any]) -> None:
        without_arguments(row)
        row["victims"] = ["lab/somebody-else"]

    report = await replay_with("preempt", change)
    assert len(report.differences) == 1


async def test_a_lost_row_is_a_hole() -> None:
    load = MixedLoad(1, hived_text(racks=2, nodes=4, a=4, b=3))
    await load.log.flush()
    del load.store.records[3]

    report = await replay_epoch(load.store, epoch=1)
    assert not report.is_identical
    assert str(report.missing[0]) == "rows 4 to 4 are missing"
