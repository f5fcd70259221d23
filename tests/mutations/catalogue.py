"""What is broken, and which tests notice. One entry for each rule that the engine must keep.

Only this module imports test modules: it names the test that must fail.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from extender.cells import engine
from extender.cells.decide import applier
from extender.cells.decide.applier import Applier
from extender.cells.decide.decider import Decider
from extender.cells.engine import Engine
from extender.cells.observe import counted_leaves
from extender.cells.observe.adoption import Adopter
from extender.cells.observe.bound_pods import PodObserver
from extender.cells.observe.counted_leaves import ClaimFinder
from extender.cells.observe.lifecycle import GangLifecycle
from extender.cells.observe.nodes import NodeObserver
from extender.cells.preempt import ending_gangs, victims
from extender.cells.preempt.eviction_ranking import EvictionRanking
from extender.cells.preempt.greedy_search import GreedySearch
from extender.cells.preempt.preemption import PreemptionSearch
from extender.cells.preempt.victim_candidates import VictimCandidates
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.ranking import Ranking
from extender.cells.state.registry import Registry
from extender.cells.state.supply import Supply
from extender.cells.state.undo import Trial
from extender.cells.views import invariants
from extender.cells.views.listings import Stepwise
from tests.mutations.mutation import Mutation, Test, always, none, nothing
from tests.mutations.replayed import REPLAYED
from tests.property import test_engine_histories as histories
from tests.unit.extender.cells import test_engine as engines
from tests.unit.extender.cells import test_guarantees as guarantees
from tests.unit.extender.cells import test_late_members as late
from tests.unit.extender.cells import test_recovery as recovered
from tests.unit.extender.cells.decide import test_validity as stale
from tests.unit.extender.cells.fit import test_gang_fit as fits
from tests.unit.extender.cells.observe import test_bound_pods as observed
from tests.unit.extender.cells.observe import test_reconfiguration as topologies
from tests.unit.extender.cells.preempt import test_ending_gangs as leaving
from tests.unit.extender.cells.preempt import test_greedy_search as crowded
from tests.unit.extender.cells.preempt import test_victims as weighed
from tests.unit.extender.cells.views import test_invariants as checks


def _never(*_: object, **__: object) -> bool:
    return False


_map_around, _recover = ClaimFinder._map_around, Engine.recover_stepwise


def _map_unsafely(*args: Any) -> Any:
    with patch.object(Supply, "is_safe", always):
        return _map_around(*args)


def _recover_unsafely(*args: Any, **options: Any) -> Stepwise[Any]:
    with patch.object(Supply, "is_safe", always):
        return (yield from _recover(*args, **options))


@contextmanager
def _keep_everything(_: AllocationTable) -> Iterator[Trial]:
    """Instead of undoing what was only tried."""
    yield Trial()


def _take_the_first(first: Any, *_: Any) -> Any:
    return first


def _fit_anywhere(self: Decider, ask: Any, _: Any) -> Any:
    return self._chains.fit_in_any(ask)


def _seat_the_first_only(self: Applier, decision: Any, slots: Any, now: float) -> None:
    _apply_place(self, decision, slots[:1], now)


_apply_place = Applier._apply_place


def _put_without_merging(self: Supply, cell: Any) -> None:
    for above in cell.upwards():
        if above is not cell:
            above.claims_below -= 1
    self._put(cell)


def _history(seed: int) -> Test:
    return partial(histories.play_history, seed)


def _is_refused(case: Callable[[], stale.Case]) -> Test:
    return partial(stale.test_a_decision_that_is_out_of_date_changes_nothing, case)


def _is_told(words: str) -> Test:
    return partial(checks.test_a_broken_invariant_is_told, words, checks.BROKEN[words])


MUTATIONS = (
    # -- VC safety
    Mutation(
        "VC safety is asked for, and the answer is always yes",
        Supply,
        "is_safe",
        always,
        (recovered.test_recovery_never_breaks_a_promise, _is_refused(stale.a_promise_would_break)),
    ),
    Mutation(
        "VC safety on uneven trees is counted as if they were even",
        Supply,
        "_is_proven",
        lambda self: min(self._count_slack()) >= 0,
        (guarantees.test_where_nodes_differ_a_promised_node_is_not_the_one_that_others_need,),
    ),
    Mutation(
        "VC safety does not count when cells are mapped around what runs",
        ClaimFinder,
        "_map_around",
        _map_unsafely,
        (recovered.test_recovery_never_breaks_a_promise,),
    ),
    Mutation(
        "VC safety does not count in recovery",
        Engine,
        "recover_stepwise",
        _recover_unsafely,
        (recovered.test_recovery_never_breaks_a_promise,),
    ),
    Mutation(
        "VC safety is not looked at again when a decision is applied",
        Applier,
        "_check_promises",
        nothing,
        (_is_refused(stale.a_promise_would_break),),
    ),
    # -- trees, free lists, counters
    Mutation(
        "sums above leaves are not kept",
        AllocationTable,
        "_recount",
        nothing,
        (observed.test_a_pod_on_other_leaves_than_its_slot_moves_the_slot,),
    ),
    Mutation(
        "free cells are not merged",
        Supply,
        "merge",
        _put_without_merging,
        (_history(3),),
    ),
    Mutation(
        "rankings are not kept",
        Ranking,
        "put",
        nothing,
        (fits.test_unequal_members_are_packed_exactly,),
    ),
    Mutation(
        "users of preassigned cells are not counted",
        AllocationTable,
        "_count_user",
        nothing,
        (observed.test_members_that_were_bound_crosswise_change_places,),
    ),
    Mutation(
        "what was tried is not undone",
        AllocationTable,
        "what_if",
        _keep_everything,
        (_is_refused(stale.a_promise_would_break),),
    ),
    # -- least damage
    Mutation(
        "a victim that does not help is not spared",
        victims,
        "_spare",
        _take_the_first,
        (weighed.test_of_many_victims_the_one_that_does_not_help_is_spared,),
    ),
    Mutation(
        "the search for victims ignores gangs that are ending",
        ending_gangs,
        "candidates",
        lambda *_: [],
        (leaving.test_a_gang_on_two_nodes_that_it_shares_with_ending_gangs,),
    ),
    Mutation(
        "that a gang is ending, or not any more, is not noted as a change",
        GangLifecycle,
        "_note_whether_ending",
        nothing,
        (leaving.test_a_gang_that_gets_a_new_member_goes_on,),
    ),
    Mutation(
        "smaller sets of victims are not sought",
        victims,
        "_improve",
        nothing,
        (weighed.test_one_gang_on_two_nodes_rather_than_one_on_each,),
    ),
    Mutation(
        "late members are placed anywhere",
        Decider,
        "_fit_near",
        _fit_anywhere,
        (late.test_a_late_member_shares_a_node_with_its_gang_if_there_is_room,),
    ),
    Mutation(
        "no gang makes room for another",
        PreemptionSearch,
        "find",
        nothing,
        (late.test_a_replacement_preempts_the_gang_that_took_its_place,),
    ),
    # -- no leaf twice
    Mutation(
        "two bound pods may be counted on one leaf",
        counted_leaves,
        "is_bound",
        _never,
        (observed.test_seeing_a_pod_again_changes_nothing,),
    ),
    Mutation(
        "a lease stays where a bound pod runs",
        PodObserver,
        "_evict_lease",
        nothing,
        (observed.test_a_lease_gives_way_to_a_pod_that_runs_there,),
    ),
    Mutation(
        "a pod is thought to be where it was planned",
        PodObserver,
        "_move",
        lambda self, gang, slot, bound: slot,
        (observed.test_a_pod_on_other_leaves_than_its_slot_moves_the_slot,),
    ),
    Mutation(
        "foreign use that could not be counted is never counted",
        PodObserver,
        "count_on",
        nothing,
        (
            observed.test_foreign_use_of_a_node_that_is_all_leased_is_counted_when_the_lease_ends,
            engines.test_a_bound_pod_is_known_before_its_node_is,
        ),
    ),
    Mutation(
        "leaves that a node does not offer are handed out",
        NodeObserver,
        "_not_offered",
        lambda *_: [],
        (observed.test_a_node_that_offers_fewer_devices_than_the_topology_says_has_bad_leaves,),
    ),
    # -- decisions
    Mutation(
        "a decision is applied without another look",
        applier,
        "check_current",
        nothing,
        (_is_refused(stale.a_leaf_is_taken), _is_refused(stale.a_node_is_bad)),
    ),
    Mutation(
        "gangs are not whole: only the first member gets a place",
        Applier,
        "_apply_place",
        _seat_the_first_only,
        (topologies.test_places_that_are_held_survive_a_new_topology,),
    ),
    Mutation(
        "running gangs are recovered in the order of their pods",
        engine,
        "recovery_order",
        lambda bound: 0,
        (recovered.test_recovery_does_not_depend_on_the_order_of_pods,),
    ),
    # -- victims
    Mutation(
        "any gang may be ended",
        PlacedGang,
        "may_be_ended_for",
        always,
        (
            observed.test_a_foreign_pod_on_reserved_leaves_is_never_a_victim,
            _is_refused(stale.its_victim_is_no_victim_any_more),
        ),
    ),
    Mutation(
        "a preemption waits for a gang that it may not end",
        GangLifecycle,
        "cancel_blocked_preemptions",
        nothing,
        (
            observed.test_a_foreign_pod_on_reserved_leaves_is_never_a_victim,
            observed.test_a_victim_that_only_has_foreign_members_left_is_no_victim_any_more,
        ),
    ),
    Mutation(
        "foreign gangs are registered as possible victims",
        Registry,
        "refresh",
        nothing,
        (observed.test_a_gang_that_is_foreign_altogether_is_never_a_victim,),
    ),
    Mutation(
        "victims are looked for among a few gangs only, not among cells",
        GreedySearch,
        "find",
        nothing,
        (partial(crowded.test_a_gang_within_its_share_gets_it_from_a_crowd, "a", (8,) * 24),),
    ),
    Mutation(
        "what clearing a bin costs is remembered for ever",
        EvictionRanking,
        "refresh",
        nothing,
        (partial(histories.play_history, 3),),
    ),
    Mutation(
        "a victim that does not help is not spared",
        VictimCandidates,
        "may_spare",
        lambda *_: _never,
        (weighed.test_of_many_victims_the_one_that_does_not_help_is_spared,),
    ),
    # -- nodes
    Mutation(
        "missing devices stay the same when pods come and go",
        NodeObserver,
        "mark_short",
        nothing,
        (
            observed.test_missing_devices_are_never_those_of_running_pods,
            partial(recovered.test_recovery_counts_the_devices_of_a_node_that_lacks_some, True),
        ),
    ),
    Mutation(
        "a lease on a node that is not known yet is lost",
        PodObserver,
        "_lease_again",
        nothing,
        (partial(recovered.test_a_released_pod_keeps_its_lease_whenever_its_node_is_seen, False),),
    ),
    # -- new topologies
    Mutation(
        "leases are lost with a new topology",
        Adopter,
        "adopt_held",
        nothing,
        (
            topologies.test_places_that_are_held_survive_a_new_topology,
            topologies.test_places_that_wait_for_replacements_survive_a_new_topology,
        ),
    ),
    Mutation(
        "preemptions are lost with a new topology",
        Adopter,
        "_adopt_preemption",
        nothing,
        (topologies.test_a_preemption_goes_on_under_a_new_topology,),
    ),
    Mutation(
        "downgraded gangs are never promoted",
        Adopter,
        "promote",
        nothing,
        (topologies.test_a_downgraded_gang_is_promoted_when_its_vc_has_cells_again,),
    ),
    # -- the check itself
    *(
        Mutation(f"{part} is not checked", invariants, part, none, (_is_told(words),))
        for part, words in (
            ("_leaves", "reserved twice"),
            ("_sums", "idle"),
            ("_claims", "lost or doubled"),
            ("_free_lists", "free list"),
            ("_safety", "VC safety"),
            ("_rankings", "rankings"),
            ("_gangs", "counts against no cell"),
            ("_preemptions", "which it may not end"),
            ("_members", "members and their gangs"),
            ("_standings", "registered at another standing"),
        )
    ),
    # -- what a replay of the log finds
    *REPLAYED,
)
