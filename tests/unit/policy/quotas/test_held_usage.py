"""The ledger of a play counts as the real one does."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from policy.quotas.charge import Charge
from policy.quotas.held_usage import HeldUsage
from policy.quotas.limits import Measure, Scope
from policy.quotas.usage import HeldSums, ScopeUsage
from policy.submission import ClassName, GangKey, GroupName, LeafType, UserName, VcName

_BEGIN = datetime(2026, 5, 30, 20, 0, tzinfo=UTC).timestamp()


def a_charge(number: int, rng: random.Random) -> Charge:
    return Charge(
        decision=UUID(int=number),
        gang=GangKey("lab", f"g{number}"),
        user=UserName(rng.choice(["alice", "bob"])),
        group=GroupName("team") if rng.random() < 0.8 else None,
        vc=VcName("default"),
        class_name=ClassName("prod"),
        is_high=rng.random() < 0.5,
        leaf_type=LeafType("A100") if rng.random() < 0.5 else None,
        leaf_count=rng.randrange(1, 9),
        rises_to=ClassName("prod") if rng.random() < 0.3 else None,
        cpu_millis=rng.randrange(9000),
        memory_bytes=rng.randrange(9000),
    )


def test_sums_and_times_are_those_of_scope_usage() -> None:
    """The same changes, once in place and once by `ScopeUsage.advance` and replacement."""
    rng, held, plain = random.Random(3), HeldUsage(), dict[Scope, ScopeUsage]()
    live: list[Charge] = []
    held.clock = _BEGIN
    for number in range(300):
        held.clock += rng.choice([0, 1, 600, 7200, 40_000])
        if live and rng.random() < 0.45:
            charge, sign = live.pop(rng.randrange(len(live))), -1
            held.release(charge)
        else:
            charge, sign = a_charge(number, rng), 1
            live.append(charge)
            held.charge(charge)
        moment = datetime.fromtimestamp(held.clock, UTC)
        for scope in charge.scopes:
            known = plain.get(scope, ScopeUsage(scope=scope, counted_at=moment)).advance(moment)
            plain[scope] = _plus(known, charge, sign)
        for scope, expected in plain.items():
            expected = expected.advance(moment)
            assert held.of(scope) == expected
            for measure in Measure:
                of_type = LeafType("A100")
                assert held.account(scope).used(measure, of_type) == expected.used(measure, of_type)


def _plus(usage: ScopeUsage, charge: Charge, sign: int) -> ScopeUsage:
    overflow = usage.overflow
    if charge.rises_to is not None:
        overflow = replace(overflow, **_sums(overflow, charge, sign))
    return replace(usage, overflow=overflow, **_sums(usage, charge, sign))


def _sums(sums: HeldSums, charge: Charge, sign: int) -> dict[str, Any]:
    types, cells = dict(sums.by_leaf_type), sign * charge.leaf_count
    if charge.leaf_type is not None:
        types[charge.leaf_type] = types.get(charge.leaf_type, 0) + cells
    return {
        "leaf_cells": sums.leaf_cells + cells,
        "leaf_cells_high": sums.leaf_cells_high + cells * charge.is_high,
        "gangs": sums.gangs + sign,
        "by_leaf_type": types,
        "cpu_millis": sums.cpu_millis + sign * charge.cpu_millis,
        "memory_bytes": sums.memory_bytes + sign * charge.memory_bytes,
    }
