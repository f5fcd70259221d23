"""Builds comparisons of any size: waits, use, gains and losses that go together."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from timemachine.comparison import (
    Anomaly,
    ChangeKind,
    Comparison,
    GangChange,
    Grouping,
    Side,
    UsePoint,
    Waits,
)

BEGIN = 1_772_323_200.0
"""2026-03-01T00:00:00Z."""
DAY = 86400.0
HOSTILE = '</script></style><img src=x onerror=alert(1)>"\' onload="x & \u202egnp\x00\ud800'


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large a comparison is, and how its names begin."""

    vcs: int = 6
    groups: int = 5
    days: float = 7.0
    points: int = 168
    wait: float = 1800.0
    """The mean wait before the change, about, in seconds."""
    changes: int = 30
    """The gangs in each list of gangs."""
    prefix: str = ""
    """What names of VCs, groups, classes, users and gangs begin with."""
    leaf_cells: int = 1024
    more_leaf_cells: int = 0
    seed: int = 7


def a_comparison(shape: Shape | None = None) -> Comparison:
    """Build a comparison; equal shapes give equal comparisons."""
    return _Builder(shape or Shape()).build()


def an_empty_comparison() -> Comparison:
    """Build a comparison of no arrivals."""
    none = Waits(gangs=0, mean=0.0, median=0.0, p95=0.0, longest=0.0)
    side = Side(
        title="recorded policies",
        leaf_cells=0,
        all=none,
        by={},
        use=(),
        utilisation=0.0,
        fragmentation=0.0,
        refused=0,
        lowered=0,
        preemptions=0,
        longest_head_wait=0.0,
    )
    return Comparison(
        source="decision log",
        begin=BEGIN,
        end=BEGIN,
        gangs=0,
        changed=(),
        before=side,
        after=side,
        counts={},
        gains=(),
        losses=(),
        others=(),
    )


class _Builder:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._random = random.Random(shape.seed)
        vcs = ("vision", "language", "speech", "ads", "robotics", "research", "platform", "maps")
        self._names = {
            Grouping.VC: self._named(vcs, shape.vcs),
            Grouping.GROUP: self._named(("nlp", "cv", "rl", "infra", "interns"), shape.groups),
            Grouping.CLASS: self._named(("prod", "test", "oppo"), 3),
            Grouping.SIZE: ["1", "2 to 8", "9 to 64", "65 and more"],
        }
        self._effects = {
            name: math.exp(self._random.gauss(-0.35, 0.6)) for name in self._names[Grouping.VC]
        }

    def build(self) -> Comparison:
        """Build both sides, and the gangs that fared differently."""
        shape = self._shape
        before, after = self._side(is_after=False), self._side(is_after=True)
        return Comparison(
            source="decision log, 2026-03-01T00:00:00Z to 2026-03-08T00:00:00Z",
            begin=BEGIN,
            end=BEGIN + shape.days * DAY,
            gangs=before.all.gangs,
            changed=(
                f"{shape.prefix}Quotas: limit of group nlp 128 → 256 leaf cells",
                "Queues: worth of age 3,600 → 7,200",
            ),
            before=before,
            after=after,
            counts={kind: shape.changes + 13 * index for index, kind in enumerate(ChangeKind)},
            gains=self._changes(ChangeKind.STARTS_EARLIER),
            losses=self._changes(ChangeKind.STARTS_LATER),
            others=[
                change
                for kind in (ChangeKind.REFUSED, ChangeKind.LOWERED, ChangeKind.PLACED_ELSEWHERE)
                for change in self._changes(kind)
            ],
            anomalies=(
                Anomaly(vc=self._names[Grouping.VC][0], mean_seconds=130.0, p95_seconds=-400.0),
            ),
            unknown=(
                "Users would have behaved differently: shorter waits invite more work.",
                "The run times of 312 of 8,214 gangs are predicted: they had not ended.",
            ),
        )

    def _named(self, names: Sequence[str], count: int) -> list[str]:
        own = [*names, *(f"team-{index:03}" for index in range(count))]
        return [f"{self._shape.prefix}{name}" for name in own[:count]]

    def _side(self, *, is_after: bool) -> Side:
        shape = self._shape
        chance = random.Random(shape.seed + 1)
        by = {
            grouping: {name: self._waits(name, chance, is_after=is_after) for name in names}
            for grouping, names in self._names.items()
        }
        cells = shape.leaf_cells + (shape.more_leaf_cells if is_after else 0)
        return Side(
            title="with quotas.yaml" if is_after else "recorded policies",
            leaf_cells=cells,
            all=_together(list(by[Grouping.VC].values())),
            by=by,
            use=self._use(cells, is_after=is_after),
            utilisation=0.742 if is_after else 0.713,
            fragmentation=0.184 if is_after else 0.231,
            refused=12 if is_after else 57,
            lowered=341 if is_after else 290,
            preemptions=88 if is_after else 131,
            longest_head_wait=shape.wait * (9 if is_after else 14),
        )

    def _waits(self, name: str, chance: random.Random, *, is_after: bool) -> Waits:
        mean = self._shape.wait * math.exp(chance.gauss(-0.5, 1.0))
        gangs = int(math.exp(chance.gauss(5.5, 1.2))) + 1
        other = chance.uniform(0.5, 1.1)
        effect = self._effects.get(name, other) if is_after else 1.0
        return Waits(
            gangs=gangs,
            mean=mean * effect,
            median=mean * 0.2 * effect,
            p95=mean * 4.1 * effect**1.2,
            longest=mean * 11 * effect,
            never_started=int(gangs * 0.01 * effect),
        )

    def _use(self, cells: int, *, is_after: bool) -> list[UsePoint]:
        shape = self._shape
        chance = random.Random(shape.seed + 2)
        weights = {name: chance.uniform(0.2, 1.0) for name in self._names[Grouping.VC]}
        total = sum(weights.values())
        points = []
        for index in range(shape.points):
            day = index / shape.points * shape.days
            daily = 0.72 + 0.2 * math.sin(2 * math.pi * day) + chance.uniform(-0.06, 0.06)
            used = cells * min(daily + (0.04 if is_after else 0.0), 1.0)
            points.append(
                UsePoint(
                    at=BEGIN + day * DAY,
                    used=used,
                    waiting=max(daily - 0.6, 0.0) * cells * (0.6 if is_after else 1.0),
                    by_vc={name: used * weight / total for name, weight in weights.items()},
                )
            )
        return points

    def _changes(self, kind: ChangeKind) -> list[GangChange]:
        sign = {ChangeKind.STARTS_EARLIER: -1, ChangeKind.STARTS_LATER: 1}.get(kind, 0)
        prefix, count = self._shape.prefix, self._shape.changes
        return [
            GangChange(
                gang=f"{prefix}nlp/bert-large-{kind}-{index:04}",
                user=f"{prefix}user{index % 7}@example.com",
                vc=self._names[Grouping.VC][index % len(self._names[Grouping.VC])],
                leaf_cells=8 << index % 4,
                submitted=BEGIN + 1000.0 * index,
                kind=kind,
                seconds=sign * self._shape.wait * 8 / (index + 1),
                before=f"class prod, started after {index + 3} h on a{index}, a{index + 1}",
                after="class test, started after 3 min on b7, b9",
            )
            for index in range(count)
        ]


def _together(waits: Sequence[Waits]) -> Waits:
    gangs = sum(one.gangs for one in waits)
    return Waits(
        gangs=gangs,
        mean=sum(one.mean * one.gangs for one in waits) / gangs,
        median=sum(one.median * one.gangs for one in waits) / gangs,
        p95=sum(one.p95 * one.gangs for one in waits) / gangs,
        longest=max(one.longest for one in waits),
        never_started=sum(one.never_started for one in waits),
    )
