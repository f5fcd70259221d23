"""Variants and windows of a world whose clock a test advances."""

from collections.abc import Collection
from contextlib import nullcontext

from extender.cells.views.listings import run_to_end
from extender.queue.variants.model import Options, Variants
from extender.queue.variants.search import VariantSearch
from extender.queue.variants.sentences import summary, variant_sentence
from extender.queue.variants.start_windows import StartWindow, WindowSearch
from extender.queue.variants.trials import Trials
from policy.submission import GangKey, LeafType, VcName
from tests.support.queue.timed_world import TimedWorld


def trials_of(world: TimedWorld) -> Trials:
    """What plans gangs that do not exist."""
    planner = world.planner
    return Trials(
        world.cells,
        world,
        run_times=world.run_times,
        seen=planner.seen,
        ranking=planner.ranking,
        reservations=planner.reservations,
        prepare=world.engine.prepare_stepwise,
    )


def find_variants(
    world: TimedWorld,
    gang: GangKey,
    *,
    leaf_types: Collection[str] = (),
    vcs: Collection[str] = (),
) -> Variants:
    """The variants of a gang that waits."""
    options = Options(leaf_types=tuple(map(LeafType, leaf_types)), vcs=tuple(map(VcName, vcs)))
    search = VariantSearch(trials_of(world))
    return run_to_end(search.find(world.planner.seen[gang], options, nullcontext))


def told(variants: Variants) -> list[str]:
    """What their owner reads; times are seconds."""

    def show(seconds: float) -> str:
        return f"{seconds:.0f}"

    sentences = [variant_sentence(one, variants, show=show, name=str) for one in variants.found]
    return [summary(variants, show), *sentences]


def find_window(world: TimedWorld, *, vc: str, leaf_type: str, priority: int = 0) -> StartWindow:
    """What can start now."""
    search = WindowSearch(
        world.cells,
        world,
        world.planner.reservations.gaps,
        prepare=world.engine.prepare_stepwise,
    )
    steps = search.find(
        vc=VcName(vc),
        leaf_type=LeafType(leaf_type),
        priority=priority,
        topology=world.topology,
        now=world.now,
    )
    return run_to_end(steps)
