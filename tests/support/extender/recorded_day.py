"""`RecordedDay`: what both services record of a few gangs, in the log and in the history."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from extender.cells.model import MemberRequest, PlacedMember
from extender.cluster.journal import SERVICE, LogJournal
from policy.parser import DocumentKind
from policy.placement import Placement
from policy.store import PolicyText, build_policy
from policy.submission import GangKey, LeafType, NodeName, PodUid, VcName
from service.clock import Clock
from state.history.facts import Certainty, GangFacts
from state.log.archive.transfer import export_log
from state.log.log import DecisionLog
from state.log.postgres import PostgresDecisions
from state.log.records import LoggedDocument, RowKind
from state.log.stretches import Wanted
from tests.support.clocks import FrozenSeconds, FrozenTime
from tests.support.extender.mixed_load import NODES, node_of
from tests.support.policy.documents import CLASSES_TEXT
from tests.support.state.records import a_decision
from tests.support.twins.log import MemoryDecisions

MORNING = datetime(2026, 3, 2, 8, tzinfo=UTC)


class RecordedDay:
    """A day whose clock the test advances."""

    def __init__(
        self,
        *,
        cluster: str | None = None,
        policies: Sequence[PolicyText] = (),
        database: PostgresDecisions | None = None,
    ) -> None:
        """Record in memory unless a database is given."""
        self.time = FrozenTime(MORNING)
        self.store = MemoryDecisions()
        self.log = DecisionLog(database or self.store)
        self._placed: dict[str, list[PlacedMember]] = {}
        self._facts: dict[str, GangFacts] = {}
        self._epoch = 0
        self._cluster = cluster
        self.use(*policies)
        self.lead()

    def use(self, *texts: PolicyText) -> None:
        """Put policies in force for later submissions, beside three classes."""
        classes = PolicyText(kind=DocumentKind.CLASSES, source="classes", text=CLASSES_TEXT)
        content = build_policy([classes, *texts]).content
        self._policy = LoggedDocument(kind="policy", content=content)

    def lead(self) -> None:
        """A leader starts: it is told of all nodes and of what runs."""
        self._epoch += 1
        clock = Clock(now=self.time, monotonic=FrozenSeconds())
        self.journal = LogJournal(self.log, epoch=self._epoch, clock=clock)
        self.journal.begin(lease_seconds=60.0)
        for name in NODES:
            self.journal.observe_node(node_of(name))
        if self._cluster is not None:
            self.journal.change_document(self._cluster)
        for member in [one for placed in self._placed.values() for one in placed]:
            self.journal.prepare(member)
        self.journal.recover(len(self._placed), now=0.0)

    def submit(
        self, name: str, *sizes: int, class_name: str = "test", user: str = "alice", vc: str = "a"
    ) -> None:
        """The webhook admits a gang, and the leader sees its pods."""
        self._decide(name, sizes, class_name=class_name, user=user, vc=vc, outcome="admitted")
        self._facts[name] = GangFacts(
            run=f"{name}-{self.time.now:%H%M%S}",
            gang=f"lab/{name}",
            user_name=user,
            vc=vc,
            requested_class=class_name,
            leaf_count=sum(sizes),
            member_count=len(sizes),
            asked_at=self.time.now.replace(microsecond=0),
            members={
                f"{name}-{place}": {"leafCells": size, "certainty": Certainty.NO_END, "stamp": "1"}
                for place, size in enumerate(sizes)
            },
        )
        self._tell(name)

    def refuse(self, name: str, *sizes: int, class_name: str = "prod", user: str = "bob") -> None:
        """The webhook refuses a gang."""
        self._decide(name, sizes, class_name=class_name, user=user, vc="a", outcome="refused")

    def start(self, name: str, *nodes: int) -> None:
        """All pods of a gang are bound, to these nodes."""
        facts = self._facts[name]
        sizes = [member["leafCells"] for member in facts.members.values()]
        for place, (size, node) in enumerate(zip(sizes, nodes, strict=True)):
            request = MemberRequest(
                member=PodUid(f"{name}-{place}"),
                gang=GangKey("lab", name),
                leaf_count=size,
                gang_leaf_counts=tuple(sizes),
                leaf_type=LeafType("A100"),
                vc=VcName(facts.vc or ""),
                priority={"prod": 100, "test": 10, "oppo": -1}[facts.requested_class or ""],
                created=0.0 if facts.asked_at is None else facts.asked_at.timestamp(),
            )
            where = Placement(node=NodeName(NODES[node]), leaf_cells=tuple(range(size)))
            placed = PlacedMember(request=request, placement=where)
            self._placed.setdefault(name, []).append(placed)
            self.journal.observe_bound(placed)
        self._facts[name] = replace(facts, started_at=self.time.now)
        self._tell(name)

    def end(self, name: str, outcome: str = "succeeded") -> None:
        """All pods of a gang end."""
        for placed in self._placed.pop(name, ()):
            self.journal.forget_member(placed.request.member)
        facts = self._facts.pop(name)
        self._facts[name] = replace(
            facts, ended_at=self.time.now, outcome=outcome, certainty=Certainty.KNOWN
        )
        self._tell(name)

    async def export(self, path: Path, wanted: Wanted | None = None) -> None:
        """Write the log in memory to a file."""
        await self.log.flush()
        await export_log(
            self.store,
            path,
            service=SERVICE,
            wanted=wanted or Wanted(),
            on_progress=lambda *_: None,
        )

    def _tell(self, name: str) -> None:
        facts = self._facts[name]
        state = "running" if facts.started_at else "waiting"
        self.journal.note(RowKind.RUN, facts.gang, facts.outcome or state, facts=facts)

    def _decide(
        self,
        name: str,
        sizes: tuple[int, ...],
        *,
        class_name: str,
        user: str,
        vc: str,
        outcome: str,
    ) -> None:
        self.log.append(
            a_decision(
                f"lab/{name}",
                at=self.time.now,
                outcome=outcome,
                details={
                    "user": user,
                    "group": None,
                    "vc": vc,
                    "requestedClass": class_name,
                    "class": class_name,
                    "leafCount": sum(sizes),
                },
                inputs={
                    "policy": self._policy.hash,
                    "groups": ["staff"],
                    "gangSize": len(sizes),
                    "leafType": "A100",
                    "labels": {},
                },
                documents=(self._policy,),
            )
        )
