"""A new document is built beside the cells in use, step by step, while the cluster goes on.

Whatever happens between two steps: every invariant holds, no gang is forgotten, and no running pod
is counted elsewhere than where it runs.
"""

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from extender.cells.model import MemberRequest
from extender.cells.views.listings import run_to_end
from policy.cluster.document import ClusterDocument
from policy.submission import GangKey, NodeName, PodUid, VcName
from tests.support.cells.engine_calls import check
from tests.support.cells.following import Following, documents
from tests.support.examples import at_most_in_ci

Place = tuple[PodUid, NodeName]


class Rebuilding(Following):
    """Plays a cluster whose document and classes change, too, and never at a good moment."""

    change: Iterator[None] | None = None
    preparation: Iterator[None] = iter(())

    @rule()
    def follow(self) -> None:
        self.finish()
        super().follow()

    @precondition(lambda self: self.change is None)
    @rule(document=documents())
    def change_document(self, document: ClusterDocument) -> None:
        self.document = document
        self.builder = document.builder()
        for node in self.nodes.values():
            self.builder.observe(node)
        self.change = self.engine.change_topology_stepwise(
            run_to_end(self.builder.build_stepwise()).topology
        )

    @precondition(lambda self: self.change is None)
    @rule()
    def begin_to_follow(self) -> None:
        self.change = self.update(run_to_end(self.builder.build_stepwise()).topology)

    @precondition(lambda self: self.change is None and self.requests)
    @rule(number=st.integers(0, 5), priority=st.sampled_from([-1, 0, 3, 5]))
    def change_class(self, number: int, priority: int) -> None:
        ranks = {gang.gang: gang.priority for gang in self.engine.gangs()}
        old = sorted(set(ranks.values()))[number % len(set(ranks.values()))] if ranks else 0
        chosen = {gang: priority for gang, rank in ranks.items() if rank == old}
        self.requests = {
            key: one if key not in chosen else replace(one, priority=priority)
            for key, one in self.requests.items()
        }
        self.change = self.engine.rerank_stepwise(chosen)

    @precondition(lambda self: self.change is not None)
    @rule(steps=st.sampled_from([1, 2, 5, 20]))
    def advance(self, steps: int) -> None:
        for _ in range(steps):
            if self.change is not None:
                self.do_step(self.change)

    @rule(vc=st.sampled_from("ab"), size=st.sampled_from([1, 2, 4]), steps=st.integers(1, 6))
    def prepare(self, vc: str, size: int, steps: int) -> None:
        """A preemption is prepared, while all else goes on; `check` audits what was prepared."""
        for _ in range(steps):
            next(self.preparation, None)
        request = MemberRequest(
            member=PodUid("next"),
            gang=GangKey("ns", "next"),
            leaf_count=size,
            gang_leaf_counts=(size,),
            vc=VcName(vc),
            priority=7,
        )
        self.preparation = self.engine.prepare_stepwise(request)

    def do_step(self, change: Iterator[None]) -> None:
        before = running(self)
        try:
            next(change)
        except StopIteration:
            self.change = None
        assert running(self) == before
        check(self.engine)

    def finish(self) -> None:
        while self.change is not None:
            self.do_step(self.change)

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.finish()
            self.follow()
            run_to_end(self.engine.check_stepwise())


def running(world: Rebuilding) -> dict[GangKey, list[Place]]:
    """Where the members of each gang run."""
    return {
        gang.gang: sorted((uid, gang.members[uid].node) for uid in gang.bound)
        for gang in world.engine.gangs()
        if gang.bound
    }


TestRebuilding = Rebuilding.TestCase
TestRebuilding.settings = settings(
    max_examples=at_most_in_ci(200), stateful_step_count=40, deadline=None
)
