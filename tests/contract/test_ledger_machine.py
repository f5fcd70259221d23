"""Random histories of the ledger: Postgres and the twin agree after every step, limits hold.

The limits stay the same throughout, so "no limit is ever exceeded" can be said of every state: of
all charges together, but for those that a reconcile made because their pods ran anyway.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import Any, TypeVar

import asyncpg
import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from policy.errors import BackendError, ConflictError
from policy.quotas.charge import Charge, CpuAndMemory
from policy.quotas.limits import Limit, Measure, Scope
from policy.quotas.usage import ScopeUsage
from policy.submission import ClassName, GroupName, LeafType, UserName
from state.ledger.ledger import LeaderTerm, Ledger, LiveCharge
from tests.support.clocks import FrozenTime
from tests.support.state.charges import a_charge, gang_key
from tests.support.state.ledgers import a_patient_ledger
from tests.support.twins.ledger import MemoryLedger

T = TypeVar("T")

_USERS = [UserName("alice"), UserName("bob")]
_GROUPS = [GroupName("vision"), GroupName("nlp")]
_TYPES = [LeafType("A100"), LeafType("V100")]
_GANGS = ["a", "b", "c", "d", "e", "f"]
_SCOPES = [
    *(Scope(user) for user in _USERS),
    *(Scope(None, group) for group in _GROUPS),
    *(Scope(user, group) for user in _USERS for group in _GROUPS),
]
_LIMITS = [
    *(Limit(scope=Scope(user), measure=Measure.LEAF_CELLS, most=9) for user in _USERS),
    *(Limit(scope=Scope(user), measure=Measure.GANGS, most=3) for user in _USERS),
    Limit(scope=Scope(None, _GROUPS[0]), measure=Measure.LEAF_CELLS_HIGH, most=6),
    Limit(
        scope=Scope(None, _GROUPS[1]),
        measure=Measure.LEAF_CELLS_OF_TYPE,
        leaf_type=_TYPES[0],
        most=5,
    ),
    Limit(scope=Scope(_USERS[0], _GROUPS[0]), measure=Measure.HOURS_DAY, most=60),
    Limit(scope=Scope(None, _GROUPS[1]), measure=Measure.HOURS_MONTH, most=400),
    Limit(scope=Scope(None, _GROUPS[0]), measure=Measure.HOURS_TOTAL, most=900),
    Limit(scope=Scope(None, _GROUPS[0]), measure=Measure.CPU_MILLIS, most=9000),
    Limit(scope=Scope(_USERS[1], _GROUPS[1]), measure=Measure.MEMORY_BYTES, most=20),
]
_EMPTY = "TRUNCATE reclaimed_gangs, charges, past_charges, holdings, leaf_cell_days, leaderships"
_CUT = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
charges = st.builds(
    a_charge,
    st.sampled_from(_GANGS),
    decision=st.integers(0, 9).map(lambda number: uuid.UUID(int=number)),
    user=st.sampled_from(_USERS),
    group=st.sampled_from([None, *_GROUPS]),
    class_name=st.sampled_from([ClassName("prod"), ClassName("oppo")]),
    is_high=st.booleans(),
    leaf_type=st.sampled_from([None, *_TYPES]),
    leaf_count=st.integers(0, 5),
    places=st.integers(0, 4),
    leaf_count_each=st.sampled_from([None, 1]),
    cpu_millis=st.integers(0, 4000),
    memory_bytes=st.integers(0, 9),
    each=st.sampled_from([None, CpuAndMemory(cpu_millis=500, memory_bytes=1)]),
    rises_to=st.sampled_from([None, None, ClassName("prod")]),
)
gangs = st.lists(st.sampled_from(_GANGS), unique=True).map(lambda names: [*map(gang_key, names)])


class _Machine(RuleBasedStateMachine):
    """Does the same to both ledgers, and compares what they say."""

    def __init__(self, url: str, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        super().__init__()
        self._run = run
        self._pool: asyncpg.Pool = run(_open(url))
        self._clock = FrozenTime()
        self._twin = MemoryLedger(self._clock)
        self._ledger = a_patient_ledger(self._pool, clock=self._clock)
        self._epoch = 1
        self._is_over_limits = False

    def teardown(self) -> None:
        self._run(self._pool.close())

    @initialize()
    def start_empty(self) -> None:
        self._run(self._pool.execute(_EMPTY))

    def _both(self, call: Callable[[Ledger], Awaitable[T]]) -> T | Exception:
        """Return the answer that both give, be it an error of the same kind."""
        expected = self._run(_outcome(call(self._twin)))
        actual = self._run(_outcome(call(self._ledger)))
        if isinstance(expected, Exception):
            assert type(actual) is type(expected), actual
        else:
            assert actual == expected
        return expected  # type: ignore[no-any-return]  # what `run` returns is not known

    @property
    def _term(self) -> LeaderTerm:
        return LeaderTerm(leadership="cellgate-extender", epoch=self._epoch)

    @rule(charge=charges)
    def charge(self, charge: Charge) -> None:
        self._both(lambda ledger: ledger.charge(charge, limits=_LIMITS))

    @rule(
        wanted=st.lists(charges, min_size=2, max_size=5, unique_by=lambda c: (c.gang, c.decision))
    )
    def charge_one_after_the_other_in_a_batch(self, wanted: list[Charge]) -> None:
        async def charge_all(ledger: Ledger) -> list[object]:
            outcomes = (_outcome(ledger.charge(charge, limits=_LIMITS)) for charge in wanted)
            answers = await asyncio.gather(*outcomes)
            return [type(answer) if isinstance(answer, Exception) else answer for answer in answers]

        # The order of a batch is that of its gangs.
        wanted = sorted(wanted, key=lambda charge: charge.gang)
        gang_names = {charge.gang for charge in wanted}
        decisions = {charge.decision for charge in wanted}
        # Otherwise it would matter which of two that are about one gang comes first.
        if len(gang_names) == len(decisions) == len(wanted):
            expected = self._run(charge_all(self._twin))
            actual = self._run(charge_all(self._ledger))
            assert [type(answer) for answer in actual] == [type(answer) for answer in expected]

    @rule(number=st.integers(0, 9), leaf_count=st.integers(0, 5))
    def resize(self, number: int, leaf_count: int) -> None:
        charge = self._chosen(number)
        if charge is not None:
            self._both(lambda ledger: ledger.resize(charge, leaf_count, limits=_LIMITS))

    @rule(number=st.integers(0, 9), leaf_count=st.integers(1, 3))
    def join(self, number: int, leaf_count: int) -> None:
        charge = self._chosen(number)
        if charge is not None:
            self._both(lambda ledger: ledger.join(charge, leaf_count, limits=_LIMITS))
            assert self._places(self._ledger) == self._places(self._twin)

    @rule(number=st.integers(0, 9), cpu=st.integers(0, 4000), memory=st.integers(0, 9))
    def add(self, number: int, cpu: int, memory: int) -> None:
        charge = self._chosen(number)
        if charge is not None:
            more = CpuAndMemory(cpu_millis=cpu, memory_bytes=memory)
            self._both(lambda ledger: ledger.add(charge, more, limits=_LIMITS))

    @rule(number=st.integers(0, 9), is_high=st.booleans())
    def raise_class(self, number: int, is_high: bool) -> None:
        charge = self._chosen(number)
        if charge is not None:
            raised = partial(
                _raise_class, charge=charge, is_high=is_high, limits=_LIMITS, term=self._term
            )
            self._both(raised)

    def _chosen(self, number: int) -> Charge | None:
        """Return one of the charges there are, if there is one."""
        charged: tuple[LiveCharge, ...] = self._run(self._twin.charges())
        return charged[number % len(charged)].charge if charged else None

    def _places(self, ledger: Ledger) -> list[int]:
        return [live.charge.places for live in self._run(ledger.charges())]

    def _standings(self, ledger: Ledger) -> list[object]:
        live = self._run(ledger.charges())
        return [(one.charge.rises_to, one.charge.raised_from) for one in live]

    @rule(gangs=gangs)
    def confirm(self, gangs: list[Any]) -> None:
        self._both(lambda ledger: ledger.confirm(gangs, term=self._term))

    @rule(gangs=gangs)
    def release(self, gangs: list[Any]) -> None:
        self._both(lambda ledger: ledger.release(gangs, term=self._term))

    @rule(gangs=gangs, hours=st.integers(0, 9))
    def note_reclaimed(self, gangs: list[Any], hours: int) -> None:
        asked = dict.fromkeys(gangs, self._clock() - timedelta(hours=hours))
        self._both(lambda ledger: ledger.note_reclaimed(asked, term=self._term))

    @rule()
    def expire(self) -> None:
        self._both(lambda ledger: ledger.expire(term=self._term))

    @rule(number=st.integers(0, 9), leaf_count=st.integers(0, 5), cpu=st.integers(0, 4000))
    def recount(self, number: int, leaf_count: int, cpu: int) -> None:
        charge = self._chosen(number)
        if charge is not None:
            self._is_over_limits = True
            counted = [replace(charge, leaf_count=leaf_count or charge.leaf_count, cpu_millis=cpu)]
            self._both(lambda ledger: ledger.recount(counted, term=self._term))

    @rule(
        existing=st.lists(charges, unique_by=(lambda c: c.gang, lambda c: c.decision)),
        grace_seconds=st.sampled_from([0.0, 30.0]),
    )
    def reconcile(self, existing: list[Charge], grace_seconds: float) -> None:
        # A decision is made for one gang, also by a planner that was restarted.
        existing = [
            replace(charge, decision=uuid.uuid5(charge.decision, str(charge)))
            for charge in existing
        ]
        self._is_over_limits = self._is_over_limits or bool(existing)
        self._both(
            lambda ledger: ledger.reconcile(existing, term=self._term, grace_seconds=grace_seconds)
        )

    @rule(seconds=st.sampled_from([0.000001, 1.5, 9.0, 10.0, 3600.0, 40_000.0, 700_000.0]))
    def time_passes(self, seconds: float) -> None:
        self._clock.advance(seconds=seconds)

    @rule()
    def another_leader_takes_over(self) -> None:
        self._epoch += 1

    @precondition(lambda self: self._epoch > 1)
    @rule(gangs=gangs)
    def a_deposed_leader_writes(self, gangs: list[Any]) -> None:
        old = LeaderTerm(leadership="cellgate-extender", epoch=self._epoch - 1)
        self._both(lambda ledger: ledger.confirm([], term=self._term))
        assert isinstance(self._both(lambda ledger: ledger.release(gangs, term=old)), ConflictError)

    @rule(charge=charges)
    def crash_before_the_answer_is_read(self, charge: Charge) -> None:
        """The charge may have been made: asked again, it is made once."""

        async def charge_then_lose_everything() -> None:
            answer = asyncio.create_task(_outcome(self._ledger.charge(charge, limits=_LIMITS)))
            async with self._pool.acquire() as killer:
                await killer.execute(_CUT)
            await answer
            await self._pool.expire_connections()

        self._run(charge_then_lose_everything())
        self._both(lambda ledger: ledger.charge(charge, limits=_LIMITS))

    @invariant()
    def both_hold_the_same(self) -> None:
        self._both(lambda ledger: ledger.charges())
        assert self._standings(self._ledger) == self._standings(self._twin)
        self._both(lambda ledger: ledger.first_asked(list(map(gang_key, _GANGS))))
        self._both(lambda ledger: ledger.holdings())
        self._both(lambda ledger: ledger.days(date(2026, 5, 1), date(2027, 12, 31)))
        for scope in _SCOPES:
            self._both(partial(_usage, scope=scope))

    @invariant()
    def no_limit_is_exceeded(self) -> None:
        for limit in _LIMITS:
            if not limit.measure.is_hours and not self._is_over_limits:
                usage = self._run(self._ledger.usage(limit.scope))
                assert usage.used(limit.measure, limit.leaf_type) <= limit.most


async def _usage(ledger: Ledger, *, scope: Scope) -> ScopeUsage:
    return await ledger.usage(scope)


async def _raise_class(
    ledger: Ledger, *, charge: Charge, is_high: bool, limits: list[Limit], term: LeaderTerm
) -> object:
    return await ledger.raise_class(
        charge, ClassName("test"), is_high=is_high, limits=limits, term=term
    )


async def _outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except (BackendError, ConflictError, ValueError) as error:
        return error


async def _open(url: str) -> asyncpg.Pool:
    return await asyncpg.create_pool(url, min_size=0, init_size=1, max_size=4)


def test_postgres_and_its_twin_agree_after_every_step(database_url: str) -> None:
    loop = asyncio.new_event_loop()

    class Machine(_Machine):
        def __init__(self) -> None:
            super().__init__(database_url, loop.run_until_complete)

    # Every step asks Postgres a dozen questions: fewer examples than usual, 50 take a minute.
    examples = min(50, max(10, hypothesis.settings().max_examples // 3))
    settings = hypothesis.settings(max_examples=examples, stateful_step_count=25, deadline=None)
    try:
        run_state_machine_as_test(Machine, settings=settings)
    finally:
        loop.close()
