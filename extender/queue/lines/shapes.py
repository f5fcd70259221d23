"""What a gang asks for, without its name."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

from extender.cells.model import OPPORTUNISTIC, MemberRequest
from policy.queues.alternatives import GangTerms
from policy.queues.pools import Pool, pool_of
from policy.submission import DEFAULT_VC, GangKey, PodUid

_NO_GANG = GangKey("", "")

ShapeKind = tuple[MemberRequest, Hashable, bool, GangKey | None, tuple[GangTerms, ...]]
"""Everything of a shape except the sizes and the run time."""


@dataclass(frozen=True, slots=True)
class GangShape:
    """What a gang asks for, without its name."""

    request: MemberRequest
    """Without names and sizes."""
    sizes: tuple[int, ...]
    """Leaf cells of each member that has no place yet, largest first."""
    needs: tuple[Hashable, ...]
    """What its members ask of their nodes."""
    nodes: Hashable
    """Identifies the nodes that it may not use."""
    may_preempt: bool = True
    own: GangKey | None = None
    """The gang itself, if no other gang has its shape: for example, some members run."""
    run: int = 0
    """A class of run times, the shortest first: a longer run fits no gap that is too short."""
    forms: tuple[GangTerms, ...] = ()
    """What it asks for, and what it asks for by each alternative; none without alternatives."""

    @property
    def kind(self) -> ShapeKind:
        """Everything except the sizes and the run time: shapes of one kind can be compared."""
        return self.request, (self.needs, self.nodes), self.may_preempt, self.own, self.forms

    @property
    def is_incremental(self) -> bool:
        """Whether the gang may start with some of its members."""
        return self.request.gang_min is not None or any(
            form.gang_min is not None for form in self.forms
        )

    @property
    def other_pools(self) -> tuple[Pool, ...]:
        """The pools of its alternatives, as far as they differ from its own."""
        own = pool_of(self.request)
        pools = (pool_of(_in_form(self.request, form)) for form in self.forms)
        return tuple(dict.fromkeys(pool for pool in pools if pool != own))


def _in_form(request: MemberRequest, form: GangTerms) -> MemberRequest:
    return replace(request, vc=form.vc, leaf_type=form.leaf_type)


def shape_of(
    request: MemberRequest,
    sizes: Iterable[int],
    *,
    nodes: Hashable,
    own: GangKey | None,
    needs: tuple[Hashable, ...] = (),
    may_preempt: bool = True,
    run: int = 0,
    forms: tuple[GangTerms, ...] = (),
) -> GangShape:
    """Return the shape of a gang; opportunistic gangs of all VCs may use the same cells."""
    nameless = replace(
        request,
        member=PodUid(""),
        gang=_NO_GANG,
        leaf_count=0,
        gang_leaf_counts=(),
        created=0.0,
        checkpoint_cost=None,
        vc=DEFAULT_VC if request.priority == OPPORTUNISTIC else request.vc,
    )
    ordered = tuple(sorted(sizes, reverse=True))
    return GangShape(nameless, ordered, needs, nodes, may_preempt, own, run, forms)
